"""The contracts of what is kept: rows, facts, one atomic change, and the store that applies it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

import orjson

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import ROW_KINDS, RowKind

_EMBED, _REDIRECT = "E", "R"  # letters of a discovery path

IN_MEMORY = 0
DUE_FACT = "due"
"""Name of the fact that a frontier keeps with ``Changes.due``: how many hosts are on disk."""


class OpenFile(NamedTuple):
    """The file being written: final name (without ``.open``) and how many bytes of it are good."""

    filename: str
    length: int


ARCHIVE_FACT = "warc"
"""The frontier's fact that says how much of the archive is committed: the open file's name and length."""
GIVEN_ARCHIVE_FACT = "given archive"
"""The same, in the frontier of a worker over Redis, as Redis has it: after a crash what is behind that is cut off."""


def pack_open(state: OpenFile | None) -> bytes:
    """The value of ARCHIVE_FACT."""
    return orjson.dumps(tuple(state)) if state else b""


def unpack_open(fact: bytes | None) -> OpenFile | None:
    """What ``pack_open`` packed; None also when there is no fact yet."""
    return OpenFile(*orjson.loads(fact)) if fact else None


class QueuedPage(NamedTuple):
    """One row of a host's queue: a URL that waits for its turn.

    Order within a host is (``priority``, ``arrival``), smallest first (Mercator's two tiers).
    """

    host: str  # host key: host name, with ":port" when it is not the scheme's default
    # 24 bytes: xxh3_64(host) + xxh3_128(dedup key), see urls.py; of an external URL: external_key, of a requisite:
    # requisite_key
    key: bytes
    url: str  # the form that is fetched
    priority: int  # 0 (first) .. 255
    arrival: int  # unique, ascending; microseconds since the epoch or later
    depth: int  # links from a seed
    hops: str  # Heritrix letters from the seed, "" for a seed
    via: str  # the page it was found on, "" for a seed
    tries: int = 0  # attempts that failed so far
    flags: int = 0  # FLAG_* of rules/row_kinds.py
    # Of a robots.txt: the origin it answers for; of a sitemap: the one whose robots.txt names it; of a hub: the topic;
    # of an external URL: the domain that named it, when ``via`` does not say so. A requisite's is the same.
    note: str = ""

    @property
    def page_key(self) -> bytes:
        """The key of the page itself, under which its fate is known."""
        return ROW_KINDS[self.flags].swapped(self.key) if self.flags else self.key

    @property
    def kind(self) -> RowKind:
        """How a row with these flags is treated."""
        return ROW_KINDS[self.flags]


def is_embedded(hops: str) -> bool:
    """Whether a discovery path ends at what a page embeds: a requisite, or what the page asked for in the browser."""
    return hops.rstrip(_REDIRECT).endswith(_EMBED)


class PageRecord(NamedTuple):
    """What is known of a page after its last fate was decided."""

    url: str
    reason: str  # a Reason's word
    status: int  # 0 when no server answered
    fetched_at: float  # epoch seconds
    digest: bytes = b""  # sha1 of the payload, 20 bytes
    etag: str = ""
    last_modified: str = ""
    history: bytes = b""  # of its visits, see rules/revisits/history.py


class Fingerprint(NamedTuple):
    """The SimHash of an archived page's text."""

    host: str  # host key: kept where its queue is kept
    value: int  # 64 bits
    key: bytes  # the page's, 24 bytes


class Text(NamedTuple):
    """A page that repeats no other, by its text."""

    value: int  # its fingerprint, 64 bits
    key: bytes  # the page's, 24 bytes
    url: str


class NearText(NamedTuple):
    """A page whose fingerprint is near the one that was asked about."""

    bits: int  # in which they differ
    key: bytes  # the page's
    url: str


class Near(NamedTuple):
    """A page whose fingerprint is near the one that was asked about."""

    bits: int  # in which they differ
    key: bytes  # the page's


class Due(NamedTuple):
    """A host's place among those that have work, by the moment when it is due."""

    at: int  # microseconds since the epoch; IN_MEMORY: it is in the memory of the process that crawls
    host: str  # host key


class Box(NamedTuple):
    """What one outbox has for one partition: messages in the order of their numbers, which ascend, with gaps."""

    partition: int  # of the hosts that the messages are about (rules/fleet_shares.py)
    outbox: bytes  # 16 bytes by chance; of the frontier that numbers the messages, and of no other ever


class Posted(NamedTuple):
    """A message in an inbox."""

    outbox: bytes  # the sender's
    number: int
    packed: bytes
    after: int = 0  # number of the one before it in its box, which its sender held then; 0: it held none


class Inbox(NamedTuple):
    """The oldest messages to a partition."""

    removed: int  # messages that were ever removed before these
    messages: list[Posted]


@dataclass(slots=True)
class Changes:
    """All that one moment changes; applied whole or not at all."""

    queued: list[QueuedPage] = field(default_factory=list)  # new rows; their keys become known
    removed: list[QueuedPage] = field(default_factory=list)  # queued rows whose fate is decided, as they were queued
    pages: list[tuple[bytes, PageRecord]] = field(default_factory=list)
    hosts: list[tuple[str, bytes]] = field(default_factory=list)  # host key, packed host state
    robots: list[tuple[str, bytes]] = field(default_factory=list)  # origin, packed robots record
    facts: list[tuple[str, bytes]] = field(default_factory=list)  # crawl-wide: "warc", "format", ...
    fingerprints: list[Fingerprint] = field(default_factory=list)
    payloads: list[tuple[bytes, Original | None]] = field(default_factory=list)  # sha1 of a payload, its first capture
    due: list[tuple[str, int | None, int | None]] = field(default_factory=list)  # host key, Due.at before and after
    messages: list[tuple[int, bytes]] = field(default_factory=list)  # for a partition, packed; numbered when applied
    read: list[tuple[Box, int]] = field(default_factory=list)  # the messages of a box up to this number took effect
    delivered: list[tuple[Box, int]] = field(default_factory=list)  # one message, which need not be kept any more

    def __bool__(self) -> bool:
        first = self.queued or self.removed or self.pages or self.hosts or self.robots or self.facts
        mail = self.messages or self.read or self.delivered
        return bool(first or self.fingerprints or self.payloads or self.due or mail)


class FactReader(Protocol):
    """Crawl-wide facts, by name."""

    def fact(self, name: str) -> bytes | None: ...


class FrontierReader(FactReader, Protocol):
    """What is known of a frontier: its queues, its pages, its hosts. Every call is short and blocking."""

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before; ``hosts``, in the same order, may help."""

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue in order, or those behind the place (priority, arrival)."""

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What is known of a decided page; None when unknown or still queued. Its ``host`` may help to find it."""

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, in any order; changes made meanwhile may or may not be seen."""

    def host(self, host: str) -> bytes | None: ...

    def robots(self, origin: str) -> bytes | None: ...


class Applied(NamedTuple):
    """How far messages have come in a store since it was opened."""

    changes: int = 0  # changes with messages, or with what was read
    last: int = 0  # number of the last message


class Messages(Protocol):
    """Messages between the frontiers of one crawl, changed by ``Changes.messages``, ``read`` and ``delivered``.

    A message is in the store of its sender from the change that holds its cause until one that says that it is
    delivered. The store of its reader knows what has taken effect there, by the same change as the effect: a message
    with a number not greater than ``read_up_to`` its box is passed over. So each takes effect once, though it be sent
    any number of times, as long as those of one box are read in the order of their numbers.
    """

    outbox: bytes
    """The outbox of this frontier since it was opened, as in ``Box.outbox``. Numbers begin with 1 in each."""

    applied: Applied
    """What outlives the process."""

    durable: Applied
    """What survives a power loss, by the last ``sync``. A number that does not may be given to another message."""

    def boxes(self) -> list[Box]:
        """Those that hold messages, in order; of this outbox, and of others where their messages were moved here."""

    def of(self, box: Box, after: int, up_to: int, most_bytes: int) -> list[tuple[int, bytes]]:
        """Messages of a box with numbers above ``after`` and not above ``up_to``, in order.

        No more follow once they have ``most_bytes``: one there is, whatever its size.
        """

    def read_up_to(self, box: Box) -> int:
        """The last number in ``Changes.read``; 0 before the first."""

    def take_changed(self) -> set[int]:
        """The partitions with new messages since this was last called."""


class FrontierStore(FrontierReader, Protocol):
    """Where a frontier lives. Not thread-safe but for ``sync``.

    With hosts in the order in which they are due, changed by ``Changes.due``, it keeps only some of them in memory.
    """

    @property
    def messages(self) -> Messages:
        """Those that it keeps, and how far others' were read."""

    def hosts_with_work(self) -> Iterator[str]:
        """Every host with at least one queued row, each once (seeks from host to host, not row to row)."""

    def due(self, limit: int, after: Due) -> list[Due]:
        """The first ``limit`` places behind the place ``after``, by moment and then by name."""

    def is_due(self, place: Due) -> bool:
        """Whether the host has this very place."""

    def packed_hosts(self, hosts: Sequence[str]) -> list[bytes | None]:
        """The packed state of each host, in one question."""

    def near(self, host: str, value: int, bits: int) -> list[Near]:
        """The host's fingerprints within ``bits`` of ``value``, nearest first; "": of all hosts, three bits at most."""

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1."""

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; survives the death of the process, not yet a power loss."""

    def sync(self) -> None:
        """Make everything applied so far survive a power loss. May be called from another thread."""

    def close(self) -> None: ...


class RoundOptions(NamedTuple):
    """What a worker is started for."""

    recrawl: bool
    budget: int | None = None  # visits of the whole recrawl
    run: str = ""  # workers of one run belong to one round, however late they come; "": those at work together
    accept_loss: bool = False  # a fleet's store may know less than it has answered for


A_CRAWL = RoundOptions(recrawl=False)


# --- facts of hosts -------------------------------------------------------------------------------


class HostFact(StrEnum):
    """Every kind of fact that is kept of each host: a fact's name is its kind and the host's key.

    Facts of these kinds are part of a host's partition and move with it from worker to worker. All other facts are
    their worker's own, so a kind that is missing here would stay behind.
    """

    TRAPS = "traps/"  # frontier/learned/models.py: what templates of URLs have yielded
    EXTERNAL = "strangers/"  # frontier/learned/models.py: what other domains have named
    REQUISITES = "requisites/"  # frontier/learned/models.py: what page requisites have yielded
    CERTIFICATE = "certificate/"  # frontier/learned/models.py
    RENDERS = "render/"  # frontier/learned/render_gains.py
    VISITS = "visits:"  # frontier/learned/revisits.py
    ROBOTS_SENT = "robots-sent/"  # frontier/robots_responses.py
    DOMAIN = "domains/"  # frontier/hosts/names_and_domains.py
    HOURS = "hours/"  # frontier/politeness.py: response times by hour of the day
    NAMED = "named/"  # frontier/hosts/names_and_domains.py: hosts that a domain has named


OF_NAMES = frozenset({HostFact.TRAPS, HostFact.EXTERNAL, HostFact.REQUISITES})
"""Kept under the host name, for all of its ports together."""
OF_DOMAINS = frozenset({HostFact.DOMAIN, HostFact.NAMED})
"""Kept under the registered domain, all of whose hosts are in one partition."""
_KINDS = tuple(str(kind) for kind in HostFact)


def host_of_fact(name: str) -> str:
    """The host or domain that a fact is about; "" when the fact is its worker's."""
    return next((name.removeprefix(kind) for kind in _KINDS if name.startswith(kind)), "")
