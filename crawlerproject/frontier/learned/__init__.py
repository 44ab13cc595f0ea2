"""What a crawl learns of hosts and pages: traps, certificates, renders, revisits, duplicates, subscriptions."""
