"""One response as the crawler reads it, for ``page`` in the shell. Reading it fetches, queues and writes nothing."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlerproject.frontier.assembly import scope_of, url_filters_of
from crawlerproject.frontier.passage import DiscoveredUrl, of_other_domain
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.guard.guard import guard_of
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import header
from crawlerproject.rules.page.page import PageFacts, is_html, read_html
from crawlerproject.rules.printable import printable_line
from crawlerproject.rules.rendering.thin_pages import Triage, judge
from crawlerproject.rules.robots.policy import RobotsRules
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, HOP_LINK
from crawlerproject.rules.url.urls import UrlRefused, host_key, origin, parse


class SeenLink(NamedTuple):
    """One link; ``refusal`` is the gate that would refuse it, "" if none of those known here would."""

    url: str
    hop: str
    refusal: str

    def __repr__(self) -> str:
        return printable_line(f"{self.refusal or 'open':<20} {self.hop} {self.url}")


class SeenLinks(list[SeenLink]):
    """Prints one link a line."""

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))


class Pace(NamedTuple):
    """A host's pause after each response, and the time until its next request."""

    delay_seconds: float
    free_in_seconds: float | None  # None: a request is in flight
    floor_seconds: float  # from robots.txt


class PageView:
    """What the shell calls ``page``: ``links``, ``words``, ``title``, ``triage``, ``robots``, ``pace`` and more."""

    def __init__(self, crawler: Crawler, response: Response) -> None:
        self.url = response.url
        self.status = response.status
        self._crawler = crawler
        self._guard = guard_of(crawler)
        self._body = response.body
        self._kind = header(response.headers, b"Content-Type") or None
        self.facts = PageFacts()
        self.is_html = is_html(self._kind, response.body)
        if self.is_html:
            self.facts = html_facts(response, self._kind, crawler.settings["CRAWLER_NAME"])

    @property
    def title(self) -> str:
        """Text of the title element."""
        return self.facts.title

    @property
    def words(self) -> int:
        """Visible words."""
        return self.facts.words

    @property
    def text(self) -> str:
        """Visible text without links and frame."""
        return self.facts.text.decode()

    @property
    def canonical(self) -> str:
        """Address of rel=canonical; "" when there is none."""
        return self.facts.canonical.url if self.facts.canonical else ""

    @property
    def links(self) -> SeenLinks:
        """The links that a crawl would find here, each with the gate that would refuse it as a link of a seed."""
        settings = self._crawler.settings
        filters = url_filters_of(settings, scope_of(settings, "any", []), self._guard.never_crawl)
        return SeenLinks(SeenLink(link.url, HOP_LINK, self._refusal(filters, link.url)) for link in self.facts.links)

    @property
    def triage(self) -> Triage | None:
        """Whether the page needs a browser, and the signals for it; None if it is not HTML."""
        return judge(self.facts.shell, self._body) if self.is_html else None

    @property
    def fingerprint(self) -> int | None:
        """SimHash of the text, for near-duplicates; None for too little text."""
        return self.facts.fingerprint

    @property
    def robots(self) -> str:
        """The verdict of robots.txt on this page, in words."""
        rules = self._rules(self.url)
        if rules is None:
            return "robots.txt is not known"
        wish = f", Crawl-delay {rules.floor_seconds:g} s" if rules.floor_seconds else ""
        return ("allowed" if rules.allowed(self.url) else "disallowed") + wish

    @property
    def pace(self) -> Pace:
        """The host's pace."""
        rules = self._rules(self.url)
        floor = rules.floor_seconds if rules is not None else 0.0
        return Pace(*self._guard.pace.outlook(host_key(self.url), floor), floor)

    def __repr__(self) -> str:
        facts = self.facts
        refused = sum(bool(link.refusal) for link in self.links)
        rows = [
            ("url", f"{self.url} ({self.status})"),
            ("title", facts.title),
            ("words", f"{facts.words:,}" if self.is_html else "no HTML"),
            (
                "links",
                f"{len(facts.links):,}, {refused:,} of them refused, {facts.nofollow_links:,} nofollow: page.links",
            ),
            ("asks", ", ".join(word for word in ("noindex", "nofollow") if getattr(facts, word)) or "nothing"),
            ("canonical", self.canonical),
            ("triage", str(self.triage or "")),
            ("simhash", "" if self.fingerprint is None else f"{self.fingerprint:016x}"),
            ("robots", self.robots),
            ("pace", _pace_text(self.pace)),
        ]
        return "\n".join(f"{name:<10} {printable_line(value)}" for name, value in rows if value)

    def _refusal(self, filters: UrlFilters, url: str) -> str:
        address = parse(url)
        flags = FLAG_EXTERNAL if of_other_domain(address.host, host_key(self.url)) else 0
        refusal = filters.refusal(DiscoveredUrl(address, 1, "L", self.url, 0, flags), time.time())
        if refusal is not None:
            return str(refusal)
        rules = self._rules(url)
        return str(Reason.ROBOTS) if rules is not None and not rules.allowed(url) else ""

    def _rules(self, url: str) -> RobotsRules | None:
        try:
            return self._guard.robots.rules(origin(url))
        except UrlRefused:
            return None


def shown_page(page: PageView) -> list[Any]:
    """What ``scrapy parse`` shows: the page's facts as one item, and a Request for each link that no gate refuses."""
    facts = {
        "url": page.url,
        "status": page.status,
        "title": page.title,
        "words": page.words,
        "encoding": page.facts.encoding,
        "canonical": page.canonical,
        "noindex": page.facts.noindex,
        "nofollow": page.facts.nofollow,
        "triage": str(page.triage or ""),
        "robots": page.robots,
        "links": {link.url: link.refusal or "open" for link in page.links},
    }
    return [facts, *(Request(link.url) for link in page.links if not link.refusal)]


def _pace_text(pace: Pace) -> str:
    free = "a request is in flight" if pace.free_in_seconds is None else f"free in {pace.free_in_seconds:.1f} s"
    return f"{pace.delay_seconds:.2f} s after each answer; {free}"


def html_facts(response: Response, content_type: str | None, token: str) -> PageFacts:
    """Read an HTML response, which may take a second."""
    x_robots = [value.decode("latin-1") for value in response.headers.getlist("X-Robots-Tag")]
    return read_html(response.body, url=response.url, content_type=content_type, x_robots=x_robots, token=token)
