"""What a page in the browser asks for, fetched by our own path: gates, robots.txt, clocks, log and archive included."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.http import Response

from crawlerproject.errors import FetchError
from crawlerproject.fetch.wire import Wire
from crawlerproject.frontier.conduct import Ending
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.loans import Loan
from crawlerproject.reasons import Reason
from crawlerproject.render.proxies import RenderProxies
from crawlerproject.render.rendered import Rendered
from crawlerproject.render.shared_cache import Embedded, SharedCache
from crawlerproject.render.visit import Blocked
from crawlerproject.rules.backoff import retry_after_seconds
from crawlerproject.rules.embeds import embed_refusal
from crawlerproject.rules.hosts import host_name
from crawlerproject.rules.robots import usable_body
from crawlerproject.rules.urls import Address, Base, UrlRefused, parse

if TYPE_CHECKING:
    from crawlerproject.crawl.crawl import Crawl

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 3
# One slow file must not use up the page's time.
_TIMEOUT_SECONDS = 10.0
# How long a page waits for the turn of another host than its own, and how often it looks.
_BORROW_SECONDS = 10.0
_LOOK_SECONDS = 0.05
# Framing that no longer holds, and what would have the browser keep or refuse something.
_NOT_PASSED_ON = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "connection", "keep-alive", "trailer"}
)


class PageEmbeds(ABC):
    """The sub-requests of one page; only how one is sent differs between a crawl and the shell."""

    def __init__(self, cache: SharedCache, max_asked: int) -> None:
        self._cache = cache
        self._max_asked = max_asked

    async def get(self, url: str, kind: str, method: str, headers: dict[str, str], rendered: Rendered) -> Embedded:
        """The answer to one sub-request; raises Blocked with the word that says why there is none."""
        address = _address(url)
        self._refuse(address, kind, method, rendered)

        async def fetch() -> Embedded:
            return await self._follow(address, kind, headers, rendered)

        answer, cached = await self._cache.get(address.url, fetch)
        rendered.cached += cached
        return answer

    def close(self) -> None:  # noqa: B027 - only a crawl has something to give back
        """The page is gone."""

    def _refuse(self, address: Address, kind: str, method: str, rendered: Rendered) -> None:
        name = host_name(address.host)
        why = embed_refusal(kind, method, name, asked=rendered.asked, max_asked=self._max_asked)
        if why:
            raise Blocked(why)

    async def _follow(self, address: Address, kind: str, headers: dict[str, str], rendered: Rendered) -> Embedded:
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._send(address, kind, headers, rendered)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return embedded(response)
            target = Base(address.url).join(location.decode("latin-1"))
            if target is None:
                break
            address = target
            self._refuse(address, kind, "GET", rendered)
        raise Blocked("redirects")

    @abstractmethod
    async def _send(self, address: Address, kind: str, headers: dict[str, str], rendered: Rendered) -> Response:
        """One exchange; raises Blocked."""


class CrawlEmbeds(PageEmbeds):
    """In a crawl: the page's host is leased, any other is borrowed when it is free; each is asked one by one."""

    def __init__(
        self,
        crawl: Crawl,
        fetch: Callable[[Request], Awaitable[Response]],
        lease: Lease,
        cache: SharedCache,
        max_asked: int,
        proxies: RenderProxies,
    ) -> None:
        super().__init__(cache, max_asked)
        self._crawl = crawl
        self._fetch = fetch
        self._lease = lease
        self._proxies = proxies
        self._proxy = proxies.choose(monotonic())
        self._loans: dict[str, Loan] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = False
        self._under_way: set[asyncio.Task[object]] = set()

    def close(self) -> None:
        """Hang up on whoever still answers, and give back the hosts that were borrowed."""
        self._closed = True
        for task in self._under_way:
            task.cancel()
        now = self._crawl.now()
        for loan in self._loans.values():
            self._crawl.frontier.loans.give_back(loan, now)
        self._loans.clear()

    async def _send(self, address: Address, kind: str, headers: dict[str, str], rendered: Rendered) -> Response:
        if refusal := self._crawl.frontier.embed_refusal(address, self._crawl.now()):
            raise Blocked(str(refusal))
        async with self._locks[address.host]:
            host, ip = await self._place(address)
            await self._permitted(address, host, ip, rendered)
            self._count(address, rendered)
            return await self._exchange(address, host, ip, headers, "E")

    async def _place(self, address: Address) -> tuple[Host, str]:
        lease = self._lease
        if address.host == lease.row.host:
            return lease.host, lease.address
        if loan := self._loans.get(address.host):
            return loan.host, loan.address
        try:
            resolved = await self._crawl.resolver.resolve(host_name(address.host).strip("[]"))
        except FetchError as error:
            raise Blocked(str(error.reason)) from error
        held = {lease.address, *(loan.address for loan in self._loans.values())}
        until = monotonic() + _BORROW_SECONDS
        while not self._closed and monotonic() < until:
            loan = self._crawl.frontier.loans.borrow(address.host, resolved.addresses[0], held, self._crawl.now())
            if loan is not None:
                self._loans[address.host] = loan
                return loan.host, loan.address
            await asyncio.sleep(_LOOK_SECONDS)
        raise Blocked("busy")

    async def _permitted(self, address: Address, host: Host, ip: str, rendered: Rendered) -> None:
        loans, scheme = self._crawl.frontier.loans, address.scheme
        allowed = loans.may(host, scheme, address.url, self._crawl.now())
        if allowed is None:
            self._count(address, rendered)
            await self._robots(loans.robots_lease(host, scheme, ip, self._crawl.now()))
            allowed = loans.may(host, scheme, address.url, self._crawl.now())
        if not allowed:
            raise Blocked("robots" if allowed is False else "robots-unreachable")
        if host.rest_until > self._crawl.now():
            raise Blocked("resting")

    def _count(self, address: Address, rendered: Rendered) -> None:
        if self._closed:
            raise Blocked("gone")  # the page's time is up
        if rendered.asked >= self._max_asked:
            raise Blocked("too-many")
        rendered.asked += 1
        if address.host == self._lease.row.host:
            rendered.asked_own += 1
        else:
            self._loans[address.host].asked += 1

    async def _robots(self, lease: Lease) -> None:
        address = parse(lease.row.url)
        body = b""
        ending = Ending(Reason.DISCONNECTED)
        try:
            response = await self._exchange(address, lease.host, lease.address, {}, "P")
        except Blocked as blocked:
            ending = Ending(Reason(str(blocked)))
        else:
            location = response.headers.get("Location")
            target = Base(address.url).join(location.decode("latin-1")) if location else None
            read = usable_body(response.body, response.flags) if 200 <= response.status < 300 else b""
            if read is not None:
                body = read
                ending = Ending(Reason.FETCHED, response.status, location=target.url if target else "")
        self._crawl.frontier.loans.robots_answered(lease, ending, body, self._crawl.now())

    async def _exchange(self, address: Address, host: Host, ip: str, headers: dict[str, str], hop: str) -> Response:
        meta = {"address": ip, "download_timeout": _TIMEOUT_SECONDS, "verbatim_url": True}
        if self._proxy:
            meta["proxy"] = self._proxy
        passed_on = {"Accept": "*/*"} | ({"Origin": headers["origin"]} if "origin" in headers else {})
        request = Request(address.url, headers=passed_on, meta=meta, dont_filter=True)
        delay_seconds = self._promised(host)
        response: Response | None = None
        error: FetchError | None = None
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            response = await self._fetch(request)
        except FetchError as failed:
            error = failed
        except asyncio.CancelledError:
            gone = FetchError(Reason.RENDER_TIMEOUT, "the page's time was up")
            self._crawl.renders.embedded(self._lease, address, hop, delay_seconds, None, None, gone)
            raise
        finally:
            self._under_way.discard(task)
        self._proxies.answered(
            self._proxy, monotonic(), failed=error is not None and error.reason is Reason.PROXY_FAILED
        )
        wire: Wire | None = request.meta.get("wire")
        if wire is not None and wire.ended_at:
            host.answered_at = wire.ended_at
        self._judge(host, response, error, wire)
        self._crawl.renders.embedded(self._lease, address, hop, delay_seconds, wire, response, error)
        if response is None:
            assert error is not None
            raise Blocked(str(error.reason)) from error
        return response

    def _promised(self, host: Host) -> float | None:
        """The pause before a request: none within the page's turn, but a borrowed host has waited for its own."""
        loan = self._loans.get(host.name)
        return loan.promised_seconds if loan is not None and loan.asked == 1 else None

    def _judge(self, host: Host, response: Response | None, error: FetchError | None, wire: Wire | None) -> None:
        """The host's pace and rests learn from sub-requests as from pages."""
        now = self._crawl.now()
        if response is None:
            assert error is not None
            ending = Ending(error.reason)
        else:
            asked = response.headers.get("Retry-After")
            rest = retry_after_seconds(asked.decode("latin-1") if asked else None, now, self._crawl.retry_after_max)
            ttfb = wire.ttfb_seconds if wire else None
            ending = Ending(Reason.FETCHED, response.status, ttfb, rest)
        self._crawl.frontier.loans.answered(host, ending, now)


def embedded(response: Response) -> Embedded:
    """A response as the browser gets it."""
    headers = {}
    for name, values in response.headers.items():
        key = name.decode("latin-1").lower()
        if key not in _NOT_PASSED_ON:
            headers[key] = b", ".join(values).decode("latin-1")
    policy = headers.get("cache-control", "").lower()
    keep = response.status == 200 and "no-store" not in policy and "private" not in policy
    return Embedded(response.status, headers, response.body, keep)


def _address(url: str) -> Address:
    try:
        return parse(url)
    except UrlRefused as error:
        raise Blocked(str(error.reason)) from error
