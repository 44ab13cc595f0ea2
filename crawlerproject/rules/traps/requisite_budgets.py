"""Decides how many page requisites (style sheets, images, fonts, scripts) are asked of one host.

They have budgets of their own, so that a trap among them costs the host's pages nothing, nor the other way round: how
many may ever be queued, and what the shapes of their URLs, or the domains that named them, have yielded. A requisite
yields when its content is one that no other of the host had.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from crawlerproject.rules.traps.external_budgets import ExternalBudgets
from crawlerproject.rules.traps.template_yield import HostYields, Trapped

DEFAULT_MAX_PER_HOST = 20_000
"""REQUISITES_MAX_PER_HOST. A fifth of the pages (SCOPE_MAX_URLS_PER_HOST): a site's pages share most of theirs."""
OTHERS_SHARE = 2
"""What other registered domains name of a host may be this part of the bound: they do not use up the host's own."""
FIRST_NAMED = 2_000
"""Requisites of one host that one other domain may have in its queue before anything is known of them (ours: a site
whose images are at a host of their own names dozens a page, much faster than they are fetched)."""

_FORMAT = 1
_HEAD = struct.Struct("<BII")  # format, own requisites that were queued, bytes of the yields


def requisite_key(key: bytes) -> bytes:
    """The key under which a requisite waits in its queue, from the page's own; and the other way round.

    Of the same host's keys, and no external URL's: a page may be named with the same URL.
    """
    return key[:8] + key[:7:-1]


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
            return self._others.admit(domain, most // OTHERS_SHARE, FIRST_NAMED)
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
        return _HEAD.pack(_FORMAT, self.named, len(yields)) + yields + self._others.pack()

    @classmethod
    def unpack(cls, packed: bytes) -> RequisiteBudgets:
        """What ``pack`` wrote; ValueError for anything else."""
        if len(packed) < _HEAD.size or packed[0] != _FORMAT:
            raise ValueError("not a host's requisites of this version")
        _, named, length = _HEAD.unpack_from(packed)
        budgets = cls()
        budgets.named = named
        budgets._yields = HostYields.unpack(packed[_HEAD.size : _HEAD.size + length])
        budgets._others = ExternalBudgets.unpack(packed[_HEAD.size + length :])
        return budgets
