"""Where redirects of robots.txt files may lead: judged by the target's gates, counted by who sends us there."""

from __future__ import annotations

import orjson

from crawlerproject.frontier.discovered import strangers
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.state import FrontierState
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.redirects import MOST_ASKED, sent_on
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import Address, host_key
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.host_facts import HostFact

# Hosts whose redirects are at hand; few redirect their robots.txt to another domain.
_KEPT = 1_000


class RobotsRedirects:
    """Counts on both sides: where a host sends us, and what a domain has us ask of a host. ``now`` is epoch seconds."""

    def __init__(self, state: FrontierState, gates: Gates) -> None:
        self._state = state
        self._gates = gates
        self._sent: LruCache[str, dict[str, float]] = LruCache(_KEPT)  # by host
        # By host asked and domain that sends: until when is counted, and how many. Of this run.
        self._asked: LruCache[tuple[str, str], tuple[float, int]] = LruCache(_KEPT)

    def refusal(self, sender: str, target: Address, now: float) -> Reason | None:
        """Why a host (``sender``, a key) may not send us to ``target`` for a robots.txt; None counts it."""
        refusal = self._gates.robots_target_refusal(target, now)
        if refusal is not None or not strangers(sender, target.host):
            return refusal
        sent = sent_on(self._sent_by(sender), target.url, now, self._state.robots.ttl_seconds)
        if sent is None:
            return Reason.ROBOTS_REDIRECT
        self._keep(sender, sent)
        return None

    def not_asked(self, sender: str) -> None:
        """The last target of this host was not asked, since its door is closed now: it may be another time."""
        if sent := dict(self._sent_by(sender)):
            sent.popitem()
            self._keep(sender, sent)

    def _keep(self, sender: str, sent: dict[str, float]) -> None:
        self._sent[sender] = sent
        # With the commit that holds the redirect: what a crash forgets was not asked for.
        self._state.changes.facts.append((HostFact.ROBOTS_SENT + sender, orjson.dumps(sent)))

    def on_its_way(self, sender: str, target: Address, now: float) -> bool:
        """Whether an earlier run asked ``target`` for this host's rules: an answer may come yet. True once a run."""
        if self._sent.get(sender) is not None:
            return False
        self._sent[sender] = known = self._sent_by(sender)
        return known.get(target.url, 0.0) > now

    def _sent_by(self, sender: str) -> dict[str, float]:
        known = self._sent.get(sender)
        if known is None:
            known = orjson.loads(self._state.store.fact(HostFact.ROBOTS_SENT + sender) or b"{}")
        return known

    def refusal_here(self, via: str, target: Address, now: float) -> Reason | None:
        """Why a host of ours is not asked for a robots.txt that ``via`` (a URL) was redirected to; None counts it."""
        refusal = self._gates.robots_target_refusal(target, now)
        sender = host_key(via)
        if refusal is not None or not strangers(sender, target.host):
            return refusal
        name = target.host, bounded_domain(sender)
        until, count = self._asked.get(name) or (0.0, 0)
        if until <= now:
            until, count = now + self._state.robots.ttl_seconds, 0
        if count >= MOST_ASKED:
            return Reason.ROBOTS_REDIRECT
        self._asked[name] = until, count + 1
        return None
