"""How RocksDB is set up for a frontier: how much memory and disk its tables may take.

Memory does not grow with the number of URLs: it is bounded by the two budgets below, whatever the disk holds
(indexes and filters of the files live inside the block cache and are read in parts).
"""

from __future__ import annotations

from rocksdict import (
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    ChecksumType,
    DBCompactionStyle,
    DBCompressionType,
    Options,
    SliceTransform,
)

from crawlerproject.stores.rocks.schema import DUE, HOSTS, MESSAGES, PAGES, PAYLOADS, PRINTS, QUEUE, ROBOTS, SEEN
from crawlerproject.stores.row_codec import HASH_BYTES

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
    queue.set_prefix_extractor(SliceTransform.create_fixed_prefix(HASH_BYTES))
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
        QUEUE: queue,
        SEEN: seen,
        PAGES: _table(_blocks(cache), compress=True),
        HOSTS: _table(_blocks(cache), compress=True),
        ROBOTS: _table(_blocks(cache), compress=True),
        PRINTS: _table(_blocks(cache), compress=True),
        PAYLOADS: _table(_blocks(cache), compress=True),
        DUE: due,
        MESSAGES: messages,
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
