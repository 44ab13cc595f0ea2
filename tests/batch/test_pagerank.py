"""PageRank and harmonic centrality beside a reference implementation's; the files that hold them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.pagerank import Ranked, duck_tables, harmonic, node_id, work_folder, write_ranks
from crawlerproject.errors import OperatorError
from crawlerproject.stores.index.ranks import Linked
from tests.commands.running import scrapy

HOSTS, OF_NO_HOST = 12, 13


def graphs() -> list[nx.DiGraph]:
    """Real and made graphs, with dangling nodes, parts that do not meet, loops and parallel edges."""
    karate = nx.DiGraph(nx.karate_club_graph())
    karate.add_edges_from([(40, 40), (41, 0), (0, 42)])
    les_miserables = nx.DiGraph(list(nx.les_miserables_graph().edges))
    names = {name: number for number, name in enumerate(les_miserables)}
    return [karate, nx.relabel_nodes(les_miserables, names), nx.scale_free_graph(500, seed=3), nx.DiGraph([(1, 2)])]


@pytest.mark.parametrize("graph", graphs(), ids=["karate", "miserables", "scale-free", "pair"])
def test_pagerank_is_the_references(graph: nx.DiGraph, tmp_path: Path) -> None:
    """networkx on Zachary's karate club, Les Misérables' characters and a scale-free graph: equal to 1e-8."""
    expected = nx.pagerank(nx.DiGraph(graph), alpha=0.85, tol=1e-13, max_iter=1000, weight=None)
    pairs = [(f"http://a.test/{source}", f"http://a.test/{target}") for source, target in graph.edges()] * 2
    source, target = zip(*pairs, strict=True)
    write(tmp_path / "links" / "one.parquet", {"source": source, "target": target, "rel": [""] * len(pairs)})
    write(tmp_path / "pages" / "one.parquet", {"url": [f"http://a.test/{node}" for node in expected]})

    ranked(tmp_path)

    made = rows(tmp_path / "rank" / "pages.parquet", "url")
    assert sum(row["pagerank"] for row in made.values()) == pytest.approx(1)
    for node, rank in expected.items():
        assert made[f"http://a.test/{node}"]["pagerank"] == pytest.approx(rank, abs=1e-8)


def ends_of(graph: nx.DiGraph) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Its nodes, and its links by their places in order of target."""
    nodes = sorted(graph)
    places = {node: place for place, node in enumerate(nodes)}
    links = sorted((places[target], places[source]) for source, target in nx.DiGraph(graph).edges())
    targets, sources = np.array(links).T
    return nodes, sources, targets


@pytest.mark.parametrize("graph", graphs(), ids=["karate", "miserables", "scale-free", "pair"])
def test_harmonic_centrality_is_the_references(graph: nx.DiGraph) -> None:
    """Sum of 1/distance over all that reach the node."""
    expected = nx.harmonic_centrality(nx.DiGraph(graph))
    nodes, sources, targets = ends_of(graph)

    for node, value in zip(nodes, harmonic(len(nodes), sources, targets), strict=True):
        assert value == pytest.approx(expected[node])


def test_a_sample_of_sources_comes_near() -> None:
    """Beyond what is counted in full, an estimate: the order of the hosts that matter is kept."""
    nodes, sources, targets = ends_of(nx.scale_free_graph(2000, seed=5))
    exact = harmonic(len(nodes), sources, targets)
    estimated = harmonic(len(nodes), sources, targets, exact_to=100, sample=400)

    best = np.argsort(exact)[-20:]
    assert np.corrcoef(exact, estimated)[0, 1] > 0.98
    assert len(set(best) & set(np.argsort(estimated)[-25:])) >= 17


def test_what_is_linked_but_was_never_fetched_has_its_place(tmp_path: Path) -> None:
    """From files of links: every target can be looked up by its URL, the one that most link to before the others."""
    targets = ["http://b.test/hub", "http://b.test/hub", "http://b.test/hub", "http://c.test/leaf"]
    sources = [f"http://a.test/{number}" for number in range(4)]
    write(tmp_path / "links" / "one.parquet", {"source": sources, "target": targets, "rel": [""] * 4})
    write(tmp_path / "pages" / "one.parquet", {"url": sources})

    ranked(tmp_path)

    linked = Linked(tmp_path / "rank" / "linked.parquet")
    assert linked.less_important("http://b.test/hub") == pytest.approx(5 / 6)
    assert linked.less_important("http://c.test/leaf") == pytest.approx(4 / 6)
    assert linked.less_important("http://a.test/0") == 0.0
    assert linked.less_important("http://d.test/") is None


def folder_of(folder: Path, links: Callable[[random.Random], list[tuple[str, str, str]]]) -> Path:
    """A folder as ``scrapy process`` leaves it: some files of links, two of pages with captures of the same pages."""
    chance = random.Random(5)
    for number in range(3):
        source, target, rel = zip(*links(chance), strict=True)
        write(folder / "links" / f"{number}.parquet", {"source": source, "target": target, "rel": rel})
    for number in range(2):
        write(folder / "pages" / f"{number}.parquet", {"url": [address(page) for page in range(number, 90, 2)] * 2})
    write(folder / "pages" / "none.parquet", {"url": []})
    return folder


def write(path: Path, columns: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), path)


