"""Importance from the crawl's own links: PageRank of pages, harmonic centrality of hosts; in SQL, on DuckDB or Spark.

The queries are of the SQL that both engines have in common, and their tables may be larger than memory: what does not
fit goes to disk. Addresses become their 64-bit hash (signed, since Spark knows no other), and their place in the order
of hashes, so that a step of PageRank joins small numbers. Only the links between hosts must fit into memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from crawlerproject.batch.process_warcs import PART
from crawlerproject.errors import OperatorError
from crawlerproject.rules.url.urls import host_key

DAMPING = 0.85
"""Brin and Page, 1998."""
TOLERANCE = 1e-9
"""Sum of absolute changes of all ranks in one step, of a total of 1."""
MAX_STEPS = 200
WORK = "work"
"""Folder beside the results, for what does not fit into memory; removed at the end."""
_MAX_DISTANCE = 30  # links between two hosts beyond which nothing shows in a harmonic sum of doubles
_EXACT_HOSTS, _SAMPLED_HOSTS = 20_000, 2_000
_SPREAD_BYTES = 64 * 1024 * 1024  # of the bits of all hosts, while distances are counted
_WORDS, _BLOCK_LINKS = 32, 4096  # measured: a quarter of the CPU of all links at once (benchmarks/rank.py)
_BATCH_ROWS = 65_536
_SCHEME_LETTERS = len("https://")
_INCOMING = "incoming"
_LINKS = pa.schema([(name, pa.int64()) for name in ("source", "target", "source_host", "target_host")])
_PAGES = pa.schema([("url", pa.string()), ("id", pa.int64()), ("host", pa.string()), ("host_id", pa.int64())])
_PAGES_FILE = pa.schema(
    [
        ("url", pa.string()),
        *((name, pa.float64()) for name in ("pagerank", "weight", "less_important", "host_harmonic")),
    ]
)
_HOSTS_FILE = pa.schema([("host", pa.string()), ("harmonic", pa.float64())])
_LINKED_FILE = pa.schema([("id", pa.uint64()), ("less_important", pa.float32())])

# Each end of a link once, with the number of links that leave it. Numbers of 32 bits make a step a fifth cheaper.
_NODES = """
SELECT id, leaving, CAST(row_number() OVER (ORDER BY id) - 1 AS {number}) AS place FROM (
    SELECT id, CAST(sum(leaving) AS {number}) AS leaving FROM (
        SELECT source AS id, 1 AS leaving FROM edges UNION ALL SELECT target AS id, 0 AS leaving FROM edges
    ) ends GROUP BY id
) nodes
"""
# In order: a step reads the places of its sources nearly one after the other.
_PLACED = """
SELECT s.place AS source, t.place AS target
FROM edges e JOIN nodes s ON e.source = s.id JOIN nodes t ON e.target = t.id ORDER BY target, source
"""
# Pages that have links, and the links between them: what was never fetched takes part in no step, and is most of it.
_GIVERS = "SELECT place, leaving, 1e0 / {nodes:d} AS score, -1e0 AS before FROM nodes WHERE leaving > 0 ORDER BY place"
_BETWEEN = """
SELECT p.source, p.target FROM placed p JOIN scores s ON p.target = s.place ORDER BY p.target, p.source
"""
# What a page gives each of its links is divided once a page: links are many more.
# Numbers in the queries have an exponent: without one they would be decimals, of another precision.
_GIVEN = """
SELECT e.target AS place, sum(s.share) AS given
FROM {links} e JOIN (SELECT place, score / leaving AS share FROM scores) s ON e.source = s.place GROUP BY e.target
"""
_STEP = f"""
SELECT n.place, n.leaving, {{base:.17e}} + {{damping:.17e}} * coalesce(g.given, 0e0) AS score, n.score AS before
FROM scores n LEFT JOIN ({_GIVEN.format(links="between_givers")}) g ON n.place = g.place
"""
_ALL = f"""
SELECT n.id, {{base:.17e}} + {{damping:.17e}} * coalesce(g.given, 0e0) AS score
FROM nodes n LEFT JOIN ({_GIVEN.format(links="placed")}) g ON n.place = g.place
"""
_SUMS = "SELECT count(*), coalesce(sum(score), 0e0), coalesce(sum(abs(score - before)), 0e0) FROM scores"
_PAGES_RANKED = """
SELECT r.url, r.pagerank, r.pagerank / {mean:.17e} AS weight,
    (row_number() OVER (ORDER BY r.pagerank, r.url) - 1) / {pages:d}e0 AS less_important,
    coalesce(h.harmonic, 0e0) AS host_harmonic
