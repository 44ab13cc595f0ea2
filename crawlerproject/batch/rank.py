"""Importance from the crawl's own links: PageRank of pages, harmonic centrality of hosts; in bounded memory.

Pages are numbered by a 64-bit hash of their address while the links' files are read one after the other: 8 bytes a
page and 8 an edge stay in memory (an edge is two 32-bit numbers), the addresses themselves do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse
from xxhash import xxh3_64_intdigest

from crawlerproject.rules.url.urls import host_key

DAMPING = 0.85
"""Brin and Page, 1998."""
TOLERANCE = 1e-9
"""Sum of absolute changes of all ranks in one step, of a total of 1."""
MAX_STEPS = 200
_MAX_DISTANCE = 30  # links between two hosts beyond which nothing shows in a harmonic sum of doubles
_BATCH_ROWS = 65_536

Ids = NDArray[np.uint64]
Floats = NDArray[np.float64]


class Graph(NamedTuple):
    """A directed graph without weights: each edge once. ``ids`` are sorted; edges point into them."""

    ids: Ids
    sources: NDArray[np.int32]
    targets: NDArray[np.int32]

    @property
    def nodes(self) -> int:
        """How many."""
        return len(self.ids)


def graph_of(edges: Ids) -> Graph:
    """The graph of an array of shape (edges, 2) of node ids."""
    # Arrow numbers values by one pass over a hash table, in the order of their first use; then only the ids, each
    # once, are sorted. Pairs are sorted in place: np.unique (numpy 2.4) hashes them, 16 s for ten million instead of 1.
    numbered = pa.array(edges.reshape(-1)).dictionary_encode()
    found: Ids = numbered.dictionary.to_numpy()
    order = np.argsort(found)
    place = np.empty(len(found), dtype=np.int64)
    place[order] = np.arange(len(found))
    ends = numbered.indices.to_numpy()
    joined = place[ends[0::2]] << 32
    joined |= place[ends[1::2]]
    ids = found[order]
    del numbered, found, ends, order, place
    joined.sort()
    if len(joined):
        joined = joined[np.concatenate(([True], joined[1:] != joined[:-1]))]
    return Graph(ids, (joined >> 32).astype(np.int32), (joined & 0xFFFFFFFF).astype(np.int32))


def pagerank(graph: Graph) -> Floats:
    """PageRank of every node, of a total of 1. Nodes without links give to all alike."""
    nodes = graph.nodes
    if not nodes:
        return np.zeros(0)
    out = np.bincount(graph.sources, minlength=nodes).astype(np.float64)
    # Rows are targets: a step is one product. Weights in 32 bits: they are 1 / number of links.
    weights = (1 / out[graph.sources]).astype(np.float32)
    matrix = sparse.csr_array((weights, (graph.targets, graph.sources)), shape=(nodes, nodes))
    dangling = out == 0
    rank = np.full(nodes, 1 / nodes)
    for _ in range(MAX_STEPS):
        given = DAMPING * (matrix @ rank + rank[dangling].sum() / nodes)
        new = given + (1 - given.sum()) / nodes
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < TOLERANCE:
            break
    return rank


def harmonic(graph: Graph, exact_to: int = 20_000, sample: int = 2_000, seed: int = 1) -> Floats:
    """Harmonic centrality: for each node the sum of 1/distance from every other (Boldi and Vigna, 2014).

    Exact up to ``exact_to`` nodes; beyond, from ``sample`` sources drawn by ``seed``, scaled to all.
    """
    nodes = graph.nodes
    total = np.zeros(nodes)
    if not nodes:
        return total
    ones = np.ones(len(graph.sources), dtype=np.float32)
    matrix = sparse.csr_array((ones, (graph.targets, graph.sources)), shape=(nodes, nodes))
    chosen = np.arange(nodes)
    if nodes > exact_to:
        chosen = np.random.default_rng(seed).choice(nodes, sample, replace=False)
    width = max(1, min(256, 50_000_000 // nodes))  # sources at a time: two dense bytes a node and source
    for start in range(0, len(chosen), width):
        some = chosen[start : start + width]
        front = np.zeros((nodes, len(some)), dtype=np.float32)
        front[some, np.arange(len(some))] = 1
        seen = front > 0
        for distance in range(1, _MAX_DISTANCE + 1):
            front = matrix @ front
            new = (front > 0) & ~seen
            if not new.any():
                break
            total += new.sum(axis=1) / distance
            seen |= new
            front = new.astype(np.float32)
    return total * (nodes / len(chosen))


def read_edges(folder: Path, done: Callable[[int], None]) -> tuple[Ids, Ids]:
    """Edges between pages and between hosts, of all files of links; rel=nofollow left out. Ids by ``node_id``."""
    pages: list[Ids] = []
    hosts: list[Ids] = []
    for file in sorted(folder.glob("*.parquet")):
        for source, target in linked_pairs(file):
            pages.append(np.column_stack((page_ids(source), page_ids(target))))
            between = np.column_stack((host_ids(source), host_ids(target)))
            hosts.append(np.unique(between[between[:, 0] != between[:, 1]], axis=0))
        done(file.stat().st_size)
    empty = np.zeros((0, 2), dtype=np.uint64)
    return np.concatenate([empty, *pages]), np.concatenate([empty, *hosts])


def node_id(text: str) -> int:
    """The number of a page or host."""
    return xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))


def linked_pairs(file: Path) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Source and target of each link of a file, many at a time; rel=nofollow left out."""
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=["source", "target", "rel"]):
        keep = pc.invert(pc.match_substring(pc.fill_null(batch["rel"], ""), "nofollow"))
        kept = batch.filter(keep)
        yield kept["source"], kept["target"]


