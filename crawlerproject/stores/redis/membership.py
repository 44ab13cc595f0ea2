"""What the workers of one crawl tell each other through Redis: who is there and holds what, addresses, sums, rounds.

A round goes from the first worker that starts until nothing is left to do, or until all have left. It is a crawl or a
recrawl. In a recrawl each partition's visits are chosen once, by the worker that holds it; what the partitions have
found due is put together here, so that a budget is one for the whole crawl.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from threading import Lock
from typing import NamedTuple

import orjson

from crawlerproject.errors import NameTaken, OperatorError
from crawlerproject.rules.fleet_shares import SUM_FACTS, QuotaRequest, Share, spent
from crawlerproject.rules.politeness.address_turns import Claim
from crawlerproject.runtime.clock import since_boot
from crawlerproject.stores.protocols import RoundOptions
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.connection import Call, Evicted, RedisLink
from crawlerproject.stores.redis.forgetting import forgotten, stopped
from crawlerproject.stores.redis.keys import ShareKeys, address_keys, fleet_keys, share_keys, worker_keys

# Questions for the time, of which the quickest counts: a busy machine holds up some.
_CLOCK_TRIES = 8
# More than are under way together.
_COUNTS = 64
# Redis's clock was set when it has gained more: a tenth of a second is no cut pause that a server could tell from the
# network's jitter, and a clock that follows a time server gains at most 500 millionths (RFC 5905, section 11.3).
_LEAST_SET_SECONDS, _MOST_DRIFT = 0.1, 0.0005


class FleetStatus(NamedTuple):
    """What a report is answered with; times are the store's."""

    now: float  # epoch seconds
    workers: int  # that reported within a lease's time
    all_quiet: bool  # every partition is held, and no worker has anything to do
    activity: int  # grows whenever any of them had something to do
    rank: int  # how many of their names come before this worker's
    done: bool
    reports: int = 0  # of all workers since the crawl began


class Epoch(NamedTuple):
    """The store's clock beside ours (``since_boot``)."""

    seconds: float  # the store's time (epoch seconds) when ours was 0
    doubt_seconds: float  # so much more or less, at most


class Report(NamedTuple):
    """What a worker tells of itself."""

    quiet: bool
    activity: int
    info: str  # JSON for those who look on
    taken: Sequence[int] = ()  # partitions since the last report; all that are held, of a worker that is quiet
    left: Sequence[int] = ()  # the same, of those that are not held


