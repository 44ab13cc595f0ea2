"""A worker's batches as Redis takes them: each is decided once, and written whole or not at all.

A batch is what each partition gets and, together with it, the worker's facts (how much of its WARC counts). It is
refused whole when a partition in it has another holder by now. On one server one script does it. The partitions of a
Redis Cluster live on several servers: there a batch is first written to the worker's journal, which decides it; then
each partition gets its part, which only the holder may write and which is written once. The worker that takes a
partition over from one that died in between first fences that one off and writes its last part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawlerproject.errors import LeaseLost, StoreForgot
from crawlerproject.stores.redis import batch_scripts, scripts
from crawlerproject.stores.redis.batch import Arguments, Part
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.forgetting import forgotten
from crawlerproject.stores.redis.keys import PartitionKeys, worker_keys


class BatchWriter:
    """``held`` are the tokens of the partitions that the worker holds, as they are at that moment."""

    def __init__(
        self, link: RedisLink, crawl: str, worker: str, partitions: Sequence[PartitionKeys], held: Mapping[int, int]
    ) -> None:
        self.serial = 0  # of the last batch that was decided
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._keys = worker_keys(crawl, worker)
        self._partitions = partitions
        self._held = held
        self._incarnation = ""
        self._unfinished: dict[int, tuple[int, Arguments]] = {}  # decided, not yet written: partition -> token, part
        self._doubtful: dict[int, tuple[int, Arguments]] | None = None  # sent, and no answer came

    def begin(self, incarnation: str) -> None:
        """Write under the worker's name from now on; any other process that did so before is refused."""
        self.serial = int(self._link.call(batch_scripts.BEGIN, list(self._keys[:3]), incarnation))
        self._incarnation = incarnation
        self._unfinished.clear()
        self._doubtful = None

    @property
    def unfinished(self) -> bool:
        """Whether something is decided and not yet written."""
        return bool(self._unfinished)

    def write(self, parts: Mapping[int, Part], facts: Sequence[tuple[str, bytes]]) -> None:
        """Write one batch. Raises LeaseLost, or StorageError when it must be tried again (``finish`` first)."""
        self.finish()
        if not parts and not facts:
            return
        lost = [p for p in parts if p not in self._held]
        if lost:
            raise LeaseLost(f"partition {lost[0]} is not held")
        self._doubtful = {p: (self._held[p], part.arguments()) for p, part in parts.items()}
        call = (self._journal_call if self._link.cluster else self._commit_call)(self._doubtful, facts)
        [answer] = self._link.many([call])
        decided, self._doubtful = self._doubtful, None
        if answer[0] == b"serial":
            raise self._forgotten(int(answer[1]))
        if answer[0] != b"ok":
            raise LeaseLost(_refusal(answer, self._worker))
        self.serial += 1
        if self._link.cluster:
            self._unfinished = decided
            self.finish()

    def finish(self) -> None:
        """Write what is decided and not yet written. Raises StorageError when it must be tried again."""
        if self._doubtful is not None:
            serial = int(self._link.call("HGET", [self._keys.state], "serial") or 0)
            if serial < self.serial:
                raise self._forgotten(serial)
            if serial > self.serial:  # it was decided; only the answer was lost
                self.serial, self._unfinished = serial, self._doubtful
            self._doubtful = None
        todo = list(self._unfinished.items())
        calls = [self._apply_call(p, token, (self._worker, self.serial), part) for p, (token, part) in todo]
        answers = self._link.many(calls)
        # Refused: another took the partition, and settles this very part before it does anything else.
        self._unfinished.clear()
        lost = [p for (p, _), answer in zip(todo, answers, strict=True) if answer == 0]
        if lost:
            raise LeaseLost(f"partition {lost[0]} was taken by another worker")

    def settle(self, partition: int, token: int, former: tuple[int, str]) -> None:
        """Finish what a ``former`` holder (its token, its name) decided about a partition that was just taken.

        That one can decide nothing more about it. Raises LeaseLost when another worker took the partition meanwhile.
        """
        old_token, name = former
        keys, theirs = self._partitions[partition], worker_keys(self._crawl, name)
        places = [theirs.fenced, theirs.state, theirs.batch, theirs.left]
        serial, part = self._link.call(batch_scripts.FENCE, places, partition, old_token)
        if part:
            call = self._apply_call(partition, token, (name, int(serial)), Arguments.unpacked(part))
            if self._link.many([call]) == [0]:
                raise LeaseLost(f"partition {partition} was taken by another worker")
        self._link.call(scripts.SETTLE, [keys.lease, keys.behind], self._worker, token, old_token)
        self._link.call("HDEL", [theirs.left], partition)

    def _forgotten(self, serial: int) -> StoreForgot:
        what = f"knows {serial} of the {self.serial} batches of worker {self._worker!r}"
        return forgotten(self._link, self._crawl, what)

    def touch(self) -> None:
        """Write something of no importance."""
        self._link.call("HSET", [self._keys.state], "touched", 1)

    def _journal_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        arguments: list[object] = [self._incarnation, self.serial + 1, len(facts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            arguments += p, token, part.packed()
        return Call(batch_scripts.JOURNAL, [self._keys.state, self._keys.batch, self._keys.fenced], arguments)

    def _commit_call(self, parts: dict[int, tuple[int, Arguments]], facts: Sequence[tuple[str, bytes]]) -> Call:
        keys: list[str | bytes] = [self._keys.state, self._keys.fenced]
        arguments: list[object] = [self._worker, self._incarnation, self.serial + 1, len(facts), len(parts)]
        for name, value in facts:
            arguments += name, value
        for p, (token, part) in parts.items():
            mine, prefix = self._keys_of_part(p, part)
            keys += mine
            arguments += p, token, len(mine), 1 + len(part.others), prefix, *part.others
        return Call(batch_scripts.COMMIT, keys, arguments)

    def _apply_call(self, partition: int, token: int, author: tuple[str, int], part: Arguments) -> Call:
        """``author``: the worker that decided the part, and the serial of its batch."""
        keys, prefix = self._keys_of_part(partition, part)
        return Call(batch_scripts.APPLY, keys, [self._worker, token, *author, prefix, *part.others])

    def _keys_of_part(self, partition: int, part: Arguments) -> tuple[list[str | bytes], int]:
        """All keys of a part, and what its queues' keys begin with: how many bytes."""
        keys = self._partitions[partition]
        prefix = keys.queue_prefix.encode()
        fixed = (keys.lease, keys.work, keys.pages, keys.hosts, keys.robots, keys.inbox, keys.prints)
        return [*fixed, *(prefix + host for host in part.hosts)], len(prefix)


def _refusal(answer: list[bytes], worker: str) -> str:
    if answer[0] == b"life":
        return f"another process goes by the name of worker {worker!r}"
    return f"partition {answer[1].decode()} was taken by another worker"
