"""Where WebSub hubs reach this crawl: they ask whether we subscribed, and push. Opt-in, loopback by default."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from scrapy.crawler import Crawler
from scrapy.utils.asyncio import create_looping_call
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from crawlerproject.crawl.intake import NOT_NOW
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.extensions.http_listener import HttpListener
from crawlerproject.rules.feeds.feeds import MAX_FEED_BYTES
from crawlerproject.rules.feeds.websub import HubReply

logger = logging.getLogger(__name__)

# How often leases that end are looked for; hubs grant days.
_RENEW_SECONDS = 60.0
# Room for the bodies of pushes that come at the same time (ours): four feeds of the largest size, many ordinary ones.
MAX_BODIES_BYTES = 4 * MAX_FEED_BYTES
_QUESTION = ("hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds", "hub.reason")
_METHODS = {b"GET": "A question", b"HEAD": "A question", b"POST": "A push"}


class WebSubListener(HttpListener):
    """Listens at WEBSUB_ADDRESS:WEBSUB_PORT; the crawl then goes on when its work is done."""

    settings = "WEBSUB"
    unheard = "No hub can push to"

    def site(self) -> Site | None:
        """The callbacks of our subscriptions."""
        scheduler = self.scheduler
        if scheduler is None or not scheduler.websub.reachable:
            return None
        return Site(_Callback(scheduler, self._crawler), requestFactory=_Bounded)  # type: ignore[no-untyped-call]  # Twisted's

    def begun(self) -> None:
        """Wait for pushes, and renew what ends."""
        scheduler = self.scheduler
        assert scheduler is not None  # else there was no site
        scheduler.websub.await_pushes()

        def renew() -> None:
            scheduler.websub.renew()  # of the session that there is by then

        self._renewing = create_looping_call(renew)
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
        self.claimed_bytes = 0  # of bodies that are being received, all connections together

    def expects(self, path: bytes) -> bool:
        """Whether a body sent to ``path`` can be a push to one of our callbacks."""
        return self._scheduler.websub.expects(_token(path.partition(b"?")[0]))

    def render_GET(self, request: Any) -> bytes:
        """Whether we want what the hub says that we asked for."""
        asked = {name: _text(values[-1]) for name in _QUESTION if (values := request.args.get(name.encode()))}
        return self._reply(request, self._scheduler.websub.verify(_token(request.path), asked), "websub/verified")

    def render_POST(self, request: Any) -> bytes | int:
        """What the hub pushes; it is answered when that is committed, so that it pushes again what a crash forgets."""
        body = request.content.read()
        kind, signature = (str(request.getHeader(name) or "") for name in ("content-type", "x-hub-signature"))
        links = [_text(value) for value in request.requestHeaders.getRawHeaders(b"link", [])]
        answer = self._scheduler.websub.pushed(_token(request.path), body, kind, signature, links)
        if answer.refused:
            return self._reply(request, answer, "websub/pushed")
        durable = self._scheduler.crawl.session.commits.durable()
        durable.add_done_callback(lambda _: self._finish(request, answer, durable))
        request.notifyFinish().addErrback(lambda _: durable.cancel())  # the hub hung up: it pushes again
        return NOT_DONE_YET

    def _finish(self, request: Any, answer: HubReply, durable: asyncio.Future[bool]) -> None:
        """What was pushed is safe now, or lost with what its worker had not committed."""
        if not durable.cancelled():
            request.write(self._reply(request, answer if durable.result() else NOT_NOW, "websub/pushed"))
            request.finish()

    def _reply(self, request: Any, answer: HubReply, counted: str) -> bytes:
        request.setResponseCode(answer.status)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        request.setHeader("X-Content-Type-Options", "nosniff")
        if answer.refused:
            self._stats.inc_value("websub/refused")
            logger.warning("%s of %s is refused: %s", _METHODS[request.method], request.client.host, answer.refused)
            return f"{answer.refused}\n".encode()
        self._stats.inc_value(counted)
        return answer.body.encode()


class _Bounded(Request):
    """A request whose body is read only for a callback of ours, no larger than a feed, beside few others."""

    _callback: _Callback | None = None  # with room claimed for this body
    _claimed_bytes = 0
    _received_bytes = 0

    def gotLength(self, length: int | None) -> None:
        """Before the body: one that is too large, or for a token that is not ours, is not read."""
        channel: Any = self.channel
        callback: Any = channel.site.resource
        wanted = MAX_FEED_BYTES if length is None else length
        super().gotLength(None if length is None else min(length, MAX_FEED_BYTES))  # type: ignore[no-untyped-call]  # Twisted's
        if not wanted:
            return
        if not callback.expects(channel._path):
            self._refuse("404 Not Found", "unknown callback")
        elif wanted > MAX_FEED_BYTES and length is not None:
            self._refuse("413 Content Too Large", f"more than {MAX_FEED_BYTES} bytes")
        elif callback.claimed_bytes + wanted > MAX_BODIES_BYTES:
            self._refuse("503 Service Unavailable", "too many pushes at once")
        else:
            callback.claimed_bytes += wanted
            self._callback, self._claimed_bytes = callback, wanted

    def handleContentChunk(self, data: bytes) -> None:
        """A piece of a body: one whose length was not given is counted."""
        if self._callback is None:
            return  # refused: what was on its way is not kept
        self._received_bytes += len(data)
        if self._received_bytes > MAX_FEED_BYTES:
            self._release()
            self._refuse("413 Content Too Large", f"more than {MAX_FEED_BYTES} bytes")
            return
        super().handleContentChunk(data)  # type: ignore[no-untyped-call]  # Twisted's

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The whole body is there: it is judged, and its room released, in this call."""
        try:
            super().requestReceived(command, path, version)  # type: ignore[no-untyped-call]  # Twisted's
        finally:
            self._release()

    def connectionLost(self, reason: Any) -> None:
        """The hub hung up in the middle of a body."""
        self._release()
        super().connectionLost(reason)  # type: ignore[no-untyped-call]  # Twisted's

    def _release(self) -> None:
        """Free the room that was claimed for this body."""
        if self._callback is not None:
            self._callback.claimed_bytes -= self._claimed_bytes
            self._callback = None

    def _refuse(self, status: str, why: str) -> None:
        channel: Any = self.channel
        if channel is not None:
            logger.warning("A push of %s is refused: %s", channel.getPeer().host, why)
            head = f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            channel.write(head.encode())
            channel.loseConnection()


def _token(path: bytes) -> str:
    return _text(path.lstrip(b"/"))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
