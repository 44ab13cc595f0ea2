"""A page on its way through the frontier: discovered, handed out to be fetched, and what became of that request.

A ``DiscoveredUrl`` goes in, a ``Lease`` comes out, and a ``Visit`` comes back, by which the frontier judges and learns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import THEIR_FAILURES
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_SEED,
    HOP_PREREQUISITE,
    ROW_KINDS,
    SEED,
    RowKind,
    after_duplicate,
)
from crawlerproject.rules.traps.budgets import OTHERS
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import Address, host_key
from crawlerproject.stores.protocols import QueuedPage

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.host import Host
    from crawlerproject.frontier.learned.duplicates import Duplicate
    from crawlerproject.frontier.subrequests import Subrequest

# Pages whose domain is at hand: those whose links are being queued.
_KEPT = 4096


class DiscoveredUrl(NamedTuple):
    """A link, redirect target or seed before the filters."""

    address: Address
    depth: int  # links from a seed
    hops: str  # Heritrix letters from the seed
    via: str  # the page it was found on
    priority: int
    flags: int = 0  # FLAG_* of rules/row_kinds.py
    note: str = ""  # as a queued page's

    @property
    def kind(self) -> RowKind:
        """How a row with these flags is treated."""
        return ROW_KINDS[self.flags]

    @property
    def queue_key(self) -> bytes:
        """The key under which it waits."""
        return ROW_KINDS[self.flags].swapped(self.address.key)

    @property
    def named_by(self) -> str:
        """The registered domain of the page that names it; "" where that is its host's as well, and of a seed."""
        address, via, kind = self.address, self.via, ROW_KINDS[self.flags]
        if kind.is_seed:
            return ""
        if kind.is_external:
            return linking_domain(address.host, via, self.flags, self.note)
        if not via or address.url[-1] != "/" or not address.is_front:  # as nearly all
            return ""
        return _domain_of(via) if of_other_domain(host_key(via), address.host) else ""

    def owned(self) -> DiscoveredUrl:
        """The same; a host's front page is the host's own, whichever page names it."""
        if not (self.kind.charges_front and self.address.is_front):
            return self
        return self._replace(flags=self.flags & ~FLAG_EXTERNAL, note="")

    def behind(self) -> DiscoveredUrl:
        """The same, found on a page that repeats another."""
        address, depth, hops, via, priority, flags, note = self
        return DiscoveredUrl(address, depth, hops, via, after_duplicate(priority), flags, note)


def seed_found(address: Address) -> DiscoveredUrl:
    """One of the operator's seeds."""
    return DiscoveredUrl(address, 0, "", "", SEED, FLAG_SEED)


def of_other_domain(host: str, other: str) -> bool:
    """Whether two host keys are of different registered domains, so that neither speaks for the other."""
    return host != other and bounded_domain(host) != bounded_domain(other)


def linking_domain(host: str, via: str, flags: int, note: str) -> str:
    """The registered domain that named a URL of ``host`` that is external; "" when it is not."""
    kind = ROW_KINDS[flags]
    if not kind.is_external:
        return ""
    if kind.is_list:
        return bounded_domain(note.rpartition("://")[2]) or OTHERS
    if note and kind.note_names_domain:  # that of a page to be rendered says where its plain answer is
        return note
    domain = _domain_of(via)
    return domain if domain and domain != bounded_domain(host) else OTHERS


def row_named_by(row: QueuedPage) -> str:
    """The registered domain that led to a queued page, where that is another than its host's; "" for a seed's too."""
    if row.kind.is_external:
        return linking_domain(row.host, row.via, row.flags, row.note)
    domain = "" if row.kind.is_seed or not row.via else _domain_of(row.via)
    return domain if domain != bounded_domain(row.host) else ""


