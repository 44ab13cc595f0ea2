"""Scrapy's download handler for http and https: one request, one answer, its exact bytes in the request's ``Exchange``.

Redirects and HTTP errors are answers like any other; nothing is followed or tried again here.
"""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass_environment  # type: ignore[attr-defined]  # not in its stub

from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import Headers, HtmlResponse, JsonResponse, Response, TextResponse, XmlResponse

from crawlerproject.config.values import identity, list_of, local_address
from crawlerproject.errors import FetchError, LeaseOver, OperatorError
from crawlerproject.fetch.decoding import decode
from crawlerproject.fetch.http1 import SIGNATURE_FIELDS, RequestWriter, Target, parse_target
from crawlerproject.fetch.pool import Endpoint, Limits, Pool
from crawlerproject.fetch.resolver import UNNAMED, Resolver, address_rules, ip_of, make_resolver, resolver_for
from crawlerproject.fetch.tls import Certificates, allowed_hosts
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import exchange_of
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.url.refused_urls import ipv4_number
from crawlerproject.runtime.clock import since_boot
from crawlerproject.runtime.loop_budget import LoopBudget
from crawlerproject.runtime.services import services_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from crawlerproject.fetch.signing import Signer

logger = logging.getLogger(__name__)

# Statuses with which a server asks for a signature, or for a fresh one (draft-ietf-webbotauth-httpsig-protocol-01).
_ASKING = frozenset({403, 429})
_DEFAULT_PORT = 1080  # curl's default for a proxy without a port

_CLASSES: dict[bytes, type[Response]] = {  # the common types at once; Scrapy's own table knows the rest
    b"text/html": HtmlResponse,
    b"application/xhtml+xml": HtmlResponse,
    b"text/xml": XmlResponse,
    b"application/xml": XmlResponse,
    b"application/rss+xml": XmlResponse,
    b"application/atom+xml": XmlResponse,
    b"text/plain": TextResponse,
    b"application/json": JsonResponse,
}


class UnreadAnswers(LoopBudget):
    """The line of answers that wait to be read, one for the handlers of http and https."""


class Proxy(NamedTuple):
    """An HTTP proxy; ``authorization`` is the value of Proxy-Authorization, empty when it needs none."""

    host: str
    port: int
    authorization: bytes


class Proxies:
    """The environment's proxies, read once at start."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(getproxies() if environment is None else environment)
        self.any = not self._environment.keys().isdisjoint(("http", "https"))
        for scheme in ("http", "https"):
            if url := self._environment.get(scheme):
                try:
                    parse_proxy(url)
                except FetchError as error:
                    raise OperatorError(f"The environment's {scheme}_proxy cannot be used: {error.detail}") from error

    def choose(self, meta: Mapping[str, Any], scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy for one request; ``meta["proxy"] = None`` means none, as everywhere in Scrapy."""
        if "proxy" in meta:
            return parse_proxy(meta["proxy"]) if meta["proxy"] else None
        url = self._environment.get(scheme)
        if not url or proxy_bypass_environment(f"{host}:{port}", self._environment):
            return None
        return parse_proxy(url)

    def may_serve(self, name: str) -> bool:
        """Whether one of the environment's proxies is for this name or ``name:port``: it resolves the name itself."""
        asked = self._environment.get("http") or self._environment.get("https")
        return bool(asked) and not proxy_bypass_environment(name, self._environment)


