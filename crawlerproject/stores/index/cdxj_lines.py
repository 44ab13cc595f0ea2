"""The lines of many CDXJ files as of one: a large archive has more of them than a process may have descriptors."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

_READ_BYTES = 16 * 1024
"""Of each file at a time (ours): with 5,000 files 80 MB."""


def merged_lines(indexes: Iterable[Path]) -> Iterator[bytes]:
    """The lines of all files, each of which is sorted, in one order. Raises OSError."""
    return heapq.merge(*map(_lines, indexes))


def _lines(path: Path) -> Iterator[bytes]:
    read = 0
    while True:
        with path.open("rb") as file:  # between two reads it is closed
            file.seek(read)
            lines = file.readlines(_READ_BYTES)
        if not lines:
            return
        read += sum(map(len, lines))
        yield from lines
