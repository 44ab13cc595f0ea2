"""Files that an operator edits while a crawl runs: exclusions, paces, traps to allow."""
