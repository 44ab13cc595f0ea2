"""The hosts that feeds name as their hubs: each is asked once, and again only after it has proved to be one.

Any feed may name any URL as its hub, so a request to a hub is a POST that a stranger chose (a comment form, say). A
hub proves itself by asking back at the callback that only this request named (WebSub 5.3, verification of intent).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

import orjson

from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import Changes, FactReader, FrontierStore

HUBS_FACT = "websub-hubs"
MAX_HUBS = 5000
"""Hosts that are remembered (ours): their list is one value of the store, some 100 bytes each. No others are asked."""
MAX_UNPROVEN_PER_DOMAIN = 3
"""Hosts that never proved to be a hub, by the domain whose feeds named them (ours): a site has one hub or two."""
MAX_DOMAINS = 3
"""Sites that may each have an unproven host asked once (ours): the first may have named a wrong path of a real hub."""
NEXT_DOMAIN_SECONDS = 86_400.0
"""Between two of these (ours)."""


@dataclass(slots=True)
class Hub:
    """One host that was asked. Epoch seconds; 0 for never."""

    asked_at: float = 0.0
    proven_at: float = 0.0
    domains: list[str] = field(default_factory=list)  # registered domains of the feeds that had it asked
    key: str = ""  # hexadecimal: of the last request's row, whose record says whether it was sent


class Hubs:
    """Which hosts may be asked. Known by name, whatever scheme and port: all ports of a server are one hub."""

    def __init__(self, store: FrontierStore, proven: Iterable[tuple[str, float]]) -> None:
        """``proven``: names and moments of verified subscriptions of an earlier version."""
        self._store = store
        self._hubs = read_hubs(store)
        for name, verified_at in proven:
            self._hubs.setdefault(name, Hub(verified_at, verified_at))

    def may_ask(self, name: str, domain: str, now: float) -> bool:
        """Whether a feed of the registered ``domain`` may have the host asked now."""
        hub = self._hubs.get(name)
        if hub is not None and hub.proven_at:
            return True
        if hub is not None and not self._was_refused(hub):
            waited = now - hub.asked_at >= NEXT_DOMAIN_SECONDS
            if domain in hub.domains or len(hub.domains) >= MAX_DOMAINS or not waited:
                return False
        unproven = sum(domain in known.domains and not known.proven_at for known in self._hubs.values())
        return unproven < MAX_UNPROVEN_PER_DOMAIN and (hub is not None or len(self._hubs) < MAX_HUBS)

    def asked(self, name: str, domain: str, key: bytes, now: float) -> None:
        """It is asked: kept before the request is queued, so that a crash cannot forget it."""
        hub = self._hubs.setdefault(name, Hub())
        if not hub.proven_at:
            hub.asked_at, hub.key = now, key.hex()
            hub.domains = [*hub.domains, domain] if domain not in hub.domains else hub.domains
            self._keep()

    def proved(self, name: str, now: float) -> None:
        """It has verified a subscription."""
        hub = self._hubs.setdefault(name, Hub(now))
        if not hub.proven_at:
            hub.proven_at, hub.domains, hub.key = now, [], ""
            self._keep()

    def _was_refused(self, hub: Hub) -> bool:
        """Whether the last request was refused before it was sent: by robots.txt or the NeverCrawl file."""
        record = self._store.page(bytes.fromhex(hub.key)) if hub.key else None
        return record is not None and record.reason in _NEVER_SENT

    def _keep(self) -> None:
        kept = {name: asdict(hub) for name, hub in self._hubs.items()}
        self._store.apply(Changes(facts=[(HUBS_FACT, orjson.dumps(kept))]))


_NEVER_SENT = frozenset({Reason.ROBOTS, Reason.NEVERCRAWL, Reason.PRIVATE_ADDRESS})


def read_hubs(store: FactReader) -> dict[str, Hub]:
    """All that the store knows, by host name."""
    return {name: Hub(**kept) for name, kept in orjson.loads(store.fact(HUBS_FACT) or b"{}").items()}
