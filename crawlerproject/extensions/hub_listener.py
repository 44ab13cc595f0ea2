"""Where WebSub hubs reach this crawl: they ask whether we subscribed, and push. Opt-in, loopback by default."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.utils.asyncio import create_looping_call
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from crawlerproject.crawl.running import scheduler_of
from crawlerproject.extensions.listening import Listener
from crawlerproject.rules.feeds import MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.crawler import Crawler

    from crawlerproject.crawl.scheduler import FrontierScheduler
    from crawlerproject.rules.websub import Answer

logger = logging.getLogger(__name__)

# How often leases that end are looked for; hubs grant days.
_RENEW_SECONDS = 60.0
_QUESTION = ("hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds", "hub.reason")


class HubListener(Listener):
    """Listens at WEBSUB_ADDRESS:WEBSUB_PORT; the crawl then goes on when its work is done."""

    settings = "WEBSUB"
    unheard = "No hub can push to"

    def site(self) -> Site | None:
        """The callbacks of our subscriptions."""
        scheduler = scheduler_of(self._crawler)
        if scheduler is None or scheduler.crawl.subscriptions is None:
            return None
        return Site(_Callback(scheduler, self._crawler), requestFactory=_Bounded)  # type: ignore[no-untyped-call]  # Twisted's

    def begun(self) -> None:
        """Wait for pushes, and renew what ends."""
        scheduler = scheduler_of(self._crawler)
        assert scheduler is not None  # else there was no site
        scheduler.pushes.awaited = True
        self._renewing = create_looping_call(scheduler.pushes.renew)
        self._renewing.start(_RENEW_SECONDS)
        logger.info("Hubs push to %s:%d; the crawl goes on until you end it", self._address, self._port)

    def ended(self) -> None:
        """Renew no more."""
        self._renewing.stop()


class _Callback(Resource):
    """``/TOKEN`` of each subscription: GET is the hub's question, POST a push."""

    isLeaf = True

    def __init__(self, scheduler: FrontierScheduler, crawler: Crawler) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self._scheduler = scheduler
        self._stats = crawler.stats

    def render_GET(self, request: Any) -> bytes:
        """Whether we want what the hub says that we asked for."""
        asked = {name: _text(values[-1]) for name in _QUESTION if (values := request.args.get(name.encode()))}
        return self._answer(request, lambda token: self._scheduler.pushes.verify(token, asked), "websub/verified")

    def render_POST(self, request: Any) -> bytes:
        """What the hub pushes."""
        body = request.content.read()
        kind, signature = _header(request, "content-type"), _header(request, "x-hub-signature")
        links = [_text(value) for value in request.requestHeaders.getRawHeaders(b"link", [])]
        return self._answer(
            request, lambda token: self._scheduler.pushes.pushed(token, body, kind, signature, links), "websub/pushed"
        )

    def _answer(self, request: Any, ask: Callable[[str], Answer], counted: str) -> bytes:
        token = _text(request.path.lstrip(b"/"))
        answer = ask(token)
        request.setResponseCode(answer.status)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        request.setHeader("X-Content-Type-Options", "nosniff")
        if answer.refused:
            self._stats.inc_value("websub/refused")
            logger.warning("%s of %s is refused: %s", _METHODS[request.method], request.client.host, answer.refused)
            return f"{answer.refused}\n".encode()
        self._stats.inc_value(counted)
        return answer.body.encode()


_METHODS = {b"GET": "A question", b"HEAD": "A question", b"POST": "A push"}


class _Bounded(Request):
    """A request whose body is no larger than a feed may be."""

    _received = 0

    def gotLength(self, length: int | None) -> None:
        """Before the body: what says that it is too large is not read."""
        if length is not None and length > MAX_BYTES:
            self._refuse()
        super().gotLength(None if length is None else min(length, MAX_BYTES))  # type: ignore[no-untyped-call]  # Twisted's

    def handleContentChunk(self, data: bytes) -> None:
        """A piece of a body whose length nobody said is counted."""
        self._received += len(data)
        if self._received > MAX_BYTES:
            self._refuse()
            return
        super().handleContentChunk(data)  # type: ignore[no-untyped-call]  # Twisted's

    def _refuse(self) -> None:
        channel: Any = self.channel
        if channel is not None:
            logger.warning("A push of %s is refused: more than %d bytes", channel.getPeer().host, MAX_BYTES)
            channel.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            channel.loseConnection()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _header(request: Any, name: str) -> str:
    return str(request.getHeader(name) or "")
