"""Decides in which hours a host has most visitors: by its own response times, before that by its country.

In the busiest quarter of its day a host is asked more slowly, never faster in the others: crawlers should, as far as
they can tell, come when a site has few human visitors (draft-illyes-webbotauth-cbcp-01, 2.3). Hours are those of UTC.
"""

from __future__ import annotations

import struct
from math import exp, log
from typing import Self

HOURS = 24
BUSY_HOURS = 6
"""A quarter of the day."""
SLOWER = 3.0
"""By what pauses are longer in a host's busy hours (ours): a crawl of days takes a fifth longer, and the share of its
requests in the busy quarter sinks from a quarter to a tenth."""
LONGER = HOURS / (HOURS - BUSY_HOURS + BUSY_HOURS / SLOWER)
"""By what a crawl of days takes longer for it, at most."""
LEAST_WORK_SECONDS = 3600.0
"""A host whose queue is done sooner is asked at its usual pace (ours): little is to be gained for it."""

# From 16 to 22 o'clock local time a site is taken to have most visitors before it has shown its own hours: edits of 34
# Wikipedias rise from early morning to the evening (Yasseri, Sumi, Kertesz, doi:10.1371/journal.pone.0030091).
_BUSY_FROM_LOCAL = 16
# Answers of each hour before a host's own times count, and of how many the mean is (ours).
_LEAST_ANSWERS, _REMEMBERED = 5, 250
# The busiest quarter answers so much slower than the quietest one; less is chance (ours).
_LEAST_RATIO = 1.2
_LEAST_SECONDS = 0.001
_PACKED = struct.Struct(f"<{HOURS}f{HOURS}B")

# Standard time of each country's most populous zone, in whole hours east of UTC (IANA Time Zone Database 2025b,
# zone.tab). Left out are domains of countries that are mostly used by others (.ai, .co, .io, .me, .tv and their like).
_ZONES = {
    -6: "cr gt hn mx ni sv us",
    -5: "ca cu ec ht jm pa pe",
    -4: "bb bo cl do gp gy mq pr tt ve",
    -3: "ar br gf py sr uy",
    0: "bf ci fo gb gh gn ie is ml mr pt sl sn tg uk",
    1: "al ao at ba be bj cd ch cm cz de dk dz es fr ga hr hu it li lu ma mc mk mt ne ng nl no pl rs se si sk sm td tn",
    2: "bg bw cy ee eg fi gr il lb lt lv md mw mz na ps ro rw sd za zm zw",
    3: "bh by et iq jo ke kw mg qa ru sa so sy tr tz ua ug ye",
    4: "ae af am az ge ir mu om re",
    5: "kz pk tj tm uz",
    6: "bd bt in kg lk mm np",
    7: "id kh th vn",
    8: "bn cn hk mn mo my ph sg tw",
    9: "jp kp kr",
    10: "au pg",
    11: "nc sb vu",
    12: "fj nz",
}
_OFFSETS = {country: hours for hours, countries in _ZONES.items() for country in countries.split()}


def hour_of(now: float) -> int:
    """The hour of the day at ``now`` (epoch seconds)."""
    return int(now % 86_400 // 3600)


def busy_from_of_country(host: str) -> int | None:
    """The first busy hour by the country of a host name; None where that says nothing."""
    offset = _OFFSETS.get(host.rpartition(".")[2])
    return None if offset is None else (_BUSY_FROM_LOCAL - offset) % HOURS


class HostHours:
    """One host's response times by hour: of each the mean of their logarithms, which one slow answer does not move."""

    __slots__ = ("_busy_from", "_counts", "_looked_in", "_means", "learned_at")

    def __init__(self) -> None:
        self._means = [0.0] * HOURS
        self._counts = [0] * HOURS
        self._looked_in = -1
        self._busy_from: int | None = None
        self.learned_at = 0.0  # epoch seconds; not stored

    def learn(self, now: float, response_seconds: float) -> None:
        """Take in an answer that ended ``now``."""
        hour = hour_of(now)
        self.learned_at = now
        count = self._counts[hour] = min(self._counts[hour] + 1, _REMEMBERED)
        self._means[hour] += (log(max(response_seconds, _LEAST_SECONDS)) - self._means[hour]) / count

    def busy_from(self, now: float) -> int | None:
        """The hour in which its busiest quarter begins; None as long as no day of it shows one.

        Looked for once an hour: that costs more than a page may.
        """
        if self._looked_in != (hour := hour_of(now)):
            self._looked_in, self._busy_from = hour, self._found()
        return self._busy_from

    def _found(self) -> int | None:
        if min(self._counts) < _LEAST_ANSWERS:
            return None
        quarters = [sum(self._means[(hour + at) % HOURS] for at in range(BUSY_HOURS)) for hour in range(HOURS)]
        busiest = max(range(HOURS), key=quarters.__getitem__)
        ratio = exp((quarters[busiest] - min(quarters)) / BUSY_HOURS)
        return busiest if ratio >= _LEAST_RATIO else None

    def pack(self) -> bytes:
        """The bytes that the store keeps."""
        return _PACKED.pack(*self._means, *self._counts)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """What ``pack`` wrote; struct.error for anything else."""
        hours = cls()
        values = _PACKED.unpack(packed)
        hours._means, hours._counts = list(values[:HOURS]), list(map(int, values[HOURS:]))
        return hours


def is_busy(now: float, busy_from: int | None) -> bool:
    """Whether ``now`` lies in the quarter of the day that begins at the hour ``busy_from``."""
    return busy_from is not None and (hour_of(now) - busy_from) % HOURS < BUSY_HOURS
