"""What the answer to a robots.txt request does to the host it speaks for."""

from __future__ import annotations

import logging
import random

import orjson

from crawlerproject.frontier.frontier_state import UNSTORED_WAIT_SECONDS, FrontierState
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.other_workers import RobotsGiven, RobotsWanted
from crawlerproject.frontier.passage import Lease, Visit, document_of, of_other_domain, robots_for_other_domain
from crawlerproject.frontier.politeness import HostPoliteness
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.robots.policy import MAX_REDIRECTS, MOST_ASKED, sent_on
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, HOP_PREREQUISITE, ROBOTS, of_external
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.urls import Address, UrlRefused, host_key, parse
from crawlerproject.rules.url.urls import origin as origin_of
from crawlerproject.runtime.lru import LruCache
from crawlerproject.stores.protocols import HostFact, QueuedPage

logger = logging.getLogger(__name__)

# A robots.txt that was redirected is asked for again when no answer came for so long (ours).
_REDIRECTED_ROBOTS_SECONDS = 120.0
# Those that never got an answer are forgotten when so many are known: 2 MB.
_SWEPT_AT = 10_000
# What a document counts as that may not be asked for where it was redirected: TDMRep takes it for none (section 6.1).
_NOT_FOUND = 404
# Licences of other hosts whose answers are at hand, and up to what size: many sites name the same one.
_LICENSES_KEPT, _LICENSE_BYTES = 200, 65_536
# Hosts whose redirects are at hand; few redirect their robots.txt to another domain.
_REDIRECTING_KEPT = 1_000


