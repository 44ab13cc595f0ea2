"""One host in memory: its place in time, its pace, its troubles and the counts of its queue; and the clock of ports."""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING

from crawlerproject.rules.politeness.clock_set_back import (
    Longest,
    Waits,
    brought_back,
    door_brought_back,
    robots_brought_back,
)
from crawlerproject.rules.politeness.pauses import LEAVE_ALONE_SECONDS, LONGEST_SECONDS, OPEN_DOOR, Door
from crawlerproject.rules.printable import LATEST

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.ip_clocks import TimerHeap

# next_free, delay, floor, rest_until, last_trouble, robots until (http, https), rows, known, fetched,
# failures, escalation, times parked in a row, flags, number of samples; then the samples, then the last arrival, which
# version 2 did not have; then, which version 3 did not have, name_free, when its pace alone would let it be asked (of
# one that is held on disk), then, which version 4 did not have, pages, bytes and busy seconds; then, of one whose door
# external requests' trouble has closed (version 5 had none), the door and its reason; and of the host at the default
# port the other ports of its name. Little-endian, epoch seconds. native/census.c reads it too.
_FIXED = struct.Struct("<dddddddIIIHHHBB")
_MOMENTS = 7  # of its values, the first ones: moments and pauses
_STORED = (
    "next_free", "delay_seconds", "floor_seconds", "rest_until", "last_trouble", "robots_until_http",
    "robots_until_https", "rows", "known", "fetched", "failures", "escalation", "breaker_opened",
)  # fmt: skip
_ARRIVAL = struct.Struct("<Q")
_NAME_FREE = struct.Struct("<d")
_PACE_FREE = struct.Struct("<d")
_SPENT = struct.Struct("<QQd")
_DOOR = struct.Struct("<HddBB")  # escalation, until, last_trouble, rested, bytes of the reason
_VERSION, _WITHOUT_SPENT, _WITHOUT_NAME, _WITHOUT_ARRIVAL = b"\x06", b"\x04", b"\x03", b"\x02"
# Flags. On disk: its place among the hosts that are due is its next_free (``on_disk``).
_ON_DISK, _RESTS_ON_DISK, _HELD_ON_DISK = 2, 4, 8
_HAS_DOOR, _ABSENT = 64, 128

# Shared, for nearly every host has it twice: 432 bytes less, and two things less for Python's collector to walk.
EMPTY: frozenset[str] = frozenset()


class HostState(StrEnum):
    """Whether a host is asked (then it is false), or why it is not. The words are those of ``scrapy hosts``."""

    ASKED = ""
    PARKED = "parked"  # its probe failed too
    PAUSED = "paused"  # by the operator, until it is over
    LIMITED = "limited"  # it has had its share, until a later start has a higher limit


HELD = (HostState.PAUSED, HostState.LIMITED)
_STATE_FLAGS = {HostState.ASKED: 0, HostState.PARKED: 1, HostState.PAUSED: 17, HostState.LIMITED: 33}
_STATES, _ANY_STATE = {flags: state for state, flags in _STATE_FLAGS.items()}, 1 | 16 | 32


class Stage(IntEnum):
    """Where a host stands."""

    IDLE = 0  # no work and its clock still runs; dropped when it is free
    WAITING = 1  # for its own clock
    LOOKED_UP = 2  # its name is with the resolver
    IN_LINE = 3  # its own clock is free, its address's is not
    IN_FLIGHT = 4
    BEHIND = 5  # its name is to be looked up, after others of its domain
    ASIDE = 6  # free, but its domain has as many requests in flight as places are left


