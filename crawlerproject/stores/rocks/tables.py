"""An open RocksDB: its tables to read, their handles for batches, and what to say when it cannot be used."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from rocksdict import AccessType, ColumnFamily, Rdict, RdictIter, ReadOptions

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.stores.atomic_files import SECRET_FOLDER
from crawlerproject.stores.crawl_dir import CrawlDir, holds_database
from crawlerproject.stores.formats import FORMATS
from crawlerproject.stores.rocks import options as names

FORMAT = FORMATS["frontier"]
"""The layout of rows and tables; a store with another number was written by another version of this project."""
FORMAT_FACT = "format"

TRIES = 20
"""Files of a running crawl come and go while they are opened: a reader looks again so often."""
_BETWEEN_SECONDS = 0.05
_WRITERS_TABLES = (names.DUE, names.MESSAGES)
READ_TABLES = tuple(name for name in names.TABLES if name not in _WRITERS_TABLES)
"""Only the crawling process reads the other two: who looks on needs neither, and older folders have none."""
_ROCKSDICT_FILE = "rocksdict-config.json"
_KEEP_OPEN = -1  # RocksDB: all files, so that none vanishes under the reader

# A file that the manifest names, or the manifest itself, is not there any more.
_DAMAGED = ("Corruption", "IO error: No such file or directory")
_LOCKED = ("Resource temporarily unavailable", "No locks available", "lock hold by current process")


class Tables:
    """The tables of one opened database; nothing of it may be kept beyond ``close``."""

    def __init__(self, database: Rdict, folder: str, *, viewed: bool = False) -> None:
        """``viewed``: opened without the tables that only the crawling process reads."""
        table, handle = database.get_column_family, database.get_column_family_handle
        self.folder = folder
        self.database: Rdict = database  # its own table holds the crawl-wide facts
        self.queue: Rdict = table(names.QUEUE)
        self.seen: Rdict = table(names.SEEN)
        self.pages: Rdict = table(names.PAGES)
        self.hosts: Rdict = table(names.HOSTS)
        self.robots: Rdict = table(names.ROBOTS)
        self.prints: Rdict = table(names.PRINTS)
        self.payloads: Rdict = table(names.PAYLOADS)
        self.queue_handle: ColumnFamily = handle(names.QUEUE)
        self.seen_handle: ColumnFamily = handle(names.SEEN)
        self.pages_handle: ColumnFamily = handle(names.PAGES)
        self.hosts_handle: ColumnFamily = handle(names.HOSTS)
        self.robots_handle: ColumnFamily = handle(names.ROBOTS)
        self.prints_handle: ColumnFamily = handle(names.PRINTS)
        self.payloads_handle: ColumnFamily = handle(names.PAYLOADS)
        if not viewed:
            self.due: Rdict = table(names.DUE)
            self.due_handle: ColumnFamily = handle(names.DUE)
            self.messages: Rdict = table(names.MESSAGES)
            self.messages_handle: ColumnFamily = handle(names.MESSAGES)

    def require_end(self, rows: RdictIter) -> None:
        """Raise FrontierDamaged where an iterator stopped at what cannot be read, which looks like the end."""
        try:
            rows.status()
        except Exception as error:  # rocksdict raises no narrower class
            raise damaged(self.folder, str(error)) from error

    def rows(
        self, table: Rdict, start: bytes = b"", options: ReadOptions | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Every row of a table from ``start`` on, in order of key; as they were when the iteration began."""
        found = table.iter(options)
        found.seek(start)
        while found.valid():
            yield found.key(), found.value()
            found.next()
        self.require_end(found)

    def require_format(self) -> bool:
        """Whether a format is written there. Raises OperatorError for another one than ours, and closes."""
        written = self.database.get(FORMAT_FACT.encode())
        if written is not None and int(written) != FORMAT:
            folder = self.folder
            self.close(failed=False)
            raise other_version(folder, newer=int(written) > FORMAT)
        return written is not None

    def all(self) -> list[Rdict]:
        """Each table that is open, the crawl-wide facts last."""
        tables = [self.queue, self.seen, self.pages, self.hosts, self.robots, self.prints, self.payloads]
        return [*tables, *(each for name in _WRITERS_TABLES if (each := self.__dict__.get(name))), self.database]

    def close(self, *, failed: bool) -> None:
        """Let go; ``failed``: a write did before, and closing repeats its error, which is not raised again.

        Raises StorageError, with everything let go: what was made durable is found by the next opening.
        """
        tables = self.all()
        self.__dict__.clear()  # the lock on the folder falls when the last handle is gone, not at close() alone
        errors = []
        for table in tables:
            try:
                table.close()
            except Exception as error:  # rocksdict raises no narrower class
                errors.append(error)
        if errors and not failed:
            raise StorageError(f"the frontier cannot be closed: {errors[0]}") from errors[0]


