"""The key under which a host is known: its name, with the port only when it is not the scheme's default."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import UrlRefused, parse


def host_key(url: str) -> str:
    """Host key of an absolute URL, the same as ``parse(url).host``; "" when it has no host or cannot be read."""
    try:
        return parse(url).host
    except UrlRefused as refused:
        return _other_scheme(url) if refused.reason is Reason.SCHEME else ""


def _other_scheme(url: str) -> str:
    """Of a URL that other spiders may ask for over something else than http: name and port as written."""
    try:
        parts = urlsplit(url)
        name, port = (parts.hostname or "").removesuffix("."), parts.port
    except ValueError:
        return ""
    if ":" in name:
        name = f"[{name}]"
    return name if port is None else f"{name}:{port}"


@lru_cache(maxsize=65_536)  # some links of every page, and each turn, ask for the same few
def host_name(key: str) -> str:
    """Host name of a host key: the port, if any, taken off; brackets of an IPv6 address stay."""
    if ":" not in key or key.endswith("]"):
        return key
    return key.rpartition(":")[0]
