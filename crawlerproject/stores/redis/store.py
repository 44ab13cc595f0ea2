"""The frontier in Redis: the ``FrontierStore`` of one worker, for the partitions that it holds.

A change is a *beat*: what each partition gets and, together with it, the worker's facts (how much of its WARC counts);
it is refused whole when a partition in it has another holder by now. On one server one script does it. The
partitions of a Redis Cluster live on several servers: there a beat is first written to the worker's journal, which
decides it; then each partition gets its part, which only the holder may write and which is written once. Whoever takes
a partition over from a worker that died in between first bars that worker's further beats and writes the last part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.host_facts import host_of_fact
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis import batch_scripts as beats
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.batch import Arguments, Part, cut
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import COPYING, PartitionKeys, fleet_keys, payloads_key, worker_keys
from crawlerproject.stores.redis.reader import RedisReader
from crawlerproject.stores.row_codec import pack_original

# The layout of everything in Redis; 2: queues have bundles, page records are those of rocks.FORMAT 2.
FORMAT = 2


class LeaseLost(StorageError):
    """Another worker holds what this one wrote for; nothing of it was written. Begin anew."""


class Granted(NamedTuple):
    """A partition that was taken."""

    token: int
    clean: bool  # its last holder let go in good order, or there was none
    unsure_until: float  # store time until which one that did not may have asked without a trace; 0.0: there was none


class RedisStore(RedisReader):
    """Keeps for one worker. Blocking; a change needs the partitions of all it changes, asking needs none.

    Raises OperatorError when it is made, StorageError afterwards; ``LeaseLost`` when another took over.
    """

    def __init__(self, link: RedisLink, crawl: str, worker: str, partitions: int, *, copying: bool = False) -> None:
        """``partitions`` counts for a new crawl, an old one keeps its own; ``copying`` fills an unfinished copy."""
        self._copying = copying
        super().__init__(link, crawl, worker, self._agree_on(link, crawl, partitions))
        self.life = ""
        self.serial = 0  # of the last beat that was decided
        self._unfinished: dict[int, tuple[int, Arguments]] = {}  # decided, not yet written: partition -> token, part
        self._doubtful: dict[int, tuple[int, Arguments]] | None = None  # sent, and no answer came

    def _agree_on(self, link: RedisLink, crawl: str, partitions: int) -> int:
        facts = fleet_keys(crawl).facts
        try:
            link.many(
                [Call("HSETNX", [facts], ["format", FORMAT]), Call("HSETNX", [facts], ["partitions", partitions])]
            )
            written, agreed, unfinished = link.call("HMGET", [facts], "format", "partitions", COPYING)
        except StorageError as error:
            raise OperatorError(f"The crawl {crawl!r} cannot be opened: {error}.") from error
        require_format(link, crawl, int(written))
        if unfinished is not None and not self._copying:
            raise OperatorError(
                f"The crawl {crawl!r} at {link.place} is an unfinished copy; go on with scrapy state copy."
            )
        return int(agreed)

    def begin(self, life: str) -> None:
        """Write under this worker's name from now on; any other process that did so before is refused."""
        self.serial = int(self.link.call(beats.BEGIN_LIFE, list(self._worker_keys[:3]), life))
        self.life = life
        self.held.clear()
        self._unfinished.clear()
        self._doubtful = None

    # --- partitions -----------------------------------------------------------------------------

    def acquire(self, partition: int, lease_ms: int) -> Granted | None:
        """Take a partition that is free, or whose lease is over; None when another holds it."""
        keys = self._keys[partition]
        answer = self.link.call(scripts.ACQUIRE, [keys.lease, keys.behind], self.worker, lease_ms)
        token = int(answer[0])
        if not token:
            return None
        behind = list(zip(answer[2::2], answer[3::2], strict=True))
        for old_token, name in sorted(behind, key=lambda each: int(each[0])):
            self._settle(partition, token, int(old_token), name.decode())
        self.held[partition] = token
        return Granted(token, not behind, int(answer[1]) / 1000)

    def _settle(self, partition: int, token: int, old_token: int, name: str) -> None:
        """Finish what a former holder decided and did not live to write; it can decide nothing more for us."""
        theirs = worker_keys(self.crawl, name)
        places = [theirs.barred, theirs.state, theirs.beat, theirs.left]
        serial, part = self.link.call(beats.BAR, places, partition, old_token)
        if part:
            call = self._apply_call(partition, token, name, int(serial), Arguments.unpacked(part))
            if self.link.many([call]) == [0]:
                raise LeaseLost(f"partition {partition} was taken by another worker")
        keys = self._keys[partition]
        self.link.call(scripts.SETTLE, [keys.lease, keys.behind], self.worker, token, old_token)
        self.link.call("HDEL", [theirs.left], partition)

    def renew(self, lease_ms: int) -> list[int]:
        """Lengthen all leases; those that were lost."""
        held = list(self.held.items())
        calls = [Call(scripts.RENEW, [self._keys[p].lease], [self.worker, token, lease_ms]) for p, token in held]
        return [p for (p, _), kept in zip(held, self.link.many(calls), strict=True) if not kept]

    def release(self, partitions: Iterable[int]) -> None:
        """Give partitions back in good order. Everything about them must be written."""
        given = [(p, self.held[p]) for p in partitions]
        if self._unfinished:
            raise StorageError("a beat is not yet written")
        self.link.many([Call(scripts.RELEASE, [self._keys[p].lease], [self.worker, token]) for p, token in given])
        for p, _ in given:
            del self.held[p]

    def all_held(self, now: float) -> bool:
        """Whether every partition has a holder whose lease is not over at ``now`` (store time, epoch seconds)."""
        calls = [Call("HMGET", [keys.lease], ["holder", "until"]) for keys in self._keys]
        return all(holder and int(until) > now * 1000 for holder, until in self.link.many(calls))

    # --- changes --------------------------------------------------------------------------------

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
        """Put letters into inboxes, whoever holds their partitions. One may arrive twice."""
        self.link.many([Call("RPUSH", [self._keys[p].inbox], [message]) for p, message in messages])

    def apply(self, changes: Changes) -> None:
        """Apply all of it atomically; as durable as this Redis makes what it has answered for."""
        facts = [(name, packed) for name, packed in changes.facts if not host_of_fact(name)]
        self.apply_parts(cut(changes, self.partition), facts)
        self.set_originals(changes.payloads)

    def apply_parts(self, parts: dict[int, Part], facts: Sequence[tuple[str, bytes]]) -> None:
        """One beat: decided in the journal, then written to each partition."""
        self.finish()
        if not parts and not facts:
            return
        lost = [p for p in parts if p not in self.held]
        if lost:
            raise LeaseLost(f"partition {lost[0]} is not held")
        self._doubtful = {p: (self.held[p], part.arguments()) for p, part in parts.items()}
        call = (self._journal_call if self.link.cluster else self._commit_call)(self._doubtful, facts)
        [answer] = self.link.many([call])
        decided, self._doubtful = self._doubtful, None
        if answer[0] != b"ok":
            raise LeaseLost(_refusal(answer, self.worker, self.link.place))
        self.serial += 1
        if self.link.cluster:
            self._unfinished = decided
            self.finish()

    def _journal_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        arguments: list[object] = [self.life, self.serial + 1, len(facts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            arguments += p, token, part.packed()
        return Call(beats.JOURNAL, self._journal_keys(), arguments)

    def _commit_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        keys: list[str | bytes] = [self._worker_keys.state, self._worker_keys.barred]
        arguments: list[object] = [self.worker, self.life, self.serial + 1, len(facts), len(parts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            mine, prefix = self._keys_of_part(p, part)
            keys += mine
            arguments += p, token, len(mine), 1 + len(part.others), prefix, *part.others
        return Call(beats.COMMIT, keys, arguments)

    def _journal_keys(self) -> list[str]:
        keys = self._worker_keys
        return [keys.state, keys.beat, keys.barred]

    def finish(self) -> None:
        """Write what is decided and not yet written. Raises StorageError when it must be tried again."""
        if self._doubtful is not None:
            serial = int(self.link.call("HGET", [self._worker_keys.state], "serial") or 0)
            if serial > self.serial:  # it was decided; only the answer was lost
                self.serial, self._unfinished = serial, self._doubtful
            self._doubtful = None
        todo = list(self._unfinished.items())
        calls = [self._apply_call(p, token, self.worker, self.serial, part) for p, (token, part) in todo]
        answers = self.link.many(calls)
        # Refused: another took the partition, and settles this very part before it does anything else.
        self._unfinished.clear()
        lost = [p for (p, _), answer in zip(todo, answers, strict=True) if answer == 0]
        if lost:
            raise LeaseLost(f"partition {lost[0]} was taken by another worker")

    def _apply_call(self, partition: int, token: int, author: str, serial: int, part: Arguments) -> Call:
        keys, prefix = self._keys_of_part(partition, part)
        return Call(beats.APPLY, keys, [self.worker, token, author, serial, prefix, *part.others])

    def _keys_of_part(self, partition: int, part: Arguments) -> tuple[list[str | bytes], int]:
        """All keys of a part, and what its queues' keys begin with: how many bytes."""
        keys: PartitionKeys = self._keys[partition]
        prefix = keys.queue_prefix.encode()
        fixed = (keys.lease, keys.work, keys.pages, keys.hosts, keys.robots, keys.inbox, keys.prints)
        return [*fixed, *(prefix + host for host in part.hosts)], len(prefix)

    def sync(self) -> None:
        """Redis decides how durable its answers are (appendfsync); what is decided is written."""
        self.finish()

    def touch(self) -> None:
        """Write something of no importance."""
        self.link.call("HSET", [self._worker_keys.state], "touched", 1)

    def close(self) -> None:
        """Let go of the connection. Leases stay until they end; ``release`` gives them back."""
        self.link.close()


def _refusal(answer: list[bytes], worker: str, place: str) -> str:
    if answer[0] == b"life":
        return f"another process goes by the name of worker {worker!r}"
    if answer[0] == b"serial":
        return f"{place} has forgotten beats that it had answered for"
    return f"partition {answer[1].decode()} was taken by another worker"


def require_format(link: RedisLink, crawl: str, written: int) -> None:
    """Raises OperatorError for a crawl of another layout than ours."""
    if written != FORMAT:
        age, what = ("a newer", "use that version") if written > FORMAT else ("an older", "finish it with that version")
        raise OperatorError(
            f"The crawl {crawl!r} at {link.place} was written by {age} version of this crawler; "
            f"{what}, or use another FLEET_CRAWL."
        )
