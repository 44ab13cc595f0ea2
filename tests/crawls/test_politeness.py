"""One crawl of the whole synthetic web, judged from the server's log alone; then the audit of our own log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from scrapy.cmdline import execute
from scrapy.utils.project import get_project_settings

from tests.web.judge import Visit, judge_folder, pauses, read_visits
from tests.web.profiles.manners import ABSURD, ALLOWED_NETWORK, SHARED_NAMES
from tests.web.running import RunningWeb, crawl_command, measured, small_settings, synthetic_web

#: The pace of the ``mirror`` preset, and rests that end within the test: doubling from half a second to two.
SETTINGS = {
    "FETCH_ALLOW_NETWORKS": ALLOWED_NETWORK,
    "FETCH_CONNECT_TIMEOUT_SECONDS": "2",
    "FETCH_FIRST_BYTE_TIMEOUT_SECONDS": "1.5",
    "BACKOFF_START_SECONDS": "0.5",
    "BACKOFF_MAX_SECONDS": "2",
    "HOST_MAX_FAILURES": "5",
    "FRONTIER_MAX_REST_SECONDS": "6",
}


class Polite(NamedTuple):
    """A finished crawl, as the server saw it."""

    web: RunningWeb
    folder: Path
    output: str
    visits: list[Visit]

    def at(self, host: str) -> list[Visit]:
        """What one host saw, in order."""
        return [visit for visit in self.visits if visit.host == host]


@pytest.fixture(scope="module")
def polite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polite]:
    """The crawl that all tests here judge."""
    folder = tmp_path_factory.mktemp("polite")
    with synthetic_web(folder / "web", "--profile", "manners") as web:
        log, crawl = folder / "crawl.log", folder / "crawl"
        paces = folder / "paces.txt"
        paces.write_text("*.land.test delay_seconds=1.2  # longer than the preset's\n")
        settings = {**small_settings(web), **SETTINGS, "HOST_PACE_FILE": str(paces)}
        spent = measured(crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings), log)
        assert spent.status == 0, log.read_text()[-3000:]
        yield Polite(web, crawl, log.read_text(), read_visits(web.folder / "server.jsonl"))


def rests(visits: list[Visit]) -> list[float]:
    """Pauses between the visits, seconds."""
    return [later.start - earlier.end for earlier, later in pairwise(visits)]


def test_pauses_are_kept_and_nothing_is_missing(polite: Polite) -> None:
    """One in flight per host and address, pauses, Crawl-delay, Request-rate, rests; every reachable page once."""
    verdict = judge_folder(polite.web.folder, polite.folder, host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []


def test_robots_is_first_and_never_again_within_its_life(polite: Polite) -> None:
    """Each host's first request; one good answer holds for the whole crawl."""
    hosts = {visit.host for visit in polite.visits}
    first = {host: polite.at(host)[0].path for host in hosts}
    whole = [visit for visit in polite.visits if visit.path == "/robots.txt" and not visit.cut]
    good = {host: [visit for visit in whole if visit.host == host and visit.status in (200, 404)] for host in hosts}

    assert len(hosts) > 45
    assert {host: path for host, path in first.items() if path != "/robots.txt"} == {}
    assert {host: len(visits) for host, visits in good.items() if len(visits) > 1} == {}


@pytest.mark.parametrize(("host", "seconds"), [("rest-seconds.test", 4.0), ("rest-date.test", 3.0)])
def test_retry_after_rests_the_whole_host(polite: Polite, host: str, seconds: float) -> None:
    """In seconds and as a date: no page of the host is asked for meanwhile, and all are fetched afterwards."""
    visits = polite.at(host)
    asked = next(number for number, visit in enumerate(visits) if visit.rest)

    assert seconds <= visits[asked + 1].start - visits[asked].end < seconds + 3
    assert {visit.path for visit in visits if visit.status == 200} == {
        "/robots.txt", "/", "/busy", "/other/1", "/other/2",
    }  # fmt: skip


@pytest.mark.parametrize("host", ABSURD)
def test_an_absurd_retry_after_ends_the_visit(polite: Polite, host: str) -> None:
    """Centuries are bounded by RETRY_AFTER_MAX_SECONDS, a day: nothing more in this crawl."""
    assert [visit.path for visit in polite.at(host)] == ["/robots.txt", "/"]


def test_back_off_grows(polite: Polite) -> None:
    """429 without Retry-After: half a second, one, two and no more, each within ten per cent."""
    visits = [visit for visit in polite.at("backoff.test") if visit.path == "/1"]

    assert [visit.status for visit in visits] == [429, 429, 429, 429, 200]
    grown = rests(visits)
    assert all(rest >= least * 0.9 for rest, least in zip(grown, (0.5, 1.0, 2.0, 2.0), strict=True))
    assert grown[3] < 4.0 * 0.9  # what doubling once more would be at least; a busy machine may add to a rest


def test_a_page_that_was_cut_is_asked_for_once_more(polite: Polite) -> None:
    """Its links may be behind the cut. A host whose answers always end so is believed once a page was cut twice."""
    visits = polite.at("broken-line.test")
    asked = Counter(visit.path for visit in polite.at("cutter.test"))

    assert [visit.path for visit in visits] == ["/robots.txt", "/", "/", "/behind"]
    assert asked.keys() == {"/robots.txt", "/", "/0", "/1", "/2", "/3"}
    assert set(asked.values()) == {1, 2}
    assert asked["/robots.txt"] == 1
    assert asked.total() < 11  # what comes before the front page's second try may be asked for twice, not all of it


