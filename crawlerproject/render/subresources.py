"""Fetches what a page in the browser requests, by our own path: filters, robots.txt, clocks, log and archive."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from crawlerproject.crawl.intake import Intake
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.session import Session
from crawlerproject.errors import FetchError
from crawlerproject.frontier.passage import Lease
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.guard.guard import Refused
from crawlerproject.items import Rendered
from crawlerproject.reasons import Reason
from crawlerproject.render.shared_cache import CacheQuery, SharedCache, Subresource
from crawlerproject.render.visit import Blocked, PageTime
from crawlerproject.request_meta import location
from crawlerproject.rules.rendering.browser_limits import REDIRECTS, reuse, sent_fields, subresource_refusal
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Address, Base, UrlRefused, host_name, parse
from crawlerproject.runtime.services import Services

_MAX_REDIRECTS = 3
# So that one slow file does not use up the page's time.
_TIMEOUT_SECONDS = 10.0
# Total wait of a page for the turns of other sites' hosts: at the default pace two files of each and its robots.txt
# (ours).
_FOREIGN_WAIT_SECONDS = 15.0
# Headers of a framing that no longer applies, and those that would make the browser store or refuse something.
_NOT_PASSED_ON = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "connection", "keep-alive", "trailer"}
)

# Failures in a row after which a proxy rests, and for how long (ours: time enough for a repair, short for a crawl).
_MAX_FAILURES = 3

_REST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class SubrequestBounds:
    """What one page may take for its sub-requests: the RENDER_* settings of these names."""

    max_subrequests: int
    wait_seconds: float  # for turns of hosts, in a crawl


class PageSubrequests(ABC):
    """The sub-requests of one page. A crawl and the shell differ in how one is sent."""

    def __init__(self, host: str, cache: SharedCache, bounds: SubrequestBounds) -> None:
        """``host`` is the key of the page's host."""
        self._site = registered_domain(host)
        self._cache = cache
        self._bounds = bounds

    async def get(self, url: str, kind: str, method: str, headers: dict[str, str], rendered: Rendered) -> Subresource:
        """The response to one sub-request. Raises Blocked, with the reason in one word."""
        try:
            address = parse(url)
        except UrlRefused as error:
            raise Blocked(str(error.reason)) from error
        self._refuse(address, kind, method, rendered)
        fields = sent_fields(headers)

        async def fetch() -> Subresource:
            return await self._follow(address, kind, fields, rendered)

        wanted = CacheQuery(address.url, fields.get("Origin"), self._site)
        answer, cached = await self._cache.get(wanted, fetch, self._waiting)
        rendered.cached += cached
        return answer

    def close(self) -> None:  # noqa: B027 - only a crawl has something to release
        """Release what was reserved for the page, which is closed."""

    def _waiting(self) -> AbstractContextManager[None]:
        """Enter while another page's request fetches the same file."""
        return nullcontext()

    def _refuse(self, address: Address, kind: str, method: str, rendered: Rendered) -> None:
        name = host_name(address.host)
        why = subresource_refusal(kind, method, name, asked=rendered.asked, max_asked=self._bounds.max_subrequests)
        if why:
            raise Blocked(why)

    async def _follow(self, address: Address, kind: str, fields: dict[str, str], rendered: Rendered) -> Subresource:
        way: list[Subresource] = []
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._send(address, fields, rendered)
            named = location(response.headers)
            way.append(as_subresource(response, kind))
            if response.status not in REDIRECTS or not named:
                *redirects, answer = way
                for redirect in redirects:  # the last answer serves what all of them serve
                    both = answer.reuse.and_of(redirect.reuse) if answer.reuse and redirect.reuse else None
                    answer = answer._replace(reuse=both)
                return answer
            target = Base(address.url).join(named)
            if target is None:
                break
            address = target
            self._refuse(address, kind, "GET", rendered)
        raise Blocked("redirects")

    @abstractmethod
    async def _send(self, address: Address, fields: dict[str, str], rendered: Rendered) -> Response:
        """One exchange. Raises Blocked."""