FROM ranked r LEFT JOIN harmonic h ON r.host_id = h.id
"""
_HOSTS_RANKED = """
SELECT p.host, coalesce(max(h.harmonic), 0e0) AS harmonic
FROM pages p LEFT JOIN harmonic h ON p.host_id = h.id GROUP BY p.host ORDER BY p.host
"""
# In the order of the numbers without a sign, as they are looked up.
_LINKED_RANKED = """
SELECT id, CAST((rank() OVER (ORDER BY score) - 1) / {nodes:d}e0 AS FLOAT) AS less_important
FROM by_id ORDER BY id < 0, id
"""

Reader = Callable[[str], Iterator[pa.RecordBatch]]
"""Of a file's path."""
Ids = NDArray[np.int64]


class Tables(Protocol):
    """Named tables of an engine, which may be larger than memory."""

    def fill(self, name: str, files: Sequence[Path], read: Reader, schema: pa.Schema) -> None:
        """A table of the rows that ``read`` makes of each file."""

    def put(self, name: str, table: pa.Table) -> None:
        """A table of what fits into memory."""

    def keep(self, name: str, query: str) -> None:
        """The answer to a query, in place of what had this name."""

    def row(self, query: str) -> tuple[Any, ...]:
        """The only row of an answer."""

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The answer to a query, in its order and in pieces that fit into memory."""


class Ranked(NamedTuple):
    """How much was ranked."""

    pages: int
    hosts: int
    steps: int  # of PageRank


def write_ranks(tables: Tables, pages: Path, links: Path, out: Path) -> Ranked:
    """Rank the pages of ``pages`` by the files of ``links``, into ``out``, whole or not at all.

    ``pages.parquet``: url, pagerank (of a total of 1 over all that is linked), weight (1 on average), less_important
    (share of the crawled pages that rank lower), host_harmonic. ``hosts.parquet``: host, harmonic. ``linked.parquet``:
    every page that is linked, fetched or not, in order of ``id`` (``node_id``), less_important (share of them).
    """
    tables.fill("links", sorted(links.glob("*.parquet")), links_of, _LINKS)
    between = "SELECT DISTINCT source_host AS source, target_host AS target FROM links WHERE source_host <> target_host"
    tables.keep("edges", between)
    _number_nodes(tables)
    ids = _columns(tables, "SELECT id FROM nodes ORDER BY place", 1)[:, 0]
    sources, targets = _columns(tables, _PLACED, 2).T
    tables.put("harmonic", pa.table({"id": ids, "harmonic": harmonic(len(ids), sources, targets)}))
    tables.keep("edges", "SELECT DISTINCT source, target FROM links")
    nodes, steps = _pagerank(tables)
    tables.fill("captures", sorted(pages.glob("*.parquet")), pages_of, _PAGES)
    each = "SELECT url, min(id) AS id, min(host) AS host, min(host_id) AS host_id FROM captures GROUP BY url"
    tables.keep("pages", each)
    unlinked = (1 - DAMPING) / max(1, nodes)
    tables.keep(
        "ranked",
        f"SELECT p.url, p.host_id, coalesce(s.score, {unlinked:.17e}) AS pagerank "
        "FROM pages p LEFT JOIN by_id s ON p.id = s.id",
    )
    count, mean = tables.row("SELECT count(*), coalesce(avg(pagerank), 1e0) FROM ranked")
    hosts = _write(out, "hosts", _HOSTS_FILE, tables.batches(_HOSTS_RANKED))
    linked = (_unsigned(batch) for batch in tables.batches(_LINKED_RANKED.format(nodes=max(1, nodes))))
    _write(out, "linked", _LINKED_FILE, linked)
    ranked = _PAGES_RANKED.format(mean=float(mean), pages=max(1, count))
    return Ranked(_write(out, "pages", _PAGES_FILE, tables.batches(ranked)), hosts, steps)


def links_of(file: str) -> Iterator[pa.RecordBatch]:
    """Both ends of each link of a file, as numbers: of their pages, of their hosts. rel=nofollow left out."""
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["source", "target", "rel"]):
        kept = batch.filter(pc.invert(pc.match_substring(pc.fill_null(batch["rel"], ""), "nofollow")))
        (source, source_host), (target, target_host) = (_numbers(kept[end]) for end in ("source", "target"))
        yield pa.RecordBatch.from_arrays(list(map(pa.array, (source, target, source_host, target_host))), schema=_LINKS)


def pages_of(file: str) -> Iterator[pa.RecordBatch]:
    """Address, number and host of each page of a file."""
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["url"]):
        urls = batch["url"]
        hosts = pa.array([host_name(url) for url in urls.to_pylist()], pa.string())
        ids, of_hosts = _numbers(urls)
        yield pa.RecordBatch.from_arrays([urls, pa.array(ids), hosts, pa.array(of_hosts)], schema=_PAGES)


def _numbers(addresses: pa.Array) -> tuple[Ids, Ids]:
    """``node_id`` of each address, and of its host."""
    encoded = addresses.dictionary_encode()
    texts, places = encoded.dictionary, encoded.indices.to_numpy()
    pages = np.fromiter(map(xxh3_64_intdigest, texts.cast(pa.binary()).to_pylist()), np.uint64, len(texts))
    # A third of the links' reading goes by here: nothing more is called for each.
    hosts = [_host_id(url[: url.find("/", _SCHEME_LETTERS) + 1 or None]) or node_id(url) for url in texts.to_pylist()]
    return pages[places].view(np.int64), np.array(hosts, np.uint64)[places].view(np.int64)


def node_id(text: str) -> int:
    """The number of a page or host."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