@lru_cache(maxsize=1024)
def parse_proxy(url: str) -> Proxy:
    """Read ``[http://][user:pass@]host[:port]``; raises FetchError(PROXY_FAILED)."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise FetchError(Reason.PROXY_FAILED, f"not a proxy address: {error}") from error
    if parts.scheme != "http" or not host:
        raise FetchError(Reason.PROXY_FAILED, f"only http:// proxies are supported, not {parts.scheme}://")
    authorization = b""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = b"Basic " + b64encode(login.encode("utf-8"))
    return Proxy(host, port or _DEFAULT_PORT, authorization)


class CrawlerDownloadHandler(BaseDownloadHandler):
    """Fetches with our own HTTP/1.1 client.

    Reads the request's ``Exchange`` and sets its ``wire``. Of Scrapy's own meta keys it reads ``proxy``,
    ``bindaddress`` and ``download_timeout``, and sets ``download_latency``.
    Raises ``FetchError``, and nothing else for whatever the web does; ``LeaseOver`` when no time is left to ask.
    """

    lazy = True

    def __init__(self, crawler: Crawler) -> None:
        """By the FETCH_* and CRAWLER_* settings."""
        super().__init__(crawler)
        self._limits = Limits.from_settings(crawler.settings)
        self._pool = pool_for(crawler)
        self._refuses = lru_cache(maxsize=65_536)(address_rules(crawler).refuses)
        self._proxies = Proxies()
        self._budget = unread_answers_of(crawler)
        self._proxy_resolver: Resolver | None = None
        self._local = local_address(crawler.settings.get("DOWNLOAD_BIND_ADDRESS"))
        self._signer: Signer | None = None
        if crawler.settings.get("IDENTITY_KEY_FILE"):
            from crawlerproject.fetch.signing import signer_of  # no other crawl imports what signs

            self._signer = signer_of(crawler)
        sign = None if self._signer is None else self._signer.fields
        self._writer = RequestWriter(identity(crawler.settings).user_agent, sign)

    async def download_request(self, request: Request) -> Response:
        """Scrapy: fetch one request."""
        meta, exchange = request.meta, exchange_of(request)
        exchange.wire = None  # of an earlier try
        target = parse_target(request.url)
        if self._signer is not None and not SIGNATURE_FIELDS.isdisjoint(dict.keys(request.headers)):
            self._signer.replaces(request.url)
        proxy = None
        if self._proxies.any or "proxy" in meta:
            proxy = self._proxies.choose(meta, target.scheme, target.host, target.port)
        if exchange.error is not None and not (proxy is not None and exchange.error.reason in UNNAMED):
            raise exchange.error.with_traceback(None)
        if proxy is None:
            ip = exchange.address or (await resolver_for(self.crawler).resolve(target.host)).addresses[0]
            if self._refuses(ip):
                raise FetchError(Reason.PRIVATE_ADDRESS, ip)
            endpoint = Endpoint(ip, target.port, target.host, target.scheme == "https")
            accepts = not exchange.as_scrapys
            sent = archived = self._writer.write(request.method, target, request.headers, request.body, accepts=accepts)
        else:
            endpoint, sent, archived = await self._through(proxy, request, target)
        local = local_address(meta["bindaddress"]) if "bindaddress" in meta else self._local
        if local is not None:
            endpoint = endpoint._replace(local=local)
        timeout_seconds = min(self._limits.timeout_seconds, meta.get("download_timeout") or float("inf"))
        if exchange.ask_until is not None:
            timeout_seconds = min(timeout_seconds, exchange.ask_until - since_boot())
            if timeout_seconds <= 0:
                raise LeaseOver(request.url)
        try:
            wire = await self._pool.fetch(
                endpoint, sent, request.method, timeout_seconds, exchange.pause_seconds, exchange.max_bytes
            )
        except FetchError as error:
            if error.wire is not None:
                error.wire.request_bytes = archived
                exchange.wire = error.wire
            raise
        wire.request_bytes = archived
        exchange.wire, headers = wire, wire.headers
        meta["download_latency"] = wire.connect_seconds + (wire.ttfb_seconds or 0.0)
        if self._budget.waiting or self._budget.over():  # what is returned here is read and judged in the same go
            await self._budget.room()
        if self._signer is not None and wire.status in _ASKING and b"Accept-Signature" in headers:
            wire.signature_asked = self._signer.asked(target, wire.status, headers[b"Accept-Signature"])
        url = request.url.partition("#")[0]
        if exchange.as_scrapys or b"Content-Encoding" not in headers:
            return response_of(url, wire, headers, None)
        with exchange.mark():
            return response_of(url, wire, headers, self._limits.max_bytes)

    async def close(self) -> None:
        """Scrapy: the crawl ends."""
        self._pool.close()
        await resolver_for(self.crawler).close()
        if self._proxy_resolver is not None:
            await self._proxy_resolver.close()

    async def _through(self, proxy: Proxy, request: Request, target: Target) -> tuple[Endpoint, bytes, bytes]:
        """Endpoint, bytes to send, bytes to archive (the same without the proxy's password)."""
        exchange = exchange_of(request)
        accepts = not exchange.as_scrapys
        for ip in (exchange.address, ip_of(target.host)):
            if ip and self._refuses(ip):  # the proxy would connect to it for us
                raise FetchError(Reason.PRIVATE_ADDRESS, ip)
        if self._proxy_resolver is None:
            # The operator chose the proxy: any address.
            self._proxy_resolver = make_resolver(self.crawler.settings, None)
        try:
            ip = (await self._proxy_resolver.resolve(proxy.host)).addresses[0]
        except FetchError as error:
            raise FetchError(Reason.PROXY_FAILED, f"{proxy.host}: {error}") from error
        login = proxy.authorization or request.headers.get(b"Proxy-Authorization") or b""
        login_line = b"Proxy-Authorization: " + login + b"\r\n" if login else b""
        if target.scheme == "https":
            authority = b"[%b]:%d" if ":" in target.host else b"%b:%d"
            authority %= (target.host.encode("ascii"), target.port)
            tunnel = b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, login_line)
            sent = self._writer.write(request.method, target, request.headers, request.body, accepts=accepts)
            return Endpoint(ip, proxy.port, target.host, True, True, tunnel), sent, sent
        archived = self._writer.write(
            request.method, target, request.headers, request.body, absolute=True, accepts=accepts
        )
        head, _, body = archived.partition(b"\r\n\r\n")
        sent = head + b"\r\n" + login_line + b"\r\n" + body if login_line else archived
        return Endpoint(ip, proxy.port, target.host, False, True), sent, archived


