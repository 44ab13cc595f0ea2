"""An open RocksDB: its tables to read row by row, their handles for batches, and what to say when it cannot be used.

How RocksDB is set up for a frontier: how much memory and disk its tables may take.

Memory does not grow with the number of URLs: it is bounded by the two budgets below, whatever the disk holds
(indexes and filters of the files live inside the block cache and are read in parts).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    ChecksumType,
    ColumnFamily,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    SliceTransform,
    WriteBatch,
)

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.stores import row_codec
from crawlerproject.stores.atomic_files import SECRET_FOLDER, require_room
from crawlerproject.stores.crawl_dir import CrawlDir, holds_database

MIB = 1 << 20

# Rows not yet in a sorted file, all tables together. With the cache below it keeps the store under
# 180 MB of the 400 MB that a whole crawl may take (benchmarks/frontier_store.py prints the resident size).
WRITE_BUFFERS_BYTES = 80 * MIB
# One table's share before it is written out. What is written at a time decides how often a row is merged again: 16 MB
# took a half more of RocksDB's own time a URL.
WRITE_BUFFER_BYTES = 32 * MIB
# Blocks, indexes and filters of the sorted files.
BLOCK_CACHE_BYTES = 48 * MIB
# Full buffers that may wait to be written out before writers must: RocksDB's two stalled the event loop.
WRITE_BUFFERS = 4
# The log is replayed at start; past this size RocksDB writes out the oldest table. Replay is about 100 MB/s.
WAL_BYTES = 96 * MIB
# Ten bits a key: one "known" question in a hundred reads a block in vain (RocksDB's own advice).
BLOOM_BITS = 10
# The share of a write buffer that says which hosts have rows in it (RocksDB allows up to a quarter).
PREFIX_BLOOM_RATIO = 0.02
# The same for each key: a new URL is not looked for among a hundred thousand others (measured: 1.0 instead of 2.1 us).
KEY_BLOOM_RATIO = 0.05
# Sorted files of SEEN that wait to be merged into one: each is one more filter that a look has to ask. At ten million
# URLs 21 million filters said no, 33 with twice as many files; RocksDB wrote a tenth more for it.
FILES_TO_MERGE = 4
# The same of QUEUE, whose rows are merged into what lies below: with half as many 39 instead of 24 million rows were
# merged for ten million URLs. A look asks a filter of each, but is made for several rows at once.
QUEUE_FILES_TO_MERGE = 8
# Files stay open while used; sockets need descriptors more than the store does.
OPEN_FILES = 256
# One flush and one compaction at a time: a two-core machine must still crawl meanwhile.
BACKGROUND_JOBS = 2
# Slow writers down only when compaction is hopelessly behind: a stalled write would stall the event loop.
SLOWDOWN_FILES, STOP_FILES = 40, 80
# A file in which this many of so many neighbouring rows are removals is compacted soon (the head of a long queue).
REMOVAL_WINDOW, REMOVAL_TRIGGER = 4096, 2048
# Enough for a post-mortem, too little to matter on disk.
LOG_BYTES, LOG_FILES = MIB, 2


def database_options() -> Options:
    """Options of the database as a whole and of its default table."""
    options = _table(BlockBasedOptions(), compress=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_db_write_buffer_size(WRITE_BUFFERS_BYTES)
    options.set_max_total_wal_size(WAL_BYTES)
    options.set_max_open_files(OPEN_FILES)
    options.set_max_background_jobs(BACKGROUND_JOBS)
    options.set_bytes_per_sync(MIB)  # spread a file's writing out; not the log's, which would stall the event loop
    options.set_max_log_file_size(LOG_BYTES)
    options.set_keep_log_file_num(LOG_FILES)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def table_options(cache_bytes: int = BLOCK_CACHE_BYTES) -> dict[str, Options]:
    """Options of each table, all sharing one block cache."""
    cache = Cache(cache_bytes)
    queue = _table(_blocks(cache), compress=True)
    # The head of a queue is looked for only in files that hold rows of that host.
    queue.set_prefix_extractor(SliceTransform.create_fixed_prefix(row_codec.HASH_BYTES))
    queue.set_memtable_prefix_bloom_ratio(PREFIX_BLOOM_RATIO)
    queue.set_level_zero_file_num_compaction_trigger(QUEUE_FILES_TO_MERGE)
    queue.add_compact_on_deletion_collector_factory(REMOVAL_WINDOW, REMOVAL_TRIGGER, 0.5)
    due = _table(_blocks(cache), compress=True)
    # Its head moves on as hosts are taken up: what was removed before it must not be read for long.
    due.add_compact_on_deletion_collector_factory(REMOVAL_WINDOW, REMOVAL_TRIGGER, 0.5)
    messages = _table(_blocks(cache), compress=True)
    messages.add_compact_on_deletion_collector_factory(REMOVAL_WINDOW, REMOVAL_TRIGGER, 0.5)  # as the heads of queues
    seen = _table(_blocks(cache), compress=False)  # keys are hashes: nothing to compress
    seen.set_memtable_whole_key_filtering(True)
    seen.set_memtable_prefix_bloom_ratio(KEY_BLOOM_RATIO)
    # Files of like size are merged, a key as often as the log of their number says; by levels each write-out was merged
    # with most of the table again. Filters keep the look at a key as cheap, which a queue's head has none for: its rows
    # would lie in more files. Folders of either kind are read.
    seen.set_compaction_style(DBCompactionStyle.universal())
    seen.set_level_zero_file_num_compaction_trigger(FILES_TO_MERGE)
    return {
        row_codec.QUEUE: queue,
        row_codec.SEEN: seen,
        row_codec.PAGES: _table(_blocks(cache), compress=True),
        row_codec.HOSTS: _table(_blocks(cache), compress=True),
        row_codec.ROBOTS: _table(_blocks(cache), compress=True),
        row_codec.PRINTS: _table(_blocks(cache), compress=True),
        row_codec.PAYLOADS: _table(_blocks(cache), compress=True),
        row_codec.DUE: due,
        row_codec.MESSAGES: messages,
    }


def _blocks(cache: Cache) -> BlockBasedOptions:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(cache)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_format_version(5)
    # In parts of a block each: a whole index does not fit its share of the cache and would be read again for every
    # iterator (measured: 210 µs instead of 9).
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_pin_top_level_index_and_filter(True)
    blocks.set_checksum_type(ChecksumType.xxh3())  # rocksdict's build has no instruction for its crc32c
    blocks.set_bloom_filter(BLOOM_BITS, False)
    blocks.set_partition_filters(True)
    return blocks


def _table(blocks: BlockBasedOptions, *, compress: bool) -> Options:
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.lz4() if compress else DBCompressionType.none())
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(WRITE_BUFFERS)
    options.set_level_zero_slowdown_writes_trigger(SLOWDOWN_FILES)
    options.set_level_zero_stop_writes_trigger(STOP_FILES)
    return options


RESERVE_BYTES = WRITE_BUFFERS_BYTES + 16 * MIB
"""Below this much free disk nothing is begun: all that is in memory can still be written, with a file's overhead."""
TRIES = 20
"""Files of a running crawl come and go while they are opened: a reader looks again so often."""
_BETWEEN_SECONDS = 0.05
READ_TABLES = tuple(name for name in row_codec.NAMED if name not in (row_codec.DUE, row_codec.MESSAGES))
"""Only the crawling process reads the other two: who looks on needs neither, and older folders have none."""
_ROCKSDICT_FILE = "rocksdict-config.json"
_KEEP_OPEN = -1  # RocksDB: all files, so that none vanishes under the reader
_AT_ONCE = 500  # rows of a whole table that are read (ours): a row by itself costs a third more

