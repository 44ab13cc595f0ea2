"""What the frontier keeps of a crawl's seeds, of all its starts: scope, hosts, which they were, and their options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import orjson

from crawlerproject.rules.url.scope import SeedRule, rule_of
from crawlerproject.rules.url.urls import Address, host_key
from crawlerproject.stores.protocols import FactReader

if TYPE_CHECKING:
    from crawlerproject.frontier.other_workers import ScopeWidened

SCOPE_FACT = "scope"
"""Host keys that redirects of seeds have added to the scope, a line each."""

MOVES_FACT = "scope of moved seeds"
"""Redirects of seeds that have rules, as [[from, to], …] in JSON."""

HUBS_FACT = "websub-hubs"
"""Which hosts were asked for the feeds that they push (``learned/subscriptions.py``)."""

_SEEDS_SCOPE_FACT = "scope of the seeds"
_SEEDS_FACT = "keys of the seeds"
_OPTIONS_FACT = "options of the seeds"
_MARK_BYTES = 8
"""Of a seed's key that are kept: among ten million seeds two are taken for one with a chance of 3 in a million."""


class Changed(NamedTuple):
    """A seed whose options are others than they were."""

    url: str
    kept: str
    given: str


class KnownSeeds:
    """Read once from the store; ``take`` adds to it, ``facts`` are what the store is given."""

    def __init__(self, store: FactReader) -> None:
        kept = store.fact(_SEEDS_SCOPE_FACT)
        self.scope: str
        self.hosts: list[str]
        self.scope, self.hosts = orjson.loads(kept) if kept else ("", [])
        self._marks = store.fact(_SEEDS_FACT) or b""
        options = store.fact(_OPTIONS_FACT)
        # By URL, of hosts where a seed has options, and with the scope "path" of all: its seeds govern such a host.
        self._options: dict[str, str] = dict(orjson.loads(options)) if options else {}

    def __bool__(self) -> bool:
        return bool(self._marks)

    def unknown(self, seeds: Iterable[Address]) -> list[Address]:
        """Those that are new."""
        marks = {self._marks[at : at + _MARK_BYTES] for at in range(0, len(self._marks), _MARK_BYTES)}
        return [seed for seed in seeds if seed.key[-_MARK_BYTES:] not in marks]

    def changed(self, seeds: Iterable[Address], new: Iterable[Address], options: dict[str, str]) -> Iterator[Changed]:
        """Known seeds that come with other options than before."""
        if not (options or self._options):
            return
        fresh = {seed.key for seed in new}
        for seed in seeds:
            kept, given = self._options.get(seed.url, ""), options.get(seed.url, "")
            if kept != given and seed.key not in fresh:
                yield Changed(seed.url, kept, given)

    def take(self, seeds: list[Address], new: list[Address], options: dict[str, str], scope: str) -> None:
        """Take in the seeds of a start, or of ``scrapy add``."""
        ruled = {host_key(url) for url in (*self._options, *options)}
        if scope == "path" or not ruled.isdisjoint(seed.host for seed in seeds):
            self._take_options(seeds, new, options, None if scope == "path" else ruled)
        self.scope, self.hosts = scope, sorted({*self.hosts, *(seed.host for seed in seeds)})
        self._marks += b"".join(seed.key[-_MARK_BYTES:] for seed in new)

    def _take_options(
        self, seeds: list[Address], new: list[Address], options: dict[str, str], ruled: set[str] | None
    ) -> None:
        before, fresh = {host_key(url) for url in self._options}, {seed.key for seed in new}
        whole = set(self.hosts) - before  # of seeds without options, of earlier starts
        known_again = {seed.host for seed in seeds if seed.key not in fresh}
        for seed in seeds:
            if ruled is not None and seed.host not in ruled:
                continue
            if seed.host in whole and seed.host not in known_again:
                self._options[f"{seed.scheme}://{seed.host}/"] = ""
            self._options[seed.url] = options.get(seed.url, "")

    def rules(self) -> tuple[SeedRule, ...]:
        """What seeds say of their places."""
        return tuple(rule_of(url, host_key(url), options) for url, options in self._options.items())

    def facts(self) -> list[tuple[str, bytes]]:
        """For one change of the store."""
        return [
            (_SEEDS_SCOPE_FACT, orjson.dumps((self.scope, self.hosts))),
            (_SEEDS_FACT, self._marks),
            (_OPTIONS_FACT, orjson.dumps(self._options)),
        ]


def widened_by(store: FactReader) -> ScopeWidened | None:
    """All by which redirects of seeds have widened the scope so far; None when they have not."""
    from crawlerproject.frontier.other_workers import ScopeWidened  # half of a start of what only reads a frontier

    hosts, moves = (store.fact(SCOPE_FACT) or b"").decode().split(), moves_of(store)
    return ScopeWidened(hosts, moves) if hosts or moves else None


def moves_of(store: FactReader) -> list[tuple[str, str]]:
    """Where seeds that have rules were redirected, from and to, in the order in which that was seen."""
    packed = store.fact(MOVES_FACT)
    return [(before, after) for before, after in orjson.loads(packed)] if packed else []


def _one_scope(kept: list[bytes]) -> bytes:
    scopes = [orjson.loads(one) for one in kept]
    return orjson.dumps((scopes[0][0], sorted({host for _, hosts in scopes for host in hosts})))


def _one_list_of_marks(kept: list[bytes]) -> bytes:
    marks = (one[at : at + _MARK_BYTES] for one in kept for at in range(0, len(one), _MARK_BYTES))
    return b"".join(dict.fromkeys(marks))


def _one_table_of_options(kept: list[bytes]) -> bytes:
    options: dict[str, str] = {}
    for one in reversed(kept):
        options |= orjson.loads(one)
    return orjson.dumps(options)


def _every_host(kept: list[bytes]) -> bytes:
    return b"\n".join(dict.fromkeys(host for one in kept for host in one.split()))


def _every_move(kept: list[bytes]) -> bytes:
    return orjson.dumps(list(dict.fromkeys(tuple(move) for one in kept for move in orjson.loads(one))))


def _every_hub(kept: list[bytes]) -> bytes:
    hubs: dict[str, object] = {}
    for one in reversed(kept):
        hubs |= orjson.loads(one)
    return orjson.dumps(hubs)


COMBINED = {
    _SEEDS_SCOPE_FACT: _one_scope,
    _SEEDS_FACT: _one_list_of_marks,
    _OPTIONS_FACT: _one_table_of_options,
    SCOPE_FACT: _every_host,
    MOVES_FACT: _every_move,
    HUBS_FACT: _every_hub,
}
"""One value of a crawl-wide fact from those of several workers, of the first first. Any other fact is its worker's."""
