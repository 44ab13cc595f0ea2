"""The last guard before the network: nobody's request may break the pace, whoever asks.

The download handler calls it (``middlewares/guard.py``), below every middleware, so that no setting reaches it. A
request that the frontier leased has its promised pause already; one that would break it is refused and counted in
``pace/guard_refused``, which must stay 0. Any other request (shell, fetch, other spiders, what a spider yields by
itself) waits until its host and IP address are free, by the same rules and clocks. The ports of one name are one host
here.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.statscollectors import StatsCollector

from crawlerproject.config.pace import ip_seconds_of, preset_of, rest_limits_of
from crawlerproject.errors import FetchError
from crawlerproject.fetch.exchange import exchange_of
from crawlerproject.fetch.resolver import Resolved, resolver_for
from crawlerproject.middlewares.host_clocks import HostClocks
from crawlerproject.middlewares.leased import lease_in
from crawlerproject.middlewares.refusal import Refused, refused
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import RestLimits, retry_after_seconds
from crawlerproject.rules.politeness.pace import PacePreset, delay_seconds, jitter_seconds
from crawlerproject.rules.url.hosts import host_key, host_name
from crawlerproject.runtime.clock import steady
from crawlerproject.stores.operator_files.host_pace import HostPaceFile

if TYPE_CHECKING:
    from crawlerproject.frontier.lease import Lease

# Timers and clocks are this exact; the audit judges by the wire's own times.
_TOLERANCE_SECONDS = 0.002
# An answer is heard of within this; more is a clock that was set.
_MAX_LAG_SECONDS = 60.0
_RESTS = RestLimits()


class _Ticket(NamedTuple):
    """What was entered for a request, so that it leaves exactly once."""

    host: str  # name
    ip: str
    delay_seconds: float  # promised
    leased: bool


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
        self.hosts = HostClocks(preset, rests, self.rng)
        self.ips = HostClocks(preset, rests, self.rng)
        self._entered: dict[Request, _Ticket] = {}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The crawler's one, which its guard calls as well."""
        from crawlerproject.middlewares.guard import guard_of  # it is made of this

        return cast("Self", guard_of(crawler).pace)

    @classmethod
    def from_settings_of(cls, crawler: Crawler) -> Self:
        """One of its own."""
        settings = crawler.settings
        return cls(
            preset_of(settings),
            crawler.stats,
            ip_seconds=ip_seconds_of(settings),
            rests=rest_limits_of(settings),
            resolve=lambda name: resolver_for(crawler).resolve(name),
            paces=HostPaceFile(settings.get("HOST_PACE_FILE"), settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", 1.0)),
        )

    def process_request(self, request: Request) -> Awaitable[None] | None:
        """Keep what is not leased until its host seems free, before it takes a place in the downloader."""
        if lease_in(request) is not None or request.meta.get("render") or not request.url.startswith("http"):
            return None
        return self._early(request)

    # --- for the download handler -----------------------------------------------------------------

    def enter(self, request: Request, lease: Lease | None) -> Awaitable[None] | None:
        """Take the host's turn: refuse a lease that breaks the pace, let everyone else wait.

        O(1) and no coroutine for a lease, unless another's request came between. What enters leaves by ``leave``.
        """
        if lease is None:
            return self._wait(request)
        exchange = exchange_of(request)
        host, ip, delay = host_name(lease.row.host), exchange.address, exchange.delay_seconds
        wait = self._wait_seconds(host, ip, self.clock(), delay)
        if wait is None or wait > _TOLERANCE_SECONDS:
            if self.hosts.shared(host) or self.ips.shared(ip):
                return self._wait_for_others(request, host, ip, delay)
            raise self._guarded(request, "in flight" if wait is None else f"{wait:.3f} s too soon")
        self._enter(request, _Ticket(host, ip, delay, True))
        return None

    def leave(self, request: Request, response: Response | None) -> None:
        """The host's clock starts where the answer ended; ``response`` None: a failure ends a request too."""
        ticket = self._entered.pop(request, None)
        if ticket is None:
            return
        host, ip = ticket.host, ticket.ip
        wire, now = exchange_of(request).wire, self.clock()
        # The wire's own end, brought to our clock: we hear of it later, by the loop's lag.
        end = now - min(max(self.wall() - wire.ended_at, 0.0), _MAX_LAG_SECONDS) if wire and wire.ended_at else now
        moment = self.hosts.leave(host, end, ticket.delay_seconds, now)
        if not ticket.leased:
            header = response.headers.get("Retry-After") if response is not None else None
            asked = retry_after_seconds(header.decode("latin-1") if header else None, self.wall(), self.retry_after_max)
            status = response.status if response is not None else None
            latency = wire.ttfb_seconds if wire else request.meta.get("download_latency")
            self.hosts.answered(moment, status, latency, asked, now)
            if wire and wire.ip:
                moment.address = wire.ip
        if self.ip_seconds is not None:
            if ip:
                self.ips.leave(ip, end, self.ip_seconds, now)
            if wire and wire.ip and wire.ip != ip:
                touched = self.ips.touch(wire.ip, end, self.ip_seconds, now)
                touched.shared = touched.shared or not ticket.leased

    def outlook(self, host: str, floor_seconds: float = 0.0) -> tuple[float, float | None]:
        """The pause promised to a host now, and the seconds until it may be asked (None: a request is in flight)."""
        name = host_name(host)
        moment = self.hosts.known(name)
        samples, seen = (moment.samples, moment.address) if moment else ((), "")
        delay = delay_seconds(self.preset, samples, floor_seconds)
        wait = self._wait_seconds(name, seen, self.clock(), delay)
        return delay, None if wait is None else max(0.0, wait)

    async def _early(self, request: Request) -> None:
        """Until the host seems free; the jitter, and the last look, are the handler's."""
        await self._until_free(request, 1.0)

    async def _wait(self, request: Request) -> None:
        """Until host and address are free. Between the last look and ``_enter`` nothing else can run."""
        ticket = await self._until_free(request, 1 + jitter_seconds(1.0, self.rng))
        exchange_of(request).delay_seconds = ticket.delay_seconds
        self._enter(request, ticket)

    async def _until_free(self, request: Request, stretch: float) -> _Ticket:
        key = host_key(request.url)
        host = host_name(key)
        found = await self._address(host)
        while True:
            moment = self.hosts.known(host)  # asked anew each time: the answer waited for may have changed it
            samples, seen = (moment.samples, found or moment.address) if moment else ((), found)
            preset = self.paces.preset(key, self.preset, self.clock())
            delay = delay_seconds(preset, samples, exchange_of(request).floor_seconds) * stretch
            wait = self._wait_seconds(host, seen, self.clock(), delay)
            if wait is None or wait > 0:
                await self._some(host, seen, wait)
            else:
                return _Ticket(host, seen, delay, False)

    async def _wait_for_others(self, request: Request, host: str, ip: str, delay: float) -> None:
        """A lease whose host or address a spider's own request has asked meanwhile: its promise counts from there."""
        while True:
            wait = self._wait_seconds(host, ip, self.clock(), delay)
            if wait is not None and wait <= 0:
                break
            await self._some(host, ip, wait)
        self._enter(request, _Ticket(host, ip, delay, True))

    async def _some(self, host: str, ip: str, wait: float | None) -> None:
        if wait is None:
            await self._freed(host, ip)
        else:
            await self.sleep(wait)

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

    def _enter(self, request: Request, ticket: _Ticket) -> None:
        if self.ip_seconds is None:
            ticket = ticket._replace(ip="")
        self.hosts.enter(ticket.host, shared=not ticket.leased)
        if ticket.ip:
            self.ips.enter(ticket.ip, shared=not ticket.leased)
        self._entered[request] = ticket

    def _guarded(self, request: Request, detail: str) -> Refused:
        if self.stats is not None:
            self.stats.inc_value("pace/guard_refused")
        return refused(self.stats, request, Reason.PACE_GUARD, detail)
