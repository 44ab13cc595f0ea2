"""How a crawl stands at one moment, and the line that says so."""

from __future__ import annotations

from typing import NamedTuple

from crawlerproject.rules.readable import counted, human_bytes, human_seconds

NOTHING_LEFT = "–"  # shown where a number would mean nothing


class Progress(NamedTuple):
    """What the frontier knows of the crawl now; counts are since this process started."""

    pages: int  # answers, robots.txt left out
    bytes: int  # received on the wire
    errors: int  # attempts without a usable answer
    hosts_in_flight: int  # asked at this moment
    hosts_ready: int  # may be asked now, wait for a free lease
    hosts_waiting: int  # have work; their delay still runs
    hosts_resting: int  # back off or are parked
    queued_urls: int  # known, not yet decided
    next_free_seconds: float | None  # until a waiting host may be asked; None when none waits
    eta_seconds: float | None  # work left at the promised pace; None when unknown
    paused: str  # why nothing is asked at all ("" while crawling), for example a full disk
    hosts_on_disk: int = 0  # have work, wait for their turn, a pause or a rest; in none of the counts above
    hosts_in_line: int = 0  # their own pause is over, that of their IP address or of another port of their name is not
    hosts_looked_up: int = 0  # wait for an answer of the DNS
    ceiling_per_second: float | None = None  # answers that politeness allows now; None when unknown
    standing: tuple[str, ...] = ()  # why nothing moves, a line each; () while something does


def render_lines(progress: Progress, previous: Progress | None, elapsed_seconds: float) -> list[str]:
    """The lines of a panel; the log joins them: what was done, by whom, what is left, and why nothing moves.

    The rate is that of the ``elapsed_seconds`` since ``previous``.
    """
    rate = f"{_rate(progress, previous, elapsed_seconds):.1f} pages/s"
    if progress.ceiling_per_second is not None:
        rate += f" (politeness allows {progress.ceiling_per_second:.1f} now)"
    eta = NOTHING_LEFT if progress.eta_seconds is None else human_seconds(progress.eta_seconds)
    lines = [
        f"{progress.pages:,} pages · {rate} · {human_bytes(progress.bytes)}",
        _hosts(progress),
        f"next free in {_next_free(progress)} · {counted(progress.errors, 'error')}"
        f" · {progress.queued_urls:,} queued · ETA {eta}",
    ]
    if progress.paused:
        lines.insert(0, f"PAUSED: {progress.paused}")
    return [*lines, *progress.standing]


def _rate(progress: Progress, previous: Progress | None, elapsed_seconds: float) -> float:
    """Pages a second over the interval; 0 when no time has passed."""
    if elapsed_seconds <= 0:
        return 0.0
    return (progress.pages - (previous.pages if previous else 0)) / elapsed_seconds


def _hosts(progress: Progress) -> str:
    """Hosts by what they do now; those that could be asked but for a free lease are named apart."""
    ready = f", {progress.hosts_ready:,} ready" if progress.hosts_ready else ""
    in_line = f", {progress.hosts_in_line:,} in line" if progress.hosts_in_line else ""
    looked_up = f", {progress.hosts_looked_up:,} looked up" if progress.hosts_looked_up else ""
    resting = f", {progress.hosts_resting:,} resting" if progress.hosts_resting else ""
    on_disk = f", {progress.hosts_on_disk:,} on disk" if progress.hosts_on_disk else ""
    waiting = f"{progress.hosts_waiting:,} waiting{resting}{on_disk}"
    return f"hosts {progress.hosts_in_flight:,} active{ready}{looked_up}{in_line}, {waiting}"


def _next_free(progress: Progress) -> str:
    """When the next waiting host may be asked."""
    if progress.next_free_seconds is None:
        return NOTHING_LEFT
    return human_seconds(progress.next_free_seconds)
