"""Judges whether hosts and IP addresses were left alone as long as promised, one request at a time, after the fact too.

The ports of one name are one host: they share its pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from heapq import heappop, heappush
from typing import Any, NamedTuple

from crawlerproject.rules.url.urls import host_name

# Lines are written when an answer has ended, so a long one comes late. No request lasts so long (FETCH_TIMEOUT_SECONDS
# is half a minute), and the lines of so much time are kept to put them in the order in which they began.
REORDER_SECONDS = 600.0
ROUNDING_SECONDS = 0.001
"""Two clocks are read around a request, and times are written in microseconds: less is rounding, not haste."""


class Pause(NamedTuple):
    """The time from an answer's end to the next request to the same host, or to the same IP address."""

    name: str  # without a port: the ports of one name are one host and share its pace
    ended_at: float  # epoch seconds
    started_at: float  # epoch seconds
    promised_seconds: float

    @property
    def kept_seconds(self) -> float:
        """The real pause; negative when the request before was still in flight."""
        return round(self.started_at - self.ended_at, 6)

    @property
    def margin_seconds(self) -> float:
        """How much longer than promised."""
        return round(self.kept_seconds - self.promised_seconds, 6)

    @property
    def too_short(self) -> bool:
        """Whether the promise was broken."""
        return self.margin_seconds < -ROUNDING_SECONDS


class LastAnswers:
    """When the last answer of each host, or of each address, had ended."""

    def __init__(self) -> None:
        self.ends: dict[str, float] = {}

    def ask(self, name: str, end: float) -> float | None:
        """Take the next request, in the order of starts, and when it ends; when the one before it had ended."""
        before = self.ends.get(name)
        self.ends[name] = end if before is None else max(before, end)
        return before


class Asked(NamedTuple):
    """One request that reached a server. Epoch seconds; ordered by its start."""

    start: float
    end: float
    host: str
    ip: str
    promised_seconds: float | None  # since the name's last answer's end; None: in old logs, within a page's turn
    url: str


def asked_of(row: Mapping[str, Any]) -> Asked | None:
    """The request of a line of the log; None for one that reached no server.

    Raises KeyError, ValueError or TypeError for a line without these fields.
    """
    if not (row["ip"] and row["host"]):
        return None
    start, end = (datetime.fromisoformat(row[name]).timestamp() for name in ("time", "end"))
    promised = row["delay_seconds"]
    return Asked(start, end, row["host"], row["ip"], None if promised is None else float(promised), row["url"])


class Violation(NamedTuple):
    """A request that came too soon."""

    kind: str  # "host" or "ip"
    pause: Pause
    url: str


class Audit:
    """Takes requests in the order of the log; the violations are complete after ``close``."""

    def __init__(self, ip_seconds: float | None) -> None:
        self.ip_seconds = ip_seconds  # promised between two requests to one address; None: nothing is
        self.violations: list[Violation] = []
        self.requests = 0
        self.pauses = 0  # judged, at hosts
        self.late_lines = 0  # too far out of order to be judged
        self.began = float("inf")
        self.ended = float("-inf")
        self.tightest: Pause | None = None  # with the least margin over a promise
        self.most = {"host": 0, "ip": 0, "all": 0}  # requests in flight at once
        self._answers = {"host": LastAnswers(), "ip": LastAnswers()}
        self._in_flight: dict[tuple[str, str], list[float]] = {}  # ends, by kind and name
        self._last: dict[str, Asked] = {}  # by host
        self._waiting: list[Asked] = []
        self._judged_to = float("-inf")

    @property
    def hosts(self) -> int:
        """Hosts seen."""
        return len(self._answers["host"].ends)

    @property
    def ips(self) -> int:
        """IP addresses seen."""
        return len(self._answers["ip"].ends)

    def add(self, asked: Asked) -> None:
        """One more request of the log."""
        if asked.start < self._judged_to:
            self.late_lines += 1
            return
        self.ended = max(self.ended, asked.end)
        heappush(self._waiting, asked)
        while self._waiting[0].start < self.ended - REORDER_SECONDS:
            self._judge(heappop(self._waiting))

    def close(self) -> None:
        """Judge what still waits for its order."""
        while self._waiting:
            self._judge(heappop(self._waiting))

    def _judge(self, asked: Asked) -> None:
        name = host_name(asked.host)
        if self._last.get(name) == asked:
            return  # a crash between compressing a day and removing the plain file leaves its lines twice
        self._last[name] = asked
        self.requests += 1
        self._judged_to = asked.start
        self.began = min(self.began, asked.start)
        within = asked.promised_seconds is None
        pause = self._paused("host", name, asked, asked.promised_seconds or 0.0)
        if pause is not None:
            self.pauses += 1
            if not within and (self.tightest is None or pause.margin_seconds < self.tightest.margin_seconds):
                self.tightest = pause
        self._paused("ip", asked.ip, asked, 0.0 if within and self.ip_seconds is not None else self.ip_seconds)
        for kind, of in (("host", name), ("ip", asked.ip), ("all", "")):
            ends = self._in_flight.setdefault((kind, of), [])
            while ends and ends[0] <= asked.start:
                heappop(ends)
            heappush(ends, asked.end)
            self.most[kind] = max(self.most[kind], len(ends))

    def _paused(self, kind: str, name: str, asked: Asked, promised: float | None) -> Pause | None:
        before = self._answers[kind].ask(name, asked.end)
        if before is None or promised is None:
            return None
        pause = Pause(name, before, asked.start, promised)
        if pause.too_short:
            self.violations.append(Violation(kind, pause, asked.url))
        return pause
