"""Asks for what the operator has published about the crawler, as those see it who look the crawler up."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from crawlerproject.config.values import identity, list_of
from crawlerproject.fetch.tls import Certificates, allowed_hosts

# For connecting and for each part of the answer: a start waits for it (ours).
_TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 1 << 20


class Served(NamedTuple):
    """What an address of the operator's is answered with."""

    url: str  # behind all redirects
    status: int
    body: bytes
    fields: dict[str, str]  # names in lower case
    ahead_seconds: float | None  # of the server's clock, before ours; None without a date


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *what: Any) -> None:
        """The answer stands as an error."""


def served(url: str, settings: BaseSettings, *, accept: str = "*/*", redirects: bool = True) -> Served:
    """Ask once, by the environment's proxies and the crawl's certificates; any status is an answer. Blocking.

    Raises OSError, ValueError for what is no http or https URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        raise ValueError("it is no http or https URL")
    handlers: list[Any] = [] if redirects else [_NoRedirects]
    if parts.scheme == "https":
        unverified = allowed_hosts(list_of(settings, "TLS_ALLOW_HOSTS"))
        certificates = Certificates(settings.get("FETCH_CA_FILE") or "", unverified)
        context = certificates.context(parts.hostname or "", parts.port or 443)
        handlers.append(urllib.request.HTTPSHandler(context=context))
    request = urllib.request.Request(url, headers={"User-Agent": identity(settings).user_agent, "Accept": accept})
    try:
        try:
            answer = urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            body = answer.read(_MOST_BYTES)
    except HTTPException as error:
        raise OSError(f"no whole HTTP answer: {error!r}") from error
    fields = {name.lower(): ", ".join(answer.headers.get_all(name)) for name in answer.headers.keys()}  # noqa: SIM118
    return Served(answer.url, answer.status, body, fields, _ahead_seconds(fields, time.time()))


def _ahead_seconds(fields: dict[str, str], now: float) -> float | None:
    """By how far the server's clock is ahead; a copy in a cache is as old as it says."""
    try:
        return parsedate_to_datetime(fields["date"]).timestamp() + float(fields.get("age", "0")) - now
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
