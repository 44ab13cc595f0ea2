"""What a spider hands to our pipelines: exactly one Page for every lease, whatever became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.lease import Lease
from crawlerproject.reasons import Reason
from crawlerproject.render.rendered import Rendered
from crawlerproject.rules.url.urls import Address
from crawlerproject.wire import Wire


@dataclass(slots=True)
class Page:
    """One attempt at a URL and its outcome."""

    lease: Lease
    url: str
    reason: Reason
    wire: Wire | None = None  # None when nothing was connected
    mime: str = ""  # Content-Type without parameters, as the server said it
    location: str = ""  # of a redirect, as an absolute URL
    retry_after: str = ""  # header, as received
    etag: str = ""
    last_modified: str = ""
    freshness: dict[str, str] = field(default_factory=dict)  # headers that say how long it stays fresh
    body: bytes = b""  # content-decoded
    unusable: bool = False  # a robots.txt that was cut: to the host it is as if nothing had been answered
    text_marks: tuple[int, ...] = ()  # of an HTML page's text, rules/traps/text_marks.py
    error: str = ""  # one line for humans
    found: list[DiscoveredUrl] = field(default_factory=list)  # its links, queued when it ends
    changed: list[tuple[Address, float]] = field(default_factory=list)  # known pages that it says changed, and when
    text: bytes | None = None  # in UTF-8, what near duplicates are told by; None: not an HTML page that was read
    is_feed: bool = False
    new_links: int = 0  # of ``found``, once they are queued
    canonical: Address | None = None  # rel=canonical
    digest: bytes = b""  # of the payload, once it was needed
    fingerprint: int | None = None  # SimHash of the text
    fingerprinted: bool = False  # it was looked for, where the page was read
    duplicate: Duplicate | None = None
    notes: list[tuple[str, str]] = field(default_factory=list)  # further lines of the metadata record
    to_render: tuple[int, int] | None = None  # goes back for the browser; words and links without it
    rendered: Rendered | None = None  # of a lease to render
    gained: tuple[int, int] | None = None  # words and links with the browser
    again: bool = False  # the browser's fault, not the page's: it is rendered another time

    @property
    def payload(self) -> bytes:
        """The body whose sha1 is the payload digest, when another answer may stand for it; else nothing."""
        wire = self.wire
        return wire.body if wire is not None and wire.status == 200 and not wire.truncated else b""

    @property
    def status(self) -> int | None:
        """HTTP status; None when no answer could be read."""
        return self.wire.status or None if self.wire else None
