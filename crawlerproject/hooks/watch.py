"""Decides which events a look at a crawl brings; pure: the same looks bring the same events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

SILENT_SECONDS = 900.0
"""A crawl that is not paused and has no page for so long has fallen silent (HOOK_SILENT_SECONDS, ours)."""
# Errors of ours come in crowds: one word about them in this time.
ERRORS_APART_SECONDS = 60.0


class Look(NamedTuple):
    """The crawl at one moment."""

    halted: str  # why nothing is asked, in words; "" while it goes on
    pages: int  # so far
    errors: int  # of the program itself, so far
    next_free_seconds: float | None  # until a host may be asked; None when none waits


class Event(NamedTuple):
    """What has happened, and why."""

    name: str  # paused, resumed, silent, error
    reason: str


@dataclass(slots=True)
class Watch:
    """Remembers what was reported. ``now`` in seconds of any steady clock."""

    silent_seconds: float  # without a page; 0: silence is no event
    _halted: str = ""
    _pages: int = 0
    _page_at: float | None = None
    _silent: bool = False
    _errors: int = 0
    _error_at: float | None = None

    def look(self, now: Look, at: float) -> list[Event]:
        """The events since the last look."""
        events = []
        before, self._halted = self._halted, now.halted
        if bool(before) != bool(now.halted):
            events.append(Event("paused", now.halted) if now.halted else Event("resumed", before))

        if self._page_at is None or now.pages != self._pages or now.halted:
            self._pages, self._page_at, self._silent = now.pages, at, False
        elif not self._silent and self.silent_seconds and at - self._page_at >= self.silent_seconds:
            self._silent = True
            waits = now.next_free_seconds
            next_ = "no host waits for its turn" if waits is None else f"the next host may be asked in {waits:.0f} s"
            events.append(Event("silent", f"no page for {at - self._page_at:.0f} s; {next_}"))

        if now.errors != self._errors and (self._error_at is None or at - self._error_at >= ERRORS_APART_SECONDS):
            more, self._errors, self._error_at = now.errors - self._errors, now.errors, at
            events.append(Event("error", f"{more:,} errors of the program itself, see log/errors.log"))
        return events
