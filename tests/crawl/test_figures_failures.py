"""What is said of seeds that fail and of hosts for which nothing moves."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl.figures import FailureReporter
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, FLAG_SEED, ROW_KINDS
from crawlerproject.settings import OURS

NOW = 1000.0


def ended(
    name: str, reason: Reason, *, status: int | None = None, seed: bool = False, rest: float = 0.0
) -> LeaseResult:
    """A page that came to such an end, its host's rest decided; of a seed, or a robots.txt."""
    host = Host(name, 5.0)
    host.rest_until = NOW + rest if rest else 0.0
    kind = ROW_KINDS[FLAG_SEED if seed else FLAG_ROBOTS]
    row = SimpleNamespace(kind=kind, url=f"https://{name}/{'' if seed else 'robots.txt'}")
    lease: Any = SimpleNamespace(row=row, host=host)
    wire = Wire(status=status) if status is not None else None
    return LeaseResult.failed(lease, reason, "no such name", wire)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings so far."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_seeds_robots_txt_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    """URL, reason, detail, next moment and what helps; once, also when it fails again."""
    reporter = FailureReporter(["a.test", "example.org"])
    page = ended("example.org", Reason.DNS_NOT_FOUND, rest=3540.0)
    reporter.ended(page, NOW)
    reporter.ended(page, NOW)

    assert said(caplog) == [
        "The seeds of example.org wait for https://example.org/robots.txt: dns-not-found (no such name), "
        f"again in 59 min 0 s. {REMEDIES[Reason.DNS_NOT_FOUND]}"
    ]
    assert reporter.standing([page.lease.host], NOW) == ("example.org: dns-not-found, again in 59 min 0 s",)


def test_hosts_that_are_no_seeds_are_not_said(caplog: pytest.LogCaptureFixture) -> None:
    """Links lead to dead hosts all the time; why they rest is remembered all the same."""
    reporter = FailureReporter(["example.org"])
    page = ended("other.test", Reason.CONNECT_REFUSED, rest=60.0)
    reporter.ended(page, NOW)

    assert said(caplog) == []
    assert reporter.standing([page.lease.host], NOW) == ("other.test: connect-refused, again in 1 min 0 s",)


def test_a_seed_that_is_answered_with_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """A status is said, too: a seed that is gone is no start."""
    FailureReporter([]).ended(ended("example.org", Reason.HTTP_ERROR, status=404, seed=True), NOW)

    assert said(caplog) == ["Seed https://example.org/: http-error (404)."]


def test_very_many_seeds_that_fail_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Ten by name, then a line at 10, 100 and 1,000 more."""
    reporter = FailureReporter([])
    reporter.refused((f"http://{number}.test/", Reason.NEVERCRAWL) for number in range(1500))

    lines = said(caplog)
    assert len(lines) == 10 + 3
    assert lines[0] == f"Seed http://0.test/ is refused: nevercrawl. {REMEDIES[Reason.NEVERCRAWL]}"
    assert [line.split()[0] for line in lines[10:]] == ["10", "100", "1000"]


def test_the_host_that_is_free_first_comes_first() -> None:
    """Three lines, then how many more; one that only keeps its pace says where that comes from."""
    hosts = []
    for number in range(5):
        host = Host(f"h{number}.test", 5.0)
        host.rest_until, host.failures = NOW + 500 - 100 * number, 2
        hosts.append(host)
    slow = Host("slow.test", 120.0)
    slow.next_free, slow.floor_seconds = NOW + 50, 120.0

    assert FailureReporter([]).standing([*hosts, slow], NOW) == (
        "slow.test: robots.txt asks for 120 s, again in 50.0 s",
        "h4.test: rests, 2 failures in a row, again in 1 min 40 s",
        "h3.test: rests, 2 failures in a row, again in 3 min 20 s",
        "and 3 more rest or keep their pause",
    )
    assert FailureReporter([]).standing([], NOW, 7) == ("and 7 more rest or keep their pause",)


def test_the_settings_that_help_are_settings() -> None:
    """A name in capitals is one of ours."""
    words = {word.strip(".,;:") for text in REMEDIES.values() for word in text.split()}

    assert {word for word in words if word.isupper() and "_" in word} <= set(OURS)
