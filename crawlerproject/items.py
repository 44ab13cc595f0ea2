"""How leases end: each in one outcome, whatever became of its request.

A ``LeaseResult`` takes a lease and its outcome through the pipelines of pages (``pipelines/``): it is compared with
other pages, its links are queued, it is archived and logged. Feeds, and pipelines that are not for pages, never see it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from crawlerproject.errors import FetchError
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.lease import Lease
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import Address
from crawlerproject.wire import Wire

Note = tuple[str, str]
"""One line of a capture's metadata record."""
Changed = Sequence[tuple[Address, float]]
"""Known pages that have changed, and when (epoch seconds)."""


class AnswerHeaders(NamedTuple):
    """The headers of a response that are used after it was read, as received."""

    mime: str = ""  # Content-Type without parameters, in lower case
    retry_after: str = ""
    etag: str = ""
    last_modified: str = ""
    freshness: Mapping[str, str] = {}  # headers that limit how long it stays fresh, names in lower case


class PageText(NamedTuple):
    """The text of an HTML page, for comparison with other pages."""

    marks: tuple[int, ...] = ()  # rules/traps/text_marks.py
    canonical: Address | None = None  # rel=canonical
    fingerprint: int | None = None  # SimHash of the text; None if that is too short for one


class FetchedPage(NamedTuple):
    """A response, whatever its status."""

    reason: Reason
    wire: Wire
    body: bytes = b""  # content-decoded; of a robots.txt the part that is obeyed
    headers: AnswerHeaders = AnswerHeaders()
    location: str = ""  # of a redirect, absolute
    target: DiscoveredUrl | None = None  # of a redirect that is followed
    error: str = ""  # one line for humans
    usable: bool = True  # False: a robots.txt that counts as unreachable
    notes: Sequence[Note] = ()
    found: Sequence[DiscoveredUrl] = ()  # links, or the entries of a list
    changed: Changed = ()  # by the word of a sitemap or feed
    text: PageText | None = None  # of an HTML page, unless it goes to the browser
    is_feed: bool = False
    shell: tuple[int, int] | None = None  # words and links of a page that goes to the browser
    requisites: Sequence[DiscoveredUrl] = ()  # what it needs to be seen

    @property
    def status(self) -> int | None:
        """HTTP status; None if there was none."""
        return self.wire.status or None

    @property
    def payload(self) -> bytes:
        """The body that the payload digest covers, if other captures may refer to it; else nothing."""
        return self.wire.body if self.wire.status == 200 and not self.wire.truncated else b""


@dataclass(frozen=True, slots=True)
class FailedFetch:
    """No usable response."""

    reason: Reason
    error: str = ""
    wire: Wire | None = None  # None: nothing was connected

    # What a response would have.
    body: ClassVar[bytes] = b""
    payload: ClassVar[bytes] = b""
    headers: ClassVar[AnswerHeaders] = AnswerHeaders()
    location: ClassVar[str] = ""
    target: ClassVar[DiscoveredUrl | None] = None
    usable: ClassVar[bool] = True
    text: ClassVar[PageText | None] = None
    is_feed: ClassVar[bool] = False
    shell: ClassVar[tuple[int, int] | None] = None
    requisites: ClassVar[Sequence[DiscoveredUrl]] = ()

    @property
    def status(self) -> int | None:
        """HTTP status, if the response came so far."""
        return self.wire.status or None if self.wire else None


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
        return Reason.RENDER_PACE in self.blocked or Reason.STRANGER_DOOR in self.blocked

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


class RenderedPage(NamedTuple):
    """A page as its scripts leave it."""

    reason: Reason
    rendered: Rendered
    error: str = ""
    notes: Sequence[Note] = ()
    found: Sequence[DiscoveredUrl] = ()
    text: PageText | None = None
    gained: tuple[int, int] | None = None  # words and links; None: it could not be read
    requisites: Sequence[DiscoveredUrl] = ()  # of the page as its scripts left it


class FailedRender(NamedTuple):
    """The browser could not render a page, or was not asked to."""

    reason: Reason
    error: str = ""
    rendered: Rendered | None = None
    again: bool = False  # through the browser's fault: the page is rendered another time

    @property
    def requisites(self) -> Sequence[DiscoveredUrl]:
        """None."""
        return ()


Fetch = FetchedPage | FailedFetch
Render = RenderedPage | FailedRender
Outcome = Fetch | Render


def failed(lease: Lease, reason: Reason, error: str = "") -> FailedFetch | FailedRender:
    """The outcome of a lease for which nothing was fetched or rendered."""
    return FailedRender(reason, error) if lease.row.kind.is_render else FailedFetch(reason, error)


class Compared(NamedTuple):
    """The result of comparing a page with the pages before it."""

    digest: bytes = b""  # of the payload, if it was needed
    fingerprint: int | None = None  # SimHash of the text
    duplicate: Duplicate | None = None


NOT_COMPARED = Compared()


@dataclass(slots=True)
class LeaseResult:
    """A lease on its way to its end."""

    lease: Lease
    outcome: Outcome
    found: Sequence[DiscoveredUrl]  # the outcome's, as they will be queued
    notes: list[Note]
    compared: Compared = NOT_COMPARED
    new_links: int = 0  # of ``found``, once they are queued

    @classmethod
    def of(cls, lease: Lease, outcome: Outcome) -> LeaseResult:
        """The lease ends with this outcome."""
        if isinstance(outcome, FetchedPage | RenderedPage):
            return cls(lease, outcome, outcome.found, list(outcome.notes))
        return cls(lease, outcome, (), [])

    @property
    def url(self) -> str:
        """Of the page, as it was asked for."""
        return self.lease.row.url

    @property
    def requisites(self) -> Sequence[DiscoveredUrl]:
        """What the page needs to be seen: not among its links, so that the crawl alone chooses among them."""
        return self.outcome.requisites

    @property
    def changed(self) -> Changed:
        """Known pages that have changed, by the word of this one."""
        return self.outcome.changed if isinstance(self.outcome, FetchedPage) else ()


Ending = LeaseResult
"""The name that spiders of version 1.7 and before import."""
