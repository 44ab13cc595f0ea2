"""The download handlers: the last guard, then plain requests to our HTTP client and ``meta["render"]`` to a browser.

``RenderingDownloadHandler`` serves a crawl. ``ScrapyDownloadHandler`` serves other spiders: it fails, and treats
truncated responses, as Scrapy's own handler does. Retries, errbacks and ``RETRY_EXCEPTIONS`` depend on Scrapy's
exception classes, and a spider that was not written for this crawler takes every response to be complete.
"""

from __future__ import annotations

import asyncio
import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.http import Response

from crawlerproject.config.values import NO_BOUND_BYTES
from crawlerproject.errors import FetchError
from crawlerproject.fetch.download_handler import CrawlerDownloadHandler
from crawlerproject.guard.guard import Guard, Refused, guard_of
from crawlerproject.reasons import Reason
from crawlerproject.render.request import wants_browser
from crawlerproject.request_meta import META_KEY, exchange_of
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from crawlerproject.render.renderer import Renderer

logger = logging.getLogger(__name__)

# What the answer's meta tells a spider; the rest is in the exchange.
_TOLD = ("download_latency", "rendered")

# docs.scrapy.org, "Download handlers": the exceptions that a handler raises. Reasons that are missing here (a refused
# address or port, a bad certificate) are failures that a retry would not mend.
_EXCEPTIONS: dict[Reason, type[Exception]] = {
    Reason.DNS_NOT_FOUND: CannotResolveHostError,
    Reason.DNS_FAILED: CannotResolveHostError,
    Reason.CONNECT_REFUSED: DownloadConnectionRefusedError,
    Reason.CONNECT_FAILED: DownloadFailedError,
    Reason.CONNECT_TIMEOUT: DownloadTimeoutError,
    Reason.FIRST_BYTE_TIMEOUT: DownloadTimeoutError,
    Reason.TLS_FAILED: DownloadFailedError,
    Reason.PROXY_FAILED: DownloadFailedError,
    Reason.DISCONNECTED: DownloadFailedError,
    Reason.BAD_RESPONSE: DownloadFailedError,
    Reason.HEADER_TOO_LARGE: DownloadFailedError,
}

# Truncated bodies, by the flag that fetch/download_handler.py sets.
_CUT: dict[str, tuple[Reason, type[Exception], str]] = {
    "truncated-length": (Reason.BAD_RESPONSE, DownloadCancelledError, "the body exceeds DOWNLOAD_MAXSIZE"),
    "truncated-time": (Reason.FIRST_BYTE_TIMEOUT, DownloadTimeoutError, "the body took longer than DOWNLOAD_TIMEOUT"),
    "truncated-disconnect": (Reason.DISCONNECTED, ResponseDataLossError, "the body ended early"),
}

_LOSS = "truncated-disconnect"

# Classes that derive from ``FetchError`` and one of Scrapy's exceptions; logs and stats show the latter's name.
_BOTH: dict[type[Exception], Any] = {
    kind: type(kind.__name__, (FetchError, kind), {"__module__": kind.__module__})
    for kind in {*_EXCEPTIONS.values(), *(kind for _, kind, _ in _CUT.values())}
}


