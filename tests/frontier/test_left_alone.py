"""A host that does not answer its probe is probed once more after days, for as long as the crawl runs anyway."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier_state import HostOwnership
from crawlerproject.frontier.hosts.table import HostSuspensions
from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import Limits
from tests.frontier.conftest import Bench, drain
from tests.frontier.test_breaker import DAY, HOUR, fail, filled
from tests.stores.memory_store import MemoryStore

DEAD = "a.example"


class NotOurs(HostOwnership):
    """A worker whose partitions may go."""

    sole = False
    gone = False

    def mine(self, host: str) -> bool:
        """None once they are gone."""
        return not self.gone


def left_alone(bench: Bench) -> float:
    """A host whose probe was not answered; when that was."""
    filled(bench)
    before = fail(bench, 2, None, reason=Reason.DISCONNECTED).next_free
    assert fail(bench, 1, None, reason=Reason.DISCONNECTED).state
    return before


def probes(bench: Bench, days: float) -> list[float]:
    """When a host that stays dead is asked, the crawl going on for so long; a commit each hour."""
    asked, until = [], bench.now + days * DAY
    while bench.now < until:
        bench.frontier.hosts.probe_again(bench.now)
        while (lease := bench.next()) is not None:
            asked.append(bench.now)
            bench.answer(lease, None, reason=Reason.DISCONNECTED)
        bench.commit()
        bench.now += HOUR / 2
    return asked


def test_a_dead_host_is_asked_ever_more_seldom(bench: Bench) -> None:
    """After a day, two, four, then each week: one request each time, and nothing waits between them."""
    left = left_alone(bench)

    asked = probes(bench, 30)

    gaps = [after - before for before, after in zip([left, *asked], asked, strict=False)]
    assert [round(gap / DAY) for gap in gaps] == [1, 2, 4, 7, 7, 7]
    assert all(gap >= round(gap / DAY) * DAY for gap in gaps)
    assert bench.frontier.hosts.waiting_urls == 0
    assert bench.frontier.hosts.parked == 1


@pytest.mark.parametrize("max_hosts_in_memory", [1, 100])
def test_one_that_is_back_is_crawled(max_hosts_in_memory: int) -> None:
    """All that its queue has, from robots.txt on; others have gone on, and it may have left memory."""
    bench = Bench(MemoryStore(), max_hosts_in_memory=max_hosts_in_memory)
    left_alone(bench)
    bench.add("http://b.example/", "http://c.example/")
    bench.add(f"http://{DEAD}/later")
    assert sorted(drain(bench)) == ["http://b.example/", "http://c.example/"]
    bench.now += 2 * DAY

    assert bench.frontier.hosts.probe_again(bench.now)

    assert bench.frontier.hosts.parked == 0
    first = bench.next()
    assert first is not None
    assert first.row.url == f"http://{DEAD}/robots.txt"
    assert bench.next() is None
    bench.answer(first)
    assert f"http://{DEAD}/later" in drain(bench)
    assert bench.frontier.hosts.waiting_urls == 0
    assert not bench.store.head(DEAD, 1)


@pytest.mark.parametrize("clean", [True, False])
def test_another_start_asks_anew_and_goes_on_counting(bench: Bench, again: Callable[..., Bench], clean: bool) -> None:
    """It asks at once, after a crash as well; a probe that fails then is followed by two days, not one."""
    left_alone(bench)
    later = again(bench.store, now=bench.now + HOUR, clean=clean)

    asked = probes(later, 4)

    assert len(asked) == 2
    assert asked[0] < bench.now + 2 * HOUR
    assert 2 * DAY <= asked[1] - asked[0] <= 2 * DAY + 2 * HOUR


def test_a_page_that_is_found_meanwhile_waits_with_the_others(bench: Bench) -> None:
    """A link to a dead host wakes nothing; it is counted once when the host is probed."""
    left_alone(bench)
    queued = len(bench.store.head(DEAD, 99))

    bench.add(f"http://{DEAD}/found")
    assert bench.frontier.hosts.waiting_urls == 0
    assert bench.next() is None
    bench.now += 2 * DAY
    bench.frontier.hosts.probe_again(bench.now)

    assert bench.frontier.hosts.waiting_urls == queued + 1


@pytest.mark.parametrize("how", ["paused", "limited", "walled"])
def test_hosts_that_are_held_for_something_else_stay_so(bench: Bench, how: str) -> None:
    """The operator's pause, a limit, a wall that does not want us: no time ends them."""
    host = filled(bench)
    if how == "paused":
        bench.frontier.pause_hosts({DEAD: "now"}, bench.now)
    elif how == "limited":
        host.pages = 2
        bench.frontier.hosts.suspensions = HostSuspensions(Limits(pages=2))
        assert bench.next() is None
    else:
        fail(bench, 2, 403, reason=Reason.CHALLENGE)
    assert host.state

    bench.now += 60 * DAY

    assert not bench.frontier.hosts.probe_again(bench.now)
    assert bench.next() is None
    assert host.state


def test_the_operators_pause_outlasts_the_long_rest(bench: Bench) -> None:
    """A dead host that is paused meanwhile is not asked when its time comes, and is when it is resumed."""
    left_alone(bench)
    bench.frontier.pause_hosts({DEAD: "now"}, bench.now)
    bench.now += 2 * DAY

    bench.frontier.hosts.probe_again(bench.now)
    assert bench.next() is None
    bench.frontier.pause_hosts({}, bench.now)

    assert bench.next() is not None


def test_a_host_of_another_worker_is_its_own_business() -> None:
    """Its new worker has asked it anew."""
    owner = NotOurs()
    bench = Bench(MemoryStore(), ownership=owner)
    left_alone(bench)
    owner.gone = True
    bench.now += 2 * DAY

    assert not bench.frontier.hosts.probe_again(bench.now)

    assert bench.next() is None
    assert bench.frontier.hosts.parked == 0


def test_a_store_that_cannot_be_read_puts_the_probe_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next commit tries again, and counts once."""
    left_alone(bench)
    bench.now += 2 * DAY
    assert bench.next() is None  # its rest is over: it has left memory
    with monkeypatch.context() as broken:
        broken.setattr(bench.store, "host", _broken)
        with pytest.raises(StorageError):
            bench.frontier.hosts.probe_again(bench.now)

    assert bench.frontier.hosts.probe_again(bench.now)
    assert bench.frontier.hosts.waiting_urls == len(bench.store.head(DEAD, 99))


def _broken(host: str) -> bytes | None:
    raise StorageError("the disk is gone")