def test_a_retry_after_that_says_nothing_is_none(polite: Polite) -> None:
    """Words and negative numbers: back-off as without a header."""
    visits = [visit for visit in polite.at("nonsense.test") if visit.path == "/1"]

    assert [visit.status for visit in visits] == [429, 429, 200]
    assert all(rest >= least for rest, least in zip(rests(visits), (0.45, 0.9), strict=True))


def test_a_dead_site_sees_six_requests_at_most(polite: Polite) -> None:
    """Five failures and one probe, whether it never spoke or fell silent after its robots.txt; and the log says so."""
    mute, fallen = polite.at("mute.test"), polite.at("fallen.test")

    assert 1 <= len(mute) <= 6
    assert {visit.path for visit in mute} == {"/robots.txt"}
    assert 1 <= len([visit for visit in fallen if visit.status == 0]) <= 6
    for host in ("mute.test", "fallen.test"):
        assert f"{host}:{polite.web.port} is left alone until" in polite.output


@pytest.mark.parametrize("host", ["down.test", "late-robots.test", "busy-robots.test"])
def test_robots_that_cannot_be_had_mean_no_page(polite: Polite, host: str) -> None:
    """5xx, 503 and timeouts: nothing but robots.txt is asked for, rarely."""
    visits = polite.at(host)

    assert {visit.path for visit in visits} == {"/robots.txt"}
    assert len(visits) <= 6


def test_redirects_land_at_the_other_hosts_pace(polite: Polite) -> None:
    """Six pages that jump at once land one by one, all of them."""
    landed = polite.at("land.test")

    assert len([visit for visit in landed if visit.status == 200]) == 7
    assert pauses(landed, "host")["land.test"].smallest >= 0.25


def test_a_host_has_the_pace_of_its_line(polite: Polite) -> None:
    """HOST_PACE_FILE: 1.2 seconds for one host, from its first answer on."""
    assert pauses(polite.at("land.test"), "host")["land.test"].smallest >= 1.2


def test_eight_names_at_one_address_are_served_one_at_a_time(polite: Polite) -> None:
    """The address has one clock, and each name its turn."""
    crowd = [visit for visit in polite.visits if visit.host in SHARED_NAMES]

    assert len({visit.ip for visit in crowd}) == 1
    assert len(crowd) == 8 * 3
    assert pauses(crowd, "ip")[crowd[0].ip].overlaps == 0
    assert pauses(crowd, "ip")[crowd[0].ip].smallest >= 0.495


def test_a_name_with_many_addresses_is_one_host(polite: Polite) -> None:
    """A host that fans out over three addresses is asked one at a time, at its own pace and no slower."""
    fan = polite.at("fan.test")

    assert len(fan) == 7
    assert pauses(fan, "host")["fan.test"].smallest >= 0.25
    assert max(rests(fan)) < 3


def test_visit_time_is_respected(polite: Polite) -> None:
    """Outside the hours that robots.txt names nothing else is asked; within them all is."""
    assert {visit.path for visit in polite.at("closed.test")} == {"/robots.txt"}
    assert {visit.path for visit in polite.at("open.test")} == {"/robots.txt", "/", "/1"}


def test_a_host_that_flaps_is_crawled_to_its_end(polite: Polite) -> None:
    """Broken connections, a 500 and a 503, each followed by a good answer."""
    good = [visit.path for visit in polite.at("flap.test") if visit.status == 200]

    assert sorted(good) == ["/", "/1", "/2", "/3", "/4", "/robots.txt"]


def test_nothing_inside_is_contacted(polite: Polite) -> None:
    """Links, names, redirects, a robots.txt that has moved, one of two addresses: none leads out of the networks."""
    assert {visit.ip for visit in polite.visits if visit.ip.startswith("127.200.")} == set()
    assert {visit.path for visit in polite.at("half-inside.test")} == {"/robots.txt", "/", "/1"}


def test_our_guard_never_had_to_act(polite: Polite) -> None:
    """Nothing that would break the pace came so far, and nothing of ours failed."""
    assert "guard_refused" not in polite.output
    assert "Traceback" not in polite.output


def audit(*arguments: object) -> int:
    """The exit status of ``scrapy audit``."""
    with pytest.raises(SystemExit) as ended:
        execute(["scrapy", "audit", *map(str, arguments)], get_project_settings())
    return int(ended.value.code or 0)


def test_the_audit_of_our_log_agrees(polite: Polite, capsys: pytest.CaptureFixture[str]) -> None:
    """The server's view and our own log's come to the same: no violation."""
    assert audit(polite.folder) == 0
    assert capsys.readouterr().out.endswith("\n0 violations\n")


def test_the_audit_names_the_one_shortened_pause(
    polite: Polite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same log, one request moved to begin 150 ms after the answer before it."""
    (path,) = (polite.folder / "log").glob("requests-*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    fan = [row for row in rows if row["host"].startswith("fan.test")]
    before, moved = fan[2], fan[3]
    early = datetime.fromisoformat(before["end"]) + timedelta(seconds=0.15)
    moved["time"] = early.isoformat(timespec="microseconds").replace("+00:00", "Z")
    doctored = tmp_path / path.name
    doctored.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert audit(doctored) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("VIOLATION host")]
    assert len(told) == 1
    assert f"host fan.test: asked at {moved['time']}, 0.150 s after" in told[0]
    assert moved["url"] in told[0]