class RedisFleet:
    """One worker's part in the fleet. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, lease_ms: int, crawl_id: str = "") -> None:
        """``crawl_id``: as ``recognise`` has found it."""
        self.link = link
        self.crawl = crawl
        self.worker = worker
        self.lease_ms = lease_ms
        self._keys = fleet_keys(crawl)
        self.crawl_id = crawl_id
        self._asking = Lock()
        self._questions = 0  # about addresses, of all workers, at the last of this one
        self._counts = deque[int](maxlen=_COUNTS)  # likewise, at the last ones
        self._told = (0.0, 0.0)  # the time that the last of them was answered with (epoch seconds), asked when (boot)
        self._unsure_until = 0.0  # since boot: reservations of before may have ended too soon
        self._evicted: dict[str, Evicted] = {}  # by run id, as at the last look
        self._looked = 0.0  # since boot

    def begin(self, incarnation: str, earlier: Sequence[str], partitions: int) -> FleetStatus:
        """Report for the first time. Raises NameTaken when one goes by this name that is none of ``earlier``."""
        self._thrown_away()
        reply = self._report(incarnation, earlier, Report(False, 0, "{}"), partitions, starts=True)
        if reply is None:
            raise NameTaken(
                f"A worker called {self.worker!r} is at work on the crawl {self.crawl!r}; "
                "give this one another name with FLEET_WORKER."
            )
        return reply

    def running_seconds(self) -> float:
        """For how long the crawl's workers have been at work; they begin again when none is."""
        seconds: float = int(self.link.call(scripts.BEGAN, [self._keys.seen, self._keys.facts], self.lease_ms)) / 1000
        return seconds

    def listener(self) -> tuple[str, str]:
        """The worker that hubs reach, this one when there was none at work; and the one before."""
        worker, before = self.link.call(scripts.LISTEN, [self._keys.facts, self._keys.seen], self.worker, self.lease_ms)
        return worker.decode(), before.decode()

    def facts_of(self, worker: str, names: Sequence[str]) -> list[tuple[str, bytes]]:
        """Facts of another worker."""
        state = worker_keys(self.crawl, worker).state
        found = self.link.call("HMGET", [state], *(f"fact:{name}" for name in names))
        return [(name, packed) for name, packed in zip(names, found, strict=True) if packed is not None]

    def to_listener(self, limit: int) -> list[bytes]:
        """The oldest messages to the worker that hubs reach."""
        found: list[bytes] = self.link.call("LRANGE", [self._keys.hubs], 0, limit - 1) if limit else []
        return found

    def listener_read(self, count: int) -> None:
        """What came of so many of these is committed."""
        self.link.call("LTRIM", [self._keys.hubs], count, -1)

    def moved(self, after: int) -> list[bytes]:
        """The messages to all workers behind the first ``after``."""
        found: list[bytes] = self.link.call("LRANGE", [self._keys.moved], after, -1)
        return found

    def announce_scope(self, packed: Sequence[bytes]) -> None:
        """Write to all workers."""
        self.link.call("RPUSH", [self._keys.moved], *packed)

    def epoch(self) -> Epoch:
        """The store's clock, by the quickest of some answers."""
        return min((self._asked_epoch() for _ in range(_CLOCK_TRIES)), key=lambda found: found.doubt_seconds)

    def _asked_epoch(self) -> Epoch:
        asked = since_boot()
        seconds, micros = map(int, self.link.call(scripts.TELL_TIME, [self._keys.seen]))
        doubt_seconds = (since_boot() - asked) / 2
        return Epoch(seconds + micros / 1e6 - asked - doubt_seconds, doubt_seconds)

    def report(self, incarnation: str, report: Report, partitions: int) -> FleetStatus | None:
        """Report, and return how the others are; None when another goes by this name now. Raises StoreForgot."""
        if thrown := self._thrown_away():
            what = f"has thrown {thrown:,} keys away, which maxmemory-policy noeviction prevents"
            raise forgotten(self.link, self.crawl, what)
        return self._report(incarnation, (), report, partitions)

    def _thrown_away(self) -> int:
        """Keys that went since the last look; of a master that took over none of before it did."""
        before, now = self._looked, since_boot()
        thrown = 0
        for server, found in self.link.evicted().items():
            began_since = found.uptime_seconds + 1 <= now - before  # whole seconds
            known = 0 if began_since else found.keys
            thrown += max(0, found.keys - self._evicted.get(server, Evicted(known, 0)).keys)
            self._evicted[server] = found
        self._looked = now
        return thrown

    def _report(
        self, incarnation: str, earlier: Sequence[str], report: Report, partitions: int, *, starts: bool = False
    ) -> FleetStatus | None:
        keys = self._keys
        of_workers = [keys.seen, keys.incarnations, keys.quiet, keys.activity, keys.info, keys.owners]
        answer = self.link.call(
            scripts.REPORT,
            [*of_workers, keys.done, keys.round, keys.facts, keys.names],
            self.worker,
            incarnation,
            ",".join(earlier),
            self.lease_ms,
            int(report.quiet),
            report.activity,
            report.info,
            partitions,
            ",".join(map(str, report.taken)),
            ",".join(map(str, report.left)),
            self.crawl_id,
            int(starts),
        )
        now, known, workers, quiet, activity, rank, done, reports = map(int, answer)
        if known < 0:
            raise stopped(self.link, self.crawl)
        return FleetStatus(now / 1000, workers, bool(quiet), activity, rank, bool(done), reports) if known else None

    def free(self, partitions: int, now: float) -> list[int]:
        """Partitions that no worker alive at ``now`` (store time, epoch seconds) is known to hold. One round trip."""
        since = int(now * 1000) - self.lease_ms
        calls = [
            Call("ZRANGE", [self._keys.seen], [f"({since}", "+inf", "BYSCORE"]),
            Call("HGETALL", [self._keys.owners]),  # redis makes a dictionary of it
        ]
        alive, owners = self.link.many(calls)
        others = set(alive) - {self.worker.encode()}
        held = {int(number) for number, name in owners.items() if name in others}
        return [p for p in range(partitions) if p not in held]

    def at_work(self) -> list[str]:
        """The workers that hold partitions, or have joined and not left, by name."""
        calls = [Call("ZRANGE", [self._keys.seen], [0, -1]), Call("HVALS", [self._keys.owners])]
        return sorted({name.decode() for found in self.link.many(calls) for name in found})

    def finish(self) -> None:
        """Let all workers know that nothing is left to do."""
        self.link.call(scripts.FINISH, [self._keys.done, self._keys.round])

    def leave(self) -> None:
        """Go in good order: nothing is held any more."""
        keys = self._keys
        own = [keys.seen, keys.quiet, keys.activity, keys.info, keys.owners, keys.round, keys.names]
        self.link.call(scripts.LEAVE, own, self.worker)

    # --- IP addresses ---------------------------------------------------------------------------

    def addresses(self, wanted: Iterable[Claim], rested: Sequence[Claim], hold_ms: int, rest_ms: int) -> list[float]:
        """Let ``rested`` addresses rest, then reserve ``wanted`` ones: of these what ``AddressTurns.ask`` says.

        One round trip; several may be under way, in threads.
        Raises StoreForgot when Redis may have lost reservations of other workers. Where its clock was set forward these
        ended too soon: for as long as one lasts, and a rest, none is granted.
        """
        asked, mine, known = since_boot(), f"{self.worker}:", self._questions
        wanted = list(wanted)
        asks = wanted if asked >= self._unsure_until else []
        calls = [
            Call(
                scripts.REST,
                address_keys(self.crawl, ip),
                [
                    *(f"{mine}{mark}", rest_ms, f"{mine}rest", hold_ms, domain, int(quick_waits)),
                    "" if took is None else round(took * 1000),
                ],
            )
            for ip, mark, domain, quick_waits, took in rested
        ]
        calls += [
            Call(
                scripts.RESERVE,
                address_keys(self.crawl, ip),
                [f"{mine}{mark}", hold_ms, f"{mine}rest", domain, int(quick_waits), rest_ms],
            )
            for ip, mark, domain, quick_waits, _ in asks
        ]
        calls.append(Call(scripts.COUNT_QUESTIONS, [self._keys.facts], [self.crawl_id]))
        *answers, (questions, now_ms, set_ms) = self.link.many(calls)
        with self._asking:
            # Of those that are under way together none has the answer of another.
            if questions <= known or questions in self._counts:
                what = f"knows {max(0, questions - 1)} of {self._questions} questions about addresses"
                raise forgotten(self.link, self.crawl, what)
            self._counts.append(questions)
            self._questions = max(questions, self._questions)
            was_set = self._was_set(now_ms / 1000, asked)
        if was_set:
            set_ms = now_ms
            self.link.call("HSET", [self._keys.facts], "set", now_ms)
        answers = answers[len(rested) :]
        unsure_ms = set_ms + hold_ms + rest_ms - now_ms
        if 0 <= unsure_ms <= hold_ms + rest_ms:
            if granted := [each for each, answer in zip(asks, answers, strict=True) if answer == 0]:
                self.addresses((), granted, hold_ms, 0)
            self._unsure_until = since_boot() + unsure_ms / 1000
        elif len(asks) == len(wanted):
            return [int(answer) / 1000 for answer in answers]
        # At the end of such a time a question may have gone without what is wanted, and be answered behind it.
        return [min(max(unsure_ms, 1), hold_ms + rest_ms) / 1000] * len(wanted)

    def _was_set(self, now: float, asked: float) -> bool:
        """Whether the store's clock has gone on by more than there was time; remembers both."""
        (told, before), self._told = self._told, (now, asked)
        passed = since_boot() - before
        return told > 0 and now - told > passed * (1 + _MOST_DRIFT) + _LEAST_SET_SECONDS


