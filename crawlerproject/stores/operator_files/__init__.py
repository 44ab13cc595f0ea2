"""Files that an operator edits: settings, exclusions, paces, traps to allow, orders to a running crawl."""
