"""Judges a crawl's pauses after the fact: each host and each IP address, one request at a time, as promised.

The ports of one name are one host: they share its pace.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from crawlerproject.rules.url.hosts import host_name

# The log's times have microseconds and two clocks are read around a request: less than this is rounding, not haste.
ROUNDING_SECONDS = 0.001
# Lines are written when an answer has ended, so a long one comes late. No request lasts so long (FETCH_TIMEOUT_SECONDS
# is half a minute), and the lines of so much time are kept to put them in the order in which they began.
REORDER_SECONDS = 600.0


class Asked(NamedTuple):
    """One request that reached a server. Epoch seconds; ordered by its start."""

    start: float
    end: float
    host: str
    ip: str
    promised_seconds: float | None  # since the name's last answer's end; None: in old logs, within a page's turn
    url: str


class Violation(NamedTuple):
    """A request that came too soon."""

    kind: str  # "host" or "ip"
    name: str  # without a port
    ended_at: float  # the answer before
    started_at: float
    promised_seconds: float
    url: str

    @property
    def kept_seconds(self) -> float:
        """The real pause; negative when the request before was still in flight."""
        return self.started_at - self.ended_at


class Margin(NamedTuple):
    """How much longer than promised a pause was; the least one of all is told."""

    seconds: float
    promised_seconds: float
    name: str


@dataclass(slots=True)
class _Lane:
    """What one host or address has in flight."""

    ends: list[float] = field(default_factory=list)  # the last one's, or those of all in flight
    last: Asked | None = None


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
        self.tightest: Margin | None = None
        self.most = {"host": 0, "ip": 0, "all": 0}  # requests in flight at once
        self._lanes: dict[str, dict[str, _Lane]] = {"host": {}, "ip": {}}
        self._waiting: list[Asked] = []
        self._judged_to = float("-inf")
        self._in_flight: list[float] = []

    @property
    def hosts(self) -> int:
        """Hosts seen."""
        return len(self._lanes["host"])

    @property
    def ips(self) -> int:
        """IP addresses seen."""
        return len(self._lanes["ip"])

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
        """No more will come."""
        while self._waiting:
            self._judge(heappop(self._waiting))

    def _judge(self, asked: Asked) -> None:
        name = host_name(asked.host)
        lane = self._lanes["host"].get(name)
        if lane is not None and lane.last == asked:
            return  # a crash between compressing a day and removing the plain file leaves its lines twice
        self.requests += 1
        self._judged_to = asked.start
        self.began = min(self.began, asked.start)
        while self._in_flight and self._in_flight[0] <= asked.start:
            heappop(self._in_flight)
        heappush(self._in_flight, asked.end)
        self.most["all"] = max(self.most["all"], len(self._in_flight))
        within = asked.promised_seconds is None
        self._judge_lane("host", name, asked, asked.promised_seconds or 0.0)
        self._judge_lane("ip", asked.ip, asked, 0.0 if within and self.ip_seconds is not None else self.ip_seconds)

    def _judge_lane(self, kind: str, name: str, asked: Asked, promised: float | None) -> None:
        lane = self._lanes[kind].setdefault(name, _Lane())
        if lane.ends and promised is not None:
            ended = max(lane.ends)
            margin = asked.start - ended - promised
            if margin < -ROUNDING_SECONDS:
                self.violations.append(Violation(kind, name, ended, asked.start, promised, asked.url))
            if kind == "host":
                self.pauses += 1
                if self.tightest is None or margin < self.tightest.seconds:
                    self.tightest = Margin(margin, promised, name)
        lane.ends = [*(end for end in lane.ends if end > asked.start), asked.end]
        lane.last = asked
        self.most[kind] = max(self.most[kind], len(lane.ends))
