"""Whether a frontier can be read to its end: every row of every table, which checks every block on the disk."""

from __future__ import annotations

import struct
from contextlib import closing

from rocksdict import Rdict

from crawlerproject.errors import FrontierDamaged
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.rocks import schema
from crawlerproject.stores.rocks.frontier_folder import KNOWS_NOTHING, never_begun
from crawlerproject.stores.rocks.store import RocksReader
from crawlerproject.stores.rocks.tables import Tables, damaged, open_to_read

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
        names = _tables_in(frontier)
        # The table of hosts that are due as well, where there is one. No crawl runs: its files stay as they are.
        with closing(open_to_read(frontier, names, tries=1)) as opened:
            _read_all(opened, progress)
            if never_begun(RocksReader(opened)) and folder.has_archive():
                return _without_hint(damaged(frontier, KNOWS_NOTHING))
    except FrontierDamaged as error:
        return _without_hint(error)
    except (struct.error, ValueError, IndexError) as error:
        return _without_hint(damaged(frontier, f"a row is none: {error}"))
    return ""


def _tables_in(folder: str) -> list[str]:
    try:
        there = Rdict.list_cf(folder)
    except Exception as error:  # rocksdict raises no narrower class
        raise damaged(folder, str(error)) from error
    return [name for name in schema.NAMED if name in there]


def _read_all(opened: Tables, progress: Progress) -> None:
    """Read every row. Raises FrontierDamaged, or what a row raises that is none."""
    done = 0
    for table in opened.columns:
        read = schema.READ.get(table)
        for key, value in opened.rows(table):
            if table == schema.HOSTS:
                Host.unpack(key.decode(), value)
            elif read is not None:
                read(key, value)
            done += len(key) + len(value)
            if done >= _BYTES_AT_A_TIME:
                progress(done)
                done = 0
    progress(done)


def _without_hint(error: FrontierDamaged) -> str:
    """The sentence up to what is to be done, which is being done."""
    return str(error).rpartition("; scrapy recover")[0] or str(error)
