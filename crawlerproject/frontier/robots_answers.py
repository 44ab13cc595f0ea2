"""What the answer to a robots.txt request does to the host it speaks for."""

from __future__ import annotations

import random

from crawlerproject.frontier.books import Books
from crawlerproject.frontier.conduct import Conduct, Ending
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.turns import UNSTORED_WAIT_SECONDS
from crawlerproject.frontier.workbench import Stage
from crawlerproject.rules.robots import MAX_REDIRECTS
from crawlerproject.rules.urls import UrlRefused, parse
from crawlerproject.stores.protocols import FLAG_ROBOTS, QueuedPage

# A robots.txt that was redirected is asked for again when no answer came for so long (ours).
_REDIRECTED_ROBOTS_SECONDS = 120.0


class RobotsAnswers:
    """Rules taken in, redirects followed as pages of their own hosts, unreachable ones put off."""

    def __init__(self, books: Books, gates: Gates, conduct: Conduct, rng: random.Random) -> None:
        self._books = books
        self._gates = gates
        self._conduct = conduct
        self._rng = rng
        self._redirected: dict[str, float] = {}  # origin -> asked again when older than this

    def answered(self, lease: Lease, ending: Ending, body: bytes, now: float) -> None:
        """Take in an answer, or the failure to get one."""
        origin = lease.row.note
        follow = ending.location and len(lease.row.hops) <= MAX_REDIRECTS
        if follow and self._follow(lease, origin, ending.location, now):
            return
        outcome = self._books.robots.answered(origin, ending.status, body, ending.reason, now)
        scheme, _, name = origin.partition("://")
        host = self._books.host(name)
        self._redirected.pop(origin, None)
        spare = host.other_scheme_good(scheme, now)
        ask_again = 0.0 if outcome.usable else self._conduct.robots_unreachable(host, now, self._rng, spare=spare)
        host.set_robots_until(scheme, outcome.good_until if outcome.usable else -ask_again)
        if outcome.usable:
            host.floor_seconds = outcome.floor_seconds
            host.delay_seconds = self._conduct.delay_seconds(host)
        if outcome.record is not None:
            self._books.changes.robots.append((origin, outcome.record))
            host.robots_unstored |= {scheme}
        self._books.dirty[host.name] = host
        self._books.store_now(host)
        if host is not lease.host:
            self._wake(host, max(now, ask_again))

    def _follow(self, lease: Lease, origin: str, location: str, now: float) -> bool:
        """Queue the redirect's target at its own host; the origin's host waits for the answer."""
        try:
            target = parse(location)
        except UrlRefused:
            return False
        waits = lease.host
        if self._redirected.get(origin, 0.0) <= now or lease.stored:
            self._redirected[origin] = now + _REDIRECTED_ROBOTS_SECONDS
            host = self._books.host(target.host)
            if self._gates.excluded(target, now):
                return False
            key, hops = parse(origin + "/robots.txt").key, lease.row.hops + "R"
            arrival = self._books.next_arrival(now)
            row = QueuedPage(host.name, key, target.url, 0, arrival, 0, hops, lease.row.url, 0, FLAG_ROBOTS, origin)
            # With the commit, not at once: a crash that cuts off the redirect's capture must forget its target too.
            self._books.changes.queued.append(row)
            host.unstored += 1
            self._books.dirty[host.name] = host
            self._books.waiting_urls += 1
            self._books.workbench.add(host)
        if not lease.stored:
            # Within the host it is the next turn's page, once a commit has stored it.
            same = target.host == waits.name
            waits.held_until = now + (UNSTORED_WAIT_SECONDS if same else _REDIRECTED_ROBOTS_SECONDS)
        return True

    def _wake(self, host: Host, at: float) -> None:
        """Let a host that waited for another's robots.txt go on, at its own pace."""
        host.held_until = 0.0
        if host.stage in (Stage.WAITING, Stage.IDLE):
            self._books.workbench.wait(host, max(at + host.delay_seconds, host.rest_until), work=host.waiting_urls > 0)
