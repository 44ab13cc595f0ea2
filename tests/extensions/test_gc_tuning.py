"""The collector in a crawl: often and in small parts, whatever Python's own counts say."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from crawlerproject.extensions import gc_tuning
from crawlerproject.extensions.gc_tuning import GC_THRESHOLDS, GarbageCollectorTuning

TICKS = 20  # of half a second each


class Thing:
    """One that the collector walks."""


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generations that are collected while the test runs, which alone starts collections."""
    found: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            found.append(info["generation"])

    gc.disable()
    gc.collect()
    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    gc.enable()


def test_each_tick_collects_what_is_young_and_the_fourth_its_survivors(collections: list[int]) -> None:
    """Five of survivors in ten seconds, none of everything."""
    tuning = GarbageCollectorTuning()
    for _ in range(TICKS):
        tuning.tick()

    assert collections == [0, 0, 0, 1] * 5


def test_what_python_does_not_count_is_walked_in_parts(collections: list[int]) -> None:
    """New objects for old ones: Python's own count stays where it was, and would let the young become all."""
    tuning = GarbageCollectorTuning()
    things = [Thing() for _ in range(2_000)]
    tuning.tick()
    most = 0
    for start in range(0, len(things), 100):
        things[start : start + 100] = [Thing() for _ in range(100)]
        assert gc.get_count()[0] < GC_THRESHOLDS[0]
        most = max(most, sum(type(each) is Thing for each in gc.get_objects(generation=0)))
        tuning.tick()

    assert most == 100


def test_a_circle_goes_that_lived_through_many_ticks(collections: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is looked at once its time has come."""
    monkeypatch.setattr(gc_tuning, "GC_THRESHOLDS", (5_000, 160, 3))
    tuning, thing = GarbageCollectorTuning(), Thing()
    thing.__dict__["itself"] = thing
    for _ in range(2 * TICKS):
        tuning.tick()
    del thing
    before = len(collections)
    for _ in range(2 * TICKS):
        tuning.tick()

    assert 2 in collections[before:]
    assert not any(type(each) is Thing for each in gc.get_objects())
