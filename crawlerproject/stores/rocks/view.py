"""A crawl's folder looked at from outside, while the crawl runs or after: nothing in it is changed or locked.

``FrontierView`` shows the frontier as of the last commit before it was opened (a running crawl commits about once
a second): make a new one to look again. What only the running process knows is in ``status.json``, which it writes
itself, about once a second; ``run.json`` says with which seeds and settings it was started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from rocksdict import AccessType, Options, Rdict, ReadOptions

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.crawl_dir import holds_database
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks import options as tables
from crawlerproject.stores.rocks.folder import other_version
from crawlerproject.stores.rocks.store import FORMAT, FORMAT_FACT, RocksStore
from crawlerproject.stores.rocks.tables import Tables
from crawlerproject.stores.row_codec import host_end, host_prefix, unpack_queued

# Files of the running crawl come and go while they are opened: look again so often, this far apart.
_TRIES, _BETWEEN_SECONDS = 20, 0.05
_ROCKSDICT_FILE = "rocksdict-config.json"
_KEEP_OPEN = -1  # RocksDB: all files, so that none vanishes under the reader


class FrontierView(RocksStore):
    """The questions of a ``FrontierStore`` and none of its changes."""

    tries = _TRIES

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if not holds_database(Path(folder)):
            raise OperatorError(f"{Path(folder).parent} is not the folder of a crawl; set CRAWL_DIR to one.")
        super().__init__(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state, in order of name."""
        rows = self._tables.hosts.iter()
        rows.seek_to_first()
        while rows.valid():
            yield rows.key().decode(), rows.value()
            rows.next()
        self._require_end(rows)

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every crawl-wide fact whose name begins with ``prefix``, in order of name."""
        rows = self._tables.database.iter()
        rows.seek(prefix.encode())
        while rows.valid() and (name := rows.key().decode()).startswith(prefix):
            yield name, rows.value()
            rows.next()
        self._require_end(rows)

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        prefix = host_prefix(host)
        options = ReadOptions()
        options.set_iterate_upper_bound(host_end(prefix))
        rows = self._tables.queue.iter(options)
        rows.seek(prefix)
        while rows.valid():
            yield unpack_queued(host, rows.key(), rows.value())
            rows.next()
        self._require_end(rows)

    def apply(self, changes: Changes) -> None:
        """Refused: this only looks."""
        raise StorageError("this view of the frontier is read-only")

    def _prepare(self) -> None:
        """Nothing is made."""

    def _database_opened(self) -> Rdict:
        options = tables.database_options()
        options.create_if_missing(False)
        options.create_missing_column_families(False)
        options.set_max_open_files(_KEEP_OPEN)
        shown = self._shown()
        with TemporaryDirectory(prefix="frontier-") as here:
            for left in reversed(range(self.tries)):
                _link_files(Path(self._folder).absolute(), Path(here))
                try:
                    return Rdict(here, options, shown, access_type=AccessType.read_only(False))
                except Exception as error:  # rocksdict raises no narrower class
                    if not left:
                        raise StorageError(str(error).replace(here, self._folder)) from error
                time.sleep(_BETWEEN_SECONDS)
        raise AssertionError("unreachable")

    def _shown(self) -> dict[str, Options]:
        """The tables that are looked at."""
        shown = tables.table_options()
        del shown[tables.DUE]  # says nothing that is not in the others, and older folders have none
        return shown

    def _opened(self, database: Rdict) -> Tables:
        return Tables(database, viewed=True)

    def _check_format(self) -> None:
        written = self.fact(FORMAT_FACT)
        if written is not None and int(written) != FORMAT:
            self._release()
            raise other_version(self._folder, newer=int(written) > FORMAT)


def _link_files(folder: Path, here: Path) -> None:
    """Another way in: rocksdict (0.3) writes its own settings file into whatever folder it opens, to read only too."""
    for link in here.iterdir():
        link.unlink()
    for file in folder.iterdir():
        if file.name != _ROCKSDICT_FILE:
            (here / file.name).symlink_to(file)
