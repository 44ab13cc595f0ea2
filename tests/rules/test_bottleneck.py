"""What a crawl is bound by, from the load it reports."""

from __future__ import annotations

import pytest

from crawlerproject.rules.bottleneck import Load, bound_by

QUIET = Load("", 0.1, 0.0, 0, 1000, 0, 0, 0)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (QUIET._replace(paused="no room", cpu_share=1.0), "disk"),
        (QUIET._replace(cpu_share=0.97, waiting=5000), "cpu"),
        (QUIET._replace(lag_seconds=0.4, waiting=5000), "cpu"),
        (QUIET._replace(in_flight=990, ready=200), "leases"),
        (QUIET._replace(in_flight=3, waiting=400), "politeness"),
        (QUIET._replace(in_flight=300, waiting=40), "network"),
        (QUIET._replace(waiting=1), "politeness"),
        (QUIET._replace(resting=7), "rests"),
        (QUIET, "nothing"),
        (QUIET._replace(in_line=39, queued=89), "politeness"),
        (QUIET._replace(in_line=39, in_flight=1, queued=89), "politeness"),
        (QUIET._replace(looked_up=40, queued=89), "dns"),
        (QUIET._replace(ready=40, queued=89), "network"),
        (QUIET._replace(queued=89), "start"),
    ],
)
def test_the_bottleneck(load: Load, what: str) -> None:
    """One load, one word."""
    assert bound_by(load).what == what
    assert bound_by(load).text


@pytest.mark.parametrize("hosts", ["in_line", "looked_up", "ready", "waiting", "resting", "in_flight"])
def test_queued_urls_are_never_bound_by_nothing(hosts: str) -> None:
    """Wherever their hosts are: 89 URLs were once bound by nothing, while their hosts stood in line for an address."""
    assert bound_by(Load(**{**QUIET._asdict(), "queued": 89, hosts: 1})).what != "nothing"


def test_it_says_what_hosts_wait_for() -> None:
    """The pause of an address is named apart from that of the hosts."""
    assert bound_by(QUIET._replace(in_line=39)).text == (
        "politeness: 39 hosts wait for the pause of their IP address or name"
    )
    assert "4 hosts with work keep their pause, 3 hosts wait for" in bound_by(QUIET._replace(waiting=4, in_line=3)).text
