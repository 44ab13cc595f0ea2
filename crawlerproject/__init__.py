"""A polite, fast web crawler: seeds in, WARC files out."""

import os

__version__ = "1.7.0"

# numpy's BLAS starts a thread a core as it is imported, which nothing here ever asks anything.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
