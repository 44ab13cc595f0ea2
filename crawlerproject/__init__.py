"""A polite, fast web crawler: seeds in, WARC files out."""

__version__ = "1.0"
