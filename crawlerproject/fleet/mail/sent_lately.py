"""Links that were sent to another worker lately, and need not be sent again: most of a page's repeat those before."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from crawlerproject.frontier.discovered import DiscoveredUrl, linking_domain

_Sent = tuple[bytes, int, str]

# Of each of the two generations; some 280 bytes a link (measured), so 18 MB at most.
_MOST = 32_768
# A generation's time. What its worker refused it may take later, by another robots.txt or when there is room again; in
# a crawl of one process it is judged anew each time.
_SECONDS = 600.0


class SentLately:
    """Forgets by number and by time.

    Two links are the same when their worker would judge them alike at one moment: URL, kind, and who named it
    (rules/traps/strangers.py); where on whose pages they stand changes nothing about a URL that is known.
    """

    def __init__(self, most: int = _MOST, seconds: float = _SECONDS) -> None:
        self.spared = 0
        self._most = most
        self._seconds = seconds
        self._until = inf
        self._younger: set[_Sent] = set()
        self._older: set[_Sent] = set()

    def unsent(self, found: Iterable[DiscoveredUrl], now: float) -> list[DiscoveredUrl]:
        """Those that are not known to have been sent lately."""
        if now >= self._until:
            self._age()
            self._until = now + self._seconds if self._older else inf
        fresh = []
        for item in found:
            if (key := _key(item)) in self._younger or key in self._older:
                self.spared += 1
            else:
                fresh.append(item)
        return fresh

    def sent(self, found: Iterable[DiscoveredUrl], now: float) -> None:
        """These are in a message."""
        self._younger.update(map(_key, found))
        if self._until == inf:
            self._until = now + self._seconds
        if len(self._younger) > self._most:
            self._age()
            self._until = now + self._seconds

    def _age(self) -> None:
        self._older, self._younger = self._younger, set()


def _key(item: DiscoveredUrl) -> _Sent:
    return item.queue_key, item.flags, linking_domain(item.address.host, item.via, item.flags, item.note)
