"""What every host's templates of URLs yielded: those of busy hosts at hand, all of them in the store."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

from crawlerproject.items import Page
from crawlerproject.reasons import Reason
from crawlerproject.rules.hosts import host_key, host_name
from crawlerproject.rules.templates import CUT_COSTS_PAGES, HostYields
from crawlerproject.stores.protocols import FrontierStore
from crawlerproject.stores.trap_allow import TrapAllowFile

logger = logging.getLogger(__name__)

FACT_PREFIX = "traps/"  # and the host name: the name of the fact that keeps a host's yields
# Hosts kept at hand: 2 KB each as a rule and 30 KB at most.
_KEPT = 20_000
# Answers about the host or the moment, not about the page.
_SILENT = frozenset({Reason.RATE_LIMITED, Reason.NOT_MODIFIED, Reason.CHALLENGE})
_READ = frozenset({Reason.FETCHED, Reason.RENDERED})


class TrapDesk:
    """Answers "is this a trap?" and learns from every page. ``now`` is epoch seconds."""

    def __init__(self, store: FrontierStore, allow: TrapAllowFile | None = None) -> None:
        self._store = store
        self._allow = allow or TrapAllowFile()
        self._kept: OrderedDict[str, HostYields] = OrderedDict()
        self._dirty: dict[str, HostYields] = {}
        self._storing: dict[str, HostYields] = {}  # in a commit that has not ended

    def refuses(self, host: str, url: str, now: float) -> bool:
        """Whether the budget of the URL's template, or of its host, is spent."""
        yields = self._yields(host)
        template = yields.spent(url)
        if not template or self._allowed(host, template, now):
            return False
        yields.refused(template)
        self._dirty[host_name(host)] = yields
        return True

    def refuses_shape(self, host: str, url: str, now: float) -> bool:
        """A link whose path looks endless: counted and refused, unless the operator says otherwise."""
        if self._allowed(host, "", now):
            return False
        yields = self._yields(host)
        yields.shapes += 1
        yields.example = url[:500]
        self._dirty[host_name(host)] = yields
        return True

    def allows(self, host: str, now: float) -> bool:
        """Whether the operator says that nothing of this host is a trap."""
        return self._allow.allows(host, "", now)

    def new_text(self, host: str, mark: int) -> bool:
        """Whether the host shows this text for the first time."""
        return self._yields(host).new_text(mark)

    def learn(self, page: Page, digest: bytes) -> bool:
        """Take in how a page ended (``digest`` of its payload); what says nothing about its template is left out.

        Whether its text was new.
        """
        row = page.lease.row
        answered = page.status is not None or page.reason is Reason.RENDERED
        if page.lease.is_robots or not answered or page.reason in _SILENT:
            return False
        if page.location and host_key(page.location) != row.host:
            return False  # a way out is worth its request
        mark = int.from_bytes(digest[:4], "big") if page.text_mark is None else page.text_mark
        new = page.reason in _READ and self.new_text(row.host, mark) and not _repeats(page)
        self.heard(row.host, row.url, new, cut=page.wire is not None and page.wire.truncated == "time")
        return new

    def heard(self, host: str, url: str, new: bool, *, cut: bool = False) -> None:
        """A page was answered: with text that the host had not shown before, or not; ``cut`` for its slowness."""
        yields = self._yields(host)
        trapped = yields.heard(url, new and not cut, CUT_COSTS_PAGES if cut else 1)
        self._dirty[host_name(host)] = yields
        if trapped is not None:
            logger.info("%s %s is a trap from now on: %s", host_name(host), trapped.template, trapped.why)

    def unstored(self) -> set[str]:
        """Hosts of which something is not in the store yet."""
        return self._dirty.keys() | self._storing.keys()

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop what is kept of hosts that others decide about now."""
        for host in [host for host in self._kept if not mine(host)]:
            del self._kept[host]

    def facts(self) -> list[tuple[str, bytes]]:
        """What the next commit stores."""
        self._storing |= self._dirty
        self._dirty = {}
        return [(FACT_PREFIX + host, yields.pack()) for host, yields in self._storing.items()]

    def stored(self) -> None:
        """The last ``facts`` have reached the store; those that have not are in the next ones."""
        self._storing.clear()

    def _allowed(self, host: str, template: str, now: float) -> bool:
        """Whether the operator says that this is no trap, of the port or of the whole name."""
        name = host_name(host)
        return self._allow.allows(name, template, now) or (name != host and self._allow.allows(host, template, now))

    def _yields(self, host: str) -> HostYields:
        """What all ports of the host's name yielded together."""
        name = host_name(host)
        yields = self._kept.get(name) or self._dirty.get(name) or self._storing.get(name)
        if yields is None:
            packed = self._store.fact(FACT_PREFIX + name)
            if packed is None and name != host:
                packed = self._store.fact(FACT_PREFIX + host)  # of a version that told ports apart
            yields = HostYields.unpack(packed) if packed else HostYields()
        self._kept[name] = yields
        self._kept.move_to_end(name)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return yields


def _repeats(page: Page) -> bool:
    """Whether another page of the host says nearly the same; what a page says of itself may be a mistake."""
    found = page.duplicate
    return found is not None and found.kind != "canonical" and host_key(found.url) == page.lease.row.host