@dataclass(slots=True, eq=False, repr=False)
class Host:
    """A host's place in time together with what the store keeps of it. About 500 bytes. Epoch seconds throughout."""

    name: str
    delay_seconds: float = 0.0  # promised between an answer's end and the next request
    next_free: float = 0.0
    ports: PortsClock | None = None  # shared with the name's other ports; None: it has none
    work: bool = False
    stage: Stage = Stage.IDLE
    serial: int = 0  # of its entry in the heap; any other entry is stale
    address: str = ""
    address_until: float = 0.0
    wants_address_since: float = 0.0  # in vain so far
    domain: str = ""  # the registered one, known from the first look-up on
    payer: str = ""  # of its last turn: the domain that has the place in flight
    asked_at: float = 0.0  # when that began
    took_seconds: float = 0.0  # how long its turns take: what is quick is believed by and by
    subrequests: int = 0  # sub-requests of pages in the browser that wait for its turns: work, whatever its queue holds
    rendering: bool = False  # a page of its is in the browser: not to be forgotten meanwhile
    answered_at: float = 0.0  # the end of its last answer; not stored: 0 until this start's first one
    promised_seconds: float = 0.0  # after the last answer's end, its rest included; not stored
    samples: tuple[float, ...] = ()  # response times, seconds, oldest first
    floor_seconds: float = 0.0  # robots.txt's Crawl-delay or Request-rate
    rest_until: float = 0.0
    asked_until: float = 0.0  # the end of the last rest that it asked for; not stored
    name_free: float = 0.0  # no port of its name is asked before this, as far as this host's answers say
    named_by: str | None = None  # NamesToResolve.namer, once it is known; not stored
    other_ports: tuple[int, ...] = ()  # taken up; of the host at the default port only
    door: Door = OPEN_DOOR  # for external requests
    at_door: bool = False  # all that waits is external, until it opens or a row of the host's own comes
    # Another host answers for its robots.txt, or all that waits does so for its door. Not stored: a new start asks
    # again, or looks again.
    held_until: float = 0.0
    pace_free: float = 0.0  # next_free but for the hold
    escalation: int = 0
    last_trouble: float = 0.0
    failures: int = 0  # in a row
    breaker_opened: int = 0  # times its breaker opened in a row; not 0: the next request is the probe
    closed_until: float = 0.0  # outside its Visit-time; not stored, robots.txt says it again
    state: HostState = HostState.ASKED
    robots_until_http: float = 0.0
    robots_until_https: float = 0.0
    robots_unstored: frozenset[str] = EMPTY  # schemes whose answer the next commit stores
    dead_addresses: frozenset[str] = EMPTY  # that did not take a connection, while others are left
    spare_addresses: int = 0  # others that may be tried
    rows: int = 0  # queue rows in the store
    arrival: int = 0  # the last that a row of its was given
    unstored: int = 0  # rows that the next commit adds
    taken: set[int] = field(default_factory=set)  # arrivals of rows leased, or decided but not yet committed
    absent: bool = False  # it has no address or took no connection, and never did: its place is not counted
    kept: int = 0  # of its rows, those that a later run shall have; not stored
    known: int = 0  # URLs ever accepted
    fetched: int = 0  # answers ever received
    pages: int = 0  # of them, those that are neither robots.txt nor files of pages in the browser
    received_bytes: int = 0  # of all answers, on the wire
    busy_seconds: float = 0.0  # its requests and the pauses after them
    listed: bool = False  # the store lists it among the hosts with work in memory
    on_disk: bool = False  # this is but a copy: it has work and waits on disk
    rests_on_disk: bool = False  # for a rest, that is, not for its pace

    @property
    def left_alone(self) -> bool:
        """Whether robots.txt asks for a pause beyond LEAVE_ALONE_SECONDS, which means: stay away."""
        return self.floor_seconds > LEAVE_ALONE_SECONDS

    @property
    def ever_queued(self) -> bool:
        """Whether a URL of the host was ever queued, one that only other sites name included."""
        return bool(self.known or self.arrival)

    @property
    def waiting_urls(self) -> int:
        """URLs that still wait for their turn."""
        return self.rows + self.unstored - len(self.taken) - self.kept

    def answered(self, started_at: float, ended_at: float) -> float | None:
        """An exchange has ended (epoch seconds); how long the host had been left alone, None for the first."""
        idle_seconds = started_at - self.answered_at if self.answered_at else None
        self.answered_at = ended_at
        self.busy_seconds += max(0.0, ended_at - started_at) + self.delay_seconds
        return idle_seconds

    def rests_until(self, now: float) -> float:
        """The end of its rest or of its closed hours, or when its door opens if all waits for that; 0 for none."""
        until = self.last_rest
        return until if until > now else 0.0

    @property
    def last_rest(self) -> float:
        """The end of its last rest, which may be past."""
        return max(self.rest_until, self.closed_until, self.door.until if self.at_door else 0.0)

    def robots_until(self, scheme: str) -> float:
        """Until when the host's robots.txt for ``scheme`` is good; 0 when it was never fetched.

        Negative: it cannot be reached, and is not asked for before the moment ``-robots_until``.
        """
        return self.robots_until_https if scheme == "https" else self.robots_until_http

    def other_scheme_good(self, scheme: str, now: float) -> bool:
        """Whether robots.txt is good for the other of http and https."""
        return (self.robots_until_http if scheme == "https" else self.robots_until_https) > now

    def set_robots_until(self, scheme: str, until: float) -> None:
        """Remember until when the robots.txt for ``scheme`` is good."""
        if scheme == "https":
            self.robots_until_https = until
        else:
            self.robots_until_http = until

    @property
    def promise_seconds(self) -> float:
        """The pause promised before its next request, after the last answer of any port of its name."""
        clock = self.ports
        since_last = self.promised_seconds if clock is None or clock.last in (None, self) else clock.promised_seconds
        return max(self.delay_seconds, since_last)

    def clamp_to_now(self, now: float, longest: Longest) -> bool:
        """Cut what was stored under a clock that was set back since; whether anything was."""
        troubles = max(self.failures, self.breaker_opened)
        before = Waits(
            self.next_free, self.name_free, self.rest_until, self.last_trouble, self.delay_seconds, troubles
        )  # fmt: skip
        after, door = brought_back(before, now, longest), door_brought_back(self.door, now, longest)
        changed, self.door = after is not None or door is not self.door, door
        if after is not None:
            self.next_free, self.name_free, self.rest_until, self.last_trouble = after[:4]
        for scheme in ("http", "https"):
            until = robots_brought_back(self.robots_until(scheme), self.rest_until, now, longest)
            self.set_robots_until(scheme, until)
        return changed

    def pack(self) -> bytes:
        """The bytes the store keeps: an answer whose archive record is not yet committed counts as never given."""
        unstored = self.robots_unstored
        held = self.on_disk and self.held_until > 0.0
        door = b""
        if self.door != OPEN_DOOR:
            escalation, until, last_trouble, rested, word = self.door
            reason = word.encode()
            door = _DOOR.pack(min(escalation, 0xFFFF), until, last_trouble, rested, len(reason)) + reason
        flags = _STATE_FLAGS[self.state] + self.on_disk * _ON_DISK + self.absent * _ABSENT
        flags += self.rests_on_disk * _RESTS_ON_DISK + held * _HELD_ON_DISK
        flags += _HAS_DOOR if door else 0
        samples, ports, troubles = self.samples, self.other_ports, (self.failures, self.escalation, self.breaker_opened)
        if max(troubles) > 0xFFFF:
            troubles = min(self.failures, 0xFFFF), min(self.escalation, 0xFFFF), min(self.breaker_opened, 0xFFFF)
        count = len(samples)
        # One call for a host that has none of the later parts is no quicker (measured).
        return b"".join((
            _VERSION,
            struct.pack(
                f"{_FIXED.format}{count}dQd",
                self.pace_free if self.held_until and not held else self.next_free,
                self.delay_seconds, self.floor_seconds, self.rest_until, self.last_trouble,
                0.0 if "http" in unstored else self.robots_until_http,
                0.0 if "https" in unstored else self.robots_until_https,
                self.rows, self.known, self.fetched, *troubles, flags, count, *samples, self.arrival, self.name_free,
            ),
            _PACE_FREE.pack(self.pace_free) if held else b"",
            _SPENT.pack(self.pages, self.received_bytes, self.busy_seconds),
            door,
            struct.pack(f"<{len(ports)}H", *ports) if ports else b"",
        ))  # fmt: skip

    @classmethod
    def unpack(cls, name: str, packed: bytes) -> Host:
        """The host as it was stored."""
        host = cls(name, 0.0)
        values = _FIXED.unpack_from(packed, len(_VERSION))
        if not sum(map(abs, values[:_MOMENTS])) < LATEST:
            values = (*map(_bounded, values[:_MOMENTS]), *values[_MOMENTS:])
        for field_name, value in zip(_STORED, values, strict=False):
            setattr(host, field_name, value)
        *_, flags, samples = values
        host.state = _STATES.get(flags & _ANY_STATE, HostState.ASKED)
        host.on_disk = bool(flags & _ON_DISK)
        host.rests_on_disk = bool(flags & _RESTS_ON_DISK)
        host.absent = bool(flags & _ABSENT)
        if host.left_alone:
            # Too long to wait for: URLs are refused instead, which sends no request. Earlier versions took any
            # Crawl-delay for a pause, and stored what came of it.
            host.floor_seconds = min(host.floor_seconds, LONGEST_SECONDS)
            if host.delay_seconds > LEAVE_ALONE_SECONDS:
                host.delay_seconds, host.next_free = LEAVE_ALONE_SECONDS, host.rest_until
        host.samples = struct.unpack_from(f"<{samples}d", packed, len(_VERSION) + _FIXED.size)
        host.name_free = host.next_free
        host.pages = host.fetched  # of a version that did not count them: at least not too few
        if not packed.startswith(_WITHOUT_ARRIVAL):
            host._unpack_later_fields(packed, len(_VERSION) + _FIXED.size + 8 * samples, flags)
        return host

    def _unpack_later_fields(self, packed: bytes, place: int, flags: int) -> None:
        """Read the fields that version 3 and later ones added."""
        (self.arrival,) = _ARRIVAL.unpack_from(packed, place)
        if packed.startswith(_WITHOUT_NAME):
            return
        place += _ARRIVAL.size
        (name_free,) = _NAME_FREE.unpack_from(packed, place)
        self.name_free = self.next_free if self.left_alone else _bounded(name_free)
        place += _NAME_FREE.size
        if flags & _HELD_ON_DISK:
            (self.pace_free,) = _PACE_FREE.unpack_from(packed, place)
            place += _PACE_FREE.size
            self.held_until = self.next_free
        if not packed.startswith(_WITHOUT_SPENT):
            self.pages, self.received_bytes, self.busy_seconds = _SPENT.unpack_from(packed, place)
            place += _SPENT.size
        if flags & _HAS_DOOR:
            escalation, until, last_trouble, rested, length = _DOOR.unpack_from(packed, place)
            place += _DOOR.size + length
            reason = packed[place - length : place].decode()
            self.door = Door(escalation, _bounded(until), _bounded(last_trouble), bool(rested), reason)
            self.at_door = 0.0 < self.held_until == self.door.until
        self.other_ports = struct.unpack_from(f"<{(len(packed) - place) // 2}H", packed, place)


