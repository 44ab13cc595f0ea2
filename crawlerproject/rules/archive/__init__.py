"""What is written: WARC records, index lines, the request log's line, digests."""
