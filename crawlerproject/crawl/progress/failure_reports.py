"""Why hosts rest and seeds fail, logged at once: URL, reason, next attempt and the setting that helps."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from heapq import nsmallest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.host_table import pace_source
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.rules.printable import human_seconds

logger = logging.getLogger(__name__)

# Outcomes that need no report.
GOOD = frozenset({Reason.FETCHED, Reason.NOT_MODIFIED, Reason.REDIRECT, Reason.RENDERED, Reason.SUBSCRIBED})
# Seeds that are reported one by one (our choice); a file of a million may be full of dead names.
_NAMED = 10
# Hosts whose last failure is remembered, the oldest goes first: 200 KB.
_REMEMBERED = 1000
# Lines about resting hosts: the panel then fits 80 x 24 with the log above it.
_LINES = 3


class FailureReporter:
    """Of one start. ``seed_hosts`` are sorted host keys."""

    def __init__(self, seed_hosts: Sequence[str]) -> None:
        self._seed_hosts = seed_hosts
        self._reasons: dict[str, str] = {}  # host -> its last failure
        self._seeds: set[str] = set()  # hosts and URLs of seeds that were named
        self._more = 0  # that were not

    def ended(self, outcome: LeaseResult, now: float) -> None:
        """Report a page whose reason is not GOOD; its host's rest is already decided."""
        row, host = outcome.row, outcome.lease.host
        rests = host.rests_until(now)
        if rests or outcome.status is None:
            self._reasons.pop(host.name, None)
            if len(self._reasons) >= _REMEMBERED:
                del self._reasons[next(iter(self._reasons))]
            self._reasons[host.name] = str(outcome.reason)
        is_seed = row.kind.is_seed
        if is_seed or (row.kind.is_robots and (rests or outcome.status is None) and self._of_seeds(host.name)):
            what = f"Seed {row.url}" if is_seed else f"The seeds of {host.name} wait for {row.url}"
            known = {"host": host.name, "url": row.url}
            said, detail = str(outcome.reason), str(outcome.status if outcome.status is not None else outcome.error)
            said += f" ({detail})" if detail and detail != said else ""
            self._say(f"{what}: {said}{_again(rests, now)}", outcome.reason, known, host.name)

    def refused(self, seeds: Iterable[tuple[str, Reason]]) -> None:
        """Report seeds (URLs) that a gate refused."""
        for url, reason in seeds:
            self._say(f"Seed {url} is refused: {reason}", reason, {"url": url}, url)

    def standing(self, hosts: Sequence[Host], now: float, on_disk: int = 0) -> tuple[str, ...]:
        """Why nothing moves, by the hosts that are free first; ``on_disk``: how many more rest there."""
        first = nsmallest(_LINES, hosts, key=lambda host: free_at(host, now))
        lines = [f"{host.name}: {self._why(host, now)}{_again(free_at(host, now), now)}" for host in first]
        more = len(hosts) - len(first) + on_disk
        return (*lines, f"and {more:,} more rest or keep their pause") if more else tuple(lines)

    def _why(self, host: Host, now: float) -> str:
        if not host.rests_until(now):
            return pace_source(host)
        if host.closed_until > now:
            return "outside the hours of its robots.txt"
        if host.at_door and host.rest_until <= now:
            return f"only other domains name what is left, and its door is closed to that ({host.door.reason})"
        return self._reasons.get(host.name) or (
            f"rests, {host.failures} failures in a row" if host.failures else "rests"
        )

    def _of_seeds(self, host: str) -> bool:
        place = bisect_left(self._seed_hosts, host)
        return place < len(self._seed_hosts) and self._seed_hosts[place] == host

    def _say(self, text: str, reason: Reason, known: dict[str, str], key: str) -> None:
        """Warn once per key while there are few, then at 10, 100, 1,000 more."""
        if key in self._seeds:
            return
        if len(self._seeds) < _NAMED:
            self._seeds.add(key)
            remedy = REMEDIES.get(reason, "")
            logger.warning("%s.%s", text, f" {remedy}" if remedy else "", extra={**known, "reason": reason})
            return
        self._more += 1
        if self._more >= 10 and str(self._more).strip("0") == "1":
            logger.warning(
                "%d more seeds have failed or were refused; the request log and scrapy why name them", self._more
            )


def free_at(host: Host, now: float) -> float:
    """When a host that waits or rests may be asked; epoch seconds."""
    return max(host.next_free, host.rests_until(now))


def _again(until: float, now: float) -> str:
    return f", again in {human_seconds(until - now)}" if until > now else ""
