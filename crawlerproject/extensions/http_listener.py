"""A port of this machine that a crawl opens for others, from its start to its end. Opt-in."""

from __future__ import annotations

import logging
from typing import Any, ClassVar, Self, cast

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.server import Site

from crawlerproject.extensions.crawl_task import CrawlExtension

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
"""At once to one port (ours): a dashboard, a scraper of metrics and some hubs need a few each."""
CONNECTION_SECONDS = 60.0
"""Longest life of a connection (ours): a push of 5 MB takes seconds; one that drips holds its place no longer."""


class HttpListener(CrawlExtension):
    """Off unless its setting ``…_PORT`` is set; a port that is taken is no reason to stop a crawl."""

    settings: ClassVar[str]  # what its settings begin with
    unheard: ClassVar[str]  # what cannot be done when the port is taken

    def __init__(self, crawler: Crawler, address: str, port: int) -> None:
        super().__init__(crawler)
        self._address = address
        self._port = port
        self._listening: Any = None

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """At the address and port of its settings."""
        port = crawler.settings.getint(f"{cls.settings}_PORT")
        if not port:
            raise NotConfigured
        return cls(crawler, crawler.settings[f"{cls.settings}_ADDRESS"], port)

    def spider_opened(self) -> None:
        """Listen."""
        from twisted.internet import reactor

        site: Any = self.site()
        if site is None:
            return
        try:
            door = BoundedFactory(site)  # type: ignore[no-untyped-call]  # Twisted's
            self._listening = cast("Any", reactor).listenTCP(self._port, door, interface=self._address)
        except CannotListenError as error:
            logger.warning("%s %s:%d: %s", self.unheard, self._address, self._port, error.socketError)
            return
        self.begun()

    async def spider_closed(self, reason: str) -> None:
        """Stop listening."""
        if self._listening is not None:
            await self.last_word(reason)
            self.ended()
            self._listening.stopListening()
            self._listening = None

    def site(self) -> Site | None:
        """What answers there; None when this crawl has nothing to say."""
        raise NotImplementedError

    def begun(self) -> None:
        """Called once it listens."""

    async def last_word(self, reason: str) -> None:
        """What the crawl's end may wait for."""

    def ended(self) -> None:
        """Called before it stops listening."""


class _Visitor(ProtocolWrapper):
    """One connection, ended when its time is over whatever it does."""

    def connectionMade(self) -> None:
        from twisted.internet import reactor

        super().connectionMade()  # type: ignore[no-untyped-call]  # Twisted's
        self._end = cast("Any", reactor).callLater(CONNECTION_SECONDS, self.abortConnection)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._end.active():
            self._end.cancel()
        super().connectionLost(reason)  # type: ignore[no-untyped-call]  # Twisted's


class BoundedFactory(WrappingFactory):
    """Lets in so many connections at once, each for so long: more than that is hung up on at once."""

    protocol = _Visitor

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """None, which closes the connection, when all places are taken."""
        if len(self.protocols) >= MAX_CONNECTIONS:
            return None
        return super().buildProtocol(addr)
