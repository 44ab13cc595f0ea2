"""Which HTTP proxy a request goes through: ``meta["proxy"]``, else the usual environment variables."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass_environment  # type: ignore[attr-defined]  # not in its stub

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.reasons import Reason

_DEFAULT_PORT = 1080  # curl's default for a proxy without a port


class Proxy(NamedTuple):
    """An HTTP proxy; ``authorization`` is the value of Proxy-Authorization, empty when it needs none."""

    host: str
    port: int
    authorization: bytes


class Proxies:
    """The environment's proxies, read once at start."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(getproxies() if environment is None else environment)
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
        return any(self._environment.get(scheme) for scheme in ("http", "https")) and not proxy_bypass_environment(
            name, self._environment
        )


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
