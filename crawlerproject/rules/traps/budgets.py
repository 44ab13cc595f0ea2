"""Decides how much other sites, or one's own invention, may make us ask of a host: each who names has a budget.

A URL that only pages of other registered domains name is external: no page that may speak for the host says that
it exists. What becomes of it is charged to the domain that named it and teaches nothing about the host. Once the host's
own pages, feeds or sitemaps name the URL it is the host's like any other.

Page requisites (style sheets, images, fonts, scripts) have budgets of their own, so that a trap among them costs the
host's pages nothing, nor the other way round: how many may ever be queued, and what the shapes of their URLs, or the
domains that named them, have yielded. A requisite yields when its content is one that no other of the host had.

And a domain has a budget of hosts: those of its own names, and those that its pages name. A farm of names costs its
owner one DNS record. A name that does not exist costs nothing to invent; what it costs us (a question to DNS servers, a
row, a record) is charged to the registered domain whose pages named it first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import orjson
from xxhash import xxh3_64_intdigest

from crawlerproject.rules.printable import counted
from crawlerproject.rules.text_likeness import Marks
from crawlerproject.rules.traps.template_yield import (
    EARNED_PAGES,
    FIRST_PAGES,
    HOST_FIRST_PAGES,
    HOST_MOST_PAGES,
    MOST_PAGES,
    HostYields,
    Trapped,
    Yield,
)

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
        """Count one more port that the domain named."""
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
    named = f"{who} named {counted(share.named, 'URL')} of this host that only others name"
    left = "and the budget is spent" if share.spent else "and no more are queued"
    why = f"{named}: {share.new} new texts in {share.fetched} pages, {left}"
    return Trapped(f"@{name}", share.fetched, share.new, share.refused, why)


def _mark_of(url: str) -> int:
    return xxh3_64_intdigest(url.encode("utf-8", "replace")) & 0xFFFFFFFF


DEFAULT_MAX_REQUISITES = 20_000
"""REQUISITES_MAX_PER_HOST. A fifth of the pages (SCOPE_MAX_URLS_PER_HOST): a site's pages share most of theirs."""
OTHERS_SHARE = 2
"""What other registered domains name of a host may be this part of the bound: they do not use up the host's own."""
FIRST_REQUISITES = 2_000
"""Requisites of one host that one other domain may have in its queue before anything is known of them (ours: a site
whose images are at a host of their own names dozens a page, much faster than they are fetched)."""

_REQUISITES_FORMAT = 1
_REQUISITES_HEAD = struct.Struct("<BII")  # format, own requisites that were queued, bytes of the yields


