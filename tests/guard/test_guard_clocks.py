"""Clocks of host names and addresses: when each is free, who is told so, and that finished ones are dropped."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from crawlerproject.guard.guard import PauseClocks


def test_a_name_that_was_never_asked_is_free() -> None:
    """And looking at it keeps nothing."""
    clocks = PauseClocks()

    assert clocks.wait_seconds("a.test", 100.0, 5.0) == 0.0
    assert clocks.get("a.test") is None
    assert len(clocks) == 0


def test_a_pause_begins_when_the_answer_ends() -> None:
    """In flight there is no moment to wait for; afterwards the delay counts from the end."""
    clocks = PauseClocks()
    clocks.enter("a.test")
    assert clocks.wait_seconds("a.test", 100.0, 5.0) is None

    clocks.leave("a.test", 101.0, 5.0, 101.0)

    assert clocks.wait_seconds("a.test", 102.0, 5.0) == pytest.approx(4.0)
    assert clocks.wait_seconds("a.test", 107.0, 5.0) == pytest.approx(-1.0)


def test_an_earlier_end_that_comes_later_shortens_no_pause() -> None:
    """The last end counts, in whatever order they are reported."""
    clocks = PauseClocks()
    clocks.leave("a.test", 105.0, 5.0, 105.0, entered=False)
    clocks.leave("a.test", 101.0, 5.0, 105.0, entered=False)

    assert clocks.wait_seconds("a.test", 106.0, 5.0) == pytest.approx(4.0)


def test_a_rest_of_any_port_holds_the_name() -> None:
    """The longest counts, and so does the pause where it is longer."""
    clocks = PauseClocks()
    clock = clocks.leave("a.test", 100.0, 5.0, 100.0, entered=False)
    clock.hosts = {"a.test": SimpleNamespace(rest_until=103.0), "a.test:81": SimpleNamespace(rest_until=160.0)}  # type: ignore[dict-item]
    assert clocks.wait_seconds("a.test", 101.0, 5.0) == pytest.approx(59.0)

    clock.hosts = {"a.test": SimpleNamespace(rest_until=103.0)}  # type: ignore[dict-item]
    assert clocks.wait_seconds("a.test", 101.0, 5.0) == pytest.approx(4.0)


def test_a_name_stays_shared_once_other_requests_went_there() -> None:
    """The frontier's own requests do not make it so."""
    clocks = PauseClocks()
    clocks.enter("a.test")
    clocks.enter("b.test", shared=True)
    clocks.leave("b.test", 101.0, 5.0, 101.0)
    clocks.enter("b.test")

    assert [clocks.shared(name) for name in ("a.test", "b.test", "c.test")] == [False, True, False]


def test_those_that_wait_are_told_when_the_request_ends() -> None:
    """All of them once; where nothing is in flight there is nothing to wait for; one that gave up is left alone."""

    async def wait() -> list[bool]:
        clocks = PauseClocks()
        freed, given_up, late = (asyncio.get_running_loop().create_future() for _ in range(3))
        clocks.enter("a.test")
        told = [clocks.tell("a.test", freed), clocks.tell("a.test", given_up), clocks.tell("b.test", late)]
        given_up.cancel()
        clocks.leave("a.test", 101.0, 5.0, 101.0)
        return [*told, freed.done(), given_up.cancelled(), late.done(), clocks.tell("a.test", late)]

    assert asyncio.run(wait()) == [True, True, False, True, True, False, False]


def test_clocks_whose_pause_is_over_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in flight and those that still pause stay."""
    monkeypatch.setattr("crawlerproject.guard.guard._SWEEP_FROM", 10)
    clocks = PauseClocks()
    clocks.enter("flying.test")
    clocks.leave("resting.test", 100.0, 1_000.0, 100.0, entered=False)
    for number in range(50):
        clocks.leave(f"n{number}.test", 100.0 + number, 0.5, 100.0 + number, entered=False)

    assert len(clocks) < 25
    kept = {key for key, _ in clocks.items()}
    assert {"flying.test", "resting.test"} <= kept
    assert "n0.test" not in kept


def test_a_clock_is_not_dropped_as_its_own_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though its pause is over by then: the caller keeps in it what the answer teaches."""
    monkeypatch.setattr("crawlerproject.guard.guard._SWEEP_FROM", 3)
    clocks = PauseClocks()
    for name in ("a.test", "b.test", "c.test"):
        clocks.enter(name)
        assert clocks.leave(name, 100.0, 0.0, 100.0) is clocks[name]
    assert list(clocks) == ["c.test"]
