"""What a worker has at hand of its hosts beside their state: robots.txt of each scheme, and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import Changes, HostFact, host_of_fact
from crawlerproject.stores.redis.batch import fields_of, host_of_field
from crawlerproject.stores.redis.pending import Pending

# Eight of a host; a robots.txt is mostly under 2 KB, the others are mostly nothing.
_FIELDS = 80_000


class HostFields:
    """By the name of the field: an origin, or a fact's. Not safe for threads."""

    def __init__(self, waiting: Callable[[], Sequence[Pending]], held: Callable[[str], bool]) -> None:
        """``waiting``: what Redis does not have yet, the oldest first; ``held``: whether a host is ours alone."""
        self._waiting = waiting
        self._held = held
        self._at_hand: LruCache[str, bytes | None] = LruCache(_FIELDS)

    def missing(self, hosts: Iterable[str]) -> list[str]:
        """Fields of these hosts that Redis must be asked for; others' hosts are left out."""
        ours = filter(self._held, set(hosts))
        return [name for host in ours for name in fields_of(host) if name not in self._at_hand]

    def missing_of_domains(self, hosts: Iterable[str]) -> list[str]:
        """What Redis must be asked for of these hosts' domains."""
        domains = filter(self._held, {registered_domain(host) for host in hosts})
        return [name for domain in domains if (name := HostFact.DOMAIN + domain) not in self._at_hand]

    def learn(self, names: Sequence[str], found: Sequence[bytes | None]) -> None:
        """What Redis said; what was decided here meanwhile stands."""
        said = dict(zip(names, found, strict=True))
        for name in names:
            self.get(name, said.__getitem__)

    def get(self, name: str, ask: Callable[[str], bytes | None]) -> bytes | None:
        """The field; ``ask`` is called when it is not at hand."""
        if name in self._at_hand:
            return self._at_hand[name]
        unsent = self.unsent_fact(name) if host_of_fact(name) else self._unsent_robots(name)
        packed = ask(name) if unsent is None else unsent
        if self._held(host_of_field(name)):
            self._at_hand[name] = packed
        return packed

    def unsent_fact(self, name: str) -> bytes | None:
        """The newest of a fact, a worker's too, that Redis does not have yet."""
        return next((each.facts[name] for each in reversed(self._waiting()) if name in each.facts), None)

    def _unsent_robots(self, origin: str) -> bytes | None:
        return next((each.robots[origin] for each in reversed(self._waiting()) if origin in each.robots), None)

    def apply(self, changes: Changes) -> None:
        """Take in what was decided here."""
        of_hosts = [(name, packed) for name, packed in changes.facts if host_of_fact(name)]
        for name, packed in (*changes.robots, *of_hosts):
            if self._held(host_of_field(name)):
                self._at_hand[name] = packed

    def forget(self, gone: Callable[[str], bool]) -> None:
        """Others write about such hosts from now on."""
        self._at_hand.forget(lambda name: gone(host_of_field(name)))