class CrawlSubrequests(PageSubrequests):
    """In a crawl each sub-request waits for a turn of its host in the frontier, as a page does."""

    def __init__(
        self,
        services: Services,
        lease: Lease,
        cache: SharedCache,
        proxies: RenderProxies,
        bounds: SubrequestBounds,
        time: PageTime,
    ) -> None:
        """``lease`` and ``time`` are the page's."""
        super().__init__(lease.row.host, cache, bounds)
        session, self._run, self._wake = services[Session], services[Run], services[Intake].wake
        self._queue, self._completion = session.frontier.subrequests, session.pages.renders
        self._lease = lease
        self._proxies = proxies
        self._proxy = proxies.choose(monotonic())
        self._time = time
        self._foreign_time = PageTime()
        self._closed = False
        self._under_way: set[asyncio.Task[object]] = set()

    def close(self) -> None:
        """Wait for no response any more. Requests that were sent still end, in the archive and the log."""
        self._closed = True
        for task in self._under_way:
            task.cancel()

    async def _send(self, address: Address, fields: dict[str, str], rendered: Rendered) -> Response:
        if self._closed:
            raise Blocked("gone")  # the page's time is up
        if rendered.asked >= self._bounds.max_subrequests:
            raise Blocked("too-many")
        rendered.asked += 1
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        try:
            return await self._answer(address, fields)
        except FetchError as error:
            raise Blocked(str(error.reason)) from error
        finally:
            self._under_way.discard(task)
            rendered.waited_seconds = self._time.waited_seconds

    def _waiting(self) -> AbstractContextManager[None]:
        return self._time.waiting() if self._time.waited_seconds < self._bounds.wait_seconds else nullcontext()

    async def _answer(self, address: Address, fields: dict[str, str]) -> Response:
        """Wait for the turn, then for the response. Raises FetchError, also when there will be no turn."""
        queue = self._queue
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[Reason | None] = loop.create_future()  # None: it is granted
        answer: asyncio.Future[object] = loop.create_future()

        def decide(reason: Reason | None = None) -> None:
            if not turn.done():
                turn.set_result(reason)

        own = registered_domain(address.host) == self._site
        most = self._bounds.wait_seconds - self._time.waited_seconds
        if not own:
            most = min(most, _FOREIGN_WAIT_SECONDS - self._foreign_time.waited_seconds)
        subrequest = Subrequest(
            address,
            self._lease.row,
            self._run.now() + most,
            own,
            fields,
            self._proxy,
            _TIMEOUT_SECONDS,
            refused=decide,
            granted=decide,
            answered=lambda outcome: None if answer.done() else answer.set_result(outcome),
        )
        with self._time.waiting(), nullcontext() if subrequest.own else self._foreign_time.waiting():
            try:
                if (reason := queue.ask(subrequest, self._run.now())) is None:
                    self._wake()
                    reason = await asyncio.wait_for(turn, max(0.0, subrequest.until - self._run.now()))
            except TimeoutError:
                reason = Reason.RENDER_PACE
            finally:
                queue.withdraw(subrequest)
        if reason is not None:
            self._completion.refused(self._lease, address, reason)
            raise FetchError(reason)
        outcome: Any = await answer
        failed = isinstance(outcome, FetchError) and outcome.reason is Reason.PROXY_FAILED
        self._proxies.answered(self._proxy, monotonic(), failed=failed)
        if isinstance(outcome, Refused):
            raise FetchError(outcome.reason, str(outcome))
        if isinstance(outcome, BaseException):
            raise outcome if isinstance(outcome, FetchError) else FetchError(Reason.INTERNAL_ERROR, str(outcome))
        response: Response = outcome
        return response


class ShellSubrequests(PageSubrequests):
    """Outside a crawl (``fetch(rendered(url))`` in the shell, another spider's page): through Scrapy's engine.

    Each sub-request passes the whole middleware chain, so that robots.txt, NeverCrawl and the pace hold for it: five
    seconds a request by default.
    """

    def __init__(self, crawler: Crawler, host: str, cache: SharedCache, bounds: SubrequestBounds) -> None:
        """``host`` is the key of the page's host."""
        super().__init__(host, cache, bounds)
        self._crawler = crawler

    async def _send(self, address: Address, fields: dict[str, str], rendered: Rendered) -> Response:
        engine = self._crawler.engine
        assert engine is not None
        if rendered.asked >= self._bounds.max_subrequests:
            raise Blocked("too-many")
        rendered.asked += 1
        meta = {"seed": True}  # a file that a page needs has any extension
        request = Request(address.url, headers=dict(fields), callback=NO_CALLBACK, dont_filter=True, meta=meta)
        try:
            return await engine.download_async(request)
        except (FetchError, Refused) as error:
            rendered.asked -= isinstance(error, Refused)
            raise Blocked(str(error.reason)) from error


class RenderProxies:
    """``RENDER_PROXIES`` in turn. ``now`` is monotonic seconds."""

    def __init__(self, proxies: Sequence[str]) -> None:
        self._proxies = list(proxies)
        self._failures = dict.fromkeys(proxies, 0)
        self._rests_until = dict.fromkeys(proxies, 0.0)
        self._turn = 0

    def choose(self, now: float) -> str:
        """The next proxy that does not rest; when all rest, the one whose rest ends first; "" without proxies."""
        if not self._proxies:
            return ""
        for _ in self._proxies:
            proxy = self._proxies[self._turn % len(self._proxies)]
            self._turn += 1
            if self._rests_until[proxy] <= now:
                return proxy
        # Never without one: the operator may have a reason to hide the address of this machine.
        return min(self._proxies, key=self._rests_until.__getitem__)

    def answered(self, proxy: str, now: float, *, failed: bool) -> None:
        """Take note that a request through a proxy has ended; ``failed``: through the proxy's fault."""
        if proxy not in self._failures:
            return
        self._failures[proxy] = self._failures[proxy] + 1 if failed else 0
        if self._failures[proxy] >= _MAX_FAILURES:
            self._failures[proxy] = 0
            self._rests_until[proxy] = now + _REST_SECONDS


def as_subresource(response: Response, kind: str = "") -> Subresource:
    """A response for the browser. One that was cut off serves no other page."""
    headers = {}
    for name, values in response.headers.items():
        key = name.decode("latin-1").lower()
        if key not in _NOT_PASSED_ON:
            headers[key] = b", ".join(values).decode("latin-1")
    whole = not any(flag.startswith("truncated") for flag in response.flags)
    return Subresource(
        response.status, headers, response.body, reuse(response.status, headers, kind) if whole else None
    )
