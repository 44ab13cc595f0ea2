"""A crawl ends when it has had as much as its operator wants, and never asks for a page too many."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from crawlerproject.crawl.run import CrawlLimits, Run, TotalsBook, share_renders
from crawlerproject.fleet.fleet_quotas import FleetQuotas
from crawlerproject.frontier.learned.render_gains import RenderLimits, Renders
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.fleet_shares import QuotaRequest, Share
from crawlerproject.rules.limits import Limits
from crawlerproject.rules.rendering.thin_pages import RenderNeed
from crawlerproject.stores.protocols import Changes
from tests.crawl.sessions import run_of
from tests.stores.memory_store import MemoryStore


def limits(
    run: Run, *, pages: int = 0, seconds: float = 0.0, most: int = 0, store: MemoryStore | None = None
) -> CrawlLimits:
    """Of a crawl that may have 5 requests in flight."""
    totals = TotalsBook(store or MemoryStore(), run.tallies, 0.0)
    return CrawlLimits(Limits(pages, seconds, most), totals, run, 5)


@pytest.fixture
def run() -> Run:
    """A new one."""
    return run_of()


def test_without_a_limit_only_the_most_in_flight_counts(run: Run) -> None:
    """FRONTIER_MAX_IN_FLIGHT."""
    run.tallies.pages = 10**9

    assert limits(run).reached() == ""
    assert [limits(run).may_send(under_way) for under_way in (0, 4, 5)] == [True, True, False]


def test_the_number_of_pages_is_never_exceeded(run: Run) -> None:
    """What is under way counts as if it had come."""
    limited = limits(run, pages=10)
    run.tallies.pages = 7

    assert [limited.may_send(under_way) for under_way in (2, 3)] == [True, False]
    run.tallies.pages = 10
    assert limited.reached() == "max_pages=10"


def test_pages_and_bytes_count_over_all_starts(run: Run) -> None:
    """As committed; a second start does not begin at nothing."""
    store = MemoryStore()
    before = run_of()
    book = TotalsBook(store, before.tallies, 0.0)
    before.tallies.pages, before.tallies.bytes = 6, 1000
    store.apply(Changes(facts=book.facts()))
    assert limits(run, pages=6, store=store).reached() == "max_pages=6"
    assert limits(run, most=1000, store=store).reached() == "max_bytes=1000"
    assert not limits(run, most=1000, store=store).may_send(0)
    assert limits(run, pages=7, store=store).may_send(0)


def test_time_counts_from_this_start(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crawl that is continued has its time again."""
    monkeypatch.setattr(Run, "running_seconds", 60.0)

    assert limits(run, seconds=60).reached() == "max_time=60"
    assert limits(run, seconds=61).reached() == ""


class Fleet:
    """Grants what it is given to grant."""

    def __init__(self) -> None:
        self.granted: dict[str, int] = {}
        self.committed: dict[str, int] = {}
        self.claims: list[QuotaRequest] = []
        self.others_want = False
        self.meanwhile: Callable[[], object] = lambda: None  # before an answer is here

    async def exchange(self, claims: Sequence[QuotaRequest]) -> list[Share]:
        """The same part to each question."""
        self.claims += claims
        self.meanwhile()
        return [Share(self.granted.get(kind, 0), self.committed.get(kind, 0), self.others_want) for kind, *_ in claims]


