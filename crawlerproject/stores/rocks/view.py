"""A frontier seen from outside, while its crawl runs or after: nothing in its folder is changed or locked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Self

from crawlerproject.stores.rocks.reader import RocksReader
from crawlerproject.stores.rocks.tables import READ_TABLES, TRIES, open_to_read


class FrontierView(RocksReader):
    """The frontier as of the last commit before it was opened, which is about a second ago; open another to look again.

    Raises OperatorError when there is none.
    """

    def __init__(
        self, folder: str | os.PathLike[str], tables: Iterable[str] = READ_TABLES, *, tries: int = TRIES
    ) -> None:
        super().__init__(open_to_read(os.fspath(folder), tables, tries))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._tables.close(failed=False)
