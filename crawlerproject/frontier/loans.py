"""Other hosts that a page in the browser asks: borrowed from the workbench while nobody else asks them."""

from __future__ import annotations

import random
from dataclasses import dataclass

from crawlerproject.frontier.books import Books
from crawlerproject.frontier.conduct import Conduct, Ending
from crawlerproject.frontier.host import Host
from crawlerproject.frontier.lease import Lease
from crawlerproject.frontier.robots_answers import RobotsAnswers
from crawlerproject.frontier.turns import robots_row


@dataclass(slots=True)
class Loan:
    """A host in the hands of one render; ``asked`` counts the requests it was sent."""

    host: Host
    address: str
    owns_address: bool  # False: the render's own host, or an earlier loan, has the address
    free_from: float
    promised_seconds: float  # before its first request
    asked: int = 0


class Loans:
    """Hands hosts out by the same clocks as turns, and charges every request to them."""

    def __init__(self, books: Books, conduct: Conduct, robots_answers: RobotsAnswers, rng: random.Random) -> None:
        self._books = books
        self._conduct = conduct
        self._robots_answers = robots_answers
        self._rng = rng

    def borrow(self, name: str, address: str, held: set[str], now: float) -> Loan | None:
        """The host, if it and its address are free now; ``held`` are addresses that this render has already."""
        if not self._books.territory.may_borrow(name, held=address in held):
            return None
        if self._books.too_many_ports(name):
            return None
        host = self._books.host(name)
        if host.given_up:
            return None
        free_from = host.next_free
        owns = address not in held
        if not self._books.workbench.borrow(host, address if owns else "", now):
            return None
        return Loan(host, address, owns, free_from, host.promise_seconds)

    def give_back(self, loan: Loan, now: float) -> None:
        """The render has ended; the host rests once for every request."""
        host = loan.host
        if loan.asked:
            host.promised_seconds = host.delay_seconds * loan.asked
            self._books.charge(host, now, now + self.debt_seconds(host, loan.asked))
        next_free = max(host.pace_free, host.held_until) if loan.asked else loan.free_from
        address = loan.address if loan.owns_address else ""
        self._books.workbench.returned(host, address, now, next_free, work=_has_work(host), asked=bool(loan.asked))
        if loan.asked:
            self._books.dirty[host.name] = host
            self._books.store_now(host)

    def debt_seconds(self, host: Host, asked: int) -> float:
        """What ``asked`` requests cost the host's clock."""
        return sum(self._conduct.jittered(host.delay_seconds, self._rng) for _ in range(asked))

    def answered(self, host: Host, ending: Ending, now: float) -> None:
        """The host's pace and rests learn from what it answered a sub-request."""
        self._conduct.after(host, ending, now, self._rng)
        host.delay_seconds = self._conduct.delay_seconds(host)
        self._books.dirty[host.name] = host

    def may(self, host: Host, scheme: str, url: str, now: float) -> bool | None:
        """Whether robots.txt allows the URL; None while it must be fetched first, no while it cannot be reached."""
        until = host.robots_until(scheme)
        if until > now:
            return not host.left_alone and self._books.robots.allows(scheme, host.name, url)
        return False if -until > now else None

    def robots_lease(self, host: Host, scheme: str, address: str, now: float) -> Lease:
        """A lease for the host's robots.txt, without a row: ended by ``robots_answered`` only."""
        row = robots_row(host, scheme, self._books.next_arrival(host, now))
        return Lease(row, host, address, now, host.delay_seconds, stored=False)

    def robots_answered(self, lease: Lease, ending: Ending, body: bytes, now: float) -> None:
        """Take in what came of it."""
        lease.ended = True
        self._robots_answers.answered(lease, ending, body, now)


def _has_work(host: Host) -> bool:
    return host.waiting_urls > 0 and not host.given_up
