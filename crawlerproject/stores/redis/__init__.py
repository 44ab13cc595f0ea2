"""The frontier store in Redis, for several workers: partitions with owners, write batches that a fenced worker
cannot make.
"""
