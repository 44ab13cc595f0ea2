"""When a known page is worth another visit, by its history of changes."""
