"""Decides how much other sites may make us ask of a host: each registered domain that names its URLs has a budget.

A URL that only pages of other registered domains name is external: no page that may speak for the host says that
it exists. What becomes of it is charged to the domain that named it and teaches nothing about the host. Once the host's
own pages, feeds or sitemaps name the URL it is the host's like any other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

import orjson
from xxhash import xxh3_64_intdigest

from crawlerproject.rules.traps.template_yield import (
    EARNED_PAGES,
    FIRST_PAGES,
    HOST_FIRST_PAGES,
    HOST_MOST_PAGES,
    MOST_PAGES,
    Trapped,
    Yield,
)
from crawlerproject.rules.traps.text_marks import Marks

# URLs of one host that one domain may have in its queue before anything is known of them (ours: as many as a long page
# links to); each new text that they bring adds as much as a page adds to a template.
FIRST_NAMED = 200
EARNED_NAMED = EARNED_PAGES
# Domains that are counted apart at one host, 60 bytes each (ours); all that come after them share one budget.
_MOST_DOMAINS = 64
OTHERS = "…"
"""Stands for the domains that are not counted apart, and for one that is not known."""
EVERYONE = "*"
"""Stands for all of them together."""

_FORMAT, _WITHOUT_PORTS = 2, 1
_HEAD = struct.Struct("<BI")
_numbers = attrgetter("left", "fetched", "new", "refused", "named", "ports")


def external_key(key: bytes) -> bytes:
    """The key under which an external URL waits in its queue, from the page's own; and the other way round.

    Not the page's own, so that the host's own word for the same URL is news; of the same host's keys.
    """
    return key[:8] + key[16:] + key[8:16]


def share_of(shares: Mapping[str, object], domain: str) -> str:
    """Whose share counts for a domain: its own, or that of all that came late."""
    return domain if domain in shares or len(shares) < _MOST_DOMAINS else OTHERS


def may_take(named: Mapping[str, int], domain: str, left: int) -> bool:
    """Whether a domain may take up one more of the ``left`` places for what other sites name at a name or a domain.

    So many must be left for the others as it has had itself: one alone can take half of them, the next half of the
    rest. A place that turns out to be nothing is free again, but not for who had it.
    """
    return named.get(share_of(named, domain), 0) < left


@dataclass(slots=True, eq=False)
class Share(Yield):
    """What one domain named and what came of it."""

    named: int = 0  # URLs that were queued
    ports: int = 0  # of the name, that it was the first to name

    def full(self, first: int) -> bool:
        """Whether nothing more may be queued, of ``first`` on trust and what was earned since."""
        return self.named >= first + EARNED_NAMED * self.new


class ExternalBudgets:
    """What other domains named of one host. At most some 12 KB."""

    __slots__ = ("_marks", "_shares", "everyone")

    def __init__(self) -> None:
        self.everyone = Share(HOST_FIRST_PAGES)
        self._shares: dict[str, Share] = {}
        self._marks = Marks()

    def spent(self, domain: str) -> str:
        """Whose budget stands against asking for what this domain named (its own or EVERYONE's); "" when none does."""
        if self.everyone.spent:
            return EVERYONE
        name = share_of(self._shares, domain)
        share = self._shares.get(name)
        return name if share is not None and share.spent else ""

    def admit(self, domain: str, most: int, first: int = FIRST_NAMED) -> bool:
        """Take one more URL of this domain's into the queue, of at most ``most`` of all; False: it is too many."""
        share = self._share(domain)
        if share.full(first) or self.everyone.named >= most:
            share.refused += 1
            return False
        share.named += 1
        self.everyone.named += 1
        return True

    def learn(self, domain: str, new: bool, cost: int) -> Trapped | None:
        """One page that the domain named was answered; whose budget this has spent, if one's."""
        share, everyone = self._share(domain), self.everyone
        all_spent = everyone.take(new, cost, HOST_FIRST_PAGES, HOST_MOST_PAGES)
        spent = share.take(new, cost, FIRST_PAGES, MOST_PAGES)
        if all_spent:
            return _trapped(EVERYONE, everyone)
        return _trapped(share_of(self._shares, domain), share) if spent else None

    def refused(self, name: str) -> None:
        """Count a URL that was not asked for, by what ``spent`` returned."""
        (self.everyone if name == EVERYONE else self._share(name)).refused += 1

    def new_text(self, url: str, marks: Iterable[int]) -> bool:
        """Whether no page that other sites named has shown this text; the one at ``url`` has from now on."""
        unknown = [self._marks.add(mark) for mark in marks]
        self._marks.add(_mark_of(url))
        return all(unknown)

    def named(self, url: str) -> bool:
        """Whether a page with this URL was shown because other sites named it."""
        return _mark_of(url) in self._marks

    def trapped(self) -> Iterator[Trapped]:
        """All whose URLs are not asked for any more, or were too many to be queued."""
        for name, share in ((EVERYONE, self.everyone), *self._shares.items()):
            if share.spent or share.refused:
                yield _trapped(name, share)

    def pack(self) -> bytes:
        """The bytes the store keeps: a length, JSON, the marks."""
        shares = [(name, *_numbers(share)) for name, share in self._shares.items()]
        head = orjson.dumps([_numbers(self.everyone), shares])
        return _HEAD.pack(_FORMAT, len(head)) + head + self._marks.pack()

    @classmethod
    def unpack(cls, packed: bytes) -> ExternalBudgets:
        """What ``pack`` wrote, of this version or the one before it; ValueError for anything else."""
        if len(packed) < _HEAD.size or packed[0] not in (_FORMAT, _WITHOUT_PORTS):
            raise ValueError("not what other domains named, of this version")
        _, length = _HEAD.unpack_from(packed)
        everyone, shares = orjson.loads(packed[_HEAD.size : _HEAD.size + length])
        budgets = cls()
        budgets.everyone = Share(*everyone)
        budgets._shares = {name: Share(*numbers) for name, *numbers in shares}
        budgets._marks = Marks.unpack(packed[_HEAD.size + length :])
        return budgets

    def may_take_port(self, domain: str, left: int) -> bool:
        """Whether the domain may take up one more of the ``left`` ports of the name that other sites may have."""
        return may_take({name: share.ports for name, share in self._shares.items()}, domain, left)

    def take_port(self, domain: str) -> None:
        """It does."""
        self._share(domain).ports += 1
        self.everyone.ports += 1

    def _share(self, domain: str) -> Share:
        name = share_of(self._shares, domain)
        share = self._shares.get(name)
        if share is None:
            share = self._shares[name] = Share(FIRST_PAGES)
        return share


def _trapped(name: str, share: Share) -> Trapped:
    who = {EVERYONE: "all other domains together", OTHERS: "domains that came late"}.get(name, name)
    named = f"{who} named {share.named:,} URLs of this host that it does not name itself"
    left = "and the budget is spent" if share.spent else "and no more are queued"
    why = f"{named}: {share.new} new texts in {share.fetched} pages, {left}"
    return Trapped(f"@{name}", share.fetched, share.new, share.refused, why)


def _mark_of(url: str) -> int:
    return xxh3_64_intdigest(url.encode("utf-8", "replace")) & 0xFFFFFFFF
