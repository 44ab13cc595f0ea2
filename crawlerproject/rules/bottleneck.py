"""Decides what a running crawl is bound by at this moment: the one thing that, were it more, would make it faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# A process that computes for this share of the time has no room left (one core; the rest is the system's share).
CPU_SHARE = 0.85
# A tick that comes this late says the same: the loop was busy with something else.
LAG_SECONDS = 0.25
# Leases out, of those allowed.
LEASE_SHARE = 0.95


class Load(NamedTuple):
    """What the running process says of itself."""

    paused: str
    cpu_share: float  # of one core
    lag_seconds: float
    in_flight: int
    max_in_flight: int
    ready: int  # hosts that could be asked now but for a lease
    waiting: int  # hosts that keep their pause, in memory or on disk
    resting: int
    in_line: int = 0  # hosts whose own pause is over and that of their IP address or their name is not
    looked_up: int = 0  # hosts that wait for the DNS
    queued: int = 0  # URLs


class Bound(NamedTuple):
    """``what``: disk, cpu, leases, politeness, dns, network, rests, start or nothing; ``text`` for a person."""

    what: str
    text: str


def load_of(status: Mapping[str, Any]) -> Load:
    """The load in what a running crawl writes into ``status.json``."""
    progress = status["progress"]
    return Load(
        progress["paused"],
        status["cpu_share"],
        status["lag_seconds"],
        progress["hosts_in_flight"],
        status["max_in_flight"],
        progress["hosts_ready"],
        progress["hosts_waiting"] + progress.get("hosts_on_disk", 0),
        progress["hosts_resting"],
        progress.get("hosts_in_line", 0),
        progress.get("hosts_looked_up", 0),
        progress.get("queued_urls", 0),
    )


def bound_by(load: Load) -> Bound:
    """The bottleneck; what stops everything comes first."""
    if load.paused:
        return Bound("disk", f"the disk: {load.paused}")
    if load.cpu_share >= CPU_SHARE or load.lag_seconds >= LAG_SECONDS:
        return Bound(
            "cpu", f"the CPU: {load.cpu_share:.0%} of one core is in use, the loop is {load.lag_seconds:.2f} s late"
        )
    if load.in_flight >= LEASE_SHARE * load.max_in_flight and load.ready:
        return Bound("leases", f"FRONTIER_MAX_IN_FLIGHT={load.max_in_flight:,}: {load.ready:,} hosts could be asked")
    kept = load.waiting + load.in_line
    if kept > max(load.in_flight, load.looked_up):
        return _politeness(load)
    if load.looked_up > load.in_flight:
        return Bound("dns", f"the DNS: {load.looked_up:,} hosts wait for their address")
    if load.in_flight:
        return Bound("network", f"the network: {load.in_flight:,} answers are on their way")
    if kept:
        return _politeness(load)
    if load.ready:
        return Bound("network", f"the network: {load.ready:,} hosts are about to be asked")
    if load.resting:
        return Bound("rests", f"rests: all {load.resting:,} hosts with work have failed or asked to be left alone")
    if load.queued:
        return Bound("start", f"the start: {load.queued:,} URLs of an earlier run are being taken up")
    return Bound("nothing", "nothing: no host has work")


def _politeness(load: Load) -> Bound:
    in_line = f"{load.in_line:,} hosts wait for the pause of their IP address or name"
    if load.in_line > load.waiting:
        return Bound("politeness", f"politeness: {in_line}")
    also = f", {in_line}" if load.in_line else ""
    return Bound("politeness", f"politeness: {load.waiting:,} hosts with work keep their pause{also}")
