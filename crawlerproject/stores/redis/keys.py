"""The names of everything a crawl keeps in Redis.

Everything of one partition carries one hash tag, ``{CRAWL.NUMBER}``, and so lives in one slot of a Redis Cluster:
a script may change all of it at once. A worker's own things share the tag ``{CRAWL.w.NAME}``, what all workers
share has ``{CRAWL.fleet}``.
"""

from __future__ import annotations

from typing import NamedTuple

#: Of the crawl's facts: there while its frontier is being copied into Redis (stores/copy/copying.py).
COPYING = "copying"
#: The same: where it was copied to, and the crawl goes on.
MOVED = "moved"
#: The same: which crawl of this name it is, why its workers stopped, and how often they have reported (forgetting.py).
CRAWL_ID, FORGOT, REPORTS = "id", "forgot", "reports"
#: What names the last loss of a worker with its archive, after which first captures are looked at once.
LOSSES = "losses"


class PartitionKeys(NamedTuple):
    """Keys of one partition; those of its copies: ``copies.py``."""

    # hash: holder, token, until (store time, ms), unsure; of, crawl; copy, copying, copied (its bytes), added (to them
    # since), there (1: at the place of the archive), damaged
    lease: str
    behind: str  # hash: token -> worker that held the partition and did not let go in good order
    journal: str  # list of the changes since the copy, packed
    unnamed: str  # sorted set: object at the place of the archive -> until when (store time, ms) it stays there
    # Of format 2 (format_two.py):
    old_lease: str  # hash as above: a later version's for ever, which no worker of that format gets
    inbox: str  # list of messages from other workers, oldest first
    work: str  # set of the hosts with queued rows
    pages: str  # hash: 24-byte key -> page record, empty while the page is only queued
    hosts: str  # hash: host -> packed state
    robots: str  # hash: origin -> packed record; KIND/host -> a fact of that host
    prints: str  # sorted set, all scores 0: hash of the host, fingerprint, page's key (8 + 8 + 24 bytes)
    queue_prefix: str  # + host: sorted set, all scores 0, members ordered by priority and arrival


class WorkerKeys(NamedTuple):
    """Keys of one worker."""

    state: str  # hash: life (its incarnation), serial (of its last change), fact:NAME
    batch: str  # hash: partition -> its part of the last change
    left: str  # hash: partition -> serial:part, of the last change of an earlier incarnation
    fenced: str  # hash: partition -> token up to which this worker's changes are refused


class FleetKeys(NamedTuple):
    """Keys that all workers share."""

    facts: str  # hash: format, partitions, id, forgot, losses, reports, questions
    seen: str  # sorted set: worker by the store time (ms) of its last report
    incarnations: str  # hash: worker -> the incarnation that reports
    quiet: str  # hash: worker -> "1" of those that have nothing to do
    activity: str  # hash: worker -> count of its batches with something to do
    info: str  # hash: worker -> JSON for status and the like
    owners: str  # hash: partition -> worker; a hint where to look, the lease decides
    done: str  # string: set when the whole crawl has nothing left to do
    round: str  # hash: number, recrawl, run, at, budget, ended, touched (store time, ms); see rounds.py
    scores: str  # hash: round:partition -> JSON, its due pages by the class of their score
    chosen: str  # hash: partition -> the round whose visits it has queued
    hubs: str  # list of messages to the worker that hubs reach, oldest first
    moved: str  # list of messages to all workers: where redirects of seeds have widened the scope
    names: str  # sorted set: the workers at work, all scores 0
    outboxes: str  # hash: outbox -> the worker of which messages of it may still come
    old_seen: str  # as ``seen``, of workers of format 2


# Under other words than here; what workers of format 2 write of themselves is apart.
_STORED = {
    "queue_prefix": "q:",
    "incarnations": "lives",
    "lease": "holder",
    "old_lease": "lease",
    "seen": "reported",
    "old_seen": "seen",
}


class ShareKeys(NamedTuple):
    """Keys of one sum that all workers share (rules/fleet_shares.py)."""

    granted: str  # hash: worker -> how much, over all its starts
    committed: str  # hash: worker -> how much of it is spent
    hungry: str  # hash: worker -> "1" when it is starved: wants some and has none


def partition_keys(crawl: str, number: int) -> PartitionKeys:
    """The keys of partition ``number``."""
    tag = f"{{{crawl}.{number}}}:"
    return PartitionKeys(*(tag + _STORED.get(name, name) for name in PartitionKeys._fields))


def ledger_key(crawl: str, number: int, *, cluster: bool) -> str:
    """The hash with what commits change of partition ``number``, P: on a single server it is that of all partitions.

    P -> token of its holder (below 0: it was given back), number of the last change, bytes of the journal;
    P: -> how many messages were ever removed (8 bytes), then the names of those that are there, the oldest first:
    outbox and number (16 and 8); P:NAME -> message; P=OUTBOX -> number of its last message that took effect, in digits.
    What passes through a script costs Redis most: messages do not.
    """
    return f"{{{crawl}.{number if cluster else 'fleet'}}}:ledger"


def worker_keys(crawl: str, worker: str) -> WorkerKeys:
    """The keys of the worker called ``worker``; ``batch`` and ``fenced`` are stored under older words."""
    tag = f"{{{crawl}.w.{worker}}}:"
    return WorkerKeys(tag + "state", tag + "beat", tag + "left", tag + "barred")


def fleet_keys(crawl: str) -> FleetKeys:
    """The keys of the whole crawl."""
    tag = f"{{{crawl}.fleet}}:"
    return FleetKeys(*(tag + _STORED.get(name, name) for name in FleetKeys._fields))


def share_keys(crawl: str, kind: str) -> ShareKeys:
    """The keys of a sum."""
    return ShareKeys(*(f"{{{crawl}.fleet}}:{kind}.{name}" for name in ShareKeys._fields))


def payloads_key(crawl: str, digest: bytes) -> str:
    """The hash, one of 256, that knows the first capture of the payload with this sha1."""
    return f"{{{crawl}.c.{digest[0]}}}:payloads"


def texts_key(crawl: str, table: int, block: int) -> str:
    """The hash, one of 64 of each table, that knows the texts whose fingerprint has this block (16 bits) there."""
    return f"{{{crawl}.n.{table}.{block >> 10}}}:texts"


def address_key(crawl: str, address: str) -> str:
    """The key that exists while an IP address is asked or rests."""
    return f"{{{crawl}.ip.{address}}}"


def address_keys(crawl: str, address: str) -> list[str]:
    """That key, and the one that exists while more than one worker asks for the address."""
    key = address_key(crawl, address)
    return [key, f"{key}turns"]