class RenderingDownloadHandler(CrawlerDownloadHandler):
    """Lets through what the frontier leased or the guard allows, at its pace; reads ``meta["render"]``.

    Everything else is its parent's. Raises ``Refused`` besides.
    """

    _sends_as_scrapys = False  # requests that are not the frontier's
    _guard: Guard | None = None  # until the first request
    _renderer: Renderer | None = None  # until the first page that needs it

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch or render one request."""
        guard = self._guard
        if guard is None:
            guard = self._guard = guard_of(self.crawler)
            guard.pace.begin(crawls=request in guard.leases)
        lease = guard.leases.pop(request, None)  # each is sent once
        if lease is None:
            return await self._by_itself(guard, request)
        guard.check(request, lease)
        if lease.kind.is_render:  # the browser asks for nothing itself: what the page loads comes here one by one
            return await self._rendered(request)
        waits = guard.pace.enter(request, lease)
        if waits is not None:
            await waits
        response: Response | None = None
        try:
            response = await super().download_request(request)
        finally:
            guard.pace.leave(request, response)
        if lease.kind.is_robots:
            await guard.robots.read_aside(response)
        return response

    async def _by_itself(self, guard: Guard, request: Request) -> Response:
        """What the frontier knows nothing of: from the shell, other spiders, redirects, a spider of ours itself."""
        guard.check(request)
        floor_seconds = await guard.robots.judge(request, self._robots)
        exchange = exchange_of(request)
        plain = request.replace(meta={name: value for name, value in request.meta.items() if name != META_KEY})
        own = exchange_of(plain)
        own.as_scrapys, own.max_bytes = self._sends_as_scrapys, exchange.max_bytes
        try:
            if wants_browser(plain):
                return await self._rendered(plain)
            return await self._signed(guard, plain, floor_seconds)
        finally:
            exchange.wire = own.wire
            request.meta.update({name: plain.meta[name] for name in _TOLD if name in plain.meta})

    async def _robots(self, request: Request) -> Response:
        """A robots.txt for the guard: below the downloader, whose places the one that waits may have."""
        assert self._guard is not None  # it asks for this
        self._guard.check(request)
        return await self._signed(self._guard, request, 0.0)

    async def _signed(self, guard: Guard, request: Request, floor_seconds: float) -> Response:
        """Once more, at the host's pace, where it asks for another signature: no frontier does it here."""
        response = await self._paced(guard, request, floor_seconds)
        wire = exchange_of(request).wire
        again = wire is not None and wire.signature_asked
        return await self._paced(guard, request, floor_seconds) if again else response

    async def _paced(self, guard: Guard, request: Request, floor_seconds: float) -> Response:
        await guard.pace.wait(request, floor_seconds)
        response: Response | None = None
        try:
            response = await super().download_request(request)
            return response
        finally:
            guard.pace.leave(request, response)

    async def _rendered(self, request: Request) -> Response:
        """By the crawler's one renderer, which the handlers for http and https share."""
        if self._renderer is None:
            # Playwright takes half a second to import, which a crawl that renders nothing need not spend, and the event
            # loop never.
            module = await asyncio.to_thread(import_module, "crawlerproject.render.renderer")
            made: Renderer = services_of(self.crawler).once(module.Renderer, lambda: module.Renderer(self.crawler))
            self._renderer = made
        return await self._renderer.render(request)

    async def close(self) -> None:
        """Scrapy: the crawl ends."""
        if self._renderer is not None:
            await self._renderer.close()
        if self._guard is not None:
            self._guard.pace.close()
        await super().close()


class ScrapyDownloadHandler(RenderingDownloadHandler):
    """Raises exceptions that are both ``FetchError`` and Scrapy's class; a truncated response is a failure.

    ``DOWNLOAD_FAIL_ON_DATALOSS`` and ``meta["download_fail_on_dataloss"]`` apply: where they are off, a response that
    broke off has the flag ``dataloss``. ``download_maxsize`` and ``download_warnsize`` apply, as settings and in meta.
    Bodies stay encoded: Scrapy's HttpCompressionMiddleware is above.
    """

    _sends_as_scrapys = True
    _said_of_host = False

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch one request."""
        most_bytes = request.meta.get("download_maxsize")
        if most_bytes is not None:
            exchange_of(request).max_bytes = most_bytes or NO_BOUND_BYTES
        if b"Host" in request.headers and not self._said_of_host:
            self._said_of_host = True
            logger.warning("A request's own Host header is not sent: robots.txt and pace are those of its URL's host.")
        try:
            response = await super().download_request(request)
        except FetchError as failure:
            if (known := _as_scrapy(failure)) is failure:
                raise
            raise known from failure
        except Refused as refusal:
            error = refusal.__cause__  # of the robots.txt: the page would have failed likewise
            if isinstance(error, FetchError) and type(known := _as_scrapy(error)) is not FetchError:
                raise known from refusal
            raise
        finally:  # else meta=response.meta would carry the exchange's bytes to the next request, and to disk
            request.meta.pop(META_KEY, None)
        for flag in [flag for flag in response.flags if flag in _CUT]:
            settings, meta = self.crawler.settings, request.meta
            if flag == _LOSS and not meta.get(
                "download_fail_on_dataloss", settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
            ):
                response.flags[response.flags.index(flag)] = "dataloss"
            else:
                reason, kind, why = _CUT[flag]
                raise _BOTH[kind](reason, why)
        warn_bytes = request.meta.get("download_warnsize", self.crawler.settings.getint("DOWNLOAD_WARNSIZE"))
        if 0 < warn_bytes < len(response.body):
            received = f"Received {len(response.body)} bytes, more than the download warn size"
            logger.warning("%s (%d), in request %s.", received, warn_bytes, request)
        return response

    async def _robots(self, request: Request) -> Response:
        try:
            return await super()._robots(request)
        except FetchError as failure:  # in stats and log under the name that Scrapy has for it
            raise _as_scrapy(failure) from failure


def _as_scrapy(error: FetchError) -> FetchError:
    """The same error, also as an instance of Scrapy's class where there is one."""
    kind = _EXCEPTIONS.get(error.reason)
    if kind is None or type(error) is not FetchError:
        return error
    known: FetchError = _BOTH[kind](error.reason, error.detail, error.wire)
    return known
