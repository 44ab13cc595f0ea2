"""Rounds of a fleet: from the first worker that starts until nothing is left to do, or until all have left.

A round is a crawl or a recrawl. In a recrawl each partition's visits are chosen once, by the worker that holds it; what
the partitions have found due is put together here, so that a budget is one for the whole crawl.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.stores.protocols import RoundOptions
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.keys import fleet_keys


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
