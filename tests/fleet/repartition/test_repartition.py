"""Partitions move between the folders of workers: every row to its holder, and nowhere else."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from types import SimpleNamespace

import orjson
import pytest

from benchmarks.move_partitions import hook_steps, kills
from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition import journal, partition_copying
from crawlerproject.fleet.repartition.journal import Phase
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import ALONE, FleetPlan, is_alone, read_plan
from crawlerproject.stores.operator_files.control import Control, hand_on, spool_seeds
from crawlerproject.stores.protocols import DUE_FACT, Box, Changes, QueuedPage
from crawlerproject.stores.rocks import partition_rows, rocks_tables
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from crawlerproject.stores.row_codec import FACTS, MESSAGES, TABLES
from tests.fleet.repartition.frontiers import CRAWLS_FACTS, PARTITIONS, Made, Row, contents, each_row, fill, names

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
        if made.only_with(row):
            assert plan.holder(made.hosts[row]) == worker, row
            assert row not in found
            found[row] = value
        elif row in made.hosts:
            assert before[row] == value
    assert found == {row: value for row, value in before.items() if made.only_with(row)}
    facts: dict[str, dict[str, bytes]] = {worker: {} for worker in plan.workers}
    for worker, (table, key), value in each_row(crawl, plan):
        if table == FACTS:
            facts[worker][key.decode()] = value
    totals = [orjson.loads(each["totals"]) for each in facts.values() if "totals" in each]
    assert [sum(each[place] for each in totals) for place in range(3)] == [120, 9_000_000, 3]
    assert sum(int(each.get("renders", 0)) for each in facts.values()) == 7
    assert all(each[name] == CRAWLS_FACTS[name] for each in facts.values() for name in CRAWLS_FACTS if "seeds" in name)
    assert sum(Counts.unpack(each.get(DUE_FACT)).rows for each in facts.values()) == made.rows


def test_rows_are_where_their_hosts_are(crawl: CrawlDir) -> None:
    """From one process to several workers, to more and fewer, and back: what was there is there again."""
    made = fill(crawl, random.Random(1))
    before = contents(crawl.frontier)
    assert before.keys() == made.hosts.keys() | _FACT_ROWS
    assert {table for table, _ in before} == set(TABLES) - {MESSAGES}
    for count in (2, 4, 3):
        check(crawl, moved(crawl, count), before, made)
    moved(crawl, 1)
    assert contents(crawl.frontier) == before
    assert not list(crawl.glob("*/frontier*")) and not crawl.fleet_moving.exists()


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at one of the steps that change a disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        hook_steps(self._before, monkeypatch.setattr)

    def _before(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1


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


def test_kill_9_costs_nothing(crawl: CrawlDir) -> None:
    """Three processes die in the middle, of which nothing is closed; ``benchmarks.move_partitions`` has many."""
    kills(crawl, random.Random(3), 3, iter([2, 3, 1, 2]))


def test_a_move_goes_on_wherever_it_ended(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whichever step the process dies: the next one finishes, and every row is where it belongs, once."""
    killer = Killer(monkeypatch)
    made = fill(crawl, random.Random(1), hosts=6)
    before = contents(crawl.frontier)
    for count, first, more in ((2, 1, 3), (3, 6, 2), (1, 2, 3)):
        assert killed_often(crawl, count, killer, first, more) > 3
        check(crawl, moved(crawl, count), before, made)
    assert contents(crawl.frontier) == before


