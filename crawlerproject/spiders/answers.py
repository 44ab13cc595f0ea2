"""An answer as a Page: its headers, its reason, what reading found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlerproject.items import Page
from crawlerproject.reasons import Reason
from crawlerproject.rules.ai_use import HEADERS, stated_by_site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.http import Headers, Response

    from crawlerproject.fetch.wire import Wire
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.rules.page import PageFacts

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# What rules/refetch reads of an answer's freshness.
_FRESHNESS = ("cache-control", "expires", "date", "age")


def page_of(lease: Lease, response: Response, wire: Wire) -> Page:
    """What the status and the headers say; the body is not read yet."""
    headers = response.headers
    page = Page(lease, lease.row.url, _reason(response.status), wire, body=response.body)
    page.mime = header(headers, "Content-Type").partition(";")[0].strip().lower()
    page.retry_after = header(headers, "Retry-After")
    page.etag = header(headers, "ETag")
    page.last_modified = header(headers, "Last-Modified")
    if wire.unverified:
        page.notes.append(("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"))
    page.freshness = {name: value for name in _FRESHNESS if (value := header(headers, name))}
    return page


def page_of_hub(lease: Lease, response: Response, wire: Wire) -> Page:
    """What a hub answers to being asked for a subscription; it verifies and pushes later, by itself."""
    page = Page(lease, lease.row.url, _reason(response.status), wire)
    page.retry_after = header(response.headers, "Retry-After")
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
    return stated_by_site(signals, [(name, text) for name in HEADERS if (text := header(headers, name))])


def header(headers: Headers, name: str) -> str:
    """A header's value as text; "" without one."""
    value = headers.get(name)
    return value.decode("latin-1") if value else ""


def _reason(status: int) -> Reason:
    if status in (429, 503):
        return Reason.RATE_LIMITED
    if status == 304:
        return Reason.NOT_MODIFIED
    if status in REDIRECTS:
        return Reason.REDIRECT
    return Reason.FETCHED if status < 400 else Reason.HTTP_ERROR
