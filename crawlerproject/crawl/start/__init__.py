"""A start: settings and arguments checked, the folder's crawl continued, its first URLs queued."""
