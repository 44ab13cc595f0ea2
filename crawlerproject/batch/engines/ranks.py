"""PageRank where the links do not fit into memory: ``batch/rank.py``'s sums as SQL, by an engine that works on disk.

The queries are of the SQL that DuckDB and Spark have in common. Addresses become the same numbers as there (their
64-bit hash; signed here, since Spark knows no other), and a step is the same sum, so that both end after the same step.
Links between hosts must fit into memory: 24 bytes each while they are counted.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.batch.process import PART
from crawlerproject.batch.rank import (
    DAMPING,
    MAX_STEPS,
    TOLERANCE,
    graph_of,
    harmonic,
    host_ids,
    host_name,
    linked_pairs,
    page_ids,
)

_BATCH_ROWS = 65_536
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
WORK = "work"
"""Folder beside the results, for what does not fit into memory; it is gone at the end."""

# Numbers in the queries have an exponent: without one they would be decimals, of another precision.
# Each end of a link once, with the number of links that leave it.
_NODES = """
SELECT id, CAST(sum(leaving) AS BIGINT) AS leaving FROM (
    SELECT source AS id, 1 AS leaving FROM edges UNION ALL SELECT target AS id, 0 AS leaving FROM edges
) ends GROUP BY id
"""
_STEP = """
SELECT n.id, n.leaving, {base:.17e} + {damping:.17e} * coalesce(g.given, 0e0) AS score, n.score AS before
FROM scores n LEFT JOIN (
    SELECT e.target AS id, sum(s.score / s.leaving) AS given
    FROM edges e JOIN scores s ON e.source = s.id GROUP BY e.target
) g ON n.id = g.id
"""
_SUMS = """
SELECT coalesce(sum(CASE WHEN leaving = 0 THEN score ELSE 0e0 END), 0e0), coalesce(sum(abs(score - before)), 0e0)
FROM scores
"""
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
FROM scores ORDER BY id < 0, id
"""


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


Reader = Callable[[str], Iterator[pa.RecordBatch]]
"""Of a file's path."""


class Ranked(NamedTuple):
    """How much was ranked."""

    pages: int
    hosts: int
    steps: int  # of PageRank


def rank_with(tables: Tables, pages: Path, links: Path, out: Path) -> Ranked:
    """As ``batch.rank.write_ranks``, with the same files in ``out``."""
    tables.fill("links", sorted(links.glob("*.parquet")), links_of, _LINKS)
    tables.keep("edges", "SELECT DISTINCT source, target FROM links")
    tables.put("harmonic", _harmonic_of_hosts(tables))
    nodes, steps = _pagerank(tables)
    tables.fill("captures", sorted(pages.glob("*.parquet")), pages_of, _PAGES)
    each = "SELECT url, min(id) AS id, min(host) AS host, min(host_id) AS host_id FROM captures GROUP BY url"
    tables.keep("pages", each)
    unlinked = (1 - DAMPING) / max(1, nodes)
    tables.keep(
        "ranked",
        f"SELECT p.url, p.host_id, coalesce(s.score, {unlinked:.17e}) AS pagerank "
        "FROM pages p LEFT JOIN scores s ON p.id = s.id",
    )
    count, mean = tables.row("SELECT count(*), coalesce(avg(pagerank), 1e0) FROM ranked")
    hosts = _write(out, "hosts", _HOSTS_FILE, tables.batches(_HOSTS_RANKED))
    linked = (_unsigned(batch) for batch in tables.batches(_LINKED_RANKED.format(nodes=max(1, nodes))))
    _write(out, "linked", _LINKED_FILE, linked)
    ranked = _PAGES_RANKED.format(mean=float(mean), pages=max(1, count))
    return Ranked(_write(out, "pages", _PAGES_FILE, tables.batches(ranked)), hosts, steps)


@contextmanager
def work_folder(out: Path) -> Iterator[Path]:
    """An empty folder for an engine, gone at the end; so is what a killed run left there."""
    work = out / WORK
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def links_of(file: str) -> Iterator[pa.RecordBatch]:
    """Both ends of each link of a file, as numbers: of their pages, of their hosts. rel=nofollow left out."""
    for source, target in linked_pairs(Path(file)):
        columns = (page_ids(source), page_ids(target), host_ids(source), host_ids(target))
        yield pa.RecordBatch.from_arrays([pa.array(ids.view(np.int64)) for ids in columns], schema=_LINKS)


def pages_of(file: str) -> Iterator[pa.RecordBatch]:
    """Address, number and host of each page of a file."""
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["url"]):
        urls = batch["url"]
        hosts = pa.array([host_name(url) for url in urls.to_pylist()], pa.string())
        ids, of_hosts = (pa.array(numbers.view(np.int64)) for numbers in (page_ids(urls), host_ids(urls)))
        yield pa.RecordBatch.from_arrays([urls, ids, hosts, of_hosts], schema=_PAGES)


def _pagerank(tables: Tables) -> tuple[int, int]:
    """Table ``scores`` (id, leaving, score); how many nodes, after how many steps."""
    tables.keep("nodes", _NODES)
    (nodes,) = tables.row("SELECT count(*) FROM nodes")
    tables.keep("scores", f"SELECT id, leaving, 1e0 / {max(1, nodes):d} AS score, -1e0 AS before FROM nodes")
    steps = 0
    dangling, change = tables.row(_SUMS)
    while nodes and change >= TOLERANCE and steps < MAX_STEPS:
        base = (1 - DAMPING + DAMPING * dangling) / nodes
        tables.keep("scores", _STEP.format(base=base, damping=DAMPING))
        dangling, change = tables.row(_SUMS)
        steps += 1
    return nodes, steps


def _harmonic_of_hosts(tables: Tables) -> pa.Table:
    query = "SELECT DISTINCT source_host, target_host FROM links WHERE source_host <> target_host"
    edges = [
        np.column_stack([batch.column(side).to_numpy(zero_copy_only=False) for side in (0, 1)])
        for batch in tables.batches(query)
    ]
    graph = graph_of(np.concatenate([np.zeros((0, 2), np.int64), *edges]).view(np.uint64))
    return pa.table({"id": graph.ids.view(np.int64), "harmonic": harmonic(graph)})


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