@dataclass(slots=True, eq=False, repr=False)
class PortsClock:
    """The clock that all ports of one name share: one of them is asked at a time, at the pace of the name."""

    name: str
    waiting: TimerHeap[Host]  # hosts that wait for their own moments
    hosts: dict[Host, float] = field(default_factory=dict)  # those in memory, and when each was asked last
    numbers: set[int] = field(default_factory=set)  # every other port than the default that was ever taken up
    known: int = 0  # URLs ever accepted, of all ports
    turn: Host | None = None  # whose turn it is, from its look-up to its answer's end
    line: deque[Host] = field(default_factory=deque)  # free but for another's turn
    ended: float = 0.0  # the last answer of any port
    next_free: float = 0.0  # none is asked before this
    last: Host | None = None  # that was asked
    promised_seconds: float = 0.0  # after its answer's end
    rest_until: float = 0.0  # the end of the last rest that a port asked for

    def free_at(self, host: Host) -> float:
        """From when the other ports of the name let the host be asked: never sooner than its own pause."""
        return max(self.next_free, self.ended + host.delay_seconds)

    def goes_before(self, host: Host, now: float) -> bool:
        """Whether another port may be asked now that has waited for longer since it was asked."""
        asked = self.hosts[host]
        return any(
            at < asked and other.work and other.stage == Stage.WAITING and other.serial
            and max(other.next_free, self.free_at(other)) <= now
            for other, at in self.hosts.items()
        )  # fmt: skip

    def charge(self, host: Host, ended: float, next_free: float) -> None:
        """The host's answer has ended: no port is asked before ``next_free``."""
        self.ended = max(self.ended, ended)
        self.hosts[host] = ended
        self.next_free = max(self.next_free, next_free)
        self.last = host
        self.promised_seconds = next_free - ended

    def takes_turn(self, host: Host, now: float) -> bool:
        """Whether no other port of the name is asked now; else the host waits for that one's end or the name's pace."""
        if self.turn is not None:
            self.line.append(host)
            return False
        if (free_at := self.free_at(host)) > now:
            host.next_free = free_at
            self.waiting.push(host, free_at)
            return False
        if self.goes_before(host, now):
            self.line.append(host)
            return False
        self.turn = host
        return True

    def turn_over(self, host: Host) -> None:
        """Hosts that waited for this turn go before the host itself, in the order in which they came."""
        if self.turn is host:
            self.turn = None
        while self.line and self.turn is None:
            other = self.line.popleft()
            if other.stage == Stage.WAITING and not other.serial:
                other.next_free = max(other.next_free, self.free_at(other))
                self.waiting.push(other, other.next_free)


def _bounded(value: float) -> float:
    """A stored moment or pause within the range of dates; 0 when it is not a number."""
    return max(-LATEST, min(LATEST, value)) if value == value else 0.0
