"""A month of crawling the pages that change, in a few seconds: judged by the server's log and the archive.

Once by one process; once by a fleet of one or two workers, whose partitions change hands between the days; once by one
process and by a fleet without a server in turn.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.config.crawl_kind import LOCAL
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED
from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.archive.pywb_server import TOOLS, ask, pywb_of
from tests.crawls.fleet.fleets import SETTINGS as OF_FLEETS
from tests.stores.redis_servers import redis_server
from tests.web.profiles.changing import LATE, PERIODS
from tests.web.running import RunningWeb, crawl_command, finish, small_settings, start, synthetic_web

#: Days after the first crawl on which known pages are visited again; before the last, checks in full are made.
DAYS = (0, 3, 6, 9, 12, 18, 24)
CHECK_DAY = 9
#: Workers of a fleet by day; one of them on other days.
WORKERS = {0: 2, 6: 2, 24: 2, 33: 2}
#: Days on which a fleet without a server has two workers; on others ``scrapy crawl`` goes on with what they left.
LOCAL_FLEETS = (6, 33)
#: How politely it is crawled is judged elsewhere.
QUICK = {"PACE_IP_SECONDS": "0", "PACE_MIN_SECONDS": "0.02", "PACE_START_SECONDS": "0.02", "REQUISITES": "page"}


class Visit(NamedTuple):
    """A line of the server's log."""

    day: int
    url: str  # host and path
    status: int
    conditional: bool


class Month(NamedTuple):
    """What a month left behind."""

    web: RunningWeb
    folder: Path
    state_url: str  # of a fleet; "" of one process
    visits: list[Visit]

    def on(self, day: int, host: str = "") -> list[Visit]:
        """The visits of one session, robots.txt left out."""
        return [v for v in self.visits if v.day == day and v.url.startswith(host) and "robots.txt" not in v.url]

    @property
    def days(self) -> tuple[int, ...]:
        """Those of its sessions."""
        return tuple(day for day in DAYS if not self.state_url or day != 18)

    @property
    def folders(self) -> list[Path]:
        """Those that have archives and logs."""
        below = sorted(path.parent for path in self.folder.glob("*/warc")) if self.state_url else []
        return below if self.state_url not in ("", LOCAL) else [self.folder, *below]


