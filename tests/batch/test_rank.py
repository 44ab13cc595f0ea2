"""PageRank and harmonic centrality beside a reference implementation's."""

from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.rank import Graph, graph_of, harmonic, pagerank, write_ranks
from crawlerproject.stores.index.ranks import Linked


def graphs() -> list[nx.DiGraph]:
    """Real and made graphs, with dangling nodes, parts that do not meet, loops and parallel edges."""
    karate = nx.DiGraph(nx.karate_club_graph())
    karate.add_edges_from([(40, 40), (41, 0), (0, 42)])
    les_miserables = nx.DiGraph(list(nx.les_miserables_graph().edges))
    names = {name: number for number, name in enumerate(les_miserables)}
    return [karate, nx.relabel_nodes(les_miserables, names), nx.scale_free_graph(500, seed=3), nx.DiGraph([(1, 2)])]


def ours(graph: nx.DiGraph) -> Graph:
    """The same edges in our form."""
    return graph_of(np.array(list(nx.DiGraph(graph).edges()) * 2, dtype=np.uint64))


@pytest.mark.parametrize("graph", graphs(), ids=["karate", "miserables", "scale-free", "pair"])
def test_pagerank_is_the_references(graph: nx.DiGraph) -> None:
    """networkx on Zachary's karate club, Les Misérables' characters and a scale-free graph: equal to 1e-7."""
    expected = nx.pagerank(nx.DiGraph(graph), alpha=0.85, tol=1e-12, max_iter=500, weight=None)
    made = ours(graph)

    assert pagerank(made).sum() == pytest.approx(1)
    for node, rank in zip(made.ids.tolist(), pagerank(made), strict=True):
        assert rank == pytest.approx(expected[node], abs=1e-7)


@pytest.mark.parametrize("graph", graphs(), ids=["karate", "miserables", "scale-free", "pair"])
def test_harmonic_centrality_is_the_references(graph: nx.DiGraph) -> None:
    """Sum of 1/distance over all that reach the node."""
    expected = nx.harmonic_centrality(nx.DiGraph(graph))
    made = ours(graph)

    for node, value in zip(made.ids.tolist(), harmonic(made), strict=True):
        assert value == pytest.approx(expected[node])


def test_a_sample_of_sources_comes_near() -> None:
    """Beyond what is counted in full, an estimate: the order of the hosts that matter is kept."""
    made = ours(nx.scale_free_graph(2000, seed=5))
    exact, estimated = harmonic(made), harmonic(made, exact_to=100, sample=400)

    best = np.argsort(exact)[-20:]
    assert np.corrcoef(exact, estimated)[0, 1] > 0.98
    assert len(set(best) & set(np.argsort(estimated)[-25:])) >= 17


def test_nothing_has_no_rank() -> None:
    """An empty graph."""
    made = graph_of(np.zeros((0, 2), dtype=np.uint64))

    assert len(pagerank(made)) == len(harmonic(made)) == 0


def test_what_is_linked_but_was_never_fetched_has_its_place(tmp_path: Path) -> None:
    """From files of links: every target can be looked up by its URL, the one that most link to before the others."""
    targets = ["http://b.test/hub", "http://b.test/hub", "http://b.test/hub", "http://c.test/leaf"]
    links = {"source": [f"http://a.test/{number}" for number in range(4)], "target": targets, "rel": [""] * 4}
    for folder, table in (("links", pa.table(links)), ("pages", pa.table({"url": links["source"]}))):
        (tmp_path / folder).mkdir()
        pq.write_table(table, tmp_path / folder / "one.parquet")

    write_ranks(tmp_path / "pages", tmp_path / "links", tmp_path / "rank", lambda read: None)

    linked = Linked(tmp_path / "rank" / "linked.parquet")
    assert linked.less_important("http://b.test/hub") == pytest.approx(5 / 6)
    assert linked.less_important("http://c.test/leaf") == pytest.approx(4 / 6)
    assert linked.less_important("http://a.test/0") == 0.0
    assert linked.less_important("http://d.test/") is None
