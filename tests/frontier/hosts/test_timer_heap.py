"""Things that wait for moments: in order, each for its last one."""

from __future__ import annotations

from crawlerproject.frontier.hosts.ip_clocks import TimerHeap


class Thing:
    """What waits."""

    serial = 0

    def __init__(self, name: str) -> None:
        self.name = name


def heap(**moments: float) -> tuple[TimerHeap[Thing], dict[str, Thing]]:
    """Things by name, each waiting for its moment."""
    timers, things = TimerHeap[Thing](), {name: Thing(name) for name in moments}
    for name, moment in moments.items():
        timers.push(things[name], moment)
    return timers, things


def popped(timers: TimerHeap[Thing], now: float) -> list[str]:
    """All that are due."""
    names = []
    while timers.heap and timers.heap[0][0] <= now:
        if (thing := timers.pop()) is not None:
            names.append(thing.name)
    return names


def test_the_earliest_comes_first_and_none_too_soon() -> None:
    """Equal moments in the order in which they were given."""
    timers, _ = heap(late=3.0, first=1.0, second=1.0)

    assert popped(timers, 0.9) == []
    assert popped(timers, 1.0) == ["first", "second"]
    assert timers.wake_at() == 3.0
    assert popped(timers, 9.0) == ["late"]
    assert timers.wake_at() is None


def test_another_moment_replaces_the_last_one() -> None:
    """Later or earlier; the stale entry wakes nothing."""
    timers, things = heap(later=1.0, sooner=5.0)
    timers.push(things["later"], 4.0)
    timers.push(things["sooner"], 2.0)

    assert timers.wake_at() == 2.0
    assert popped(timers, 9.0) == ["sooner", "later"]


def test_what_is_dropped_waits_no_more_and_takes_no_room() -> None:
    """Half of the entries may be stale, not more, once it is tidied."""
    timers, things = heap(**{str(number): float(number) for number in range(10)})
    for number in range(7):
        timers.drop(things[str(number)])
    timers.tidy()

    assert len(timers.heap) == 3
    assert popped(timers, 99.0) == ["7", "8", "9"]


def test_the_latest_are_found_a_part_at_a_time() -> None:
    """Those that wait for longer than a moment, the latest first."""
    timers, things = heap(a=1.0, b=5.0, c=3.0, d=9.0)
    timers.drop(things["d"])

    assert [thing.name for thing in timers.latest(9, 2.0)] == ["b", "c"]
    assert [thing.name for thing in timers.latest(1, 2.0)] == ["b"]
    assert timers.latest(9, 6.0) == []