class RobotsResponses:
    """Stores rules, follows redirects as pages of their own hosts, and puts off unreachable files.

    Redirects are counted on both sides: where a host sends us, and what a domain has us ask of a host. ``now`` is epoch
    seconds.
    """

    def __init__(
        self,
        state: FrontierState,
        filters: UrlFilters,
        politeness: HostPoliteness,
        revisits: Revisits,
        rng: random.Random,
    ) -> None:
        self._state = state
        self._hosts = state.hosts
        self._filters = filters
        self._politeness = politeness
        self._revisits = revisits
        self._rng = rng
        self._sent: LruCache[str, dict[str, float]] = LruCache(_REDIRECTING_KEPT)  # by host
        # By host asked and domain that sends: until when is counted, and how many. Of this run.
        self._asked: LruCache[tuple[str, str], tuple[float, int]] = LruCache(_REDIRECTING_KEPT)
        self._redirected: dict[str, float] = {}  # origin -> asked again when older than this
        # By URL of a licence: who waits until when for its answer; that answer, and until when it serves others.
        self._awaited: LruCache[str, tuple[float, list[tuple[str, str]]]] = LruCache(_REDIRECTING_KEPT)
        self._licenses: LruCache[str, tuple[float, RobotsGiven]] = LruCache(_LICENSES_KEPT)
        self._sweep_at = _SWEPT_AT

    def answered(self, lease: Lease, outcome: Visit, now: float) -> None:
        """Take in an answer, or the failure to get one."""
        origin, number = lease.row.note, document_of(lease.row.hops)
        status = None if outcome.walled else outcome.status
        hops, via = lease.row.hops + "R", lease.row.url
        target = _target(outcome.location) if hops.count("R") <= MAX_REDIRECTS else None
        asked: Host | None = lease.host
        if target is not None:
            if self._follow(lease.host, RobotsWanted(origin, target.url, hops, via), target, now, stored=lease.stored):
                for other, its_hops in self._awaiting(via, origin):
                    self._await(target.url, other, its_hops + "R", now)
                return
            # The rules are where we may not ask. RFC 9309 would let us take them for missing, which is to say that
            # anything is allowed; but the owner has some, so that doubt means no.
            # A failure of the origin's, though this host has answered well.
            status, asked = (_NOT_FOUND, asked) if number else (None, None)
        name = origin.partition("://")[2]
        answer = RobotsGiven(origin, status, outcome.body, outcome.reason, number)
        if name == lease.host.name or self._state.ownership.mine(name):
            self.take_in(answer, now, asked=asked, other_good=outcome.other_scheme_good)
        else:
            self._state.ownership.send(name, answer)
        if number and lease.stored and len(answer.body) <= _LICENSE_BYTES:
            self._licenses[via] = now + self._state.robots.ttl_seconds, answer
        for other, its_hops in self._awaiting(via, origin):
            self._give(answer._replace(origin=other, number=document_of(its_hops)), now)

    def wants_license(self, host: Host, page: str, url: str) -> bool:
        """Whether a licence that a page names is asked for now, before another page of its host."""
        origin = origin_of(page)
        outcome = self._state.robots.want_license(origin, url)
        if outcome is None or outcome.record is None:
            return False
        scheme = origin.partition(":")[0]
        host.set_robots_until(scheme, outcome.good_until)
        self._state.changes.robots.append((origin, outcome.record))
        host.robots_unstored |= {scheme}
        self._hosts.dirty[host.name] = host
        return True

    def elsewhere(self, host: Host, origin: str, number: int, url: str, now: float) -> float:
        """Have a licence of ``origin`` asked for at the other host that has it, at its pace and by its robots.txt.

        Until when (epoch seconds) the origin's ``host``, whose turn it is, waits for the answer.
        """
        hops, target = HOP_PREREQUISITE * (number + 1) + "R", _target(url)
        wanted = RobotsWanted(origin, url, hops, origin + "/robots.txt")
        if target is None or not self._follow(host, wanted, target, now, stored=False):
            self._give_up(origin, hops, now)
        return max(now, host.held_until)

    def wanted(self, message: RobotsWanted, now: float) -> None:
        """A host of another worker has its robots.txt at a host of ours."""
        target = _target(message.target)
        if target is None or self._is_awaited(message.origin, target.url, message.hops, now):
            return
        if (
            self._filters.port_refusal(self._hosts.ports, target.host, _named_by(host_key(message.via), target.host))
            or self._hosts.of(target.host).state
            or self._refused(message.origin, target, self._refusal_here(message.via, target, now))
        ):
            self._give_up(message.origin, message.hops, now)
        elif self._refused(message.origin, target, self._door_refusal(message.origin, target, now)):
            self._give_up(message.origin, message.hops, now, Reason.EXTERNAL_DOOR)
        else:
            self._queue(message.origin, target, message.hops, message.via, now)

    def refused(self, row: QueuedPage, now: float) -> None:
        """A redirected robots.txt was refused when its turn came."""
        if row.note.partition("://")[2] != row.host:
            self._give_up(row.note, row.hops, now)

    def _give_up(self, origin: str, hops: str, now: float, reason: Reason = Reason.ROBOTS_UNREACHABLE) -> None:
        """The origin gets no answer: it waits, as for any robots.txt that cannot be reached."""
        number = document_of(hops)
        self._give(RobotsGiven(origin, _NOT_FOUND if number else None, b"", reason, number), now)

    def _give(self, answer: RobotsGiven, now: float) -> None:
        """An answer to whom it speaks for, here or at another worker."""
        name = answer.origin.partition("://")[2]
        if self._state.ownership.mine(name):
            self.take_in(answer, now)
        else:
            self._state.ownership.send(name, answer)

    def _door_refusal(self, origin: str, target: Address, now: float) -> Reason | None:
        """STRANGER_DOOR when a host of ours takes no external requests now, and this is one."""
        closed = self._hosts.of(target.host).door.until > now
        return Reason.EXTERNAL_DOOR if closed and robots_for_other_domain(origin, target.url, target.host) else None

    def _refused(self, origin: str, target: Address, refusal: Reason | None) -> bool:
        if refusal is None:
            return False
        self._state.refused.counts[refusal] += 1
        logger.info("%s/robots.txt is not asked for at %s, where it was redirected: %s", origin, target.url, refusal)
        return True

    def take_in(self, answer: RobotsGiven, now: float, *, asked: Host | None = None, other_good: bool = False) -> None:
        """What an answer does to the host it speaks for; ``asked`` is the one that was asked, unless another's."""
        origin, status, body, reason, number = answer
        scheme, _, name = origin.partition("://")
        host, robots = self._hosts.of(name), self._state.robots
        is_first = host is asked and host.fetched <= 1  # then the store, which may be far away, is not asked
        if number:
            outcome = robots.document_answered(origin, number, status, body, now)
        else:
            outcome = robots.answered(origin, status, body, Reason(reason), now, is_first=is_first)
        self._redirected.pop(origin, None)
        if reason == Reason.EXTERNAL_DOOR and (sent := dict(self._sent_by(name))):
            sent.popitem()  # the last target was not asked, since its door is closed now: it may be another time
            self._keep(name, sent)
        if outcome.usable:
            host.set_robots_until(scheme, outcome.good_until)
            # The pause that the owner asks for: http and https share a clock, so the longer of their two.
            before, other = host.delay_seconds, "http" if scheme == "https" else "https"
            others = 0.0 if is_first else robots.floor_seconds(f"{other}://{name}")
            host.floor_seconds = max(outcome.floor_seconds, others)
            host.delay_seconds = self._politeness.delay_seconds(host)
            if host.delay_seconds > before:
                host.pace_free = max(host.pace_free, now + host.delay_seconds)
        else:
            good = host.other_scheme_good(scheme, now) or (other_good and host is asked)
            host.set_robots_until(scheme, -self._politeness.robots_unreachable(host, now, self._rng, other_good=good))
        if outcome.allows_more:
            self._revisits.rules_loosened(name, now)
        if outcome.record is not None:
            self._state.changes.robots.append((origin, outcome.record))
            host.robots_unstored |= {scheme}
        self._hosts.dirty[host.name] = host
        if host is asked:  # it is stored as its lease ends, with the pause that begins then
            return
        if not outcome.usable:
            consequence = self._politeness.robots_failed_elsewhere(host, now, self._rng)
            if consequence.park:
                self._hosts.park(host, consequence.probe_at)
                logger.warning(
                    "%s is left alone until %s: its robots.txt gets no answer",
                    name, consequence.until, extra={"host": name},
                )  # fmt: skip
        self._state.go_on(host)
        self._state.store_now(host)

    def _follow(self, waits: Host, wanted: RobotsWanted, target: Address, now: float, *, stored: bool) -> bool:
        """Queue the target at its own host, and let the origin's, which is the one that ``waits``, wait for the answer.

        ``stored``: it is another host, which has sent us on in its turn.
        """
        origin = wanted.origin
        mine = self._state.ownership.mine(target.host)
        if mine and self._filters.port_refusal(self._hosts.ports, target.host, _named_by(waits.name, target.host)):
            return False
        host = self._hosts.of(target.host) if mine else None
        # No answer can come before that host may be asked.
        answered_by = max(now, host.next_free if host else 0.0) + _REDIRECTED_ROBOTS_SECONDS
        if not stored:
            # Within the host it is the next turn's page, once a commit has stored it.
            waits.held_until = now + UNSTORED_WAIT_SECONDS if host is waits else answered_by
        if self._redirected.get(origin, 0.0) <= now or stored:
            self._redirected[origin] = answered_by
            if len(self._redirected) > self._sweep_at:
                self._redirected = {each: until for each, until in self._redirected.items() if until > now}
                self._sweep_at = max(_SWEPT_AT, 2 * len(self._redirected))
            if stored or not self._on_its_way(waits.name, target, now):
                if mine and self._is_awaited(origin, target.url, wanted.hops, now):
                    return True
                refusal = self._door_refusal(origin, target, now) if mine else None
                refusal = refusal or self._refusal_of(waits.name, target, now)
                if refusal is None and mine:
                    refusal = self._refusal_here(wanted.via, target, now)
                if (host and host.state) or self._refused(origin, target, refusal):
                    waits.held_until = 0.0 if not stored else waits.held_until
                    return False
                if mine:
                    self._queue(origin, target, wanted.hops, wanted.via, now)
                else:
                    self._state.ownership.send(target.host, wanted)
        return True

    def _is_awaited(self, origin: str, url: str, hops: str, now: float) -> bool:
        """Whether a document is asked for on another origin's behalf, or was: its answer serves this one as well."""
        if not document_of(hops):
            return False
        if (known := self._licenses.get(url)) is not None and now < known[0]:
            self._give(known[1]._replace(origin=origin, number=document_of(hops)), now)
            return True
        awaited = self._awaited.get(url)
        if awaited is None or awaited[0] <= now:
            return False
        awaited[1].append((origin, hops))
        return True

    def _await(self, url: str, origin: str, hops: str, now: float) -> None:
        """Remember for whom a document is asked for at a host of ours."""
        until, waiting = self._awaited.get(url) or (0.0, [])
        self._awaited[url] = max(until, now + _REDIRECTED_ROBOTS_SECONDS), [*waiting, (origin, hops)]

    def _awaiting(self, url: str, origin: str) -> list[tuple[str, str]]:
        """Who waits for a document beside ``origin``, each once; they are forgotten."""
        awaited = self._awaited.get(url)
        if awaited is None:
            return []
        self._awaited[url] = 0.0, []
        return [(other, hops) for other, hops in dict(awaited[1]).items() if other != origin]

    def _queue(self, origin: str, target: Address, hops: str, via: str, now: float) -> None:
        if document_of(hops):
            self._await(target.url, origin, hops, now)
        host = self._hosts.of(target.host)
        key, arrival = parse(origin + "/robots.txt").key, self._state.next_arrival(host, now)
        place = of_external(ROBOTS) if robots_for_other_domain(origin, target.url, host.name) else ROBOTS
        row = QueuedPage(host.name, key, target.url, place, arrival, 0, hops, via, 0, FLAG_ROBOTS, origin)
        # With the commit, not at once: a crash that cuts off the redirect's capture must forget its target too.
        self._state.changes.queued.append(row)
        host.unstored += 1
        self._hosts.dirty[host.name] = host
        self._hosts.waits(host, 1)
        self._state.workbench.add(host)

    # --- redirects that were followed ---------------------------------------------------------------

    def _refusal_of(self, sender: str, target: Address, now: float) -> Reason | None:
        """Why a host (``sender``, a key) may not send us to ``target`` for a robots.txt; None counts it."""
        refusal = self._filters.robots_target_refusal(target, now)
        if refusal is not None or not of_other_domain(sender, target.host):
            return refusal
        sent = sent_on(self._sent_by(sender), target.url, now, self._state.robots.ttl_seconds)
        if sent is None:
            return Reason.ROBOTS_REDIRECT
        self._keep(sender, sent)
        return None

    def _keep(self, sender: str, sent: dict[str, float]) -> None:
        self._sent[sender] = sent
        # With the commit that holds the redirect: what a crash forgets was not asked for.
        self._state.changes.facts.append((HostFact.ROBOTS_SENT + sender, orjson.dumps(sent)))

    def _on_its_way(self, sender: str, target: Address, now: float) -> bool:
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

    def _refusal_here(self, via: str, target: Address, now: float) -> Reason | None:
        """Why a host of ours is not asked for a robots.txt that ``via`` (a URL) was redirected to; None counts it."""
        refusal = self._filters.robots_target_refusal(target, now)
        sender = host_key(via)
        if refusal is not None or not of_other_domain(sender, target.host):
            return refusal
        name = target.host, bounded_domain(sender)
        until, count = self._asked.get(name) or (0.0, 0)
        if until <= now:
            until, count = now + self._state.robots.ttl_seconds, 0
        if count >= MOST_ASKED:
            return Reason.ROBOTS_REDIRECT
        self._asked[name] = until, count + 1
        return None


def _named_by(sender: str, host: str) -> str:
    """The domain of a host (``sender``, a key) that sends us to another domain's ``host``; "" within one."""
    return bounded_domain(sender) if of_other_domain(sender, host) else ""


def _target(location: str) -> Address | None:
    """Where a redirect leads; None when it leads nowhere."""
    try:
        return parse(location) if location else None
    except UrlRefused:
        return None
