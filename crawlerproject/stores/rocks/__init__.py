"""The frontier store in RocksDB, for one process, and its read-only view."""
