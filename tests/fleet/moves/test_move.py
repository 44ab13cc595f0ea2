"""Partitions move between the folders of workers: every row to its holder, and nowhere else."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.fleet.moves import journal as journal_module
from crawlerproject.fleet.moves import move as move_module
from crawlerproject.fleet.moves.journal import Journal
from crawlerproject.fleet.moves.move import move
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.fleet_plan import FleetPlan, read_plan
from crawlerproject.stores.protocols import DUE_FACT
from crawlerproject.stores.rocks.raw_tables import FACTS, RawTables
from tests.fleet.moves.frontiers import CRAWLS_FACTS, PARTITIONS, Made, Row, contents, each_row, fill, names

_FACT_ROWS = {(FACTS, name.encode()) for name in (*CRAWLS_FACTS, DUE_FACT, "format")}


def silent(_: str) -> None:
    """Says nothing."""


def moved(crawl: CrawlDir, count: int) -> FleetPlan:
    """The crawl in the hands of so many workers."""
    plan = move(crawl, names(count), silent, PARTITIONS)
    assert read_plan(crawl) == plan
    return plan


def check(crawl: CrawlDir, plan: FleetPlan, before: dict[Row, bytes], made: Made) -> None:
    """Every row is with the holder of its host, once and as it was; the sums over all are what they were."""
    found: dict[Row, bytes] = {}
    for worker, row, value in each_row(crawl, plan):
        if row[0] == FACTS and row not in made.hosts:
            continue
        assert plan.holder(made.hosts[row]) == worker, row
        assert row not in found
        found[row] = value
    assert found == {row: value for row, value in before.items() if row in made.hosts}
    facts = [{row[1].decode(): value for one, row, value in each_row(crawl, plan) if one == worker and row[0] == FACTS}
             for worker in plan.workers]  # fmt: skip
    totals = [orjson.loads(each["totals"]) for each in facts if "totals" in each]
    assert [sum(each[place] for each in totals) for place in range(3)] == [120, 9_000_000, 3]
    assert sum(int(each.get("renders", 0)) for each in facts) == 7
    assert all(each[name] == CRAWLS_FACTS[name] for each in facts for name in CRAWLS_FACTS if "seeds" in name)
    assert sum(Counts.unpack(each.get(DUE_FACT)).rows for each in facts) == made.rows


@pytest.mark.parametrize(("seed", "path"), [(1, [2, 4, 3]), (2, [3, 2, 4])])
def test_rows_are_where_their_hosts_are(tmp_path: Path, seed: int, path: list[int]) -> None:
    """From one process to several workers, to more and fewer, and back: what was there is there again."""
    crawl = CrawlDir(tmp_path)
    made = fill(crawl, random.Random(seed))
    before = contents(crawl.frontier)
    assert before.keys() == made.hosts.keys() | _FACT_ROWS
    for count in path:
        check(crawl, moved(crawl, count), before, made)
    moved(crawl, 1)
    assert contents(crawl.frontier) == before
    assert not list(crawl.glob("*/frontier*")) and not crawl.fleet_moving.exists()


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at one of the steps that change a disk."""

    _STEPS = (
        *((RawTables, name) for name in ("write", "sync")),
        *((Journal, name) for name in ("_put", "sync")),
        *((move_module, name) for name in ("write_plan", "sync_folder")),
        *((journal_module, name) for name in ("sync_folder",)),
        *((Path, name) for name in ("rename",)),
        *((shutil, name) for name in ("rmtree",)),
    )

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        for owner, name in self._STEPS:
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self.left == 0:
                raise Killed
            self.left -= 1
            return step(*given, **named)

        return counted


def killed_often(crawl: CrawlDir, count: int, killer: Killer, first: int, more: int) -> int:
    """Move, but end at step ``first``, the next time after ``more`` steps more, and so on; how often that was."""
    steps, ends = first, 0
    while True:
        killer.left = steps
        try:
            moved(crawl, count)
        except Killed:
            steps, ends = steps + more, ends + 1
        else:
            killer.left = -1
            return ends


@pytest.mark.parametrize(("first", "more"), [(1, 3), (6, 2)])
def test_a_move_goes_on_wherever_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, more: int
) -> None:
    """At whichever step the process dies: the next one finishes, and every row is where it belongs, once."""
    crawl, killer = CrawlDir(tmp_path), Killer(monkeypatch)
    made = fill(crawl, random.Random(first), hosts=6)
    before = contents(crawl.frontier)
    for count in (2, 3, 1):
        assert killed_often(crawl, count, killer, first, more) > 3
        check(crawl, moved(crawl, count), before, made)
    assert contents(crawl.frontier) == before
