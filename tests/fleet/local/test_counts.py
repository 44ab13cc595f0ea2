"""What a worker has done over its processes."""

from __future__ import annotations

from crawlerproject.fleet.local.counts import Counts


def test_what_is_done_adds_up_and_what_is_left_is_as_said_last() -> None:
    """A process that has nothing left says so, whatever the one before had; one that has not reported says nothing."""
    before = Counts(5, 1000, 1, 70)

    assert Counts().after(before) == Counts(5, 1000, 1, 70)
    assert Counts(2, 10, 0, 30, "no room").after(before) == Counts(7, 1010, 1, 30, "no room")
    assert Counts(9, 10, 0, 0).after(before) == Counts(14, 1010, 1, 0)
