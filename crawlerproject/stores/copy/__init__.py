"""A frontier copied between RocksDB and Redis, and compared."""