def open_to_write(folder: str) -> Tables:
    """Open a database for the one process that writes it, a new one in a new folder. Raises OperatorError."""
    make_folder(folder)
    try:
        database = Rdict(folder, names.database_options(), names.table_options())
    except Exception as error:  # rocksdict raises no narrower class
        raise opening_error(folder, str(error)) from error
    tables = Tables(database, folder)
    if not tables.require_format():
        try:
            database.put(FORMAT_FACT.encode(), str(FORMAT).encode())
        except Exception as error:
            raise opening_error(folder, str(error)) from error
    return tables


def open_to_read(folder: str, shown: Iterable[str] = READ_TABLES, tries: int = TRIES) -> Tables:
    """Open the tables ``shown`` of a database that another process may be writing. Raises OperatorError."""
    tables = Tables(_opened_to_read(folder, shown, tries), folder, viewed=True)
    tables.require_format()
    return tables


def open_facts(folder: str) -> Rdict:
    """The crawl-wide facts of such a database alone, by name: 5 ms, however large it is. Raises OperatorError."""
    facts = _opened_to_read(folder, (), TRIES)
    written = facts.get(FORMAT_FACT.encode())
    if written is not None and int(written) != FORMAT:
        facts.close()
        raise other_version(folder, newer=int(written) > FORMAT)
    return facts


def _opened_to_read(folder: str, shown: Iterable[str], tries: int) -> Rdict:
    if not holds_database(Path(folder)):
        raise OperatorError(f"{Path(folder).parent} is not the folder of a crawl; set CRAWL_DIR to one.")
    try:
        return _opened_beside(Path(folder), frozenset(shown), tries)
    except FrontierDamaged:
        raise
    except Exception as error:
        raise opening_error(folder, str(error)) from error


def _opened_beside(folder: Path, shown: frozenset[str], tries: int) -> Rdict:
    options = names.database_options()
    options.create_if_missing(False)
    options.create_missing_column_families(False)
    options.set_max_open_files(_KEEP_OPEN)
    tables = {name: each for name, each in names.table_options().items() if name in shown}
    with TemporaryDirectory(prefix="frontier-") as here:
        for left in reversed(range(tries)):
            _link_files(folder.absolute(), Path(here))
            try:
                return Rdict(here, options, tables, access_type=AccessType.read_only(False))
            except Exception as error:  # rocksdict raises no narrower class
                if not left:
                    raise StorageError(str(error).replace(here, os.fspath(folder))) from error
            time.sleep(_BETWEEN_SECONDS)
    raise AssertionError("unreachable")


def _link_files(folder: Path, here: Path) -> None:
    """Another way in: rocksdict (0.3) writes its own settings file into whatever folder it opens, to read only too."""
    for link in here.iterdir():
        link.unlink()
    for file in folder.iterdir():
        if file.name != _ROCKSDICT_FILE:
            (here / file.name).symlink_to(file)


def make_folder(folder: str) -> None:
    """Make the folder; OperatorError when it cannot be written."""
    try:
        os.makedirs(folder, SECRET_FOLDER, exist_ok=True)  # the secrets of hubs stand in it
    except OSError as error:
        raise _unwritable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "permission denied")


def opening_error(folder: str, detail: str) -> OperatorError:
    """What to say when RocksDB cannot open the folder, by its own words (``detail``)."""
    if any(sign in detail for sign in _LOCKED):
        return OperatorError(
            f"The crawl folder {folder} is in use by a running crawl; stop it, or set CRAWL_DIR to another folder."
        )
    if "Column families not opened" in detail:
        return other_version(folder, newer=True)
    if "Column family not found" in detail:  # only where nothing may be made: stores/rocks/store.py
        return OperatorError(
            f"The crawl folder {folder} was written by an older version of this crawler; start that crawl once more."
        )
    if detail.startswith(_DAMAGED):
        return damaged(folder, detail)
    return _unwritable(folder, detail)


def damaged(folder: str, detail: str) -> FrontierDamaged:
    """What to say of a frontier that cannot be read to its end."""
    crawl, why = whole_crawl(Path(folder).parent), " ".join(detail.split())
    return FrontierDamaged(
        f"The frontier in {folder} is damaged ({why}); scrapy recover {crawl} makes it again from the archive."
    )


def whole_crawl(folder: Path) -> Path:
    """The folder of the crawl that ``folder`` is a worker's of, on one machine; else itself."""
    return folder.parent if CrawlDir(folder.parent).fleet_plan.exists() else folder


def other_version(folder: str, *, newer: bool) -> OperatorError:
    """What to say of a folder whose layout this version does not know."""
    return OperatorError(
        f"The crawl folder {folder} was written by {'a newer' if newer else 'an older'} version of this crawler; "
        "use that version, or set CRAWL_DIR to another folder."
    )


def _unwritable(folder: str, detail: str) -> OperatorError:
    return OperatorError(
        f"The crawl folder {folder} cannot be written ({detail}); make it writable, or set CRAWL_DIR to another folder."
    )