def caused_externally(row: QueuedPage) -> bool:
    """Whether only other registered domains led to this request, so that the trouble it meets is theirs.

    A host's front page and its own robots.txt are its own, whichever page or redirect named them: there is one of each.
    """
    kind = ROW_KINDS[row.flags]
    if not kind.maybe_external:
        return False
    if kind.is_robots:
        return robots_for_other_domain(row.note, row.url, row.host)
    if kind.is_hub:
        return of_other_domain(host_key(row.via), row.host)  # the feed that names it
    return kind.is_requisite or not is_front(row.url, row.host)


def robots_for_other_domain(origin: str, url: str, host: str) -> bool:
    """Whether a robots.txt (of ``url``, on ``host``) is asked for on behalf of another domain's ``origin`` alone."""
    return url.partition("://")[2] != f"{host}/robots.txt" and of_other_domain(origin.partition("://")[2], host)


def document_of(hops: str) -> int:
    """Which of an origin's documents a row is about that ``leasing.robots_row`` made: 0 is robots.txt."""
    return max(hops.count(HOP_PREREQUISITE) - 1, 0)


def is_front(url: str, host: str) -> bool:
    """Whether a URL is the page at the top of its ``host``, without a query."""
    return url.partition("://")[2] == host + "/"


@lru_cache(maxsize=_KEPT)
def _domain_of(url: str) -> str:
    return bounded_domain(host_key(url))


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
    subrequest: Subrequest | None = None  # the sub-request of a page in the browser that this fetches
    mark: str = ""  # under which its address is reserved among several workers
    took_seconds: float | None = None  # from ``Workbench.ended``
    kind: RowKind = field(init=False)  # of its row: asked for twenty times a page

    def __post_init__(self) -> None:
        self.kind = ROW_KINDS[self.row.flags]

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
    marks: tuple[int, ...] = ()  # of its text, rules/text_likeness.py
    fingerprint: int | None = None  # SimHash of the text
    duplicate: Duplicate | None = None  # the page whose text or payload it repeats
    is_feed: bool = False
    shell: tuple[int, int] | None = None  # words and links of a page that goes to the browser: its text says nothing
    plain: tuple[int, int] = (0, 0)  # words and links without the browser
    gained: tuple[int, int] | None = None  # with it; None: nothing was gained or lost that is typical of the page
    render: str = ""  # where the plain answer of a page is that goes back for the browser (``PlainResponse.note``)
    respelled: str = ""  # a redirect to another URL of the same page, which goes back under it
    external: bool = False  # only other domains led to it: its trouble closes the door for such requests, not the host
    apart: bool = False  # of a requisite: a document, which may still be named as a page
    cut: bool = False  # there is a page of which not all came, or nothing
    too_slow: bool = False  # it was broken off
    signature_asked: bool = False  # refused since another signature is required, which the next request to its host has
    license_named: str = ""  # the licence of the page, unknown yet: the page is asked for once more behind it
    # http and https share a host's clock but not its troubles: a port that is closed to one of them says nothing
    # of the other, whose robots.txt was answered.
    other_scheme_good: bool = False
    copy_serves: bool = False  # of a robots.txt of which there is a good copy that may stand in for it
    ended_at: float = 0.0  # of a whole answer, epoch seconds: the pauses begin there; 0: where the lease ends

    @property
    def ok(self) -> bool:
        """Whether the host answered well, whatever the page's own fate.

        A status beyond 599 is a server's error (RFC 9110 15).
        """
        status = self.status
        if status is None or status == 429 or status >= 500 or self.reason is Reason.CHALLENGE:
            return False
        return status != 304 or not self.row.kind.is_robots  # never asked for conditionally

    @property
    def counts(self) -> bool:
        """Whether it is a failure of the host's, for its breaker.

        A page that says when to come back does not fail; a robots.txt does, or a host would be asked for it for ever.
        """
        if self.row.kind.is_robots:
            return self.status is None or not self.copy_serves
        if self.status is None:
            return self.reason in THEIR_FAILURES
        return self.status != 429 and not self.retry_after_seconds

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
