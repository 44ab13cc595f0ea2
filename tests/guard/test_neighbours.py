"""Two processes of a user take turns at a host, whichever way one of them ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crawlerproject.guard.neighbours import Neighbours, shared_file

NAME, IP = ("a.test", 5.0), ("192.0.2.1", 0.5)
AGAIN = 0.1  # seconds until another try
_KEPT: list[Neighbours] = []


@contextlib.contextmanager
def another_process(does: Callable[[], object]) -> Iterator[int]:
    """A process that has done something and stays; it is killed in the end."""
    done, tell = os.pipe()
    child = os.fork()
    if not child:
        does()
        os.write(tell, b"x")
        signal.pause()
    os.read(done, 1)
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(done)
        os.close(tell)


class Clock:
    """Seconds since the machine's start."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ours(tmp_path: Path, clock: Clock) -> Neighbours:
    """Of the process of the tests."""
    return Neighbours(tmp_path / "state" / "asking", clock)


def theirs(tmp_path: Path, clock: Clock) -> Neighbours:
    """The other's, which opens the file by itself and keeps it open."""
    _KEPT.append(Neighbours(tmp_path / "state" / "asking", clock))
    return _KEPT[-1]


def test_the_pause_after_an_answer_is_kept_by_all(ours: Neighbours, clock: Clock, tmp_path: Path) -> None:
    """Of the name and of the address, each its own."""

    def asks() -> None:
        other = theirs(tmp_path, clock)
        assert other.enter([NAME, IP]) == 0
        clock.now += 2
        other.leave(NAME[0], 0.25)
        other.leave(IP[0], 0.25)

    with another_process(asks):
        clock.now = 1002.0
        assert ours.enter([NAME, IP]) == pytest.approx(4.75)
        assert ours.enter([IP]) == pytest.approx(0.25)
        clock.now = 1006.75
        assert ours.enter([NAME, IP]) == 0


def test_one_at_a_time(ours: Neighbours, clock: Clock, tmp_path: Path) -> None:
    """Either key is enough; what could not be had whole is let go of."""
    with another_process(lambda: theirs(tmp_path, clock).enter([IP])):
        assert ours.enter([NAME, IP]) == AGAIN
        with another_process(lambda: theirs(tmp_path, clock).enter([NAME])):
            assert ours.enter([NAME]) == AGAIN  # it has that: ours was let go of


def test_the_lock_of_a_process_that_is_killed_is_free(ours: Neighbours, clock: Clock, tmp_path: Path) -> None:
    """Its request may have ended just now, so a whole pause follows."""
    with another_process(lambda: theirs(tmp_path, clock).enter([NAME])) as child:
        assert ours.enter([NAME]) == AGAIN
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert ours.enter([NAME]) == 5.0
        clock.now += 5.0
        assert ours.enter([NAME]) == 0


def test_a_command_asks_when_the_crawl_has_noticed_it(ours: Neighbours, clock: Clock, tmp_path: Path) -> None:
    """What the crawl has asked until then counts."""

    async def main() -> None:
        crawl_to_us, us_to_crawl = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            crawl = theirs(tmp_path, clock)
            crawl.begin_alone()
            os.write(crawl_to_us[1], b"x")
            os.read(us_to_crawl[0], 1)
            if crawl.look():
                crawl.notice(["under-way.test"], [(NAME[0], 1.0)])
            signal.pause()
        os.read(crawl_to_us[0], 1)
        waits = 0

        async def sleep(_: float) -> None:
            nonlocal waits
            waits += 1
            if waits == 3:
                os.write(us_to_crawl[1], b"x")
            await asyncio.sleep(0.001)

        ours.begin_beside()
        await asyncio.wait_for(ours.until_noticed(sleep), 60)
        assert waits >= 3
        assert ours.enter([("under-way.test", 5.0)]) == AGAIN
        assert ours.enter([NAME]) == 4.0
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    asyncio.run(main())


def test_a_crawl_alone_sees_no_other(ours: Neighbours, clock: Clock, tmp_path: Path) -> None:
    """Nor do two crawls see each other; a command's end is seen as well as its beginning."""
    ours.begin_alone()
    with another_process(lambda: theirs(tmp_path, clock).begin_alone()):
        assert not ours.look()
    with another_process(lambda: theirs(tmp_path, clock).begin_beside()):
        assert ours.look()
    assert not ours.look()


def test_moments_of_before_the_machines_start_mean_nothing(ours: Neighbours, clock: Clock) -> None:
    """The clock began at 0 again."""
    assert ours.enter([NAME]) == 0
    ours.leave(NAME[0], 0.0)
    clock.now = 10.0
    assert ours.enter([NAME]) == 0


def test_the_file_is_its_owners_alone(ours: Neighbours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user could hold its locks; it lies in the user's state, one for each machine, and stays small."""
    made = tmp_path / "state" / "asking"
    assert (made.stat().st_mode & 0o777, made.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    ours.enter([NAME, IP])
    assert made.stat().st_blocks * 512 < 100_000
    monkeypatch.setenv("XDG_STATE_HOME", "/home/one/state")
    assert shared_file().parent == Path("/home/one/state/polite-crawler")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", "/home/two")
    assert shared_file().parent == Path("/home/two/.local/state/polite-crawler")
