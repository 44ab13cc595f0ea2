"""The frontier in Redis as one worker writes it, in the partitions that it holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.batch_writer import BatchWriter, Pending
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import COPYING, fleet_keys, payloads_key
from crawlerproject.stores.redis.redis_reader import FORMAT, RedisReader, require_format
from crawlerproject.stores.row_codec import pack_original

TO_LISTENER = -1
"""Instead of a partition's number: for the worker that hubs reach."""
# While there is none, of what is written to it the last is kept, some 500 bytes each: a feed is read again, and its
# worker writes again.
_MOST_TO_LISTENER = 5_000


class Granted(NamedTuple):
    """A partition that was taken."""

    token: int
    clean: bool  # its last holder let go in good order, or there was none
    unsure_until: (
        float  # store time until which a holder that crashed may still have sent requests; 0.0: no such holder
    )


class RedisStore(RedisReader):
    """Blocking; a change needs the partitions of all it changes, asking needs none.

    Raises OperatorError when it is made, StorageError afterwards; ``LeaseLost`` when another worker took over.
    """

    def __init__(self, link: RedisLink, crawl: str, worker: str, partitions: int, *, copying: bool = False) -> None:
        """``partitions`` counts for a new crawl, an old one keeps its own; ``copying`` fills an unfinished copy."""
        super().__init__(link, crawl, worker, _agreed_partitions(link, crawl, partitions, copying=copying))
        self.held: dict[int, int] = {}  # partition -> token
        self.shown = self.held
        self.batches = BatchWriter(link, crawl, worker, self._keys, self.held)

    def begin(self, incarnation: str) -> None:
        """Write under this worker's name from now on; any other process that did so before is refused."""
        self.batches.begin(incarnation)
        self.held.clear()

    # --- partitions -----------------------------------------------------------------------------

    def acquire(self, partition: int, lease_ms: int) -> Granted | None:
        """Take a partition that is free, or whose lease is over; None when another holds it."""
        keys = self._keys[partition]
        answer = self.link.call(scripts.ACQUIRE, [keys.lease, keys.behind], self.worker, lease_ms)
        token = int(answer[0])
        if not token:
            return None
        behind = sorted(
            (int(old_token), name.decode()) for old_token, name in zip(answer[2::2], answer[3::2], strict=True)
        )
        for former in behind:
            self.batches.settle(partition, token, former)
        self.held[partition] = token
        return Granted(token, not behind, int(answer[1]) / 1000)

    def renew(self, lease_ms: int) -> list[int]:
        """Lengthen all leases; those that were lost. Raises StoreForgot."""
        held = list(self.held.items())
        calls = [Call(scripts.RENEW, [self._keys[p].lease], [self.worker, token, lease_ms]) for p, token in held]
        answers = self.link.many(calls)
        if -1 in answers:
            partition = held[answers.index(-1)][0]
            raise forgotten(self.link, self.crawl, f"does not know who holds partition {partition}")
        return [p for (p, _), kept in zip(held, answers, strict=True) if not kept]

    def release(self, partitions: Iterable[int]) -> None:
        """Give partitions back in good order. Everything about them must be written."""
        given = [(p, self.held[p]) for p in partitions]
        if self.batches.unfinished:
            raise StorageError("a batch is not yet written")
        self.link.many([Call(scripts.RELEASE, [self._keys[p].lease], [self.worker, token]) for p, token in given])
        for p, _ in given:
            del self.held[p]

    def all_held(self, now: float) -> bool:
        """Whether every partition has a holder whose lease is not over at ``now`` (store time, epoch seconds)."""
        calls = [Call("HMGET", [keys.lease], ["holder", "until"]) for keys in self._keys]
        return all(holder and int(until) > now * 1000 for holder, until in self.link.many(calls))

    # --- changes --------------------------------------------------------------------------------

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; as durable as this Redis makes what it has answered for."""
        pending = Pending()
        pending.merge(changes)
        pending.keys.update((row.key, row.host) for row in changes.queued)
        self.batches.write(pending.parts(self.partition, self.held), pending.facts_of_worker())
        self.set_originals(changes.payloads)

    def sync(self) -> None:
        """Redis decides how durable its answers are (appendfsync); what is decided is written."""
        self.batches.finish()

    def set_originals(self, originals: Iterable[tuple[bytes, Original | None]]) -> None:
        """Remember first captures, which must be committed, unless others were sooner; None: it is lost."""
        calls = []
        for digest, original in originals:
            key = payloads_key(self.crawl, digest)
            if original is None:
                calls.append(Call("HDEL", [key], [digest]))
            else:
                calls.append(Call("HSETNX", [key], [digest, pack_original(original)]))
        self.link.many(calls)

    def post(self, messages: Iterable[tuple[int, bytes]]) -> None:
        """Put messages into inboxes of any partitions, or TO_LISTENER's. One may arrive twice."""
        hubs = fleet_keys(self.crawl).hubs
        placed = [(hubs if p == TO_LISTENER else self._keys[p].inbox, message) for p, message in messages]
        calls = [Call("RPUSH", [place], [message]) for place, message in placed]
        if any(place == hubs for place, _ in placed):
            calls.append(Call("LTRIM", [hubs], [-_MOST_TO_LISTENER, -1]))
        self.link.many(calls)

    def close(self) -> None:
        """Let go of the connection. Leases stay until they end; ``release`` gives them back."""
        self.link.close()


def _agreed_partitions(link: RedisLink, crawl: str, partitions: int, *, copying: bool) -> int:
    """How many partitions the crawl has, which the first worker decides. Raises OperatorError."""
    facts = fleet_keys(crawl).facts
    try:
        link.many([Call("HSETNX", [facts], ["format", FORMAT]), Call("HSETNX", [facts], ["partitions", partitions])])
        written, agreed, unfinished = link.call("HMGET", [facts], "format", "partitions", COPYING)
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error
    require_format(link, crawl, int(written))
    if unfinished is not None and not copying:
        raise OperatorError(f"The crawl {crawl!r} at {link.place} is an unfinished copy; go on with scrapy state copy.")
    return int(agreed)
