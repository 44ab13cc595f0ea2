"""Numbers as an operator reads them: counts, bytes, durations, moments."""

from __future__ import annotations

from datetime import UTC, datetime

from crawlerproject.rules.politeness.pace import LATEST

_FOR_EVER_SECONDS = 1e11  # some 3,000 years


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``1,204 errors``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def human_bytes(count: int) -> str:
    """Bytes in the largest decimal unit that keeps the number above one: ``18.2 MB``."""
    if count < 1000:
        return f"{count} B"
    value = float(count)
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def human_seconds(seconds: float) -> str:
    """A duration in its two largest units: ``0.4 s``, ``2 min 10 s``, ``3 h 5 min``, ``2 d 4 h``; any float will do."""
    if seconds < 59.95:
        return f"{max(seconds, 0.0):.1f} s"
    if not seconds < _FOR_EVER_SECONDS:
        return "for ever"
    whole = round(seconds)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {whole % 60} s"


def moment(epoch_seconds: float) -> str:
    """``2026-01-31 12:00:00 UTC``; a dash for no moment at all, "never" for one that no calendar has."""
    if epoch_seconds <= 0:
        return "–"
    if not epoch_seconds < LATEST:
        return "never"
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
