"""Ports of one name: one clock, one budget, and not too many of them."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import host_rows
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

PAUSE = 5.0


def asked(bench: Bench, count: int) -> list[tuple[str, float]]:
    """The next requests, each answered at once: host and moment."""
    found: list[tuple[str, float]] = []
    while len(found) < count:
        lease = bench.next()
        if lease is None:
            wake = bench.frontier.workbench.wake_at()
            assert wake is not None
            bench.now = max(bench.now, wake)
            bench.commit()
            continue
        found.append((lease.host.name, bench.now))
        bench.answer(lease)
    return found


def test_ports_take_turns_at_the_pace_of_one(bench: Bench) -> None:
    """Three ports, one request each five seconds, and none of them starves."""
    bench.add(*(f"http://a.example{port}/{page}" for port in ("", ":81", ":8080") for page in range(5)))

    requests = asked(bench, 12)

    assert all(after - before >= PAUSE for (_, before), (_, after) in pairwise(requests))
    for place in range(9):
        assert len({host for host, _ in requests[place : place + 3]}) == 3
    assert requests[-1][1] - requests[0][1] == pytest.approx(11 * PAUSE, rel=0.05)


def test_no_two_at_once(bench: Bench) -> None:
    """While one port is asked the others wait, and go on when it has ended."""
    bench.add("http://a.example/1", "http://a.example:81/1")
    first = bench.next()
    assert first is not None
    bench.now += 100.0

    assert bench.next() is None

    bench.answer(first)
    bench.now += 2 * PAUSE
    second = bench.next()
    assert second is not None
    assert second.host is not first.host


@pytest.mark.parametrize(
    ("status", "retry_after", "for_all"),
    [(429, 600.0, True), (503, 600.0, True), (503, None, False), (429, None, True)],
)
def test_who_rests(bench: Bench, status: int, retry_after: float | None, for_all: bool) -> None:
    """What a port asks for holds for its name; what fails there may be that port's alone."""
    bench.add("http://a.example:81/1")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, status, retry_after_seconds=retry_after)
    bench.add("http://a.example/1", "http://a.example:82/1")
    rest = lease.host.rest_until - bench.now
    assert rest > 50

    bench.now += 3 * PAUSE

    other = bench.next()
    assert (other is None) is for_all
    if other is not None:
        assert other.host is not lease.host
        return
    bench.now += rest
    assert bench.next() is not None


def test_a_dead_port_closes_no_other(bench: Bench) -> None:
    """A stranger's link to a port where nothing listens costs the name one pause."""
    bench.add("http://a.example:81/1")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, None, reason=Reason.CONNECT_REFUSED)
    bench.add("http://a.example/1")
    bench.now += 2 * PAUSE

    other = bench.next()

    assert other is not None
    assert other.host.name == "a.example"


@pytest.mark.parametrize("first", ["a.example:81", "a.example"])
def test_the_longest_stored_clock_wins(tmp_path: Path, first: str) -> None:
    """After a restart a port that was never asked waits for the others' last answer and for what they asked for."""
    store = RocksStore(tmp_path / "frontier")
    bench = Bench(store)
    bench.add(f"http://{first}/1")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 429, retry_after_seconds=1000.0)
    bench.commit()

    again = Bench(store, now=bench.now + 1)
    again.add("http://a.example:82/1")
    again.add("http://a.example/2")

    assert again.next() is None
    again.now += 900.0
    assert again.next() is None
    again.now += 110.0
    assert again.next() is not None
    assert again.next() is None  # the others wait for this one
    store.close()


def test_a_rest_outlives_a_crash_before_the_beat(bench: Bench) -> None:
    """What a port asked for is stored at once, and that it is a port of this name."""
    bench.add("http://a.example:81/1")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 429, retry_after_seconds=1000.0)
    kept = Host.unpack("a.example", bench.store.host("a.example") or b"")

    assert kept.other_ports == (81,)


def test_a_longer_pause_holds_after_another_port_too(bench: Bench) -> None:
    """What one origin's robots.txt asks for is kept since the last answer of any."""
    bench.add(*(f"http://a.example{port}/{page}" for port in ("", ":81") for page in range(3)))
    slow = bench.next()
    assert slow is not None
    bench.answer(slow, body=b"User-agent: *\nCrawl-delay: 30\n")
    bench.commit()
    requests = asked(bench, 5)

    for (_, before), (host, after) in pairwise(requests):
        assert after - before >= (30.0 if host == slow.host.name else PAUSE)


def test_so_many_ports_and_no_more(bench: Bench) -> None:
    """Links to further ports are refused; the operator's seeds are not; a restart remembers the ports."""
    bench.add(*(f"http://a.example:{port}/x" for port in range(8000, 8060)))

    assert bench.frontier.state.refused.take() == {Reason.TOO_MANY_PORTS: 52}
    assert bench.seed("http://a.example:9000/") == 1
    bench.commit()

    again = Bench(bench.store, now=bench.now)
    assert again.add("http://a.example:9001/", "http://a.example:8003/2", "http://a.example/") == 2


def test_all_ports_share_one_budget(bench: Bench) -> None:
    """The bench allows 50 URLs of a host: of all its ports together, after a restart too."""
    assert bench.add(*(f"http://a.example:{port}/{n}" for port in (81, 82, 83) for n in range(15))) == 45
    bench.commit()

    again = Bench(bench.store, now=bench.now)
    assert again.add(*(f"http://a.example:{port}/x{n}" for port in (84, 85) for n in range(15))) == 5
    assert again.frontier.state.refused.take()[Reason.BUDGET] == 25


@pytest.mark.parametrize("flags", [0, FLAG_SEED])
def test_bad_ports_are_refused_from_everywhere(bench: Bench, flags: int) -> None:
    """As a link or as a seed, and in a queue that an older version filled."""
    bench.add("http://a.example:25/", "http://a.example:6379/x", flags=flags)

    assert bench.frontier.state.refused.take() == {Reason.BAD_PORT: 2}
    assert bench.next() is None


def test_a_robots_txt_that_moved_to_a_bad_port_is_not_had(bench: Bench) -> None:
    """Doubt means no: the host waits, and nothing is asked there."""
    bench.add("http://a.example/1")
    lease = bench.next()
    assert lease is not None

    bench.answer(lease, 302, location="http://b.example:25/robots.txt")
    bench.commit()
    bench.now += 1.0

    assert bench.next() is None
    assert lease.host.robots_until("http") < 0


def test_a_name_that_is_only_kept_for_its_ports_is_no_host() -> None:
    """The default port of a name that has but others is not counted or shown."""
    bench = Bench(MemoryStore())
    bench.add("http://a.example:81/1")
    bench.commit()
    packed = [(name, bench.store.host(name) or b"") for name in ("a.example", "a.example:81")]

    assert Host.unpack(*packed[0]).other_ports == (81,)
    assert [row.host for row in host_rows(packed, bench.now)] == ["a.example:81"]


def test_memory_of_a_name_goes_with_its_last_host() -> None:
    """A clock is kept while one of its hosts is in memory."""
    bench = Bench(MemoryStore())
    rng = random.Random(1)
    bench.add(*(f"http://n{rng.randrange(30)}.example:{rng.choice((81, 82))}/{n}" for n in range(40)))
    for _ in range(2):
        asked(bench, 20)
    while bench.frontier.workbench.hosts and bench.now < 1e6:
        lease = bench.next()
        if lease is not None:
            bench.answer(lease)
        bench.commit()
        bench.now += 10.0

    assert bench.frontier.workbench.hosts == {}
    assert bench.frontier.workbench.names == {}