def unread_answers_of(crawler: Crawler) -> UnreadAnswers:
    """The crawler's one line of answers that wait to be read."""
    return services_of(crawler).once(UnreadAnswers, UnreadAnswers)


def pool_for(crawler: Crawler) -> Pool:
    """The crawler's one pool: the handlers for http and https share it and its TLS context."""

    def made() -> Pool:
        settings = crawler.settings
        hosts = allowed_hosts(list_of(settings, "TLS_ALLOW_HOSTS"))
        if hosts:
            logger.warning("TLS_ALLOW_HOSTS: certificates are not verified for %s", ", ".join(hosts))
        return Pool(Limits.from_settings(settings), Certificates(settings.get("FETCH_CA_FILE") or "", hosts))

    return services_of(crawler).once(Pool, made)


def response_of(url: str, wire: Wire, received: dict[bytes, list[bytes]], max_bytes: int | None) -> Response:
    """Scrapy's response: the decoded body, and headers without the Content-Encoding that was taken off.

    ``max_bytes`` of the decoded body; None: it stays as it was encoded.
    """
    flags, body = [], wire.body
    if max_bytes is not None and (coding := received.get(b"Content-Encoding")):
        decoded = decode(body, b",".join(coding), max_bytes)
        body = decoded.body
        if decoded.truncated:
            wire.body = wire.body[: decoded.encoded_bytes]
            wire.truncated = wire.truncated or "length"
        if decoded.flag:
            flags.append(decoded.flag)
        if decoded.flag != "encoding-unknown":
            del received[b"Content-Encoding"]
    if wire.truncated:
        flags.append(f"truncated-{wire.truncated}")
    headers = Headers()
    dict.update(headers, received)  # past its normalising, which the reader has done already
    content_type = received.get(b"Content-Type")
    cls = _class_of(content_type[-1]) if content_type else Response
    if cls is Response:
        from scrapy.responsetypes import responsetypes  # reads the machine's list of types, which few answers need

        cls = responsetypes.from_args(headers=headers, url=url, body=body)
    response = cls(
        url,
        status=wire.status,
        body=body,
        flags=flags,
        ip_address=_address(wire.ip) if wire.ip else None,
        protocol=wire.protocols[0].upper(),
    )
    response.headers = headers
    return response


@lru_cache(maxsize=1024)
def _class_of(content_type: bytes) -> type[Response]:
    mime = content_type.partition(b";")[0].strip().lower()
    if (cls := _CLASSES.get(mime)) is None:
        from scrapy.responsetypes import responsetypes

        cls = responsetypes.from_content_type(content_type)
    return cls


@lru_cache(maxsize=65_536)
def _address(ip: str) -> IPv4Address | IPv6Address:
    return ip_address(ip) if (number := ipv4_number(ip)) is None else IPv4Address(number)