_host_key = lru_cache(maxsize=65_536)(host_key)


@lru_cache(maxsize=65_536)
def _host_id(start: str) -> int:
    """Of the host of an address up to its path; 0 for any other text."""
    host = host_key(start)
    return node_id(host) if host else 0


def host_name(url: str) -> str:
    """The host as ``hosts.parquet`` has it. The address up to its path is enough to know it, and few differ there."""
    return _host_key(url[: url.find("/", _SCHEME_LETTERS) + 1 or None]) or url


def _columns(tables: Tables, query: str, count: int) -> NDArray[np.int64]:
    found = [
        np.column_stack([batch.column(place).to_numpy(zero_copy_only=False) for place in range(count)])
        for batch in tables.batches(query)
    ]
    return np.concatenate([np.zeros((0, count), np.int64), *found])


def harmonic(
    nodes: int, sources: Ids, targets: Ids, exact_to: int = _EXACT_HOSTS, sample: int = _SAMPLED_HOSTS
) -> NDArray[np.float64]:
    """Harmonic centrality: for each node the sum of 1/distance from every other (Boldi and Vigna, 2014).

    Links are pairs of nodes from 0 on, in order of target. Exact up to ``exact_to`` nodes; beyond, from ``sample``
    sources, each time the same, scaled to all.
    """
    total = np.zeros(nodes)
    if not len(targets):
        return total
    reached, starts = np.unique(targets, return_index=True)
    chosen = np.arange(nodes)
    if nodes > exact_to:
        chosen = np.random.default_rng(1).choice(nodes, sample, replace=False)
    # A bit a source, so many words of them go along a link at once; links in blocks that the processor's cache holds.
    ends = [*starts.tolist(), len(targets)]
    cuts = [*np.unique(np.searchsorted(starts, np.arange(0, len(targets), _BLOCK_LINKS))).tolist(), len(starts)]
    blocks = [(reached[a:b], sources[ends[a] : ends[b]], starts[a:b] - starts[a]) for a, b in pairwise(cuts) if a < b]
    most = max(nodes, *(len(block[1]) for block in blocks))
    words = max(1, min(_WORDS, _SPREAD_BYTES // 8 // most, -(-len(chosen) // 64)))
    found: list[NDArray[np.int32]] = []  # how many sources reach a node, by distance
    for first in range(0, len(chosen), words * 64):
        some = chosen[first : first + words * 64]
        bits = np.arange(len(some), dtype=np.uint64)
        front = np.zeros((nodes, words), np.uint64)
        front[some, bits // 64] = np.uint64(1) << bits % 64
        seen = front.copy()
        for distance in range(1, _MAX_DISTANCE + 1):
            spread = np.zeros_like(front)
            for there, here, places in blocks:
                spread[there] = np.bitwise_or.reduceat(front[here], places, axis=0)
            front = spread & ~seen
            if not front.any():
                break
            if len(found) < distance:
                found.append(np.zeros(nodes, np.int32))
            found[distance - 1] += np.bitwise_count(front).sum(axis=1, dtype=np.int32)
            seen |= front
    for distance, sources_there in enumerate(found, 1):
        total += sources_there / distance
    return total * (nodes / len(chosen))


def _pagerank(tables: Tables) -> tuple[int, int]:
    """Table ``by_id`` (id, score) of all ends of ``edges``, of a total of 1; how many, after how many steps.

    Nodes without links give to all alike. How far they moved in a step is known from the others, at most.
    """
    _number_nodes(tables)
    tables.keep("placed", _PLACED)
    (nodes,) = tables.row("SELECT count(*) FROM nodes")
    tables.keep("scores", _GIVERS.format(nodes=max(1, nodes)))
    tables.keep("between_givers", _BETWEEN)
    givers, share, _ = tables.row(_SUMS)
    steps, base, moved, change = 0, 0.0, 1.0, 1.0
    while nodes and change >= TOLERANCE and steps < MAX_STEPS:
        before, moved_before = base, moved
        base = (1 - DAMPING * share) / nodes
        tables.keep("scores", _STEP.format(base=base, damping=DAMPING))
        _, share, moved = tables.row(_SUMS)
        change = moved + DAMPING * moved_before + (nodes - givers) * abs(base - before)
        steps += 1
    base = (1 - DAMPING * share) / max(1, nodes)
    tables.keep("by_id", _ALL.format(base=base, damping=DAMPING))
    return nodes, steps


def _number_nodes(tables: Tables) -> None:
    """Table ``nodes`` of the ends of ``edges``."""
    (links,) = tables.row("SELECT count(*) FROM edges")
    tables.keep("nodes", _NODES.format(number="INT" if 2 * links < 2**31 else "BIGINT"))


def _unsigned(batch: pa.RecordBatch) -> pa.RecordBatch:
    ids = batch.column(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return pa.RecordBatch.from_arrays([pa.array(ids), batch.column(1)], names=["id", "less_important"])


def _write(out: Path, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> int:
    """A Parquet file in the folder ``out``, whole or not at all; how many rows."""
    path = out / f"{name}.parquet"
    part = path.with_name(path.name + PART)
    rows = 0
    with pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(pa.Table.from_batches([batch]).cast(schema))
            rows += batch.num_rows
    part.rename(path)
    return rows


@contextmanager
def work_folder(out: Path) -> Iterator[Path]:
    """An empty folder for an engine, removed at the end; so is what a killed run left there."""
    work = out / WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def duck_tables(work: Path, memory: str, done: Callable[[int], None]) -> Iterator[DuckTables]:
    """Tables of DuckDB in a file below ``work``. ``memory`` as DuckDB has it ("2GB"), "" for 80 % of the machine's.

    ``done`` is called with the bytes of each file that was read. Raises OperatorError: no memory, no disk, no sense.
    """
    try:
        with duckdb.connect(work / "tables.duckdb") as connection:
            yield DuckTables(connection, work, memory, done)
    except duckdb.Error as error:
        first = str(error).partition("\n")[0].rstrip(".")
        raise OperatorError(f"DuckDB could not do it: {first}; see --memory, and the room in {work}.") from error


class DuckTables:
    """Tables of DuckDB: what does not fit into its share of memory goes to disk."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, work: Path, memory: str, done: Callable[[int], None]
    ) -> None:
        self._connection = connection
        self._done = done
        self._connection.execute(f"SET temp_directory='{str(work / 'spilled').replace(chr(39), chr(39) * 2)}'")
        # No order is asked for but where a query says it; to keep one costs memory.
        self._connection.execute("SET preserve_insertion_order=false")
        # Each step writes its scores once and reads them once: to pack them would cost more than it saves.
        self._connection.execute("PRAGMA force_compression='uncompressed'")
        if memory:
            self._connection.execute("SET memory_limit=?", [memory])

    def fill(self, name: str, files: Sequence[Path], read: Reader, schema: pa.Schema) -> None:
        self.put(name, schema.empty_table())
        for file in files:
            for batch in read(str(file)):
                self._from(f"INSERT INTO {name}", pa.Table.from_batches([batch]))
            self._done(file.stat().st_size)

    def put(self, name: str, table: pa.Table) -> None:
        self._from(f"CREATE OR REPLACE TABLE {name} AS", table)

    def keep(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._connection.execute(query).fetchall()
        return tuple(row)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        yield from self._connection.sql(query).to_arrow_reader(_BATCH_ROWS)

    def _from(self, statement: str, table: pa.Table) -> None:
        self._connection.register(_INCOMING, table)
        self._connection.execute(f"{statement} SELECT * FROM {_INCOMING}")
        self._connection.unregister(_INCOMING)
