"""Which pages need a browser, what it may load, and whether it was worth it."""
