"""``python -m crawlerproject.stores.index.worker WARC INDEX_FOLDER [PARQUET_FOLDER CRAWL]``: a closed WARC's indexes.

In a process of its own: in the crawl's, those of a large WARC took memory that Python does not give back (180 MB for
the 47,000 captures of a broad crawl, Arrow included), and Python's lock beside the event loop.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from crawlerproject.errors import StorageError


def finish_apart(warc: Path, folder: Path, parquet: tuple[Path, str] | None) -> list[str]:
    """``CdxjFiles.finish`` of a WARC in such a process; StorageError when it fails, OSError when it cannot begin."""
    command = [sys.executable, "-m", __name__, str(warc), str(folder), *map(str, parquet or ())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is for the crawl, which then waits for its index
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read().splitlines()
    if process.returncode:
        raise StorageError(said[-1] if said else f"its process ended with status {process.returncode}")
    return said


def main() -> None:
    """The process."""
    from crawlerproject.stores.index.cdxj import CdxjFiles
    from crawlerproject.stores.index.parquet import ParquetFiles

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
