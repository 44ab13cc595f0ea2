"""A polite, fast web crawler: seeds in, WARC files out."""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - a checkout can be run with another
    raise SystemExit("The crawler needs Python 3.11 or later; this is {}.{}.".format(*sys.version_info))

__version__ = "1.7.0"

# numpy's BLAS starts a thread a core as it is imported, which nothing here ever asks anything. A script that imports
# ``crawlerproject.api`` may: that module takes the bound away again, where it is ours.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
BLAS_IS_FREE = BLAS_THREADS not in os.environ
if BLAS_IS_FREE:
    os.environ[BLAS_THREADS] = "1"
