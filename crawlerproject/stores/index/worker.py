"""``python -m crawlerproject.stores.index.worker WARC INDEX_FOLDER [PARQUET_FOLDER CRAWL]``: a closed WARC's indexes.

In a process of its own: in the crawl's, those of a large WARC took memory that Python does not give back (180 MB for
the 47,000 captures of a broad crawl, Arrow included), and Python's lock beside the event loop.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from crawlerproject.errors import StorageError
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.stores.index.parquet import ParquetFiles


def main() -> None:
    """The process."""
    threading.Thread(target=_end_with_the_crawl, daemon=True).start()
    warc, folder, *parquet = sys.argv[1:]
    index = CdxjFiles(Path(folder), ParquetFiles(Path(parquet[0]), parquet[1]) if parquet else None)
    try:
        messages = index.finish(Path(warc))
    except (StorageError, OSError) as error:
        sys.exit(str(error))
    print(*messages, sep="\n", end="\n" if messages else "")


def _end_with_the_crawl() -> None:
    """After a ``kill -9`` of the crawl the next start makes the index, and must be the only one that does."""
    os.read(0, 1)  # the other end is the crawl's, and nothing is ever written
    os._exit(1)


if __name__ == "__main__":
    main()
