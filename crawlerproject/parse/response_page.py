"""An answer as a Page: its headers, its reason, what reading found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.items import Page
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.ai_use import HEADERS, stated_by_site
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.robots.policy import usable_body

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from scrapy.http import Headers, Response

    from crawlerproject.frontier.lease import Lease
    from crawlerproject.wire import Wire

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# What rules/refetch reads of an answer's freshness.
_FRESHNESS = ("cache-control", "expires", "date", "age")
_FRESHNESS_NAMES = [(name, name.title().encode()) for name in _FRESHNESS]
_AI_USE_NAMES = [(name, name.title().encode()) for name in HEADERS]


def page_of(lease: Lease, response: Response, wire: Wire) -> Page:
    """What the status and the headers say; the body is not read yet."""
    headers = response.headers
    page = Page(lease, lease.row.url, _reason(response.status), wire, body=response.body)
    page.mime = header(headers, b"Content-Type").partition(";")[0].strip().lower()
    page.retry_after = header(headers, b"Retry-After")
    page.etag = header(headers, b"Etag")
    page.last_modified = header(headers, b"Last-Modified")
    if wire.flaw:
        page.error = wire.flaw
        page.notes.append(("cut", wire.flaw))
    if wire.unverified:
        page.notes.append(("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"))
    page.freshness = {name: value for name, known_as in _FRESHNESS_NAMES if (value := header(headers, known_as))}
    return page


def page_by_middleware(lease: Lease, how: str) -> Page:
    """A lease that ends without an answer of the web's: a project's own downloader middleware saw to that."""
    return Page(lease, lease.row.url, Reason.MIDDLEWARE, error=how, unusable=lease.is_robots)


def take_robots(page: Page, flags: Collection[str]) -> None:
    """A robots.txt that was answered with 2xx: what of it is read, unless it was cut."""
    body = usable_body(page.body, flags)
    if body is not None:
        page.body = body
        return
    page.unusable = True
    page.reason = Reason.DISCONNECTED if page.wire is not None and page.wire.truncated else Reason.BAD_RESPONSE
    page.error = f"robots.txt cannot be used ({', '.join(flags)}): as if it could not be reached"


def page_of_hub(lease: Lease, response: Response, wire: Wire) -> Page:
    """What a hub answers to being asked for a subscription; it verifies and pushes later, by itself."""
    page = Page(lease, lease.row.url, _reason(response.status), wire)
    page.retry_after = header(response.headers, b"Retry-After")
    if 200 <= response.status < 300:
        page.reason = Reason.SUBSCRIBED
    else:
        page.error = response.body[:200].decode("latin-1").strip()
    return page


def page_notes(facts: PageFacts) -> list[tuple[str, str]]:
    """What reading found, as lines of the metadata record."""
    notes = [("charset-detected", facts.encoding)]
    if facts.canonical is not None:
        notes.append(("canonical", facts.canonical.url))
    if facts.noindex:
        notes.append(("robots-meta", "noindex"))
    if facts.nofollow:
        notes.append(("robots-meta", "nofollow"))
    notes.extend(facts.ai_use)
    return notes


def ai_use(signals: Iterable[str], headers: Headers) -> list[tuple[str, str]]:
    """What robots.txt (its ``signals``) and an answer's headers say about use by artificial intelligence."""
    return stated_by_site(
        signals, [(name, text) for name, known_as in _AI_USE_NAMES if (text := header(headers, known_as))]
    )


def html_facts(response: Response, content_type: str | None, token: str) -> PageFacts:
    """What an HTML answer says; reading may take a second."""
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
