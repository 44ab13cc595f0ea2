"""One URL handed out to be fetched, and what became of that request, as the frontier judges it and learns from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.backoff import THEIR_FAILURES
from crawlerproject.stores.protocols import QueuedPage

# Asked to wait: the host rests, whatever the URL was (RFC 6585 section 4, RFC 9110 section 15.6.4).
REST_STATUSES = (429, 503)


@dataclass(slots=True)
class Lease:
    """Ends exactly once, by one of the ends of ``Frontier``; a crash ends it too: the row is still queued."""

    row: QueuedPage
    host: Host
    address: str  # IP address, already checked against the address rules
    leased_at: float  # epoch seconds
    delay_seconds: float  # the pause that was promised before this request
    stored: bool = True  # False for a robots.txt that the host's turn made up: it has no queue row
    ended: bool = False
    embed: Subrequest | None = None  # the sub-request of a page in the browser that this fetches
    mark: str = ""  # under which its address is reserved among several workers
    took_seconds: float | None = None  # from ``Workbench.ended``

    def granted(self, now: float) -> None:
        """Its address is reserved for it: its time begins ``now`` (epoch seconds)."""
        self.leased_at = self.host.asked_at = now


@dataclass(slots=True)
class Visit:
    """What became of one request, or of one page in the browser. Nothing but the first two: no server answered."""

    row: QueuedPage
    reason: Reason
    status: int | None = None  # HTTP; None without an answer, of a render, and of a robots.txt that cannot be used
    digest: bytes = b""  # of the payload
    error: str = ""  # one line for people
    ttfb_seconds: float | None = None
    retry_after_seconds: float | None = None
    location: str = ""  # of a redirect, absolute
    etag: str = ""
    last_modified: str = ""
    freshness: Mapping[str, str] | None = None  # headers that limit how long it stays fresh, names in lower case
    body: bytes = b""  # content-decoded; of a robots.txt the part that is obeyed
    found: Sequence[DiscoveredUrl] = ()  # the links or entries that it names
    new_links: int = 0  # of these, those that were queued
    marks: tuple[int, ...] = ()  # of its text, rules/traps/text_marks.py
    fingerprint: int | None = None  # SimHash of the text
    duplicate: Duplicate | None = None  # the page whose text or payload it repeats
    is_feed: bool = False
    shell: tuple[int, int] | None = None  # words and links of a page that goes to the browser: its text says nothing
    plain: tuple[int, int] = (0, 0)  # words and links without the browser
    gained: tuple[int, int] | None = None  # with it; None: nothing was gained or lost that is typical of the page
    render: str = ""  # where the plain answer of a page is that goes back for the browser (``PlainResponse.note``)
    respelled: str = ""  # a redirect to another URL of the same page, which goes back under it
    stranger: bool = False  # only other domains led to it: its trouble closes the door for such requests, not the host
    apart: bool = False  # of a requisite: a document, which may still be named as a page
    cut: bool = False  # there is a page of which not all came, or nothing
    too_slow: bool = False  # it was broken off
    signature_asked: bool = False  # refused for want of another signature, which the next request to its host has
    license_named: str = ""  # the licence of the page, unknown yet: the page is asked for once more behind it
    # http and https share a host's clock but not its troubles: a port that is closed to one of them says nothing
    # of the other, whose robots.txt was answered.
    other_scheme_good: bool = False
    copy_serves: bool = False  # of a robots.txt of which there is a good copy that may stand in for it

    @property
    def ok(self) -> bool:
        """Whether the host answered well, whatever the page's own fate."""
        return self.status is not None and self.status != 429 and not 500 <= self.status < 600 and not self.walled

    @property
    def counts(self) -> bool:
        """Whether it is a failure of the host's, for its breaker: one that says when to come back does not fail."""
        if self.status is None:
            return self.row.kind.is_robots or self.reason in THEIR_FAILURES
        return not self.copy_serves and self.status != 429 and not self.retry_after_seconds

    @property
    def asks(self) -> bool:
        """Whether the answer asks to wait, which holds for every port of the name; what fails is a port's alone.

        A 503 that does not say when to come back may come from one dead service of many: a link to its port must not
        close the others.
        """
        return self.status == 429 or self.walled or (self.status == 503 and bool(self.retry_after_seconds))

    @property
    def trouble(self) -> bool:
        """Whether the host asked us to wait or failed."""
        return self.status is None or self.status in REST_STATUSES or self.walled

    @property
    def walled(self) -> bool:
        """Whether an anti-bot wall answered: the host does not want us, and rests longer each time."""
        return self.reason is Reason.CHALLENGE
