"""The audit finds what came too soon, and nothing else; pauses and their promises."""

from __future__ import annotations

import pytest

from crawlerproject.rules.politeness.pause_audit import (
    REORDER_SECONDS,
    ROUNDING_SECONDS,
    Asked,
    Audit,
    LastAnswers,
    Pause,
)


def audited(*requests: Asked, ip_seconds: float | None = 0.5) -> Audit:
    """An audit of these, in the order given."""
    audit = Audit(ip_seconds)
    for asked in requests:
        audit.add(asked)
    audit.close()
    return audit


def asked(
    start: float, host: str = "a.test", ip: str = "192.0.2.1", *, took: float = 0.1, delay: float | None = 5.0
) -> Asked:
    """A request that began at ``start``."""
    return Asked(start, start + took, host, ip, delay, f"http://{host}/{start}")


def test_kept_pauses_are_no_violations() -> None:
    """A pause of exactly the promise, less rounding, is kept; the closest is told."""
    audit = audited(asked(0), asked(5.0995), asked(20))

    assert audit.violations == []
    assert audit.pauses == 2
    assert audit.tightest is not None
    assert -0.001 < audit.tightest.margin_seconds < 0
    assert audit.most == {"host": 1, "ip": 1, "all": 1}


def test_a_short_pause_is_named_with_its_times() -> None:
    """The one request that came too soon, with the answer that it came too soon after."""
    audit = audited(asked(0), asked(5.2), asked(9.0), asked(20))

    (found,) = audit.violations
    assert (found.kind, found.pause.name, found.pause.started_at, found.pause.promised_seconds) == (
        "host",
        "a.test",
        9.0,
        5.0,
    )
    assert abs(found.pause.kept_seconds - 3.7) < 1e-9
    assert found.url == "http://a.test/9.0"


def test_two_in_flight_at_a_host_are_named() -> None:
    """A request within another's time is a violation whatever was promised, also when the longer one began first."""
    audit = audited(asked(1, took=0.1, delay=0), asked(0, took=3), ip_seconds=None)

    (found,) = audit.violations
    assert found.pause.kept_seconds == -2
    assert audit.most["host"] == 2


def test_hosts_of_one_address_share_its_pause() -> None:
    """The address's own promise, between requests to different hosts; none when nothing was promised."""
    pair = (asked(0), asked(0.3, "b.test"))

    (found,) = audited(*pair).violations
    assert (found.kind, found.pause.name) == ("ip", "192.0.2.1")
    assert audited(*pair, ip_seconds=0.1).violations == []
    assert audited(*pair, ip_seconds=None).violations == []


def test_lines_in_the_order_of_their_ends_are_judged_by_their_starts() -> None:
    """A long answer is logged after short ones of other hosts that began later."""
    audit = audited(asked(1, "b.test", "192.0.2.2"), asked(0, took=8), asked(14))

    assert audit.violations == []
    assert audit.requests == 3
    assert audit.most["all"] == 2


def test_a_line_that_is_there_twice_counts_once() -> None:
    """A crash may leave a day's file beside its compressed copy."""
    audit = audited(asked(0), asked(0), asked(6), asked(6))

    assert audit.violations == []
    assert audit.requests == 2


def test_disorder_beyond_all_bounds_is_counted_not_judged() -> None:
    """What is far out of order cannot be judged, and is not passed over in silence."""
    audit = audited(asked(1000 + REORDER_SECONDS), asked(5000), asked(0))

    assert audit.late_lines == 1
    assert audit.requests == 2


def test_what_a_page_loads_in_its_turn_comes_one_after_the_other() -> None:
    """Requests of a browser's page have no pause promised, neither of host nor address, but may not overlap."""
    audit = audited(asked(0), asked(0.1, delay=None), asked(0.25, delay=None), asked(0.3, delay=None), asked(20))

    (host, ip) = audit.violations
    assert (host.kind, ip.kind) == ("host", "ip")
    assert host.pause.started_at == ip.pause.started_at == 0.3


def test_ports_of_a_name_are_one_host() -> None:
    """A request to another port is judged by the last answer of any; http and https share a key anyway."""
    audit = audited(asked(0, "a.test:81", "192.0.2.1"), asked(3, "a.test", "192.0.2.2"), asked(9, "a.test:82"))

    assert audit.hosts == 1
    (found,) = audit.violations
    assert (found.kind, found.pause.name, found.pause.started_at) == ("host", "a.test", 3)


NOW = 1_790_000_000.0  # epoch seconds, where a float has a quarter of a microsecond


@pytest.mark.parametrize(
    ("kept", "margin", "too_short"),
    [(5.0, 0.0, False), (4.999, -0.001, False), (4.9985, -0.0015, True), (-1.0, -6.0, True), (9.25, 4.25, False)],
)
def test_a_pause_is_judged_in_microseconds(kept: float, margin: float, *, too_short: bool) -> None:
    """Less than the rounding of two clocks is no haste; a request before that was in flight makes it negative."""
    pause = Pause("a.test", NOW, NOW + kept, 5.0)
    assert pause.kept_seconds == kept
    assert pause.margin_seconds == margin
    assert pause.too_short is too_short
    assert ROUNDING_SECONDS == 0.001


def test_the_latest_end_counts() -> None:
    """A long answer that began first ends last: the pause begins there."""
    answers = LastAnswers()
    assert [answers.ask("a.test", end) for end in (9.0, 6.0, 20.0)] == [None, 9.0, 9.0]
    assert answers.ask("b.test", 1.0) is None
    assert answers.ends == {"a.test": 20.0, "b.test": 1.0}
