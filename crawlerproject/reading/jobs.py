"""One body to be read, and what was read in it; pure work, done in the reading process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.parse.links import hops_to, linked
from crawlerproject.parse.lists import Listed, Lists
from crawlerproject.rules.duplicates.simhash import text_fingerprint
from crawlerproject.rules.feeds.feeds import Feed, read_feed
from crawlerproject.rules.page.links import HOP_LINK
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.rendering.triage import PLAIN, Triage, looks_whole, triage
from crawlerproject.rules.traps.text_marks import text_marks
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.protocols import QueuedPage

LINKS_A_PART = 500
"""Taken out of a pickle in half a millisecond, and queued in five."""


class Kind(StrEnum):
    """How a body is read."""

    HTML = "html"
    SITEMAP = "sitemap"
    FEED = "feed"


class Job(NamedTuple):
    """One body of the page in ``row``."""

    kind: Kind
    row: QueuedPage
    url: str
    content_type: str | None
    x_robots: list[str]
    token: str


@dataclass(slots=True)
class Reading:
    """What was read. Its links and moments of change, which may be a hundred thousand, come in parts."""

    facts: PageFacts = field(default_factory=PageFacts)  # of HTML; without links and text
    links: int = 0  # of HTML, those that are not to be followed left out
    triage: Triage = PLAIN
    text_marks: tuple[int, ...] = ()
    fingerprint: int | None = None
    feed: Feed | None = None  # without its entries
    listed: Listed = field(default_factory=Listed)  # without what comes in parts
    found: list[DiscoveredUrl] = field(default_factory=list)


_Read = tuple[Reading, list[DiscoveredUrl], list[tuple[Address, float]]]


def read(job: Job, body: bytes) -> Iterator[tuple[str, object]]:
    """Parts ("found" or "changed", a list each), and in the end ("reading", a Reading)."""
    reading, found, changed = _READERS[job.kind](job, body)
    for name, rows in (("found", found), ("changed", changed)):
        for start in range(0, len(rows), LINKS_A_PART):
            yield name, rows[start : start + LINKS_A_PART]
    yield "reading", reading


def _html(job: Job, body: bytes) -> _Read:
    facts = read_html(body, url=job.url, content_type=job.content_type, x_robots=job.x_robots, token=job.token)
    reading = read_facts(job, facts, body)
    found, reading.found = reading.found, []
    return reading, found, []


def read_facts(job: Job, facts: PageFacts, body: bytes) -> Reading:
    """What an HTML page comes to whose facts are at hand; its links are in it."""
    links = len(facts.links)
    whole = looks_whole(facts.words, links + facts.nofollow_links)
    return Reading(
        replace(facts, links=[], text=b""),
        links,
        PLAIN if whole or facts.unparsed else triage(body, job.content_type),
        text_marks(facts.title, facts.text, job.url),
        text_fingerprint(facts.text),
        found=linked(job.row, facts),
    )


def _sitemap(job: Job, body: bytes) -> _Read:
    return _listed(Lists().of_sitemap(job.row, body), None)


def _feed(job: Job, body: bytes) -> _Read:
    feed = read_feed(body)
    listed = Lists().of_feed(job.row, feed, hops_to(job.row, HOP_LINK))
    return _listed(listed, replace(feed, entries=[]))


def _listed(listed: Listed, feed: Feed | None) -> _Read:
    return Reading(feed=feed, listed=replace(listed, found=[], changed=[])), listed.found, listed.changed


_READERS = {Kind.HTML: _html, Kind.SITEMAP: _sitemap, Kind.FEED: _feed}