@pytest.fixture(scope="module", params=["alone", "redis", "local"])
def month(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    """A crawl, and recrawls some days apart."""
    folder = tmp_path_factory.mktemp("month")
    shared = redis_server(folder / "redis") if request.param == "redis" else contextlib.nullcontext()
    with synthetic_web(folder / "web", "--profile", "changing") as web, shared as server:
        state_url = server.url if server is not None else "" if request.param == "alone" else LOCAL
        made = Month(web, folder / "crawl", state_url, [])
        for day in made.days:
            share = "1" if day == CHECK_DAY else "0"
            session(made, day, {"RECRAWL_FULL_FETCH_SHARE": share})
        yield made


def session(month: Month, day: int, settings: dict[str, str], *more: str) -> str:
    """One run on a day, by one process or by the day's workers; their output."""
    web, log = month.web, month.web.folder / "server.jsonl"
    (web.folder / "clock").write_text(str(day))
    seen = len(log.read_text().splitlines()) if log.exists() else 0
    if month.state_url == LOCAL and day in LOCAL_FLEETS:
        return read_new(month, day, of_local_fleet(month, day, settings, *more), seen)
    in_redis = month.state_url not in ("", LOCAL)
    running, began = [], time.monotonic()
    for number in range(WORKERS.get(day, 1) if in_redis else 1):
        own = {"STATE_URL": month.state_url, "FLEET_WORKER": f"w{number}", "FLEET_RUN": f"day {day}"}
        of_fleet = {**OF_FLEETS, "COMMIT_SECONDS": "0.2", **own} if in_redis else {}
        command = crawl_command(
            web.folder / "seeds.txt",
            month.folder,
            web.folder / "hosts",
            small_settings(web) | of_fleet | QUICK | settings,
        )
        arguments = command[command.index("web") + 1 :]
        if day:
            arguments[arguments.index(f"seeds={web.folder / 'seeds.txt'}")] = "mode=recrawl"
        clock = f"store:{day}" if in_redis else str(day)
        begin = [sys.executable, "-m", "tests.web.later", clock, "crawl", "web"]
        path = month.folder.with_suffix(f".{day}.{number}.log")
        with path.open("wb") as output:
            running.append((start([*begin, *arguments, *more], output), path))
    outputs = ""
    for process, path in running:
        spent = finish(process, began)
        said = path.read_text()
        assert spent.status == 0, said[-3000:]
        assert "Traceback" not in said
        outputs += said
    return read_new(month, day, outputs, seen)


def of_local_fleet(month: Month, day: int, settings: dict[str, str], *more: str) -> str:
    """One run of two workers without a server; their output."""
    web = month.web
    given = small_settings(web) | OF_FLEETS | {"COMMIT_SECONDS": "0.2"} | QUICK | settings
    command = crawl_command(web.folder / "seeds.txt", month.folder, web.folder / "hosts", given)
    arguments = command[command.index("web") + 1 :]
    if day:
        arguments[arguments.index(f"seeds={web.folder / 'seeds.txt'}")] = "mode=recrawl"
    begin = [sys.executable, "-m", "tests.web.later", f"workers:{day}", "fleet", "--workers", "2"]
    path = month.folder.with_suffix(f".{day}.log")
    before = {log: log.stat().st_size for log in month.folder.glob("*.log")}
    with path.open("wb") as output:
        status = start([*begin, *arguments, *more], output).wait(300)
    said = "".join(log.read_text()[before.get(log, 0) :] for log in [path, *sorted(month.folder.glob("*.log"))])
    assert status == 0, said[-3000:]
    assert "Traceback" not in said
    return said


def read_new(month: Month, day: int, outputs: str, seen: int) -> str:
    """Take in what the server has logged since; the outputs."""
    log = month.web.folder / "server.jsonl"
    for line in log.read_text().splitlines()[seen:]:
        row = json.loads(line)
        month.visits.append(Visit(day, row["host"] + row["path"], row["status"], bool(row.get("conditional"))))
    return outputs


def test_unchanged_pages_cost_a_304_and_changed_ones_a_body(month: Month) -> None:
    """Where validators are honest, everything known is asked conditionally; bodies come for what changed only."""
    for day in (3, 6):
        asked = {v.url.partition("/")[2]: v for v in month.on(day, "honest.test")}

        assert all(v.conditional for v in asked.values())
        assert asked["fixed"].status == asked[""].status == 304
        assert asked["daily"].status == 200


def test_a_fresh_page_is_not_asked_for(month: Month) -> None:
    """max-age of twenty days: no request in eighteen, one at the next session."""
    assert [v.day for v in month.visits if v.url == "honest.test/monthly"] == [0, 24]


def test_no_body_is_fetched_twice_without_need(month: Month) -> None:
    """Of the honest host, a body was sent once for each version that there was on a day of a visit (checks apart)."""
    bodies = [v for v in month.visits if v.url == "honest.test/fixed" and v.status == 200 and v.day != CHECK_DAY]

    assert len(bodies) == 1


def test_a_restless_etag_is_dropped_and_the_date_serves(month: Month) -> None:
    """Its ETag never matches; once that is seen, the date alone is sent and earns 304s."""
    first = [v for v in month.on(3, "restless.test") if v.url.endswith(("/", "/fixed"))]
    later = [v for v in month.on(12, "restless.test") if v.url.endswith(("/", "/fixed"))]

    assert 200 in {v.status for v in first}
    assert later
    assert {(v.status, v.conditional) for v in later} == {(304, True)}


def test_a_host_that_lies_is_asked_in_full_once_checks_have_found_it(month: Month) -> None:
    """304 for pages that changed: believed until the full checks, never after."""
    before, after = month.on(6, "liar.test"), month.on(12, "liar.test")

    assert {v.status for v in before} == {304}
    assert after
    assert {(v.status, v.conditional) for v in after} == {(200, False)}


def test_without_validators_bodies_come_and_become_revisits(month: Month) -> None:
    """Identical payloads are archived as revisits of the first capture."""
    assert not any(v.conditional for v in month.visits if v.url.startswith("bare.test"))
    kinds = [kind for kind, url, _ in records(month) if url.endswith("/fixed") and "bare" in url]

    assert kinds == ["response"] + ["revisit"] * (len(month.days) - 1)


def records(month: Month) -> list[tuple[str, str, Any]]:
    """Type, address and headers of all captures, in order."""
    found = []
    for path in (path for folder in month.folders for path in sorted((folder / "warc").glob("*.warc.gz"))):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type in ("response", "revisit"):
                    headers = record.rec_headers
                    found.append((record.rec_type, headers.get_header("WARC-Target-URI"), headers))
    return sorted(found, key=lambda capture: capture[2].get_header("WARC-Date"))


def test_every_304_is_a_revisit_of_an_archived_body(month: Month) -> None:
    """WARC 1.1, 6.7.3: profile server-not-modified, referring to a response record that is in the archive."""
    captures = records(month)
    responses = {headers.get_header("WARC-Record-ID"): url for kind, url, headers in captures if kind == "response"}
    unmodified = [headers for _, _, headers in captures if headers.get_header("WARC-Profile") == NOT_MODIFIED]

    assert len(unmodified) == sum(v.status == 304 for v in month.visits)
    for headers in unmodified:
        assert responses[headers.get_header("WARC-Refers-To")] == headers.get_header("WARC-Refers-To-Target-URI")


@pytest.mark.parametrize("month", ["alone"], indirect=True)
@pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")
def test_pywb_replays_every_304_and_what_it_stands_for(month: Month, tmp_path: Path) -> None:
    """At its own moment the 304 that it was; at the place that it refers to, that response's very bytes."""
    bodies: dict[str, bytes] = {}
    unmodified = []
    for path in sorted((month.folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "response":
                    bodies[record.rec_headers.get_header("WARC-Record-ID")] = record.content_stream().read()
                elif record.rec_headers.get_header("WARC-Profile") == NOT_MODIFIED:
                    unmodified.append(record.rec_headers)

    wrong = []
    with pywb_of(month.folder, tmp_path) as server:
        for headers in unmodified:
            url, refers = headers.get_header("WARC-Target-URI"), headers.get_header("WARC-Refers-To-Target-URI")
            own = ask(server, f"/crawl/{digits(headers, 'WARC-Date')}id_/{url}")
            original = ask(server, f"/crawl/{digits(headers, 'WARC-Refers-To-Date')}id_/{refers}")
            if own != ("304", b"") or original != ("200", bodies[headers.get_header("WARC-Refers-To")]):
                wrong.append((url, own, original))

    assert len(unmodified) == sum(v.status == 304 for v in month.visits)
    assert wrong == []


def digits(headers: Any, name: str) -> str:
    """A WARC date as pywb's addresses have it."""
    return re.sub(r"\D", "", headers.get_header(name))[:14]


def test_every_page_was_visited_again_and_robots_first(month: Month) -> None:
    """Each session begins at each host with its robots.txt (older than a day by then), then asks for what is known."""
    for day in month.days[1:]:
        urls = [v.url for v in month.visits if v.day == day]
        assert {f"bare.test{path}" for path in ("/", *PERIODS)} <= set(urls)
        hosts = {url.partition("/")[0] for url in urls}
        assert {next(u for u in urls if u.startswith(host)) for host in hosts} == {f"{h}/robots.txt" for h in hosts}


def test_pages_that_only_sitemaps_name_are_crawled(month: Month) -> None:
    """Index, XML, gzip, text and RSS; across hosts only where the other host's robots.txt says so."""
    asked = {v.url for v in month.on(0)}

    for kind in ("xml", "gz", "txt", "rss"):
        assert {f"mapped.test/only/{kind}{number}" for number in range(3)} <= asked
    assert "other.test/crossed" in asked
    everything = {v.url for v in month.visits}
    assert "other.test/stolen" not in everything
    assert "mapped.test/private/mapped" not in everything


def test_hostile_sitemaps_end_and_say_why(month: Month) -> None:
    """No entity is expanded, an index without end stops at its third file, and the log's line has the reason."""
    endless = {v.url for v in month.visits if "endless" in v.url}
    rows = [row for folder in month.folders for row in read_log(folder / "log")]
    errors = {str(row["url"]).rpartition("/")[2]: row["error"] for row in rows}

    assert endless == {f"mapped.test/maps/endless-{number}.xml" for number in range(3)}
    assert "declares entities" in str(errors["bomb.xml"])
    assert "deeper" in str(errors["endless-2.xml"])


def test_entries_of_feeds_are_crawled_as_they_come(month: Month) -> None:
    """RSS, Atom and JSON Feed, found by link elements; new entries on later days; HTML called RSS is a page."""
    for kind in ("rss", "atom", "json"):
        entries = [(v.day, int(v.url.rpartition("/")[2])) for v in month.visits if f"/entry/{kind}/" in v.url]
        first = {number for day, number in entries if day == 0}
        new = {number for day, number in entries if day == 3} - first
        assert len(first) == 2
        assert new


def test_what_a_page_needs_is_visited_again_as_pages_are(month: Month) -> None:
    """Though the page is as it was: its sheet, the picture that this names now, and a stranger's, once a day."""
    for day in month.days:
        asked = Counter(v.url for v in month.on(day, "styled.test"))
        papers = [url for url in asked if url.startswith("styled.test/paper-")]
        assert asked["styled.test/style.css"] == 1
        assert len(papers) >= 1
        assert set(asked.values()) == {1}
        assert [(v.status, v.conditional) for v in month.on(day, "cdn.test")] == (
            [(304, True)] if day not in (0, CHECK_DAY) else [(200, False)]
        )
    pictures = {v.url for v in month.visits if v.url.startswith("styled.test/paper-")}
    assert len(pictures) == len(month.days)
    hops = {(row["url"].rpartition("/")[2], row["hop"]) for folder in month.folders for row in read_log(folder / "log")}
    assert {("style.css", "E"), ("logo.png", "E")} <= hops


def test_what_showed_no_page_is_looked_at_when_its_wait_is_over(month: Month) -> None:
    """An error of the server's after two days, what robots.txt forbade too; a missing page after two weeks."""
    asked = {path: [(v.day, v.status) for v in month.visits if v.url == f"late.test{path}"] for path in LATE}
    for path, before in (("/busy", [(0, 500), (0, 500)]), ("/born", [(0, 404)]), ("/shut", [])):
        since, count = next(day for day in month.days if day >= (14 if path == "/born" else 2)), len(before)
        assert asked[path][:count] == before
        assert asked[path][count] == (since, 200)


def test_pages_are_read_in_full_once_when_robots_txt_allows_more(month: Month) -> None:
    """A link that was forbidden when it was found is on a page that has not changed."""
    front = [(v.day, v.status, v.conditional) for v in month.visits if v.url == "late.test/"]
    hidden = [(v.day, v.status) for v in month.visits if v.url == "late.test/hidden"]

    assert front[:3] == [(0, 200, False), (3, 200, False), (6, 304, True)]
    assert hidden[0] == (3, 200)


def test_a_budget_is_kept_and_nothing_is_lost(month: Month) -> None:
    """Three of the known pages, and the announced ones; the others stay for another day."""
    known, seen = {v.url for v in month.visits}, len(month.visits)
    output = session(month, 33, {}, "-a", "budget=3")

    said = re.findall(r"(\d+) known pages? (?:are|is) visited again", output)
    assert sum(map(int, said)) == 3
    again = [v for v in month.visits[seen:] if v.url in known and not v.url.endswith("/robots.txt")]
    assert 3 <= len(again) <= 3 + 6
