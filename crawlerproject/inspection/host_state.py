"""A host's state in one word, and where its pace comes from."""

from __future__ import annotations

from crawlerproject.frontier.discovered import caused_by_stranger
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.inspection.url_state import Said
from crawlerproject.rules.politeness.pace import LEAVE_ALONE_SECONDS
from crawlerproject.stores.protocols import QueuedPage

LEFT_ALONE = f"robots.txt asks for a pause beyond {LEAVE_ALONE_SECONDS / 86_400:.0f} days, that is to be left alone"


def host_state(host: Host, now: float, *, leased: bool = False) -> str:
    """``in-flight``, ``paused``, ``limited``, ``parked``, ``left-alone``, ``resting``, ``waiting`` (for its pace),
    ``free`` or ``done``.
    """
    if leased:
        return "in-flight"
    if host.held and host.rows:
        return host.held
    if host.given_up and not host.held:
        return "parked"
    if host.left_alone:
        return "left-alone"
    if not host.rows:
        return "done"
    if host.rests_until(now):
        return "resting"
    return "waiting" if host.next_free > now else "free"


def stand_at_door(host: Host, first: QueuedPage | None, now: float) -> None:
    """Show a copy of a stored host as what it is: at its door, when the ``first`` row of its queue waits for that."""
    if first is not None and host.door.until > now and caused_by_stranger(first):
        host.at_door = True


def pace_source(host: Host) -> Said:
    """Where the pause between two requests to the host comes from; for programs one word and its numbers."""
    samples = host.samples
    if host.left_alone:
        return Said(LEFT_ALONE, pace_source="left-alone", robots_pause_seconds=host.floor_seconds)
    if host.floor_seconds and host.delay_seconds <= host.floor_seconds:
        text = f"robots.txt asks for {host.floor_seconds:g} s"
        return Said(text, pace_source="robots", robots_pause_seconds=host.floor_seconds)
    if not samples:
        return Said("PACE_START_SECONDS: no response time is known yet", pace_source="start")
    mean = sum(samples) / len(samples)
    text = f"mean response time {mean * 1000:.0f} ms of the last {len(samples)} answers, within PACE_MIN and PACE_MAX"
    return Said(text, pace_source="response-time", response_mean_seconds=round(mean, 4), response_answers=len(samples))
