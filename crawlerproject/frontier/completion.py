"""The end of a lease: what becomes of the page, and when its host may be asked again."""

from __future__ import annotations

import logging
import random
from dataclasses import replace

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.renders import Renders
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.politeness import Consequence, FetchOutcome, HostPoliteness
from crawlerproject.frontier.robots_responses import RobotsResponses
from crawlerproject.frontier.state import FrontierState
from crawlerproject.frontier.workbench import Stage
from crawlerproject.rules.politeness.backoff import ADDRESS_FAILURES, PORT_FAILURES, UNSENT_FAILURES
from crawlerproject.rules.printable import moment
from crawlerproject.stores.protocols import PageRecord

_AGAIN = Consequence(again=True, give_up=False)

logger = logging.getLogger(__name__)

# An answer's end as the server sees it: its last write returns up to this much after we have read it (1.2 ms seen
# between two busy processes on one machine).
_SERVERS_VIEW_SECONDS = 0.005


class LeaseCompletion:
    """Ends every lease exactly once."""

    def __init__(
        self,
        state: FrontierState,
        politeness: HostPoliteness,
        robots_responses: RobotsResponses,
        renders: Renders,
        rng: random.Random,
    ) -> None:
        self._state = state
        self._hosts = state.hosts
        self._politeness = politeness
        self._renders = renders
        self._robots_responses = robots_responses
        self._rng = rng

    def finish(self, lease: Lease, outcome: FetchOutcome, record: PageRecord, body: bytes, now: float) -> None:
        """A lease's end: the page's fate is decided (or it goes back), the host's clock starts.

        ``body`` matters for a robots.txt only. The fate reaches the store with the next ``apply``.
        """
        self._state.leased -= 1
        lease.ended = True
        host = lease.host
        host.fetched += 1 if outcome.status else 0
        before = host.delay_seconds
        kind = lease.row.kind
        if kind.is_robots:
            scheme = lease.row.note.partition(":")[0]
            spare = outcome.status is None and host.other_scheme_good(scheme, now)
            if not spare and outcome.reason in PORT_FAILURES:
                spare = self._state.other_scheme_waits(host, scheme)
            serves = self._state.robots.serves(lease.row.note, now)
            outcome = replace(outcome, robots=True, other_scheme_good=spare, copy_serves=serves)
        next_address = self._next_address(lease, outcome)
        consequence = _AGAIN if next_address else self._politeness.after(host, outcome, now, self._rng)
        if kind.sent_once and outcome.reason not in UNSENT_FAILURES:
            consequence = replace(consequence, again=False)
        if kind.is_robots and not next_address:
            self._robots_responses.answered(lease, outcome, body, now)
        if lease.stored and consequence.again and (next_address or not kind.is_robots):
            self._state.queue_again(lease.row, host, now)
        elif lease.stored and outcome.respelled:
            self._state.queue_respelled(lease.row, outcome.respelled, host, now)
        elif lease.stored and outcome.render:
            self._state.queue_to_render(lease.row, host, record, outcome.render, now)
        elif lease.stored:
            self._state.decide(lease.row, host, record, apart=outcome.apart)
        self._hosts.dirty[host.name] = host
        host.delay_seconds = self._politeness.delay_seconds(host)
        host.promised_seconds = max(host.delay_seconds, host.rest_until - now)
        self._settle(host, consequence, outcome)
        self._start_clock(host, now)
        if outcome.trouble or kind.is_robots or consequence.parked or host.delay_seconds > before:
            # A promise that grew must survive even a crash before the next commit.
            self._state.store_now(host)

    def _next_address(self, lease: Lease, outcome: FetchOutcome) -> bool:
        """Whether the address took no connection but the host has another one, which is the next turn's."""
        host = lease.host
        if outcome.status is not None or outcome.reason not in ADDRESS_FAILURES or not host.spare_addresses:
            return False
        host.spare_addresses -= 1
        host.dead_addresses |= {lease.address}
        host.address_until = 0.0
        return True

    def _settle(self, host: Host, consequence: Consequence, outcome: FetchOutcome) -> None:
        """Give up or park a host that keeps failing, and log it."""
        known = {"host": host.name, "reason": outcome.reason}
        if consequence.give_up:
            self._hosts.give_up(host, consequence.probe_at)
            logger.warning(
                "%s is left alone until %s: its probe failed too (%s)",
                host.name, consequence.until, outcome.reason, extra=known,
            )  # fmt: skip
        elif consequence.door_until:
            logger.warning(
                "%s is left alone until %s by what only other sites name of it: that gets no answer (%s)",
                host.name, moment(consequence.door_until), outcome.reason, extra=known,
            )  # fmt: skip
        elif consequence.parked:
            logger.info(
                "%s failed %d times in a row (%s): it rests until %s, then one request probes it",
                host.name, host.failures, outcome.reason, moment(host.rest_until), extra=known,
            )  # fmt: skip

    def _start_clock(self, host: Host, ended: float) -> None:
        """The host's and its address's pause begin where the answer ended."""
        ended += _SERVERS_VIEW_SECONDS
        delay = self._politeness.jittered(host.delay_seconds, self._rng)
        self._hosts.ports.charge(host, ended, ended + delay)
        next_free = max(host.pace_free, host.held_until)
        self._state.workbench.ended(host, ended, next_free, work=host.waiting_urls > 0 and not host.given_up)

    def finish_render(self, lease: Lease, now: float, *, again: bool) -> None:
        """End a render. The page's record stays that of its plain answer."""
        self._state.leased -= 1
        lease.ended = True
        host = lease.host
        if again:
            self._state.queue_again(lease.row, host, now)
        else:
            self._state.changes.removed.append(lease.row)
        self._hosts.dirty[host.name] = host
        self._left_browser(host, now)

    def requeue(self, lease: Lease, now: float) -> None:
        """End a lease without a fate: its row waits again as if it had never been taken."""
        host = self._taken_back(lease)
        if lease.row.kind.is_render:
            self._left_browser(host, now)
        else:
            self._start_clock(host, now)

    def requeue_blameless(self, lease: Lease, now: float, until: float) -> None:
        """As ``requeue``; its host is not asked before ``until``. What waits for it in the browser has its answer."""
        lease.host.rest_until = max(lease.host.rest_until, until)
        self.requeue(lease, now)

    def postpone(self, lease: Lease, now: float, until: float) -> None:
        """End a lease that sent nothing; its address may be asked for again ``until`` then."""
        host = self._taken_back(lease)
        work = host.waiting_urls > 0 or not lease.stored
        self._state.workbench.release(host, now, max(now, until), work=work, ip_free=until)

    def refused(self, lease: Lease, now: float, until: float, *, gives_way: bool) -> None:
        """End a lease that sent nothing, since another worker has the turn at its address; see ``IpClocks.refused``."""
        self._state.workbench.refused(self._taken_back(lease), now, until, gives_way=gives_way)

    def _taken_back(self, lease: Lease) -> Host:
        self._state.leased -= 1
        lease.ended = True
        host = lease.host
        if lease.stored:
            host.taken.discard(lease.row.arrival)
            self._hosts.waits(host, 1)
        return host

    def _left_browser(self, host: Host, now: float) -> None:
        """Let the host have another page rendered: if it waits for that, its next turn is due."""
        host.rendering = False
        if host.stage in (Stage.WAITING, Stage.IDLE):
            next_free = max(now, host.pace_free, host.rest_until, host.held_until)
            self._state.workbench.wait(host, next_free, work=host.waiting_urls > 0 and not host.given_up)
        self._renders.ended(now)
