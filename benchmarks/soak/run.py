"""The crawl of a soak: round after round on one folder, by a clock of its own, while chance does its worst."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from typing import NamedTuple

from benchmarks.local_fleet.trouble import happen
from benchmarks.soak.books import DAY_SECONDS, Books, Round
from benchmarks.soak.samples import Sampler
from benchmarks.soak.server import Show
from benchmarks.soak.web import SoakWeb
from tests.crawls.fleet.local_fleets import LocalFleetRun
from tests.web.running import RunningWeb

PACE_SECONDS = 0.02  # promised to each host and each address: two million pauses have to fit into an hour
_MIDNIGHT_AFTER_SECONDS = 45.0  # of a round, by the crawl's clock: workers are at work by then
_SAMPLE_SECONDS = 5.0
_LONGEST_STOP_SECONDS = 4.0
_END_SECONDS = 120.0  # for a fleet that was asked to stop
SETTINGS = {
    **dict.fromkeys(("PACE_MIN_SECONDS", "PACE_START_SECONDS", "PACE_IP_SECONDS"), f"{PACE_SECONDS:g}"),
    # What rests for a minute or an hour rests for seconds here.
    "BACKOFF_START_SECONDS": "1",
    "BACKOFF_MAX_SECONDS": "4",
    "FRONTIER_MAX_REST_SECONDS": "10",
    "HOST_MAX_FAILURES": "5",
    "FETCH_TIMEOUT_SECONDS": "20",
    "FETCH_SLOW_GRACE_SECONDS": "2",
    "COMMIT_SECONDS": "1",  # the default
    "FLEET_PARTITIONS": "256",
    "WARC_MAX_BYTES": "50000000",  # so that files are closed all the time
    "RECRAWL_RECENT_DAYS": "1",
    "LOG_KEEP_DAYS": "366",  # the judge reads all of them
    "PROGRESS_LOG_SECONDS": "30",
    "RENDER": "never",
}


class Length(NamedTuple):
    """When a soak is long enough."""

    requests: int
    seconds: float  # of this start; then the round is left as it is, and the same command goes on
    event_seconds: float  # between two strokes of chance, on average


class _Fleet(LocalFleetRun):
    """Whose clock is ahead, and which visits known pages again from the second round on."""

    def __init__(self, web: SoakWeb, books: Books, turn: Round) -> None:
        running = RunningWeb(web.folder, web.port, 0)
        super().__init__(running, books.crawl, books.plan["workers"], SETTINGS, scope="host")
        ahead = f"workers:{turn.ahead_seconds / DAY_SECONDS:.9f}"
        again = ("-a", "mode=recrawl") if turn.generation else ()
        arguments = self.command[self.command.index("fleet") :]
        self.command = [self.command[0], "-m", "tests.web.later", ahead, *arguments, *again]


class Soak:
    """One start of the benchmark."""

    def __init__(self, web: SoakWeb, books: Books, show: Show, length: Length) -> None:
        self._web = web
        self._books = books
        self._show = show
        self._length = length
        self._until = time.monotonic() + length.seconds
        self._chance = random.Random(books.plan["seed"] + len(list(books.noted("events"))))
        self._sampler = Sampler(books.crawl, web.log)
        self._stopped = threading.Event()

    def run(self) -> None:
        """Until it is long enough; SIGINT and SIGTERM end it at once, in good order."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: self._stopped.set())
        while self._sampler.count() < self._length.requests and not self._over():
            turn = self._books.begin_round(time.time(), _MIDNIGHT_AFTER_SECONDS)
            self._show(turn.generation)
            self._round(turn)

    def _over(self) -> bool:
        return self._stopped.is_set() or time.monotonic() > self._until

    def _round(self, turn: Round) -> None:
        fleet = _Fleet(self._web, self._books, turn)
        sampled = threading.Thread(target=self._sample, args=(fleet, ended := threading.Event()), daemon=True)
        fleet.start()
        sampled.start()
        try:
            status = self._watch(fleet)
        finally:
            ended.set()
            sampled.join()
            fleet.close()
        if not self._over():  # else the same command goes on with it
            turn.whole, turn.ended = status == 0, time.time()
        self._books.note("ends", {"time": time.time(), "generation": turn.generation, "status": status})
        self._books.save()
        said = "whole" if turn.whole else f"ended with status {status}"
        print(f"round {turn.generation} {said}: {self._sampler.count():,} requests so far", flush=True)
        if status and not self._over():
            raise SystemExit(f"the fleet ended with status {status}: see {fleet.log}")

    def _watch(self, fleet: LocalFleetRun) -> int:
        """Let chance have its way until the fleet has ended, or is to end; its status."""
        due = self._next_event()
        while fleet.supervisor.poll() is None:
            if self._over():
                fleet.supervisor.send_signal(signal.SIGTERM)
                return fleet.wait(_END_SECONDS)
            if time.monotonic() > due:
                self._stroke(fleet)
                due = self._next_event()
            time.sleep(0.2)
        return fleet.supervisor.wait(_END_SECONDS)

    def _next_event(self) -> float:
        if not self._length.event_seconds:
            return float("inf")
        return time.monotonic() + self._chance.uniform(0.5, 1.5) * self._length.event_seconds

    def _stroke(self, fleet: LocalFleetRun) -> None:
        kinds = (
            "kill worker",
            "kill worker",
            "kill supervisor",
            "kill all",
            "stop worker",
            "stop supervisor",
            "full disk",
        )
        kind, name = self._chance.choice(kinds), self._chance.choice(fleet.names)
        began = time.time()
        with contextlib.suppress(AssertionError, ProcessLookupError, OSError):  # the round was over
            happen(fleet, kind, name, self._chance.uniform(0.5, _LONGEST_STOP_SECONDS))
            self._books.note("events", {"kind": kind, "worker": name, "time": began, "until": time.time()})

    def _sample(self, fleet: LocalFleetRun, ended: threading.Event) -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            self._books.note(
                "samples", {**self._sampler.sample(fleet), "generation": self._books.rounds[-1].generation}
            )
