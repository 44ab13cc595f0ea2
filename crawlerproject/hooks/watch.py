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
    """Remembers what was said. ``now`` in seconds of any steady clock."""

    silent_seconds: float  # without a page; 0: silence is no event
    _halted: str = ""
    _pages: int = 0
    _page_at: float | None = None
    _silent: bool = False
    _errors: int = 0
    _error_at: float | None = None

    def look(self, now: Look, at: float) -> list[Event]:
        """The events since the last look."""
        return [*self._pauses(now), *self._silence(now, at), *self._faults(now, at)]

    def _pauses(self, now: Look) -> list[Event]:
        before, self._halted = self._halted, now.halted
        if bool(before) == bool(now.halted):
            return []
        return [Event("paused", now.halted) if now.halted else Event("resumed", before)]

    def _silence(self, now: Look, at: float) -> list[Event]:
        if self._page_at is None or now.pages != self._pages or now.halted:
            self._pages, self._page_at, self._silent = now.pages, at, False
            return []
        if self._silent or not self.silent_seconds or at - self._page_at < self.silent_seconds:
            return []
        self._silent = True
        waits = now.next_free_seconds
        next_ = "no host waits for its turn" if waits is None else f"the next host may be asked in {waits:.0f} s"
        return [Event("silent", f"no page for {at - self._page_at:.0f} s; {next_}")]

    def _faults(self, now: Look, at: float) -> list[Event]:
        if now.errors == self._errors or (self._error_at is not None and at - self._error_at < ERRORS_APART_SECONDS):
            return []
        more, self._errors, self._error_at = now.errors - self._errors, now.errors, at
        return [Event("error", f"{more:,} errors of the program itself, see log/errors.log")]
