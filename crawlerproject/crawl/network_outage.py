"""Keeps failures apart that are our own network's: no host is blamed, and no try used up, while none is reached.

A failure waits for the answer to a request that was sent after it, which says that the network is there; most come
within a fraction of a second. When none comes for a second, connections are opened to some addresses that answered of
late, and nothing is sent on them. One that opens says the same. When none does, the crawl waits, and what failed waits
as if it had never been asked for. From then on the addresses are tried in turn, and one ordinary request goes with
each try. What fails because this machine lacks files, memory or processes is spared at once.

Where a captive portal answers in the place of every host, plain HTTP proves nothing: what failed under https waits for
an answer under https, and those addresses are tried first, certificates included.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from math import inf
from typing import NamedTuple

from crawlerproject.crawl.page_completion import PageCompletion
from crawlerproject.crawl.run import Run
from crawlerproject.fetch.pool import Endpoint
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.rules.politeness.pauses import UNSENT_FAILURES
from crawlerproject.rules.politeness.whose_failure import (
    BELIEVED_DEAD_SECONDS,
    BELIEVED_SECONDS,
    LEAST_KNOWN_ENDPOINTS,
    LEAST_UNREACHED_HOSTS,
    MOST_KNOWN_ENDPOINTS,
    NETWORK_AUTHENTICATION,
    QUIET_SECONDS,
    UNREACHED_WAIT_SECONDS,
    is_doubtful,
    next_try_seconds,
)
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.rules.url.urls import host_name

logger = logging.getLogger(__name__)

WHY = "no host is reached any more; is this machine's network up? It is tried every minute"
"""Why nothing is asked, as status and progress show it."""

# At the first test so many addresses are tried at a time; the others when these are not reached.
_AT_A_TIME = 2
# A known address is remembered once in so long: to do so with each answer would only cost.
_REMEMBER_SECONDS = 1.0
# A limit of this process is met by every request: it is logged once in so long.
_SAY_AGAIN_SECONDS = 60.0


class _Held(NamedTuple):
    """A failure without a verdict."""

    result: LeaseResult
    since: float  # epoch seconds


class Outage:
    """Of one session. ``shut``: nothing may be leased but what ``takes_probe`` grants."""

    def __init__(
        self,
        run: Run,
        pages: PageCompletion,
        reaches: Callable[[Endpoint], Awaitable[bool]],
        wake: Callable[[], None],
        longest_seconds: float,
    ) -> None:
        """``reaches``: whether a connection opens; ``wake`` has the engine ask; 0 ``longest_seconds``: never wait."""
        self._run = run
        self._pages = pages
        self._reaches = reaches
        self._wake = wake
        self._longest_seconds = longest_seconds
        self.shut = False
        self._down_since = 0.0  # epoch seconds; 0: the network is there
        self._believed_until = 0.0
        self._held: dict[bool, deque[_Held]] = {True: deque(), False: deque()}  # under https, or not; the oldest first
        self._known_endpoints: dict[str, Endpoint] = {}  # by address, the latest last
        self._remember_at = 0.0
        self._any_reached = False
        self._say_again_at = 0.0
        self._unreached_hosts: set[str] = set()  # that failed before any host answered
        self._spared = 0
        self._probe = False
        self._task: asyncio.Task[None] | None = None

    @property
    def down(self) -> bool:
        """Whether the crawl waits for its network."""
        return self._down_since > 0.0

    def withholds(self, result: LeaseResult) -> bool:
        """Whether the end is put off, or was: a failure of which it must be seen first whose it is."""
        lease = result.lease
        if self._run.lost or result.is_render:
            return False
        if result.reason is Reason.OUR_LIMIT:
            self._say_limit(result.error)
            self._pages.requeue_blameless(result)
            return True
        if not self._longest_seconds:
            return False
        status = result.wire.status or None if result.wire is not None else None
        if status is not None and status != NETWORK_AUTHENTICATION:
            self._answered(result)
            return False
        known = self._any_reached
        if not is_doubtful(result.reason, status, reached_before=lease.host.fetched > 0, any_reached=known):
            return False
        if lease.kind.sent_once and result.reason not in UNSENT_FAILURES:
            return False
        if self._down_since:
            self._spare(result)
            return True
        now = self._run.now()
        if now < self._believed_until or not self._suspects(lease.host.name):
            return False
        self._held[result.row.url.startswith("https:")].append(_Held(result, now))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())
        return True

    def takes_probe(self) -> bool:
        """Whether one turn may be had all the same: the ordinary request that goes with a try."""
        probe, self._probe = self._probe, False
        return probe

    def close(self) -> None:
        """Stop looking. What waits for a verdict stays queued, but for what a server has seen: that has a line."""
        if not self.down:
            for held in self._held.values():
                for each in [*held]:
                    if each.result.wire is not None:
                        held.remove(each)
                        self._pages.finish(each.result)
        self.forget()

    def forget(self) -> None:
        """Stop looking; what waits for a verdict is as if it had never been asked for."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._spare_held()
        self.shut, self._down_since, self._run.outage = False, 0.0, ""

    def _say_limit(self, what: str) -> None:
        if self._run.now() >= self._say_again_at:
            self._say_again_at = self._run.now() + _SAY_AGAIN_SECONDS
            logger.error("Requests wait because this process lacks something: %s. %s", what, REMEDIES[Reason.OUR_LIMIT])

    def _suspects(self, host: str) -> bool:
        """Whether there is anything to compare the failure with."""
        if self._any_reached:
            return len(self._known_endpoints) >= LEAST_KNOWN_ENDPOINTS
        if len(self._unreached_hosts) < LEAST_UNREACHED_HOSTS:
            self._unreached_hosts.add(host)
        return len(self._unreached_hosts) >= LEAST_UNREACHED_HOSTS

    def _answered(self, result: LeaseResult) -> None:
        now, lease, wire = self._run.now(), result.lease, result.wire
        if wire is None:
            return
        tls = result.row.url.startswith("https:")
        if now >= self._remember_at and wire.ip and wire.ip == lease.address:
            self._remember_at = now + (_REMEMBER_SECONDS if len(self._known_endpoints) >= MOST_KNOWN_ENDPOINTS else 0.0)
            known = self._known_endpoints.pop(wire.ip, None)
            if known is None or not known.tls:
                known = Endpoint(wire.ip, wire.port, host_name(lease.host.name).strip("[]"), tls)
            self._known_endpoints[wire.ip] = known
            if len(self._known_endpoints) > MOST_KNOWN_ENDPOINTS:
                del self._known_endpoints[next(iter(self._known_endpoints))]
        self._any_reached = True
        if self._held[True] or self._held[False]:
            self._believe(wire.started_at, tls=tls)
        if self._down_since and wire.started_at >= self._down_since and (tls or not self._tls_endpoints()):
            self._over()

    def _believe(self, sent_at: float, *, tls: bool) -> None:
        """A request of that moment (epoch seconds) was answered: failures before it are their hosts'."""
        for line in self._held.values() if tls else (self._held[False],):
            while line and line[0].since <= sent_at:
                self._pages.finish(line.popleft().result)

    async def _look(self) -> None:
        """See whose the failures are that are held; when they are ours, try until the network is there."""
        try:
            while (oldest := self._oldest()) is not None:
                if (left := oldest + QUIET_SECONDS - self._run.now()) > 0:
                    await asyncio.sleep(left)
                    continue
                self.shut = True
                if await self._reaches_any():
                    self._believed_until = self._run.now() + BELIEVED_SECONDS
                    self._believe(inf, tls=True)
                elif self._oldest() == oldest:  # else an answer was quicker
                    self._fail()
                    await self._wait()
                self.shut = False
        finally:
            self._task = None
            self.shut = False
            self._wake()

    def _oldest(self) -> float | None:
        return min((line[0].since for line in self._held.values() if line), default=None)

    async def _wait(self) -> None:
        tests = 0
        while self.down:
            await asyncio.sleep(next_try_seconds(tests))
            tests += 1
            longest = self._longest_seconds
            patience_seconds = longest if self._any_reached else min(longest, UNREACHED_WAIT_SECONDS)
            if self._run.now() - self._down_since > patience_seconds:
                self._believed_until = self._run.now() + BELIEVED_DEAD_SECONDS
                self._over()
                return
            self._probe = True
            self._wake()
            if self.down and await self._reaches_any(some=tests) and self.down:
                self._over()

    async def _reaches_any(self, some: int | None = None) -> bool:
        """Whether one of the known addresses takes a connection; ``some``: of the next two of a round only."""
        endpoints = self._tls_endpoints() or [*reversed(self._known_endpoints.values())]
        if some is not None and endpoints:
            first = some * _AT_A_TIME % len(endpoints)
            endpoints = (endpoints[first:] + endpoints[:first])[:_AT_A_TIME]
        for start in range(0, len(endpoints), _AT_A_TIME):
            if any(await asyncio.gather(*map(self._reaches, endpoints[start : start + _AT_A_TIME]))):
                return True
        return False

    def _tls_endpoints(self) -> list[Endpoint]:
        """Those under https, the latest first; none when they are too few."""
        tls = [one for one in reversed(self._known_endpoints.values()) if one.tls]
        return tls if len(tls) >= LEAST_KNOWN_ENDPOINTS else []

    def _fail(self) -> None:
        self._down_since = self._run.now()
        self._spared = 0
        self._run.outage = WHY
        self._run.stats.inc_value("network/outages")
        count = len(self._known_endpoints)
        known = f"not even {count} that answered of late" if count else "none since the start"
        logger.error(
            "No host is reached any more, %s: the crawl waits for this machine's network, and goes on by itself. No "
            "host is blamed for what fails meanwhile.", known,
        )  # fmt: skip
        self._spare_held()

    def _over(self) -> None:
        """The network is there again, or is taken to be."""
        lasted = self._run.now() - self._down_since
        self._down_since, self._run.outage = 0.0, ""
        self._unreached_hosts.clear()
        logger.warning(
            "The crawl goes on after %s without a network; %s sent again.", human_seconds(lasted),
            counted(self._spared, "request that failed meanwhile is", "requests that failed meanwhile are"),
        )  # fmt: skip
        self._wake()

    def _spare_held(self) -> None:
        for line in self._held.values():
            while line:
                self._spare(line.popleft().result)

    def _spare(self, result: LeaseResult) -> None:
        self._spared += 1
        self._pages.requeue_blameless(result)
