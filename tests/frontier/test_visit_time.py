"""Visit-time: outside the hours that a robots.txt names, its host sees nothing but robots.txt."""

from __future__ import annotations

from collections.abc import Callable

from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

HOUR = 3600.0
_MIDNIGHT = 86400.0 * 20_000


def test_pages_wait_for_the_hours(again: Callable[..., Bench]) -> None:
    """robots.txt is read at noon, the first page goes out at ten in the evening, and none after six."""
    night = again(MemoryStore(), now=_MIDNIGHT + 12 * HOUR)
    night.add("http://a.example/1", "http://a.example/2")
    night.through_robots(b"User-agent: *\nVisit-time: 2200-0600\n")

    assert night.next() is None
    assert night.frontier.workbench.wake_at() == _MIDNIGHT + 22 * HOUR
    assert night.frontier.only_rests(night.now, 9 * HOUR)
    assert not night.frontier.only_rests(night.now, 11 * HOUR)

    night.now = _MIDNIGHT + 30 * HOUR - 1
    lease = night.next()
    assert lease is not None
    night.answer(lease)
    night.now = lease.host.next_free
    assert night.next() is None


def test_a_restart_waits_as_well(again: Callable[..., Bench]) -> None:
    """The stored robots.txt says the hours again."""
    night = again(MemoryStore(), now=_MIDNIGHT + 12 * HOUR)
    night.add("http://a.example/1")
    night.through_robots(b"User-agent: *\nVisit-time: 2200-0600\n")
    night.commit()

    later = again(night.store, now=_MIDNIGHT + 13 * HOUR)

    assert later.next() is None
    later.now = _MIDNIGHT + 22 * HOUR
    assert later.next() is not None
