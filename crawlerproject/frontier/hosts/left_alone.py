"""Hosts that did not answer their probe, by the hour in which each is probed once more."""

from __future__ import annotations

from math import ceil

from crawlerproject.rules.politeness.backoff import HOUR_SECONDS


class LeftAlone:
    """Those of this start: the next one asks them anyway.

    They are on disk with their queues, and a name costs some 20 bytes here: a broad crawl meets many dead hosts in a
    month.
    """

    def __init__(self) -> None:
        self._hours: dict[int, bytearray] = {}  # by the hour since the epoch, names with a line feed behind each

    def add(self, name: str, at: float) -> None:
        """A host that is due at ``at`` (epoch seconds), and not before.

        One that went to another worker and came back meanwhile may be here twice: then it has waited for its rest.
        """
        self._hours.setdefault(ceil(at / HOUR_SECONDS), bytearray()).extend(f"{name}\n".encode())

    def due(self, now: float) -> str | None:
        """One that is due, until it is dropped; None when none is."""
        first = min(self._hours, default=None)
        if first is None or first * HOUR_SECONDS > now:
            return None
        names = self._hours[first]
        return names[names.rfind(b"\n", 0, -1) + 1 : -1].decode()

    def drop(self) -> None:
        """Forget the host that ``due`` named."""
        first = min(self._hours)
        names = self._hours[first]
        del names[names.rfind(b"\n", 0, -1) + 1 :]
        if not names:
            del self._hours[first]
