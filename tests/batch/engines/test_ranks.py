"""Ranks by way of the disk beside those in memory: the same files."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.engines.duckdb_tables import duck_tables
from crawlerproject.batch.engines.ranks import Ranked, rank_with, work_folder
from crawlerproject.batch.rank import write_ranks
from crawlerproject.errors import OperatorError
from crawlerproject.stores.index.ranks import Linked
from tests.commands.running import scrapy

HOSTS, OF_NO_HOST = 12, 13
# Relative; the ranks in memory are sums of weights in 32 bits.
NEAR = 1e-6


def graph(folder: Path, links: Callable[[random.Random], list[tuple[str, str, str]]]) -> Path:
    """A folder as ``scrapy process`` leaves it: some files of links, two of pages with captures of the same pages."""
    chance = random.Random(5)
    for number in range(3):
        source, target, rel = zip(*links(chance), strict=True)
        _write(folder / "links" / f"{number}.parquet", {"source": source, "target": target, "rel": rel})
    for number in range(2):
        _write(folder / "pages" / f"{number}.parquet", {"url": [address(page) for page in range(number, 90, 2)] * 2})
    _write(folder / "pages" / "none.parquet", {"url": []})
    return folder


def _write(path: Path, columns: dict[str, object]) -> None:
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


def by_duckdb(folder: Path, memory: str = "") -> Ranked:
    """Into ``duckdb``, beside ``rank``."""
    out = folder / "duckdb"
    with work_folder(out) as work, duck_tables(work, memory, lambda read: None) as tables:
        return rank_with(tables, folder / "pages", folder / "links", out)


def rows(path: Path, key: str) -> dict[str, dict[str, float]]:
    """Of a file, by its key, which no two have."""
    made = pq.read_table(path).to_pylist()
    found = {row.pop(key): row for row in made}
    assert len(found) == len(made)
    return found


def test_by_way_of_the_disk_the_ranks_are_the_same(tmp_path: Path) -> None:
    """Pages, hosts and all that is linked, in files of the same form; each read file is counted."""
    folder = graph(tmp_path, power_law)
    counted = write_ranks(folder / "pages", folder / "links", folder / "rank", lambda read: None)

    ranked = by_duckdb(folder, memory="200MB")

    assert (ranked.pages, ranked.hosts) == counted
    assert 10 < ranked.steps < 200
    for name, key in (("pages", "url"), ("hosts", "host"), ("linked", "id")):
        ours, theirs = (rows(folder / place / f"{name}.parquet", key) for place in ("rank", "duckdb"))
        assert theirs.keys() == ours.keys()
        for each, row in ours.items():
            shares = {column for column in row if column == "less_important"}  # equal ranks are equal but for noise
            for column in row.keys() - shares:
                assert theirs[each][column] == pytest.approx(row[column], rel=NEAR), (each, column)
            for column in shares:
                assert theirs[each][column] == pytest.approx(row[column], abs=0.3)
        schemas = [pq.read_schema(folder / place / f"{name}.parquet") for place in ("rank", "duckdb")]
        assert schemas[0].equals(schemas[1])
    best = max(rows(folder / "rank" / "pages.parquet", "url").items(), key=lambda item: item[1]["pagerank"])[0]
    assert rows(folder / "duckdb" / "pages.parquet", "url")[best]["less_important"] == pytest.approx(1 - 1 / 90)
    assert Linked(folder / "duckdb" / "linked.parquet").less_important(best) == pytest.approx(
        Linked(folder / "rank" / "linked.parquet").less_important(best) or 0
    )
    assert not (folder / "duckdb" / "work").exists()


def test_without_links_that_count_all_pages_are_alike(tmp_path: Path) -> None:
    """Every link is rel=nofollow."""
    folder = graph(tmp_path, lambda chance: [(address(1), address(2), "nofollow")])

    assert by_duckdb(folder) == Ranked(90, HOSTS + OF_NO_HOST, 0)

    assert [row["weight"] for row in rows(folder / "duckdb" / "pages.parquet", "url").values()] == pytest.approx(
        [1.0] * 90
    )
    assert Linked(folder / "duckdb" / "linked.parquet").less_important(address(1)) is None


def test_what_a_killed_run_left_is_gone(tmp_path: Path) -> None:
    """Its tables may be larger than memory."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tables.duckdb").write_bytes(b"torn")

    with work_folder(tmp_path) as work:
        assert list(work.iterdir()) == []


def test_too_little_memory_is_a_sentence(tmp_path: Path) -> None:
    """And so is a size that is none."""
    folder = graph(tmp_path, power_law)
    for memory in ("1MB", "4 bananas"):
        with pytest.raises(OperatorError, match="see --memory"):
            by_duckdb(folder, memory)


def test_the_command_ranks_by_the_engine_that_is_asked_for(tmp_path: Path) -> None:
    """The same answer, in the same place."""
    folder = graph(tmp_path / "crawl" / "processed", power_law)

    ours = scrapy("rank", str(tmp_path / "crawl"))
    theirs = scrapy("rank", str(tmp_path / "crawl"), "--engine", "duckdb", "--memory", "200MB")
    refused = scrapy("rank", str(tmp_path / "crawl"), "--memory", "200MB")

    assert (ours.returncode, theirs.returncode) == (0, 0)
    assert theirs.stdout == ours.stdout
    assert sorted(path.name for path in (folder / "rank").iterdir()) == [
        "hosts.parquet", "linked.parquet", "pages.parquet",
    ]  # fmt: skip
    assert refused.returncode == 2
    assert "--memory is for --engine duckdb" in refused.stderr
