"""The last guard before the network: nobody's request may break the pace, whoever asks.

A request that the frontier leased has its promised pause already; one that would break it is refused and counted
in ``pace/guard_refused``, which must stay 0. Any other request (shell, fetch, other spiders) waits here until
its host and IP address are free, by the same rules. The ports of one name are one host here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.statscollectors import StatsCollector

from crawlerproject.clock import steady
from crawlerproject.errors import FetchError
from crawlerproject.fetch.resolver import Resolved, resolver_for
from crawlerproject.middlewares.moments import Moments
from crawlerproject.middlewares.pace_settings import ip_seconds_of, preset_of, rest_limits_of
from crawlerproject.middlewares.refused import Refused, refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.backoff import RestLimits, retry_after_seconds
from crawlerproject.rules.hosts import host_key, host_name
from crawlerproject.rules.pace import PacePreset, delay_seconds, jitter_seconds
from crawlerproject.stores.host_pace import HostPaceFile

# Timers and clocks are this exact; the audit judges by the wire's own times.
_TOLERANCE_SECONDS = 0.002
# An answer is heard of within this; more is a clock that was set.
_MAX_LAG_SECONDS = 60.0
_RESTS = RestLimits()
_TICKET = "pace_ticket"  # meta key: (host name, ip) entered for this request, so that it leaves exactly once


class PaceMiddleware:
    """Guards leased requests and paces all others by ``PACE_*``."""

    def __init__(
        self,
        preset: PacePreset,
        stats: StatsCollector | None,
        *,
        ip_seconds: float | None = 0.5,  # None: IP addresses have no clock
        rests: RestLimits = _RESTS,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = steady,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        rng: random.Random | None = None,
        paces: HostPaceFile | None = None,
        resolve: Callable[[str], Awaitable[Resolved]] | None = None,
    ) -> None:
        self.resolve = resolve
        self.paces = paces or HostPaceFile(None)
        self.preset = preset
        self.stats = stats
        self.ip_seconds = ip_seconds
        self.clock = clock
        self.wall = wall
        self.sleep = sleep
        self.rng = rng or random.Random()
        self.retry_after_max = rests.retry_after_max_seconds
        self.hosts = Moments(preset, rests, self.rng)
        self.ips = Moments(preset, rests, self.rng)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        return cls(
            preset_of(settings),
            crawler.stats,
            ip_seconds=ip_seconds_of(settings),
            rests=rest_limits_of(settings),
            resolve=lambda name: resolver_for(crawler).resolve(name),
            paces=HostPaceFile(settings.get("HOST_PACE_FILE"), settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", 60.0)),
        )

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Refuse a lease that breaks the pace; let everyone else wait. O(1) and no coroutine for a lease."""
        lease = request.meta.get("lease")
        if request.meta.get("render"):
            return None  # the browser asks for nothing itself: the page and its scripts come here one by one
        if lease is None:
            return self._wait(request) if request.url.startswith("http") else None
        meta = request.meta
        host, ip, now = host_name(lease.row.host), meta.get("address") or "", self.clock()
        wait = self._wait_seconds(host, ip, now, meta.get("delay_seconds", 0.0))
        if wait is None or wait > _TOLERANCE_SECONDS:
            raise self._guarded(request, "in flight" if wait is None else f"{wait:.3f} s too soon")
        self._enter(request, host, ip)
        return None

    def process_response(self, request: Request, response: Response) -> Response:
        """The host's clock starts where the answer ended."""
        self._leave(request, response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """A failure ends a request too."""
        self._leave(request, None)

    def outlook(self, host: str, floor_seconds: float = 0.0) -> tuple[float, float | None]:
        """The pause promised to a host now, and the seconds until it may be asked (None: a request is in flight)."""
        name = host_name(host)
        moment = self.hosts.known(name)
        samples, seen = (moment.samples, moment.address) if moment else ((), "")
        delay = delay_seconds(self.preset, samples, floor_seconds)
        wait = self._wait_seconds(name, seen, self.clock(), delay)
        return delay, None if wait is None else max(0.0, wait)

    async def _wait(self, request: Request) -> None:
        """Until host and address are free. Between the last look and ``_enter`` nothing else can run."""
        key, meta = host_key(request.url), request.meta
        host = host_name(key)
        stretch = 1 + jitter_seconds(1.0, self.rng)
        found = await self._address(host)
        while True:
            moment = self.hosts.known(host)  # asked anew each time: the answer waited for may have changed it
            samples, seen = (moment.samples, found or moment.address) if moment else ((), found)
            preset = self.paces.preset(key, self.preset, self.clock())
            delay = delay_seconds(preset, samples, meta.get("floor_seconds", 0.0)) * stretch
            wait = self._wait_seconds(host, seen, self.clock(), delay)
            if wait is None:
                await self._freed(host, seen)
            elif wait > 0:
                await self.sleep(wait)
            else:
                break
        meta["delay_seconds"] = delay
        self._enter(request, host, seen)

    async def _address(self, host: str) -> str:
        """Where the host will be asked: names that share an address wait for each other from their first request on."""
        if self.resolve is None or self.ip_seconds is None:
            return ""
        try:
            return (await self.resolve(host.strip("[]"))).addresses[0]
        except FetchError:
            return ""  # the download fails in the same way, and says so

    def _wait_seconds(self, host: str, ip: str, now: float, delay: float) -> float | None:
        """Seconds until both clocks are free; None while either has a request in flight."""
        wait = self.hosts.wait_seconds(host, now, delay)
        if wait is None or self.ip_seconds is None or not ip:
            return wait
        ip_wait = self.ips.wait_seconds(ip, now, self.ip_seconds)
        return None if ip_wait is None else max(wait, ip_wait)

    async def _freed(self, host: str, ip: str) -> None:
        """Until the request that is in flight at the host or the address has ended."""
        freed = asyncio.get_running_loop().create_future()
        if not self.hosts.tell(host, freed):
            self.ips.tell(ip, freed)
        await freed

    def _enter(self, request: Request, host: str, ip: str) -> None:
        ip = ip if self.ip_seconds is not None else ""
        self.hosts.enter(host)
        if ip:
            self.ips.enter(ip)
        request.meta.pop("wire", None)  # of the page this one was redirected from
        request.meta[_TICKET] = (host, ip)

    def _leave(self, request: Request, response: Response | None) -> None:
        meta = request.meta
        ticket = meta.pop(_TICKET, None)
        if ticket is None:
            return
        host, ip = ticket
        wire, now = meta.get("wire"), self.clock()
        # The wire's own end, brought to our clock: we hear of it later, by the loop's lag.
        end = now - min(max(self.wall() - wire.ended_at, 0.0), _MAX_LAG_SECONDS) if wire and wire.ended_at else now
        moment = self.hosts.leave(host, end, meta.get("delay_seconds", 0.0), now)
        if "lease" not in meta:
            header = response.headers.get("Retry-After") if response is not None else None
            asked = retry_after_seconds(header.decode("latin-1") if header else None, self.wall(), self.retry_after_max)
            status = response.status if response is not None else None
            self.hosts.answered(moment, status, wire.ttfb_seconds if wire else meta.get("download_latency"), asked, now)
            if wire and wire.ip:
                moment.address = wire.ip
        if self.ip_seconds is not None:
            if ip:
                self.ips.leave(ip, end, self.ip_seconds, now)
            if wire and wire.ip and wire.ip != ip:
                self.ips.touch(wire.ip, end, self.ip_seconds, now)

    def _guarded(self, request: Request, detail: str) -> Refused:
        if self.stats is not None:
            self.stats.inc_value("pace/guard_refused")
        return refused(self.stats, request, Reason.PACE_GUARD, detail)
