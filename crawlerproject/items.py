"""How leases end: each in one ``LeaseResult``, whatever became of its request.

It goes through the pipelines of pages (``pipelines/``): it is compared with other pages, its links are queued, it is
archived and logged. Feeds, and pipelines that are not for pages, never see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from crawlerproject.errors import FetchError
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.url.urls import Address

Note = tuple[str, str]
"""One line of a capture's metadata record."""
Changed = Sequence[tuple[Address, float]]
"""Known pages that have changed, and when (epoch seconds)."""


@dataclass(slots=True)
class Rendered:
    """One page's visit to the browser; times are epoch seconds."""

    url: str
    plain_id: str = ""  # WARC record id of the plain response
    browser: str = ""  # name and version
    html: bytes = b""  # the DOM in UTF-8; empty if there is none
    started_at: float = 0.0
    ended_at: float = 0.0
    asked: int = 0  # requests sent, or queued to be sent
    waited_seconds: float = 0.0  # for the turns of hosts
    cached: int = 0  # served from the shared cache
    blocked: Counter[str] = field(default_factory=Counter)  # never sent, by reason
    blocked_urls: list[str] = field(default_factory=list)  # the first ones, as "reason URL"
    navigations: list[str] = field(default_factory=list)  # URLs to which scripts tried to navigate
    noise: Counter[str] = field(default_factory=Counter)  # dialogs, popups, downloads
    settled: bool = False  # it came to rest before its time ran out
    screenshot: bytes = b""
    wait_rule: str = ""
    viewport: str = ""

    @property
    def short(self) -> bool:
        """Whether it went without a file for a reason of that moment: it is no measure of other pages like it."""
        return Reason.RENDER_PACE in self.blocked or Reason.EXTERNAL_DOOR in self.blocked

    def facts(self) -> list[Note]:
        """Lines of the metadata record."""
        return [
            ("browser", self.browser),
            ("viewport", self.viewport),
            ("waitRule", self.wait_rule),
            ("settled", "yes" if self.settled else "no"),
            ("requestsSent", str(self.asked)),
            ("requestsFromCache", str(self.cached)),
            ("waitedForTurnsMs", str(round(self.waited_seconds * 1000))),
            *(("requestsBlocked", f"{why} {count}") for why, count in sorted(self.blocked.items())),
            *(("blocked", address) for address in self.blocked_urls),
            *(("navigationNotFollowed", address) for address in self.navigations),
            *((f"{what}Dismissed", str(count)) for what, count in sorted(self.noise.items())),
        ]


class RenderFailed(FetchError):
    """The browser could not render a page. ``again``: through its own fault, so the page is rendered another time."""

    def __init__(self, reason: Reason, detail: str, rendered: Rendered | None = None, *, again: bool = False) -> None:
        super().__init__(reason, detail)
        self.rendered = rendered
        self.again = again


@dataclass(slots=True)
class LeaseResult(Visit):
    """A lease on its way to its end, with all that was received and read.

    A response has ``answered``; without it the request failed, at whatever point.
    """

    lease: Lease = field(kw_only=True)
    wire: Wire | None = None  # None: nothing was connected
    answered: bool = False  # a response came, whatever its status
    mime: str = ""  # Content-Type without parameters, in lower case
    retry_after: str = ""  # as received
    target: DiscoveredUrl | None = None  # of a redirect that is followed
    notes: list[Note] = field(default_factory=list)
    changed: Changed = ()  # by the word of a sitemap or feed
    requisites: Sequence[DiscoveredUrl] = ()  # what it needs to be seen: no links, the crawl alone chooses among them
    is_text: bool = False  # HTML, unless it goes to the browser: compared with other pages
    canonical: Address | None = None  # rel=canonical
    rendered: Rendered | None = None  # what the browser made of it
    again: bool = False  # failed through the browser's fault: the page is rendered another time
    is_render: bool = False  # of a page in the browser, or of one that did not get there
    payload: bytes = b""  # what the payload digest covers, if other captures may refer to it; else nothing

    @property
    def url(self) -> str:
        """Of the page, as it was asked for."""
        return self.row.url

    def withhold(self, reason: Reason, words: str) -> None:
        """Keep nothing of it: the site's ``words`` reserve it from the crawl's purpose."""
        self.reason, self.error = reason, words
        self.body, self.payload, self.etag, self.last_modified = b"", b"", "", ""
        self.found, self.changed, self.requisites, self.target = (), (), (), None
        self.is_text, self.is_feed, self.fingerprint, self.canonical, self.marks = False, False, None, None, ()
        self.shell = self.gained = None
        if self.wire is not None:
            self.wire.body = b""
        if self.rendered is not None:
            self.rendered.html = self.rendered.screenshot = b""

    @property
    def outcome(self) -> LeaseResult:
        """For spiders of version 1.7 and before, where it was a record of its own."""
        return self

    @classmethod
    def failed(cls, lease: Lease, reason: Reason, error: str = "", wire: Wire | None = None) -> LeaseResult:
        """There is no usable response."""
        result = cls(lease.row, reason, error=error, lease=lease, wire=wire)
        if wire is None:
            result.is_render = lease.row.kind.is_render
        else:
            result.status, result.ttfb_seconds = wire.status or None, wire.ttfb_seconds
        return result


Ending = LeaseResult
"""The name that spiders of version 1.7 and before import."""
