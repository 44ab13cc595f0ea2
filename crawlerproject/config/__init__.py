"""What settings, environment and ``crawl.toml`` say, read once and handed on as plain values."""
