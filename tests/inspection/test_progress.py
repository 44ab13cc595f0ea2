"""The progress line: what it says, and what it leaves out."""

import math

import pytest

from crawlerproject.inspection.progress import Progress, render_lines

PROGRESS = Progress(
    pages=1204,
    bytes=18_200_000,
    errors=3,
    hosts_in_flight=12,
    hosts_ready=0,
    hosts_waiting=40,
    hosts_resting=0,
    hosts_on_disk=0,
    queued_urls=1930,
    next_free_seconds=0.4,
    eta_seconds=130.0,
    paused="",
)


def render_line(progress: Progress, previous: Progress | None, elapsed_seconds: float) -> str:
    """The log's line."""
    return " · ".join(render_lines(progress, previous, elapsed_seconds))


def test_the_line_says_everything() -> None:
    """Pages, rate, bytes, hosts, next free, errors, queue and ETA, in this order."""
    line = render_line(PROGRESS, PROGRESS._replace(pages=1000), 4.0)

    assert line == (
        "1,204 pages · 51.0 pages/s · 18.2 MB · hosts 12 active, 40 waiting · next free in 0.4 s"
        " · 3 errors · 1,930 queued · ETA 2 min 10 s"
    )


def test_ready_and_resting_hosts_are_named_when_there_are_any() -> None:
    """Hosts that rest or lack a free lease are told apart from those that only wait."""
    line = render_line(PROGRESS._replace(hosts_ready=5, hosts_resting=2), None, 1.0)

    assert "hosts 12 active, 5 ready, 40 waiting, 2 resting" in line


def test_what_is_unknown_is_a_dash() -> None:
    """No waiting host and no estimate give no invented number."""
    line = render_line(PROGRESS._replace(next_free_seconds=None, eta_seconds=None), None, 1.0)

    assert "next free in –" in line
    assert line.endswith("ETA –")


def test_a_pause_comes_first() -> None:
    """A crawl that asks nothing says so before anything else."""
    assert render_line(PROGRESS._replace(paused="disk full"), None, 1.0).startswith("PAUSED: disk full · ")


def test_hosts_in_line_and_with_the_dns_are_named() -> None:
    """Hosts that wait for their address, or for the DNS, are neither ready nor waiting for themselves."""
    line = render_line(PROGRESS._replace(hosts_in_line=39, hosts_looked_up=2), None, 1.0)

    assert "hosts 12 active, 2 looked up, 39 in line, 40 waiting" in line


def test_why_nothing_moves_stands_below() -> None:
    """A seed that does not resolve: the reason and the next moment, not only a count and an ETA."""
    still = PROGRESS._replace(errors=1, eta_seconds=None, standing=("example.org: dns-not-found, again in 59 min 0 s",))

    assert render_lines(still, None, 1.0)[2:] == [
        "next free in 0.4 s · 1 error · 1,930 queued · ETA –",
        "example.org: dns-not-found, again in 59 min 0 s",
    ]
    assert render_line(still, None, 1.0).endswith("ETA – · example.org: dns-not-found, again in 59 min 0 s")


def test_no_time_gives_no_rate() -> None:
    """The first look divides by nothing."""
    assert " 0.0 pages/s" in render_line(PROGRESS, None, 0.0)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1.79e308, 1e18, 2.6e11])
def test_no_number_breaks_the_line(value: float) -> None:
    """Any float can be shown."""
    assert render_line(PROGRESS._replace(eta_seconds=value, next_free_seconds=value), None, 1.0)