def test_a_fleet_grants_what_may_be_asked_for(run: Run) -> None:
    """No page beyond the part, with what is under way; the crawl has had its sum when all workers have it."""
    fleet, under_way = Fleet(), [0]
    limited, asked = limits(run, pages=10, most=1000), list[str]()

    async def crawl() -> None:
        sums = FleetQuotas(fleet.exchange, lambda error: asked.append(str(error)))
        limited.share(sums, lambda: under_way[0])
        assert (limited.may_send(0), limited.waits(), limited.reached()) == (False, True, "")
        fleet.granted = {"pages": 3, "bytes": 500}
        limited.want(lambda: asked.append("there is some"))
        limited.want(lambda: asked.append("once"))
        while len(asked) < 1:
            await asyncio.sleep(0)
        assert limited.may_send(0)
        run.tallies.pages, under_way[0] = 1, 2
        assert (limited.may_send(2), limited.waits()) == (False, True)
        run.tallies.bytes, under_way[0] = 600, 0
        assert not limited.may_send(0)
        fleet.granted, fleet.committed = {"pages": 3, "bytes": 1000}, {"pages": 9, "bytes": 999}
        await sums.turn(idle=False)
        assert (limited.may_send(0), limited.reached()) == (True, "")
        fleet.committed = {"pages": 10, "bytes": 999}
        await sums.turn(idle=False)
        assert limited.reached() == "max_pages=10"
        assert not limited.may_send(0)

    asyncio.run(crawl())
    assert asked == ["there is some"]
    assert [claim.used for claim in fleet.claims if claim.kind == "pages"] == [0, 1, 1]


def test_renders_are_the_crawls() -> None:
    """Allowed until the fleet has answered, then as many as it granted; nothing is asked where nothing is rendered."""
    fleet, store = Fleet(), MemoryStore()
    fleet.granted = {"renders": 1}

    def renders(mode: str) -> Renders:
        return Renders(store, Workbench(per_ip=False), random.Random(1), RenderLimits(mode))

    async def crawl() -> list[bool]:
        sums, some = FleetQuotas(fleet.exchange, lambda why: None), renders("always")
        share_renders(some, sums)
        answers = [some.wanted("http://a/1", "a", RenderNeed.RENDER)]
        await sums.turn(idle=False)
        answers.append(some.wanted("http://a/2", "a", RenderNeed.RENDER))
        fleet.granted["renders"] = 2
        await sums.turn(idle=False)
        return [*answers, *(some.wanted(f"http://a/{page}", "a", RenderNeed.RENDER) for page in (3, 4))]

    assert asyncio.run(crawl()) == [True, False, True, False]
    before = len(fleet.claims)
    sums = FleetQuotas(fleet.exchange, lambda why: None)
    share_renders(renders("never"), sums)
    asyncio.run(sums.turn(idle=True))
    assert len(fleet.claims) == before


def test_renders_are_asked_for_before_a_page_needs_one() -> None:
    """A page is decided about at once: what came with the first commit, in an idle moment too, must be there."""
    fleet = Fleet()
    fleet.granted = {"renders": 1}
    sums = FleetQuotas(fleet.exchange, lambda why: None)
    share_renders(Renders(MemoryStore(), Workbench(per_ip=False), random.Random(1), RenderLimits("always")), sums)

    asyncio.run(sums.turn(idle=True))

    assert [claim.wants for claim in fleet.claims if claim.kind == "renders"] == [True]


def test_a_page_that_is_read_while_the_fleet_answers_is_rendered() -> None:
    """Before the first answer, and while others want some: a worker gives half back then, and spends the other half."""
    fleet, answers = Fleet(), list[bool]()
    sums = FleetQuotas(fleet.exchange, lambda why: None)
    renders = Renders(MemoryStore(), Workbench(per_ip=False), random.Random(1), RenderLimits("always"))
    share_renders(renders, sums)
    fleet.meanwhile = lambda: answers.append(renders.wanted(f"http://a/{len(answers)}", "a", RenderNeed.RENDER))

    async def turns() -> None:
        for granted in (9, 5, 3):
            fleet.granted["renders"], fleet.others_want = granted, True
            await sums.turn(idle=False)
        fleet.meanwhile = lambda: None

    asyncio.run(turns())
    assert answers == [True, True, True]
    said = [(claim.used, claim.gives) for claim in fleet.claims[:3]]  # the next one, for more, is a task's
    assert said == [(0, False), (1 + (9 - 1) // 2, True), (2 + (5 - 2) // 2, True)]
