"""Renders as leases: the cap, the line, and what a run without a browser leaves."""

from __future__ import annotations

import random
from collections.abc import Callable

from crawlerproject.frontier.learned.render_gains import RenderLimits, Renders
from crawlerproject.frontier.passage import Lease, Visit
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.reasons import Reason
from crawlerproject.rules.rendering.thin_pages import RenderNeed
from crawlerproject.rules.row_kinds import FLAG_RENDER
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from tests.frontier.conftest import Bench, next_of
from tests.stores.memory_store import MemoryStore

PLACE = "a.warc.gz 0 1 0 0"


def opened(bench: Bench, *, places: int = 1) -> Renders:
    """The bench's renders with a browser."""
    renders = bench.frontier.renders
    renders.mode, renders.closed, renders._limits = "auto", "", RenderLimits("auto", places)
    return renders


def to_render(bench: Bench, lease: Lease) -> None:
    """End a plain lease as triage would have it."""
    ending = Visit(lease.row, Reason.FETCHED, 200, ttfb_seconds=0.1, render=PLACE)
    bench.frontier.finish(lease, ending, PageRecord(lease.row.url, "fetched", 200, bench.now), bench.now)
    bench.commit()
    bench.now = lease.host.next_free


def test_a_marked_page_comes_back_with_its_place(bench: Bench) -> None:
    """The same URL is leased once more, marked, and leaves its queue when the render ends."""
    opened(bench)
    bench.seed("http://a.test/")
    bench.through_robots()
    to_render(bench, next_of(bench))

    lease = next_of(bench)

    assert (lease.row.kind.is_render, lease.row.note, lease.row.url) == (True, PLACE, "http://a.test/")
    bench.frontier.finish_render(lease, bench.now, again=False)
    bench.commit()
    assert bench.frontier.hosts.waiting_urls == 0
    record = bench.store.page(lease.row.key)
    assert record is not None
    assert record.reason == "fetched"


def test_a_page_in_the_browser_holds_neither_its_host_nor_its_address(bench: Bench) -> None:
    """It asks for nothing itself: the host's plain pages go on, and a second page of the host waits for the first."""
    opened(bench, places=2)
    bench.seed("http://a.test/", "http://a.test/2")
    bench.through_robots()
    to_render(bench, next_of(bench))
    to_render(bench, next_of(bench))
    first = next_of(bench)
    assert first.row.kind.is_render

    assert bench.next() is None  # the other page of the host
    bench.add("http://a.test/plain")
    bench.now += 61
    plain = bench.next()
    assert plain is not None
    assert plain.row.url == "http://a.test/plain"
    bench.answer(plain)
    bench.frontier.finish_render(first, bench.now, again=False)
    second = next_of(bench)

    assert second.row.kind.is_render
    assert bench.now >= plain.host.pace_free


def test_while_the_browser_is_busy_plain_pages_go_first(bench: Bench) -> None:
    """A host with a page behind the render gets that one; a host without waits, and is woken by the end."""
    opened(bench)
    for name in ("a", "b"):
        bench.seed(f"http://{name}.test/")
    leases: list[Lease] = []
    while len(leases) < 2:
        lease = next_of(bench)
        if lease.row.kind.is_robots:
            bench.answer(lease)
            bench.commit()
        else:
            leases.append(lease)
    for lease in leases:
        to_render(bench, lease)
    bench.now += 100
    first = next_of(bench)
    assert first.row.kind.is_render
    other = next(lease for lease in leases if lease.host is not first.host)

    assert bench.next() is None  # it stands in line
    bench.add(f"http://{other.host.name}/plain")
    bench.now += 61
    plain = next_of(bench)
    assert plain.row.url.endswith("/plain")
    bench.answer(plain)
    bench.commit()
    bench.now = plain.host.next_free
    assert bench.next() is None
    bench.frontier.finish_render(first, bench.now, again=False)

    second = bench.next()
    assert second is not None
    assert second.row.kind.is_render
    assert second.host is other.host


def test_without_a_browser_pages_stay_for_a_later_start(bench: Bench, again: Callable[..., Bench]) -> None:
    """They do not hold up the end of the crawl, and the next process has them."""
    bench.frontier.renders.closed = "no browser"
    bench.seed("http://a.test/")
    bench.through_robots()
    to_render(bench, next_of(bench))
    assert bench.next() is None
    assert bench.frontier.hosts.waiting_urls == 0
    assert bench.frontier.renders.kept == 1

    later = again(bench.store, now=bench.now + 10)
    opened(later)

    assert next_of(later).row.kind.is_render


def test_budgets_and_history_survive_a_restart() -> None:
    """What was granted and learned is in the facts of the next commit."""
    store = MemoryStore()
    first = Renders(store, Workbench(), random.Random(1), RenderLimits("auto", max_per_host=6))
    for number in range(5):
        assert first.wanted(f"http://a.test/x/{number}", "a.test", RenderNeed.RENDER)
        row = QueuedPage("a.test", b"", f"http://a.test/x/{number}", 0, 0, 0, "L", "", 0, FLAG_RENDER)
        first.learn(Visit(row, Reason.RENDERED), (0, 0))
    store.apply(Changes(facts=first.facts()))
    first.stored(Changes(), [])
    assert first.facts() == []

    later = Renders(store, Workbench(), random.Random(1), RenderLimits("auto", max_per_host=6))

    assert not later.wanted("http://a.test/x/9", "a.test", RenderNeed.RENDER)
    assert later.given_up("http://a.test/x/9", "a.test")
    assert later.wanted("http://a.test/other/1", "a.test", RenderNeed.RENDER)
    assert not later.wanted("http://a.test/other/2", "a.test", RenderNeed.RENDER)  # the sixth was the last


def test_a_page_that_waits_for_a_turn_lets_another_work() -> None:
    """Up to three times as many are in the browser, of which no more than the setting says do not wait."""
    renders = Renders(MemoryStore(), Workbench(), random.Random(1), RenderLimits("auto", max_in_flight=1))
    renders.started()
    assert renders.full

    for _ in range(2):
        renders.waits(0.0)
        assert not renders.full
        renders.started()
        assert renders.full
    renders.waits(0.0)
    assert renders.full  # three are as many as the machine holds

    renders.goes_on()
    renders.ended(0.0)
    assert not renders.full