class RequisiteBudgets:
    """What one host's requisites were and what came of them. At most some 40 KB."""

    __slots__ = ("_others", "_yields", "named")

    def __init__(self) -> None:
        self.named = 0  # that the host's own domain named, and that were queued
        self._yields = HostYields()
        self._others = ExternalBudgets()

    def admit(self, domain: str, most: int) -> bool:
        """Take one more into the queue; ``domain`` is another one that named it, "" for the host's own."""
        if domain:
            return self._others.admit(domain, most // OTHERS_SHARE, FIRST_REQUISITES)
        if self.named >= most:
            return False
        self.named += 1
        return True

    def spent(self, url: str, domain: str) -> str:
        """Whose budget stands against asking for ``url``: a template's, or "@" and a domain; "" when none does."""
        if not domain:
            return self._yields.spent(url)
        name = self._others.spent(domain)
        return f"@{name}" if name else ""

    def refused(self, name: str) -> None:
        """Count one that was not asked for, by what ``spent`` returned."""
        if name.startswith("@"):
            self._others.refused(name[1:])
        else:
            self._yields.refused(name)

    def trapped(self) -> Iterator[Trapped]:
        """All that is not asked for any more."""
        for found in (*self._yields.trapped(), *self._others.trapped()):
            yield found._replace(why=f"of what pages need to be seen, {found.why}")

    def learn(self, url: str, domain: str, mark: int, *, wanted: bool, cost: int = 1) -> Trapped | None:
        """One was answered; ``wanted``: as one may be used. Whose budget this has spent, if one's."""
        if domain:
            return self._others.learn(domain, wanted and self._others.new_text(url, (mark,)), cost)
        return self._yields.learn(url, wanted and self._yields.new_text((mark,)), cost)

    def pack(self) -> bytes:
        """The bytes the store keeps: lengths, the yields, the shares of others."""
        yields = self._yields.pack()
        return _REQUISITES_HEAD.pack(_REQUISITES_FORMAT, self.named, len(yields)) + yields + self._others.pack()

    @classmethod
    def unpack(cls, packed: bytes) -> RequisiteBudgets:
        """What ``pack`` wrote; ValueError for anything else."""
        if len(packed) < _REQUISITES_HEAD.size or packed[0] != _REQUISITES_FORMAT:
            raise ValueError("not a host's requisites of this version")
        _, named, length = _REQUISITES_HEAD.unpack_from(packed)
        budgets = cls()
        budgets.named = named
        budgets._yields = HostYields.unpack(packed[_REQUISITES_HEAD.size : _REQUISITES_HEAD.size + length])
        budgets._others = ExternalBudgets.unpack(packed[_REQUISITES_HEAD.size + length :])
        return budgets


DEFAULT_MAX_HOSTS = 1000
"""SCOPE_MAX_HOSTS_PER_DOMAIN. Few sites have as many names (Wikipedia some 700, its mobile ones included)."""

PAGES_A_HOST = 10
"""New texts of a domain's hosts that earn it one host more (ours): who has more names than the bound shows several
pages on each of them, so its names keep pace with its pages; a farm must be fetched ten pages for each."""

NAMED_FACTOR = 100
"""So many times the bound for domains that the operator named, with ``-a scope=domain``: the domain is wanted whole.
It is still bounded, since no operator wants what a wildcard record in it invents."""

_PACKED = struct.Struct("<QQQ")
"""Of both kinds of counts."""
FIRST_NAMES = 10_000
"""Hosts without an address that a domain may have named (ours: as many as very long lists of links name)."""
EARNED_NAMES = 10
"""Further ones for each that has an address (ours): a site of whose links nine in ten are dead is never refused."""

_AT_ONCE = 100
"""So many are looked up without delay: more than nearly every page names (ours)."""
# Between two of those that follow, by what became of the last ones: 8 dead names a second cost 1 % of a processor, 200
# live ones are more than hosts a process begins to fetch from (ours).
_DEAD_APART_SECONDS, _LIVE_APART_SECONDS = 0.125, 0.005
_LAST_ONES = 10  # by which the pace is set


@dataclass(slots=True, eq=False)
class DomainHosts:
    """What one registered domain has had."""

    hosts: int = 0  # names ever taken up
    pages: int = 0  # that showed a new text
    refused: int = 0  # URLs on further hosts
    dead: int = 0  # of the names, those that do not resolve or take no connection, and never did
    named: dict[str, int] = field(default_factory=dict)  # of the names, by the other domain that named them first

    @property
    def taken(self) -> int:
        """Places that are taken: those that other sites had for dead names are free again, for others than them."""
        return self.hosts - min(self.dead, sum(self.named.values()))

    def take_up(self, named_by: str = "") -> None:
        """One host more; ``named_by`` is the other domain that named it, if one did."""
        self.hosts += 1
        if named_by:
            share = share_of(self.named, named_by)
            self.named[share] = self.named.get(share, 0) + 1

    def most(self, max_hosts: int) -> int:
        """How many hosts it may have by now; ``max_hosts`` is what every domain may have."""
        return max_hosts + self.pages // PAGES_A_HOST

    def full(self, max_hosts: int, named_by: str = "") -> bool:
        """Whether no further host is taken up, of those that another domain names if there is ``named_by``."""
        if not named_by:
            return self.taken >= self.most(max_hosts)
        return not may_take(self.named, named_by, self.most(max_hosts // 2) - self.taken)

    def pack(self) -> bytes:
        """For the store."""
        more = orjson.dumps([self.dead, self.named]) if self.dead or self.named else b""
        return _PACKED.pack(self.hosts, self.pages, self.refused) + more

    @classmethod
    def unpack(cls, packed: bytes) -> DomainHosts:
        """What ``pack`` packed, or a version that did not know who named them."""
        known = cls(*_PACKED.unpack_from(packed))
        if len(packed) > _PACKED.size:
            known.dead, known.named = orjson.loads(packed[_PACKED.size :])
        return known


@dataclass(slots=True, eq=False)
class NamedHosts:
    """What one domain has named. ``now`` is epoch seconds."""

    unresolved: int = 0  # hosts that have no address, or were not looked up yet
    resolved: int = 0
    refused: int = 0  # URLs on further hosts
    _apart_seconds: float = _DEAD_APART_SECONDS
    _before: float = 0.0  # how many stood before the next one ...
    _at: float = 0.0  # ... at this moment

    @property
    def most(self) -> int:
        """How many hosts without an address it may have named by now."""
        return FIRST_NAMES + EARNED_NAMES * self.resolved

    @property
    def full(self) -> bool:
        """Whether it may name no host more."""
        return self.unresolved >= self.most

    def name(self, now: float) -> float:
        """It names one more host, which is to be looked up at the moment that is returned."""
        self.unresolved += 1
        return self.turn(now)

    def turn(self, now: float) -> float:
        """The moment of its next look-up that is not taken yet."""
        before = self._stand_before(now)
        self._before, self._at = before + 1.0, now
        return now + max(0.0, before - _AT_ONCE) * self._apart_seconds

    def ready(self, now: float) -> bool:
        """Whether ``turn`` would be now."""
        return self._stand_before(now) <= _AT_ONCE

    def _stand_before(self, now: float) -> float:
        return max(0.0, self._before - max(0.0, now - self._at) / self._apart_seconds)

    def looked_up(self, *, found: bool) -> None:
        """One of them has an address, or has none."""
        if found:
            self.resolved += 1
            self.unresolved = max(0, self.unresolved - 1)
        apart_seconds = _LIVE_APART_SECONDS if found else _DEAD_APART_SECONDS
        self._apart_seconds += (apart_seconds - self._apart_seconds) / _LAST_ONES

    def pack(self) -> bytes:
        """For the store; the pace is found again at the next start."""
        return _PACKED.pack(self.unresolved, self.resolved, self.refused)

    @classmethod
    def unpack(cls, packed: bytes) -> NamedHosts:
        """What ``pack`` packed."""
        return cls(*_PACKED.unpack(packed))
