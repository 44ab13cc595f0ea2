"""What lasts as long as the process: clock, pauses, losses, counters."""

from __future__ import annotations

import logging
import time

import pytest

from crawlerproject.crawl.run import Run
from crawlerproject.runtime.clock import SteeredClock, since_boot
from crawlerproject.stores.operator_files.control import Pauses
from tests.crawl.sessions import run_of


@pytest.fixture
def run() -> Run:
    """A new one."""
    return run_of()


def test_the_clock_is_the_machines_until_a_fleet_has_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fleet's workers count from the store's clock."""
    monkeypatch.setattr("crawlerproject.crawl.run.CRAWL", SteeredClock())
    run = run_of()
    assert run.now() == pytest.approx(time.time(), abs=2)
    run.follow(1_000_000.0 - since_boot())
    assert run.now() == pytest.approx(1_000_000.0, abs=2)
    assert run.running_seconds < 10


def test_nothing_is_leased_while_known_pages_are_chosen(run: Run) -> None:
    """It is said in words, and no pause of another cause ends it."""
    run.choosing = True
    run.go_on()
    assert run.stopped == run.halted == "known pages to visit again are chosen"
    run.choosing = False

    assert run.halted == ""


def test_a_pause_is_said_once_and_its_last_reason_kept(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Each commit that fails gives a reason again."""
    run.pause("no room")
    run.pause("still no room")

    assert run.halted == "still no room"
    assert len(caplog.messages) == 1
    with caplog.at_level(logging.WARNING):
        run.go_on()
    assert run.halted == ""


def test_a_pause_that_comes_and_goes_is_said_once_a_minute(
    run: Run, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that refuses files lets every commit try again; one that stays away is named as well."""
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(30):
            run.pause("no files")
            clock[0] += 1.0
            run.go_on()
        assert len(caplog.messages) == 2
        run.pause("no files")
        assert (run.paused, len(caplog.messages)) == ("no files", 2)
        clock[0] += 60.0
        run.pause("no files")
        run.pause("no files")
        run.go_on()
        run.pause("no room")

    assert len(caplog.messages) == 5


def test_the_operators_pause_halts_as_well(run: Run) -> None:
    """The machine's own reason comes first."""
    run.pauses = Pauses("since noon")
    assert run.halted == "by the operator, since noon"
    run.pause("no room")
    assert run.halted == "no room"


def test_a_loss_pauses_until_the_session_is_replaced(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """Said once, whatever else is lost meanwhile."""
    run.lose("a partition was taken")
    run.lose("another one")

    assert (run.lost, run.paused) == ("another one", "another one")
    assert sum("joins again" in message for message in caplog.messages) == 1