def address(page: int) -> str:
    """Of some page; every seventh is of no host."""
    return f"http://h{page % HOSTS}.test/{page}" if page % 7 else f"mailto:{page}@a.test"


def power_law(chance: random.Random) -> list[tuple[str, str, str]]:
    """A few pages that many link to, some that link nowhere, loops, repeats, links that do not count."""
    return [
        (address(chance.randrange(60)), address(int(100 * chance.random() ** 3)), chance.choice(("", "", "nofollow x")))
        for _ in range(400)
    ]


def ranked(folder: Path, memory: str = "") -> Ranked:
    """Into ``rank``."""
    out = folder / "rank"
    with work_folder(out) as work, duck_tables(work, memory, lambda read: None) as tables:
        return write_ranks(tables, folder / "pages", folder / "links", out)


def rows(path: Path, key: str) -> dict[str, dict[str, float]]:
    """Of a file, by its key, which no two have."""
    made = pq.read_table(path).to_pylist()
    found = {row.pop(key): row for row in made}
    assert len(found) == len(made)
    return found


def expected_ranks(folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """What networkx makes of the links that count: PageRank of pages, harmonic centrality of hosts."""
    pages, hosts = nx.DiGraph(), nx.DiGraph()
    for path in (folder / "links").glob("*.parquet"):
        for link in pq.read_table(path).to_pylist():
            if "nofollow" not in link["rel"]:
                pages.add_edge(link["source"], link["target"])
                ends = [end.partition("://")[2].partition("/")[0] or end for end in (link["source"], link["target"])]
                if ends[0] != ends[1]:
                    hosts.add_edge(*ends)
    return nx.pagerank(pages, alpha=0.85, tol=1e-13, max_iter=1000), nx.harmonic_centrality(hosts)


def test_the_files_hold_what_the_reference_finds(tmp_path: Path) -> None:
    """Pages, hosts and all that is linked, with little memory; no row stands twice, and nothing else is left there."""
    folder = folder_of(tmp_path, power_law)

    counted = ranked(folder, memory="200MB")

    of_pages, of_hosts = expected_ranks(folder)
    pages, hosts, linked = (
        rows(folder / "rank" / f"{name}.parquet", key)
        for name, key in (("pages", "url"), ("hosts", "host"), ("linked", "id"))
    )
    assert (counted.pages, counted.hosts) == (len(pages), len(hosts)) == (90, HOSTS + OF_NO_HOST)
    assert 10 < counted.steps < 200
    assert {node_id(url) for url in of_pages} == linked.keys()
    for url, row in pages.items():
        assert row["pagerank"] == pytest.approx(of_pages.get(url, 0.15 / len(of_pages)), abs=1e-8)
    assert sum(row["weight"] for row in pages.values()) == pytest.approx(len(pages))
    for host, row in hosts.items():
        assert row["harmonic"] == pytest.approx(of_hosts.get(host, 0.0))
    best = max(pages, key=lambda url: pages[url]["pagerank"])
    assert pages[best]["less_important"] == pytest.approx(1 - 1 / 90)
    lower = sum(rank < of_pages[best] - 1e-9 for rank in of_pages.values())
    assert Linked(folder / "rank" / "linked.parquet").less_important(best) == pytest.approx(lower / len(of_pages))
    assert not (folder / "rank" / "work").exists()


def test_without_links_that_count_all_pages_are_alike(tmp_path: Path) -> None:
    """Every link is rel=nofollow."""
    folder = folder_of(tmp_path, lambda chance: [(address(1), address(2), "nofollow")])

    assert ranked(folder) == Ranked(90, HOSTS + OF_NO_HOST, 0)

    assert [row["weight"] for row in rows(folder / "rank" / "pages.parquet", "url").values()] == pytest.approx(
        [1.0] * 90
    )
    assert Linked(folder / "rank" / "linked.parquet").less_important(address(1)) is None


def test_what_a_killed_run_left_is_gone(tmp_path: Path) -> None:
    """Its tables may be larger than memory."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tables.duckdb").write_bytes(b"torn")

    with work_folder(tmp_path) as work:
        assert list(work.iterdir()) == []


def test_too_little_memory_is_a_sentence(tmp_path: Path) -> None:
    """And so is a size that is none."""
    folder = folder_of(tmp_path, power_law)
    for memory in ("1MB", "4 bananas"):
        with pytest.raises(OperatorError, match="see --memory"):
            ranked(folder, memory)


def test_the_command_ranks(tmp_path: Path) -> None:
    """By whichever name of the engine; Spark has a memory of its own."""
    folder = folder_of(tmp_path / "crawl" / "processed", power_law)

    ours = scrapy("rank", str(tmp_path / "crawl"))
    small = scrapy("rank", str(tmp_path / "crawl"), "--engine", "duckdb", "--memory", "200MB")
    refused = scrapy("rank", str(tmp_path / "crawl"), "--engine", "spark", "--memory", "200MB")

    assert (ours.returncode, small.returncode) == (0, 0)
    assert ours.stdout == small.stdout == f"90 pages and 25 hosts ranked into {folder / 'rank'}\n"
    assert sorted(path.name for path in (folder / "rank").iterdir()) == [
        "hosts.parquet", "linked.parquet", "pages.parquet",
    ]  # fmt: skip
    assert refused.returncode == 2
    assert "--memory is for the local engine" in refused.stderr
