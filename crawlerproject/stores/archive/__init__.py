"""WARC files: written, read strictly, repaired, packed as WACZ."""
