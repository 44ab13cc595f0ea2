"""From a response to a ``FetchedPage``: its reason, its headers, and what reading found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.items import AnswerHeaders, FetchedPage
from crawlerproject.parse.links import MAX_REDIRECTS, redirected, redirected_enough
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.meta_robots import HEADERS, stated_by_site
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.robots.policy import usable_body
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from scrapy.http import Headers, Response

    from crawlerproject.wire import Wire

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# What rules/refetch reads of an answer's freshness.
_FRESHNESS = ("cache-control", "expires", "date", "age")
_FRESHNESS_NAMES = [(name, name.title().encode()) for name in _FRESHNESS]
_AI_USE_NAMES = [(name, name.title().encode()) for name in HEADERS]


def page_of(response: Response, wire: Wire) -> FetchedPage:
    """What the status and the headers say; the body is not read."""
    headers, notes = response.headers, []
    if wire.flaw:
        notes.append(("cut", wire.flaw))
    if wire.unverified:
        notes.append(("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"))
    known = AnswerHeaders(
        header(headers, b"Content-Type").partition(";")[0].strip().lower(),
        header(headers, b"Retry-After"),
        header(headers, b"Etag"),
        header(headers, b"Last-Modified"),
        {name: value for name, known_as in _FRESHNESS_NAMES if (value := header(headers, known_as))},
    )
    return FetchedPage(_reason(response.status), wire, response.body, known, error=wire.flaw, notes=notes)


def robots_page(page: FetchedPage, flags: Collection[str]) -> FetchedPage:
    """A robots.txt: with the part of the body that is obeyed, or unusable because it was cut."""
    if not 200 <= page.wire.status < 300:
        return page
    body = usable_body(page.body, flags)
    if body is not None:
        return page._replace(body=body)
    return page._replace(
        usable=False,
        reason=Reason.DISCONNECTED if page.wire.truncated else Reason.BAD_RESPONSE,
        error=f"robots.txt cannot be used ({', '.join(flags)}): as if it could not be reached",
    )


def redirected_page(page: FetchedPage, row: QueuedPage, location: str) -> FetchedPage:
    """A redirect, with its target unless it is one too many. That of a robots.txt is followed by the frontier."""
    target = Base(row.url).join(location) if location else None
    if target is None:
        return page
    if row.kind.is_robots:
        return page._replace(location=target.url)
    if redirected_enough(row):
        return page._replace(location=target.url, error=f"more than {MAX_REDIRECTS} redirects in a row")
    return page._replace(location=target.url, target=redirected(row, target))


def page_of_hub(response: Response, wire: Wire) -> FetchedPage:
    """A hub's answer to a request for a subscription; it verifies and pushes later, by requests of its own."""
    headers = AnswerHeaders(retry_after=header(response.headers, b"Retry-After"))
    if 200 <= response.status < 300:
        return FetchedPage(Reason.SUBSCRIBED, wire, headers=headers)
    error = response.body[:200].decode("latin-1").strip()
    return FetchedPage(_reason(response.status), wire, headers=headers, error=error)


def page_notes(facts: PageFacts) -> list[tuple[str, str]]:
    """What an HTML page says of itself, as lines of the metadata record."""
    notes = [("charset-detected", facts.encoding)]
    if facts.canonical is not None:
        notes.append(("canonical", facts.canonical.url))
    if facts.unparsed:
        notes.append(("unparsed", "parser-bomb"))
    if facts.noindex:
        notes.append(("robots-meta", "noindex"))
    if facts.nofollow:
        notes.append(("robots-meta", "nofollow"))
    notes.extend(facts.ai_use)
    return notes


def ai_use(signals: Iterable[str], headers: Headers) -> list[tuple[str, str]]:
    """What the ``signals`` of a robots.txt and a response's headers state about use by artificial intelligence."""
    return stated_by_site(
        signals, [(name, text) for name, known_as in _AI_USE_NAMES if (text := header(headers, known_as))]
    )


def html_facts(response: Response, content_type: str | None, token: str) -> PageFacts:
    """Read an HTML response, which may take a second."""
    x_robots = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    return read_html(response.body, url=response.url, content_type=content_type, x_robots=x_robots, token=token)


def header(headers: Headers, name: bytes) -> str:
    """A header's last value as text; "" without one. ``name`` in title case, as Scrapy keeps names: "Etag".

    Past ``Headers.get``, which normalises the name at each of the dozen looks that a page takes.
    """
    values = dict.get(headers, name)
    return values[-1].decode("latin-1") if values else ""


def _reason(status: int) -> Reason:
    if status in (429, 503):
        return Reason.RATE_LIMITED
    if status == 304:
        return Reason.NOT_MODIFIED
    if status in REDIRECTS:
        return Reason.REDIRECT
    return Reason.FETCHED if status < 400 else Reason.HTTP_ERROR
