"""One host in memory: its place in time, its pace, its troubles and the counts of its queue."""

from __future__ import annotations

import struct

from crawlerproject.frontier.workbench import HostClock

# next_free, delay, floor, rest_until, last_trouble, robots until (http, https), rows, known, fetched,
# failures, escalation, times parked in a row, flags, number of samples; then the samples, then the last arrival, which
# version 2 did not have; then, of a host that is held on disk, when its pace would let it be asked. Little-endian,
# epoch seconds.
_FIXED = struct.Struct("<dddddddIIIHHHBB")
_ARRIVAL = struct.Struct("<Q")
_VERSION, _WITHOUT_ARRIVAL = b"\x03", b"\x02"
# Flags. On disk: its place among the hosts that are due is its next_free (``shelf``).
_GIVEN_UP, _ON_DISK, _RESTS_ON_DISK, _HELD_ON_DISK = 1, 2, 4, 8
_PACE_FREE = struct.Struct("<d")


class Host(HostClock):
    """A host's clock together with what the store keeps of it. About 500 bytes."""

    __slots__ = (
        "answered_at",
        "arrival",
        "closed_until",
        "dead_addresses",
        "delay_seconds",
        "escalation",
        "failures",
        "fetched",
        "floor_seconds",
        "given_up",
        "held_until",
        "known",
        "last_trouble",
        "listed",
        "on_disk",
        "opened",
        "pace_free",
        "promised_seconds",
        "rest_until",
        "rests_on_disk",
        "robots_unstored",
        "robots_until_http",
        "robots_until_https",
        "rows",
        "samples",
        "spare_addresses",
        "taken",
        "unstored",
    )

    def __init__(self, name: str, delay_seconds: float) -> None:
        super().__init__(name)
        self.answered_at = 0.0  # the end of its last answer; not stored: 0 until this start's first one
        self.delay_seconds = delay_seconds  # promised between an answer's end and the next request
        self.promised_seconds = 0.0  # after the last answer's end, its rest included; not stored
        self.samples: tuple[float, ...] = ()  # response times, seconds, oldest first
        self.floor_seconds = 0.0  # robots.txt's Crawl-delay or Request-rate
        self.rest_until = 0.0
        self.held_until = 0.0  # another host answers for its robots.txt; not stored, a new start asks again
        self.pace_free = 0.0  # next_free but for the hold
        self.escalation = 0
        self.last_trouble = 0.0
        self.failures = 0  # in a row
        self.opened = 0  # times its breaker opened in a row; not 0: the next request is the probe
        self.closed_until = 0.0  # outside its Visit-time; not stored, robots.txt says it again
        self.given_up = False  # its probe failed too: left alone until the next start
        self.robots_until_http = 0.0
        self.robots_until_https = 0.0
        self.robots_unstored = frozenset[str]()  # schemes whose answer the next commit stores
        self.dead_addresses = frozenset[str]()  # that did not take a connection, while others are left
        self.spare_addresses = 0  # others that may be tried
        self.rows = 0  # queue rows in the store
        self.arrival = 0  # the last that a row of its was given
        self.unstored = 0  # rows that the next commit adds
        self.taken: set[int] = set()  # arrivals of rows leased, or decided but not yet committed
        self.known = 0  # URLs ever accepted
        self.fetched = 0  # answers ever received
        self.listed = False  # the store lists it among the hosts with work in memory
        self.on_disk = False  # this is but a copy: it has work and waits on disk
        self.rests_on_disk = False  # for a rest, that is, not for its pace

    @property
    def waiting_urls(self) -> int:
        """URLs that still wait for their turn."""
        return self.rows + self.unstored - len(self.taken)

    def rests_until(self, now: float) -> float:
        """Until when it is left alone for another reason than its pace; 0 when it is not."""
        until = max(self.rest_until, self.closed_until)
        return until if until > now else 0.0

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

    def pack(self) -> bytes:
        """The bytes the store keeps: an answer whose archive record is not yet committed counts as never given."""
        unstored = self.robots_unstored
        held = self.on_disk and self.held_until > 0.0
        flags = self.given_up * _GIVEN_UP + self.on_disk * _ON_DISK
        flags += self.rests_on_disk * _RESTS_ON_DISK + held * _HELD_ON_DISK
        return (
            _VERSION
            + _FIXED.pack(
                self.pace_free if self.held_until and not held else self.next_free,
                self.delay_seconds,
                self.floor_seconds,
                self.rest_until,
                self.last_trouble,
                0.0 if "http" in unstored else self.robots_until_http,
                0.0 if "https" in unstored else self.robots_until_https,
                self.rows,
                self.known,
                self.fetched,
                min(self.failures, 0xFFFF),
                min(self.escalation, 0xFFFF),
                min(self.opened, 0xFFFF),
                flags,
                len(self.samples),
            )
            + struct.pack(f"<{len(self.samples)}d", *self.samples)
            + _ARRIVAL.pack(self.arrival)
            + (_PACE_FREE.pack(self.pace_free) if held else b"")
        )

    @classmethod
    def unpack(cls, name: str, packed: bytes) -> Host:
        """The host as it was stored."""
        host = cls(name, 0.0)
        values = _FIXED.unpack_from(packed, len(_VERSION))
        (
            host.next_free,
            host.delay_seconds,
            host.floor_seconds,
            host.rest_until,
            host.last_trouble,
            host.robots_until_http,
            host.robots_until_https,
            host.rows,
            host.known,
            host.fetched,
            host.failures,
            host.escalation,
            host.opened,
            flags,
            samples,
        ) = values
        host.given_up = bool(flags & _GIVEN_UP)
        host.on_disk = bool(flags & _ON_DISK)
        host.rests_on_disk = bool(flags & _RESTS_ON_DISK)
        host.samples = struct.unpack_from(f"<{samples}d", packed, len(_VERSION) + _FIXED.size)
        behind = len(_VERSION) + _FIXED.size + 8 * samples
        if not packed.startswith(_WITHOUT_ARRIVAL):
            (host.arrival,) = _ARRIVAL.unpack_from(packed, behind)
        if flags & _HELD_ON_DISK:
            (host.pace_free,) = _PACE_FREE.unpack_from(packed, behind + _ARRIVAL.size)
            host.held_until = host.next_free
        return host
