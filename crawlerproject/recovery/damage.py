"""Whether a frontier can be read to its end: every row of every table, which checks every block on the disk."""

from __future__ import annotations

import struct

from rocksdict import Rdict, ReadOptions

from crawlerproject.errors import FrontierDamaged
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.rocks import options as tables
from crawlerproject.stores.rocks.frontier_folder import KNOWS_NOTHING, never_begun
from crawlerproject.stores.rocks.store import FrontierView
from crawlerproject.stores.rocks.tables import damaged
from crawlerproject.stores.row_codec import host_of, unpack_queued, unpack_record

# Of rows, between two calls of ``progress``.
_BYTES_AT_A_TIME = 1 << 20


def damage_of(folder: CrawlDir, progress: Progress) -> str:
    """What is wrong with a crawl folder's frontier, as a sentence; "" for one that is whole.

    ``progress`` is called with the bytes of rows, unpacked. Raises OperatorError for one of another version.
    """
    if not folder.has_frontier():
        return f"There is no frontier in {folder}"
    frontier = str(folder.frontier)
    try:
        with _WholeView(frontier) as view:
            view.read_all(progress)
            if never_begun(view) and folder.has_archive():
                return _without_hint(damaged(frontier, KNOWS_NOTHING))
    except FrontierDamaged as error:
        return _without_hint(error)
    except (struct.error, ValueError, IndexError) as error:
        return _without_hint(damaged(frontier, f"a row is none: {error}"))
    return ""


class _WholeView(FrontierView):
    """Reads the table of hosts that are due as well, where there is one. No crawl runs: its files stay as they are."""

    def __init__(self, folder: str) -> None:
        self._names = _tables_in(folder)
        super().__init__(folder, self._names, tries=1)

    def read_all(self, progress: Progress) -> None:
        """Every row. Raises FrontierDamaged, or what a row raises that is none."""
        done = 0
        for name in ("", *self._names):
            column = self._tables.database.get_column_family(name) if name else self._tables.database
            options = ReadOptions()
            options.set_total_order_seek(True)
            for key, value in self._tables.rows(column, options=options):
                _unpack(name, key, value)
                done += len(key) + len(value)
                if done >= _BYTES_AT_A_TIME:
                    progress(done)
                    done = 0
        progress(done)


def _tables_in(folder: str) -> list[str]:
    try:
        there = Rdict.list_cf(folder)
    except Exception as error:  # rocksdict raises no narrower class
        raise damaged(folder, str(error)) from error
    return [name for name in tables.TABLES if name in there]


def _without_hint(error: FrontierDamaged) -> str:
    """The sentence up to what is to be done, which is being done."""
    return str(error).rpartition("; scrapy recover")[0] or str(error)


def _unpack(table: str, key: bytes, value: bytes) -> None:
    if table == tables.HOSTS:
        Host.unpack(key.decode(), value)
    elif table == tables.QUEUE:
        unpack_queued(host_of(key), key, value)
    elif table == tables.PAGES:
        unpack_record(value)
