"""From a response and its ``ReadPage`` to the outcome of the lease. The spider and a recovery share this."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlerproject.items import FetchedPage, PageText, Rendered, RenderedPage
from crawlerproject.parse.links import navigated, sitemaps_of_robots
from crawlerproject.parse.response_page import (
    REDIRECTS,
    ai_use,
    header,
    page_notes,
    page_of,
    redirected_page,
    robots_page,
)
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlerproject.items import Note
    from crawlerproject.reading.jobs import ReadPage
    from crawlerproject.wire import Wire

Signals = Callable[[str], tuple[str, ...]]
"""What the robots.txt of a URL's origin states about the use of its content."""


class Outcomes:
    """Makes the outcomes of leases that got a response."""

    def __init__(self, token: str, *, sitemaps: bool, signals: Signals) -> None:
        """``sitemaps``: those that robots.txt files name are fetched."""
        self._token = token
        self._sitemaps = sitemaps
        self._signals = signals

    def fetched(
        self, row: QueuedPage, response: Response, wire: Wire, read: ReadPage, *, to_render: bool
    ) -> FetchedPage:
        """The outcome of a fetch; ``to_render``: the page goes to the browser."""
        page = page_of(response, wire)
        if response.status in REDIRECTS:
            page = redirected_page(page, row, header(response.headers, b"Location"))
        elif row.kind.is_robots:
            page = self._with_sitemaps(robots_page(page, response.flags), row)
        elif read.unread:
            page = page._replace(error=read.unread, notes=[*page.notes, ("unread", read.unread)])
        elif response.status == 200:
            page = self._with_content(page, row, response, read, to_render=to_render)
        if read.wall_marks or read.challenge:
            page = page._replace(notes=[*page.notes, *_wall_notes(read)])
        return page._replace(reason=Reason.CHALLENGE) if read.challenge else page

    def _with_sitemaps(self, page: FetchedPage, row: QueuedPage) -> FetchedPage:
        if not (self._sitemaps and page.wire.status == 200 and page.usable):
            return page
        listed = sitemaps_of_robots(row, parse_robots(page.body, self._token))
        return page._replace(found=listed.found, error=listed.flaw or page.error)

    def _with_content(
        self, page: FetchedPage, row: QueuedPage, response: Response, read: ReadPage, *, to_render: bool
    ) -> FetchedPage:
        error = read.flaw or page.error
        if row.kind.is_list:
            return page._replace(found=read.found, changed=read.changed, error=error)
        notes, shell = [*page.notes], None
        if read.facts is not None:
            notes += page_notes(read.facts)
            if read.triage.signals and not read.challenge:
                notes.append(("triage", str(read.triage)))
            if to_render:
                shell = read.facts.words, read.links
        notes += ai_use(self._signals(row.url), response.headers)
        text = text_of(read) if shell is None else None
        requisites = read.requisites if shell is None else ()  # else of the page as the browser shows it
        return FetchedPage(
            page.reason,
            page.wire,
            page.body,
            page.headers,
            error=error,
            notes=notes,
            found=read.found,
            changed=read.changed,
            text=text,
            is_feed=read.feed is not None,
            shell=shell,
            requisites=requisites,
        )


def rendered_page(row: QueuedPage, rendered: Rendered, read: ReadPage) -> RenderedPage:
    """The outcome of a render: the links of the page as its scripts left it, and where they wanted to go."""
    if read.facts is None:
        return RenderedPage(Reason.RENDERED, rendered, read.unread, [("unread", read.unread)])
    notes: list[Note] = [*page_notes(read.facts), *_wall_notes(read)]
    found = read.found if read.facts.nofollow else [*read.found, *navigated(row, rendered.navigations)]
    reason = Reason.CHALLENGE if read.challenge else Reason.RENDERED
    gained = read.facts.words, read.links
    return RenderedPage(reason, rendered, read.flaw, notes, found, text_of(read), gained, read.requisites)


def _wall_notes(read: ReadPage) -> list[Note]:
    """What a page has of anti-bot walls, and whose wall it is, as lines of the metadata record."""
    marks = [("wall-marks", read.wall_marks)] if read.wall_marks else []
    return [*marks, ("challenge", read.challenge)] if read.challenge else marks


def text_of(read: ReadPage) -> PageText | None:
    """The text by which an HTML page is compared; None for anything else."""
    if read.facts is None:
        return None
    return PageText(read.text_marks, read.facts.canonical, read.facts.fingerprint)