def page_ids(texts: pa.Array) -> Ids:
    """``node_id`` of each address, or of each host's name."""
    return _by_dictionary(texts, node_id)


def host_ids(texts: pa.Array) -> Ids:
    """``node_id`` of each address's host."""
    return _by_dictionary(texts, _host_id)


def _by_dictionary(texts: pa.Array, number: Callable[[str], int]) -> Ids:
    encoded = texts.dictionary_encode()
    numbers = np.fromiter((number(text) for text in encoded.dictionary.to_pylist()), np.uint64)
    places: Ids = numbers[encoded.indices.to_numpy()] if len(numbers) else np.zeros(0, np.uint64)
    return places


def _host_id(url: str) -> int:
    return node_id(host_name(url))


def write_ranks(pages: Path, links: Path, out: Path, done: Callable[[int], None]) -> tuple[int, int]:
    """Rank the pages of ``pages`` by the files of ``links``; (pages, hosts) written to ``out``, whole or not at all.

    ``pages.parquet``: url, pagerank (of a total of 1 over all that is linked), weight (1 on average), less_important
    (share of the crawled pages that rank lower), host_harmonic. ``hosts.parquet``: host, harmonic. ``linked.parquet``:
    every page that is linked, fetched or not, in order of ``id`` (``node_id``), less_important (share of them).
    """
    page_edges, host_edges = read_edges(links, done)
    graph = graph_of(page_edges)
    del page_edges
    ranks = pagerank(graph)
    hosts = graph_of(host_edges)
    centrality = harmonic(hosts)
    urls = pa.chunked_array(
        [pq.read_table(file, columns=["url"])["url"].combine_chunks() for file in sorted(pages.glob("*.parquet"))],
        pa.string(),
    ).unique()
    own = _looked_up(graph.ids, ranks, page_ids(urls), default=(1 - DAMPING) / max(1, graph.nodes))
    of_hosts = host_ids(urls)
    order = np.argsort(np.argsort(own, kind="stable"), kind="stable")
    table = pa.table(
        {
            "url": urls,
            "pagerank": own,
            "weight": own / own.mean() if len(own) else own,
            "less_important": order / max(1, len(order)),
            "host_harmonic": _looked_up(hosts.ids, centrality, of_hosts, default=0.0),
        }
    )
    names = pa.array(sorted({host_name(url) for url in urls.to_pylist()}), pa.string())
    host_table = pa.table({"host": names, "harmonic": _looked_up(hosts.ids, centrality, page_ids(names), default=0.0)})
    out.mkdir(parents=True, exist_ok=True)
    lower = np.searchsorted(np.sort(ranks), ranks) / max(1, graph.nodes)
    linked = pa.table({"id": graph.ids, "less_important": lower.astype(np.float32)})
    for name, made in (("hosts", host_table), ("linked", linked), ("pages", table)):
        part = out / f"{name}.parquet.part"
        pq.write_table(made, part, compression="zstd")
        part.rename(out / f"{name}.parquet")
    return len(urls), len(names)


def _looked_up(ids: Ids, values: Floats, wanted: Ids, *, default: float) -> Floats:
    if not len(ids):
        return np.full(len(wanted), default)
    places = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    found: Floats = np.where(ids[places] == wanted, values[places], default)
    return found


def host_name(url: str) -> str:
    """The host as ``hosts.parquet`` has it."""
    return host_key(url) or url
