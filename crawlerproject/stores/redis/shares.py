"""The sums that a crawl may spend, shared by its workers through Redis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawlerproject.rules.fleet_shares import SUM_FACTS, Claim, Share, spent
from crawlerproject.stores.redis import scripts
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import ShareKeys, fleet_keys, share_keys, worker_keys


class RedisShares:
    """One worker's part in them. Raises StorageError."""

    def __init__(self, link: RedisLink, crawl: str, worker: str, lease_ms: int) -> None:
        self._link = link
        self._crawl = crawl
        self._worker = worker
        self._lease_ms = lease_ms
        self._fleet = fleet_keys(crawl)

    def begin(self, kinds: Iterable[str]) -> None:
        """Take up what workers spent of which nothing is known here: of an older version, or in a folder before."""
        incarnations = [name.decode() for name in self._link.call("HKEYS", [self._fleet.incarnations])]
        for kind in kinds:
            keys = share_keys(self._crawl, kind)
            known = {name.decode() for name in self._link.call("HKEYS", [keys.committed])}
            for name in {"", *incarnations} - known - {self._worker}:
                was = spent(kind, self._link.call("HGET", [worker_keys(self._crawl, name).state], _fact(kind)))
                self._link.many([Call("HSETNX", [key], [name, was]) for key in (keys.granted, keys.committed)])

    def exchange(self, incarnation: str, claims: Sequence[Claim]) -> list[Share]:
        """Say how much is spent, give back, be granted some more. In vain: what dead workers had is taken back."""
        calls = [self._call(incarnation, claim) for claim in claims]
        shares, dead = [], []
        for claim, answer in zip(claims, self._link.many(calls), strict=True):
            granted, committed, wanted, *names = answer
            shares.append(Share(int(granted), int(committed), bool(wanted)))
            dead += [(claim.kind, name.decode()) for name in names]
        for kind, name in dead:
            self._take_back(kind, name)
        return shares

    def _call(self, incarnation: str, claim: Claim) -> Call:
        keys, fleet = share_keys(self._crawl, claim.kind), self._fleet
        numbers = [claim.most, claim.committed, claim.used, claim.wants, claim.gives, claim.least, claim.largest]
        return Call(
            scripts.SHARE,
            [*keys, fleet.incarnations, fleet.seen],
            [self._worker, incarnation, self._lease_ms, *map(int, numbers)],
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