# A file that the manifest names, or the manifest itself, is not there any more.
_DAMAGED = ("Corruption", "IO error: No such file or directory")
_LOCKED = ("Resource temporarily unavailable", "No locks available", "lock hold by current process")


class RawBatch:
    """Rows of several tables that are put or removed at once."""

    def __init__(self, handles: dict[str, ColumnFamily | None]) -> None:
        self._handles = handles
        self.batch = WriteBatch(raw_mode=True)
        self.rows = 0
        self.bytes = 0

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Add a row, or write over it."""
        self.batch.put(key, value, self._handles[table])
        self.rows += 1
        self.bytes += len(key) + len(value)

    def delete(self, table: str, key: bytes) -> None:
        """Remove a row, if it is there."""
        self.batch.delete(key, self._handles[table])
        self.rows += 1


class Tables:
    """The tables of one opened database; nothing of it may be kept beyond ``close``."""

    queue: Rdict
    seen: Rdict
    pages: Rdict
    hosts: Rdict
    robots: Rdict
    fingerprints: Rdict
    payloads: Rdict
    due: Rdict
    messages: Rdict

    def __init__(self, database: Rdict, folder: str, shown: Iterable[str] = row_codec.NAMED) -> None:
        """``shown``: the tables that were opened, each an attribute of its name."""
        self.folder = folder
        self.database = database  # its own table holds the crawl-wide facts
        self.columns: dict[str, Rdict] = {name: database.get_column_family(name) for name in shown}
        self.handles: dict[str, ColumnFamily | None] = {
            name: database.get_column_family_handle(name) for name in self.columns
        }
        self.__dict__.update(self.columns)
        self.columns[row_codec.FACTS], self.handles[row_codec.FACTS] = database, None

    # --- rows -----------------------------------------------------------------------------------

    def get(self, table: str, key: bytes) -> bytes | None:
        """One row."""
        value: bytes | None = self.columns[table].get(key)
        return value

    def rows(self, table: str, behind: bytes = b"", prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All rows of a table in order, those behind a key, or those that begin with a prefix; as of now."""
        return chain.from_iterable(self.slices(table, behind, prefix))

    def slices(self, table: str, behind: bytes = b"", prefix: bytes = b"") -> Iterator[Sequence[tuple[bytes, bytes]]]:
        """The same, some at a time."""
        found = self.columns[table].iter(_in_order())
        if not behind and not prefix:  # a third cheaper, but silent about what cannot be read: the other says it
            whole = _in_order()
            # Each block is read once: a fifth cheaper, and the cache keeps what is asked for.
            whole.fill_cache(False)  # type: ignore[call-arg]  # rocksdict 0.3 declares it without its argument
            whole.set_readahead_size(MIB)
            silent = cast("Iterator[tuple[bytes, bytes]]", self.columns[table].items(read_opt=whole))
            while some := list(islice(silent, _AT_ONCE)):
                yield some
                behind = some[-1][0]
        found.seek(behind + b"\0" if behind else prefix)
        while found.valid() and (key := found.key()).startswith(prefix):
            yield ((key, found.value()),)
            found.next()
        self.require_end(found)

    def require_end(self, rows: RdictIter) -> None:
        """Raise FrontierDamaged where an iterator stopped at what cannot be read, which looks like the end."""
        try:
            rows.status()
        except Exception as error:  # rocksdict raises no narrower class
            raise damaged(self.folder, str(error)) from error

    # --- changes --------------------------------------------------------------------------------

    def batch(self) -> RawBatch:
        """An empty change of this database."""
        return RawBatch(self.handles)

    def write(self, batch: RawBatch) -> None:
        """Apply a change: all of it, but not yet safe from a power loss. StorageError."""
        require_room(self.folder, RESERVE_BYTES)
        try:
            self.database.write(batch.batch)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"the frontier in {self.folder} cannot be written: {error}") from error

    def put(self, rows: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Put rows (table, key, value) as one change. StorageError."""
        batch = self.batch()
        for table, key, value in rows:
            batch.put(table, key, value)
        self.write(batch)

    def sync(self) -> None:
        """Make everything written so far survive a power loss. StorageError."""
        try:
            self.database.flush_wal(sync=True)
        except Exception as error:  # rocksdict raises no narrower class
            raise StorageError(f"the frontier in {self.folder} cannot be made durable: {error}") from error

    def close(self, *, failed: bool = False) -> None:
        """Let go, harmless when done twice; ``failed``: a write did before, and closing repeats its error.

        Raises StorageError, with everything let go: what was made durable is found by the next opening.
        """
        tables = list(self.__dict__.get("columns", {}).values())  # the database itself last
        self.__dict__.clear()  # the lock on the folder falls with the last handle, not at close() alone
        errors = []
        for table in tables:
            try:
                table.close()
            except Exception as error:  # rocksdict raises no narrower class
                errors.append(error)
        if errors and not failed:
            raise StorageError(f"the frontier cannot be closed: {errors[0]}") from errors[0]


def open_to_write(folder: str | os.PathLike[str], shares: int = 1) -> Tables:
    """Open a database for the one process that writes it, a new one in a new folder. Raises OperatorError.

    ``shares``: so many of them are open in this process, and share the memory of one.
    """
    folder = os.fspath(folder)
    make_folder(folder)
    of_database = database_options()
    of_database.set_db_write_buffer_size(max(MIB, WRITE_BUFFERS_BYTES // shares))
    try:
        database = Rdict(folder, of_database, table_options(BLOCK_CACHE_BYTES // shares))
    except Exception as error:  # rocksdict raises no narrower class
        raise opening_error(folder, str(error)) from error
    if not _has_our_format(database, folder):
        try:
            database.put(row_codec.FORMAT_FACT.encode(), str(row_codec.FORMAT).encode())
        except Exception as error:  # rocksdict raises no narrower class
            raise opening_error(folder, str(error)) from error
    return Tables(database, folder)


def open_to_read(folder: str | os.PathLike[str], shown: Iterable[str] = READ_TABLES, tries: int = TRIES) -> Tables:
    """Open the tables ``shown`` of a database that another process may be writing. Raises OperatorError."""
    database = _opened_to_read(os.fspath(folder), shown, tries)
    _has_our_format(database, os.fspath(folder))
    return Tables(database, os.fspath(folder), shown)


def open_facts(folder: str | os.PathLike[str]) -> Rdict:
    """The crawl-wide facts of such a database alone, by name: 5 ms, however large it is. Raises OperatorError."""
    facts = _opened_to_read(os.fspath(folder), (), TRIES)
    _has_our_format(facts, os.fspath(folder))
    return facts


def _has_our_format(database: Rdict, folder: str) -> bool:
    """Whether a format is written there. Raises OperatorError for another one than ours, and closes."""
    written = database.get(row_codec.FORMAT_FACT.encode())
    if written is not None and int(written) != row_codec.FORMAT:
        database.close()
        raise other_version(folder, newer=int(written) > row_codec.FORMAT)
    return written is not None


def _opened_to_read(folder: str, shown: Iterable[str], tries: int) -> Rdict:
    if not holds_database(Path(folder)):
        raise OperatorError(f"{Path(folder).parent} is not the folder of a crawl; set CRAWL_DIR to one.")
    of_database = database_options()
    of_database.create_if_missing(False)
    of_database.create_missing_column_families(False)
    of_database.set_max_open_files(_KEEP_OPEN)
    tables = {name: each for name, each in table_options().items() if name in shown}
    here, left = folder, tries
    while True:
        try:
            # Another way in: rocksdict (0.3) writes its own settings file into any folder it opens, to read only too.
            with TemporaryDirectory(prefix="frontier-") as here:
                for file in Path(folder).absolute().iterdir():
                    if file.name != _ROCKSDICT_FILE:
                        Path(here, file.name).symlink_to(file)
                return Rdict(here, of_database, tables, access_type=AccessType.read_only(False))
        except Exception as error:  # rocksdict raises no narrower class
            left -= 1
            if not left:
                raise opening_error(folder, str(error).replace(here, folder)) from error
        time.sleep(_BETWEEN_SECONDS)


# --- what to tell the operator --------------------------------------------------------------------


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
    if "Column family not found" in detail:  # only where nothing may be made: FrontierView
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


def _in_order() -> ReadOptions:
    options = ReadOptions()
    options.set_total_order_seek(True)
    return options