class RedisQuotas:
    """One worker's part in them. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, lease_ms: int) -> None:
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._lease_ms = lease_ms
        self._fleet = fleet_keys(crawl)
        self.incarnation = ""
        self._begun = set[str]()  # of kinds

    def begin(self, kinds: Iterable[str]) -> None:
        """Take up what workers spent of which nothing is known here: of an older version, or in a folder before."""
        incarnations = [name.decode() for name in self._link.call("HKEYS", [self._fleet.incarnations])]
        for kind in kinds:
            keys = share_keys(self._crawl, kind)
            known = {name.decode() for name in self._link.call("HKEYS", [keys.committed])}
            for name in {"", *incarnations} - known - {self._worker}:
                was = spent(kind, self._link.call("HGET", [worker_keys(self._crawl, name).state], _fact(kind)))
                self._link.many([Call("HSETNX", [key], [name, was]) for key in (keys.granted, keys.committed)])

    def exchange(self, claims: Sequence[QuotaRequest]) -> list[Share]:
        """Say how much is spent, give back, be granted some more. In vain: what dead workers had is taken back."""
        if new := {claim.kind for claim in claims} - self._begun:
            self.begin(new)
            self._begun |= new
        calls = list(map(self._call, claims))
        shares, dead = [], []
        for claim, answer in zip(claims, self._link.many(calls), strict=True):
            granted, committed, wanted, *names = answer
            shares.append(Share(int(granted), int(committed), bool(wanted)))
            dead += [(claim.kind, name.decode()) for name in names]
        for kind, name in dead:
            self._take_back(kind, name)
        return shares

    def _call(self, claim: QuotaRequest) -> Call:
        keys, fleet = share_keys(self._crawl, claim.kind), self._fleet
        numbers = [claim.most, claim.committed, claim.used, claim.wants, claim.gives, claim.least, claim.largest]
        return Call(
            scripts.SHARE,
            [*keys, fleet.incarnations, fleet.seen],
            [self._worker, self.incarnation, self._lease_ms, *map(int, numbers)],
        )

    def _take_back(self, kind: str, name: str) -> None:
        """What a worker had and can use no more, since whatever it may still write is refused from here on."""
        keys: ShareKeys = share_keys(self._crawl, kind)
        life = self._link.call("HGET", [self._fleet.incarnations], name)
        fact = self._link.call(scripts.END_LIFE, [worker_keys(self._crawl, name).state], life or b"", _fact(kind))
        if fact is not None:
            was = spent(kind, fact or None)
            places = [keys.granted, keys.committed, keys.hungry, self._fleet.incarnations]
            self._link.call(scripts.TAKE_BACK, places, name, life or b"", was)


def _fact(kind: str) -> str:
    return f"fact:{SUM_FACTS[kind]}"


class Round(NamedTuple):
    """What the workers of a fleet do together."""

    number: int
    at: float  # when it began, epoch seconds
    budget: int | None  # visits of the whole recrawl; None: all that are worth something


class Rounds:
    """One worker's view of the rounds of its crawl. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, lease_ms: int) -> None:
        self._link = link
        self._crawl = crawl
        self._lease_ms = lease_ms
        self._keys = fleet_keys(crawl)

    def begin(self, wanted: RoundOptions, now: float, before: int) -> Round:
        """Take part in the round that is going on, or begin one; ``before``: the number of this process's round until
        now, 0: none. Raises OperatorError when those at work do something else.
        """
        keys, budget = self._keys, wanted.budget or ""
        number, *of_round = self._link.call(
            scripts.BEGIN_ROUND,
            [keys.round, keys.scores, keys.chosen],
            *(int(wanted.recrawl), self._lease_ms, wanted.run, before, repr(now), budget),
        )
        if not number:
            theirs, ours = ("crawl", "-a mode=recrawl") if wanted.recrawl else ("visit known pages again", "a crawl")
            raise OperatorError(
                f"The workers of the crawl {self._crawl!r} that are at work {theirs}; stop them before you begin "
                f"{ours} (of a worker that died that is known after FLEET_LEASE_SECONDS)."
            )
        at, agreed = of_round
        return Round(int(number), float(at), int(agreed) if agreed else None)

    def chosen(self, number: int) -> set[int]:
        """The partitions whose visits of this round are queued."""
        found = self._link.call("HGETALL", [self._keys.chosen])  # redis makes a dictionary of it
        return {int(partition) for partition, of in found.items() if int(of) == number}

    def choose(self, number: int, partitions: list[int]) -> None:
        """The visits of these partitions are queued."""
        self._link.call("HSET", [self._keys.chosen], *(word for each in partitions for word in (each, number)))

    def counts(self, number: int) -> dict[int, dict[int, int]]:
        """By partition, how many pages are due in each class of score; of those that were counted."""
        found = self._link.call("HGETALL", [self._keys.scores])
        split = {name.decode().partition(":"): counts for name, counts in found.items()}
        return {
            int(partition): {int(each): count for each, count in orjson.loads(counts).items()}
            for (of, _, partition), counts in split.items()
            if int(of) == number
        }

    def count(self, number: int, partition: int, counts: Mapping[int, int]) -> None:
        """The due pages of a partition; what was counted before stands, since others may have gone by it."""
        packed = orjson.dumps({str(each): count for each, count in counts.items()})
        self._link.call("HSETNX", [self._keys.scores], f"{number}:{partition}", packed)