@pytest.mark.parametrize("phase", [Phase.COPYING, Phase.CLEARING])
def test_a_move_of_an_earlier_version_goes_on(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    """Its journal says less of what is copied, and frontiers do not list their hosts."""
    made = fill(crawl, random.Random(1), hosts=6)
    before = contents(crawl.frontier)
    monkeypatch.setattr(journal, "_FORMAT", 1)
    with monkeypatch.context() as dying:
        entered = journal.Journal.enter

        def ends(written: journal.Journal, entering: Phase) -> None:
            entered(written, entering)
            if entering is phase:
                raise Killed

        dying.setattr(journal.Journal, "enter", ends)
        with pytest.raises(Killed):
            moved(crawl, 2)
    with closing(open_to_write(crawl.frontier if crawl.frontier.exists() else crawl / "worker-1/frontier")) as rocks:
        partition_rows.put(rocks, ((MESSAGES, key, None) for key, _ in rocks.rows(MESSAGES)))
    monkeypatch.undo()
    check(crawl, moved(crawl, 2), before, made)


def unread(crawl: CrawlDir, plan: FleetPlan) -> dict[tuple[Box, int], bytes]:
    """Messages that have not taken effect, wherever they are; the holder of a partition alone knows that."""
    stores = {worker: RocksStore(CrawlDir(crawl / worker).frontier) for worker in plan.workers}
    try:
        boxes = [(box, store.messages) for store in stores.values() for box in store.messages.boxes()]
        found = [(box, row) for box, messages in boxes for row in messages.of(box, 0, 1 << 60, 1 << 60)]
        done = {box: stores[plan.workers[plan.holders[box.partition]]].messages.read_up_to(box) for box, _ in boxes}
        waiting = {(box, number): packed for box, (number, packed) in found if number > done[box]}
        assert len(waiting) == sum(number > done[box] for box, (number, _) in found)  # each in one place
        return waiting
    finally:
        for store in stores.values():
            store.close()


def test_messages_find_the_new_holder(crawl: CrawlDir) -> None:
    """Those on their way are where their sender, or their reader when it is gone, finds them; what was read stays."""
    fill(crawl, random.Random(5), hosts=3)
    plan = moved(crawl, 3)
    boxes: dict[str, bytes] = {}
    for worker in plan.workers:
        others = sorted(set(range(PARTITIONS)) - plan.held(worker))
        with closing(RocksStore(CrawlDir(crawl / worker).frontier)) as store:
            store.apply(Changes(messages=[(each, f"{worker} {each}".encode()) for each in others * 2]))
            boxes[worker] = store.messages.outbox
    for worker in plan.workers:  # it has read the first of each box
        with closing(RocksStore(CrawlDir(crawl / worker).frontier)) as store:
            marks = [(Box(each, box), 6) for each in plan.held(worker) for of, box in boxes.items() if of != worker]
            store.apply(Changes(read=marks))
    waiting = unread(crawl, plan)
    assert 5 < len(waiting) < 20
    for count in (2, 4, 1):
        assert unread(crawl, moved(crawl, count)) == waiting


def test_added_seeds_come_along(crawl: CrawlDir) -> None:
    """They waited for workers, some of which are no more: the next start gives them to each that there is."""
    fill(crawl, random.Random(2), hosts=3)
    plan = moved(crawl, 2)
    spool_seeds(crawl, ["http://added.test/"])
    for workers in (["other-1", "other-2", "worker-2"], [ALONE]):
        folders = plan.folders(crawl)
        hand_on(crawl, folders)
        assert all(Control(folder).added() for folder in folders)
        plan = move(crawl, workers, silent, PARTITIONS)
        assert not any(Control(folder).added() for folder in folders)
        assert [path.read_text() for path in Control(crawl).added()] == ["http://added.test/\n"]


def test_begun_as_a_fleet(crawl: CrawlDir) -> None:
    """Without a frontier there is nothing to move: the plan is written, or none where one process begins."""
    assert move(crawl, [ALONE], silent, PARTITIONS).alone
    assert not crawl.fleet_plan.exists()
    assert moved(crawl, 3).partitions == PARTITIONS
    assert moved(crawl, 2).workers == ("worker-1", "worker-2")
    assert move(crawl, ["worker-2", "worker-1"], silent).workers == ("worker-1", "worker-2")  # it is as it was


def test_no_room_is_said_before_anything_is_touched(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence has the bytes that are needed and those that are free; the crawl is as it was."""
    fill(crawl, random.Random(1), hosts=3)
    before = contents(crawl.frontier)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=12_345_678))
    with pytest.raises(OperatorError, match=r"need .* bytes.* 12,345,678 bytes are free"):
        moved(crawl, 2)
    assert is_alone(crawl)
    assert contents(crawl.frontier) == before


def test_a_full_disk_is_one_sentence(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it: nothing is lost, and with room the next start has the rest."""
    made = fill(crawl, random.Random(1), hosts=4)
    before = contents(crawl.frontier)
    with monkeypatch.context() as full:
        full.setattr(rocks_tables, "RESERVE_BYTES", 1 << 60)
        with pytest.raises(OperatorError, match=r"cannot be moved \(less than .*; make room and start again"):
            moved(crawl, 2)
    assert not is_alone(crawl)
    check(crawl, moved(crawl, 3), before, made)


def test_what_no_plan_knows_is_refused(crawl: CrawlDir) -> None:
    """A frontier in the way, a worker at work, an archive without its frontier: a sentence, and nothing is touched."""
    second = CrawlDir(crawl / "worker-2")
    fill(crawl, random.Random(1), hosts=2)
    RocksStore(second.frontier).close()
    with pytest.raises(OperatorError, match="does not say whose hosts"):
        moved(crawl, 2)
    shutil.rmtree(second)
    lock = take_lock(second)
    with pytest.raises(OperatorError, match="in use"):
        moved(crawl, 2)
    os.close(lock)
    moved(crawl, 2)
    shutil.rmtree(second.frontier)
    second.warc.mkdir()
    (second.warc / "a.warc.gz").touch()
    with pytest.raises(OperatorError, match="scrapy recover"):
        moved(crawl, 1)


def test_of_an_earlier_version(crawl: CrawlDir) -> None:
    """Its hosts are on no list: they are not said to be, wherever they are."""
    with closing(RocksStore(crawl.frontier)) as store:
        rows = [QueuedPage(f"h{number}.example", bytes(24), "u", 1, 1, 1, "L", "") for number in range(9)]
        hosts = [(row.host, Host(row.host, 1.0).pack()) for row in rows]
        store.apply(Changes(queued=rows, hosts=hosts, facts=[("clean", b"1")]))
    plan = moved(crawl, 2)
    for worker in plan.workers:
        with closing(RocksStore(CrawlDir(crawl / worker).frontier)) as store:
            assert store.fact(DUE_FACT) is None
            assert {*store.hosts_with_work()} == {row.host for row in rows if plan.holder(row.host) == worker}
            assert store.fact("clean") == b"1"


def test_progress_is_said(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many partitions of how many."""
    monkeypatch.setattr(partition_copying, "_SAY_SECONDS", 0.0)
    said = list[str]()
    fill(crawl, random.Random(1), hosts=4)
    move(crawl, names(2), said.append, PARTITIONS)
    assert said[0] == "Partitions move: one process held them, 2 workers will"
    assert said[1] == "Partitions move: 0 of 4 are copied"
    assert said[-1] == "The partitions have moved"
