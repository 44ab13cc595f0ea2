"""Several frontiers answer as the one that they were divided from."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan, alone, shared_out
from crawlerproject.stores.protocols import Changes, HostFact, PageRecord, QueuedPage
from crawlerproject.stores.rocks import frontier_folder
from crawlerproject.stores.rocks.frontier_folder import KEPT_OPEN, FleetView
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore

HOSTS = [f"site{number}.test" for number in range(8)]
NAMES = [f"worker-{number}" for number in range(1, 6)]


def key(host: str, number: int) -> bytes:
    """A page's key."""
    return parse(f"http://{host}/{number}").key


def rows_of(host: str) -> Changes:
    """Something of everything about a host: a page that is decided, two that wait, robots.txt, a fact."""
    queued = [QueuedPage(host, key(host, n), f"http://{host}/{n}", 1, n, 0, "", "") for n in (2, 1)]
    record = PageRecord(f"http://{host}/0", "fetched", 200, 1.0)
    return Changes(
        queued=queued, pages=[(key(host, 0), record)], hosts=[(host, host.encode())],
        robots=[(f"http://{host}", b"R" + host.encode())], facts=[(f"{HostFact.TRAPS}{host}", b"F" + host.encode())],
    )  # fmt: skip


def written(folder: Path, changes: list[Changes]) -> None:
    """A frontier with these rows."""
    with closing(RocksStore(folder / "frontier")) as store:
        for change in changes:
            store.apply(change)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> tuple[CrawlDir, FleetPlan]:
    """A crawl of five workers, and in its own folder all of it as one; each worker knows some of the scope."""
    folder = CrawlDir(tmp_path_factory.mktemp("crawl"))
    plan = shared_out(alone(24), NAMES)
    written(folder, [rows_of(host) for host in HOSTS])
    for number, name in enumerate(NAMES):
        own = [rows_of(host) for host in HOSTS if plan.holder(host) == name]
        original = Original(f"<urn:uuid:{UUID(int=number)}>", name, "2026-11-22T12:00:00Z")
        words = [("words", b"w%d" % number), *([("last", b"last")] if name == NAMES[-1] else [])]
        written(folder / name, [*own, Changes(facts=words, payloads=[(b"%020d" % number, original)])])
    written(folder / NAMES[0], [Changes(facts=[("words", b"w0")])])
    return folder, plan


def seen(view: Any) -> dict[str, Any]:
    """What a view answers about everything."""
    keys = [key(host, number) for host in HOSTS for number in range(4)]
    hosts = [host for host in HOSTS for _ in range(4)]
    return {
        "hosts": sorted(view.hosts()), "pages": sorted(view.pages()),
        "facts": sorted(view.facts(HostFact.TRAPS)), "known": view.known(keys), "of hosts": view.known(keys, hosts),
        "of no host": [view.page(key(HOSTS[-1], 0)), view.page(key(HOSTS[-1], 1))],
        "each": [
            (view.host(host), list(view.queue(host)), view.head(host, 1), view.head(host, 9, (1, 1)),
             view.robots(f"http://{host}"), view.fact(f"{HostFact.TRAPS}{host}"),
             view.page(key(host, 0), host), view.page(key(host, 1), host))
            for host in HOSTS
        ],
    }  # fmt: skip


def test_it_answers_as_one(crawl: tuple[CrawlDir, FleetPlan]) -> None:
    """Hosts, queues, pages, robots.txt and facts of hosts are those of the undivided frontier."""
    folder, plan = crawl
    with FrontierView(folder.frontier) as one, FleetView(folder, plan, {}) as several:
        assert seen(several) == seen(one)
        assert several.host("nowhere.test") is None
        assert list(several.queue("nowhere.test")) == []
        original = several.original(b"%020d" % 3)
        assert original is not None
        assert original.url == NAMES[3]
        assert several.original(b"%020d" % 99) is None


def test_facts_of_the_crawl_are_put_together_by_their_rule(crawl: tuple[CrawlDir, FleetPlan]) -> None:
    """A fact with a rule is that of all workers, any other that of the first who has it."""
    folder, plan = crawl
    with FleetView(folder, plan, {"words": b" ".join}) as view:
        assert view.fact("words") == b"w0 w1 w2 w3 w4"
        assert view.fact("last") == b"last"
        assert view.fact("nothing") is None
        assert (view.fact_of(NAMES[2], "words"), view.fact_of("worker-9", "words")) == (b"w2", None)
    with FleetView(folder, plan, {}) as view:
        assert view.fact("words") == b"w0"


def test_a_question_about_a_host_opens_its_holders_frontier_alone(
    crawl: tuple[CrawlDir, FleetPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays open for the next; of all workers no more than a few do."""
    folder, plan = crawl
    opened: list[str] = []

    class Counted(FrontierView):
        def __init__(self, place: Path) -> None:
            opened.append(place.parent.name)
            super().__init__(place)

    monkeypatch.setattr(frontier_folder, "FrontierView", Counted)
    with FleetView(folder, plan, {"words": b" ".join}) as view:
        host = HOSTS[0]
        view.fact("words")
        view.page(key(host, 0), host)
        view.known([key(host, 0)], [host])
        assert [row.arrival for row in view.queue(host)] == [1, 2]
        assert opened == [plan.holder(host)]
        for each in HOSTS:
            view.host(each)
        assert {*opened} == {plan.holder(host) for host in HOSTS}
        assert len(view._open) <= KEPT_OPEN
    assert view._open == {}


def test_what_a_folder_has_of_anothers_hosts_does_not_count(tmp_path: Path) -> None:
    """A host that moved, and of which its former holder still has rows, is there once."""
    plan = shared_out(alone(24), NAMES[:2])
    written(tmp_path / NAMES[0], [rows_of(host) for host in HOSTS])
    written(tmp_path / NAMES[1], [rows_of(host) for host in HOSTS if plan.holder(host) == NAMES[1]])
    written(tmp_path / "whole", [rows_of(host) for host in HOSTS])
    with FrontierView(tmp_path / "whole" / "frontier") as one, FleetView(CrawlDir(tmp_path), plan, {}) as several:
        assert seen(several) == seen(one)


def test_a_worker_that_never_began_has_nothing_to_say(tmp_path: Path) -> None:
    """Its hosts are unknown; without any worker's frontier that is said in a sentence."""
    plan = shared_out(alone(24), NAMES[:2])
    with pytest.raises(OperatorError, match="No worker of the crawl"):
        FleetView(CrawlDir(tmp_path), plan, {})
    own = [host for host in HOSTS if plan.holder(host) == NAMES[0]]
    written(tmp_path / NAMES[0], [rows_of(host) for host in own])
    with FleetView(CrawlDir(tmp_path), plan, {}) as view:
        assert [name for name, _ in view.hosts()] == sorted(own)
        assert [view.host(host) for host in HOSTS if host not in own] == [None] * (len(HOSTS) - len(own))
