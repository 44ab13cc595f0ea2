"""A file of known size that is read by spans, wherever these come from."""

from __future__ import annotations

import io


class SpanFile(io.RawIOBase):
    """Where a reader stands in it; ``readinto`` is the deriving class's."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at
