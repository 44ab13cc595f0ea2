"""benchmarks/alerts: every rule has a cause, the rules are shortened and not changed, and a wrong crawl is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.alerts import troubles
from benchmarks.alerts.crawl import WatchedCrawl, Way, ended
from benchmarks.alerts.prometheus import RULES, shortened
from benchmarks.alerts.scenarios import SCENARIOS
from benchmarks.alerts.web import serving
from tests.deploy.test_alerts import ALERTS
from tests.stores.uploads.s3_servers import answers
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

PAGE = (PROJECT / "benchmarks" / "alerts" / "seen_firing.md").read_text()
#: One crawl has several faults of its own: its spider raises, its pauses are none, and no guard is there.
WRONG = Way({**SCENARIOS["raising"].way.settings, **SCENARIOS["deaf"].way.settings}, "raising")
COUNTED = ("crawler_own_errors_total", "crawler_short_pauses_total", "crawler_pace_guard_refused_total")


def test_every_alert_has_a_cause() -> None:
    """And none has one that is no rule; the page says of each what was done."""
    assert {name for scenario in SCENARIOS.values() for name in scenario.names()} == set(ALERTS)
    said = set(re.findall(r"^\| (Crawler\w+) \| ([^|]+) \| \d+ s \| \d+ s \|$", PAGE, flags=re.MULTILINE))
    assert said == {(name, scenario.cause) for scenario in SCENARIOS.values() for name in scenario.names()}
    assert SCENARIOS["fine"].alerts == ()


def test_rules_are_shortened_and_not_changed() -> None:
    """What is left of them without windows, waits and hours is the same; none of these is left long."""
    rules = RULES.read_text()
    short = shortened(rules)

    def rest(text: str) -> str:
        return re.sub(r"\[\w+\]|for: \w+|> (3600|20)\b|, (86400|80)\)", "", text)

    assert rest(short) == rest(rules)
    assert set(re.findall(r"\[(\w+)\]|for: (\w+)", short)) == {("20s", ""), ("", "10s"), ("", "0m")}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedCrawl]:
    """At work, and wrong in nothing yet."""
    with serving() as web, ended(WatchedCrawl(tmp_path_factory.mktemp("alerts"), "wrong", WRONG, web)) as crawl:
        crawl.start()
        wait_until(lambda: answers(crawl.port), "a port of metrics", process=crawl.process)
        yield crawl


def counted(crawl: WatchedCrawl) -> list[float]:
    """What is counted by COUNTED."""
    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{crawl.port}/metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    found = {sample.name: sample.value for family in families for sample in family.samples}
    return [found[name] for name in COUNTED]


def test_a_wrong_crawl_is_seen(crawl: WatchedCrawl) -> None:
    """Errors of its spider and pauses that were too short are counted while it is wrong, and not before."""
    story = troubles.wrong(crawl)
    next(story)
    assert counted(crawl) == [0, 0, 0]
    next(story)
    # The guard may have its turn as well: it is put back while hosts are free too soon.
    wait_until(lambda: min(counted(crawl)[:2]) > 0, "errors and short pauses", process=crawl.process)
    next(story)


def test_processes_of_a_crawl_are_found_and_ended(tmp_path: Path, crawl: WatchedCrawl) -> None:
    """Whatever a story leaves, no process is left behind."""
    assert Path(f"/proc/{crawl.pid}").exists()
    crawl.kill()
    assert crawl.process is not None
    assert crawl.process.poll() is not None
