"""What a report says of a log written here: errors, and hosts that repeat themselves."""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.commands.reply import _what_was_asked
from crawlerproject.errors import OperatorError
from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.reports.crawl_report import CrawlReport, crawl_report, listed
from crawlerproject.reports.report_page import Title, line, page, table, ticks
from crawlerproject.reports.summary import host_story
from crawlerproject.rules.politeness.pause_audit import Audit, asked_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs import log_query
from crawlerproject.stores.logs.request_log import attempt_line as log_line

START = 1_772_445_600.0  # 2026-03-02 10:00:00 UTC


def attempt(number: int, host: str, digest: str = "", **changes: Any) -> dict[str, Any]:
    """The attempt of second ``number``: a page of the host with this digest."""
    at = START + number
    fields: dict[str, Any] = {
        "status": 200,
        "host": host,
        "ip": "127.0.0.1",
        "digest": digest,
        "delay_seconds": 0.5,
        "ttfb_seconds": 0.1,
    }
    known: dict[str, Any] = {
        "started_at": at,
        "ended_at": at + 0.2,
        "url": f"http://{host}/{number}",
        "reason": "fetched",
    }
    return log_line(**known | fields | changes)


def report(folder: Path, *attempts: dict[str, Any]) -> CrawlReport:
    """Of a log with these."""
    (folder / "log").mkdir()
    lines = b"".join(orjson.dumps(each) + b"\n" for each in attempts)
    (folder / "log" / "requests-2026-03-02.jsonl").write_bytes(lines)
    return crawl_report(folder / "log")


def test_a_render_is_no_error(tmp_path: Path) -> None:
    """It has no status, since the page's own answer had one; what failed has none either."""
    found = report(
        tmp_path,
        attempt(0, "a.test", "A"),
        attempt(1, "a.test", status=None, reason="rendered", rendered=True),
        attempt(2, "a.test", status=None, reason="render-timeout", rendered=True),
        attempt(3, "b.test", status=None, reason="dns-not-found", ip=""),
    )

    assert {each.name: each.number for each in found.errors} == {"render-timeout": 1, "dns-not-found": 1}
    assert found.rendered == 2


def test_a_host_whose_pages_are_new_repeats_nothing(tmp_path: Path) -> None:
    """Not with one copy among a hundred, and not when its pages are visited again."""
    good = [attempt(number, "good.test", f"D{number or 1}") for number in range(100)]
    again = [
        attempt(200 + number, "again.test", f"A{number % 6}", url=f"http://again.test/{number % 6}")
        for number in range(30)
    ]

    assert report(tmp_path, *good, *again).stale_hosts == []


def test_a_host_that_repeats_itself_is_listed(tmp_path: Path) -> None:
    """By the same payload, or by pages that are marked as near another; the worst first."""
    same = [attempt(number, "same.test", "S") for number in range(10)]
    near = [
        attempt(50 + number, "near.test", f"N{number}", duplicate="near" if number > 3 else "") for number in range(10)
    ]
    few = [attempt(90 + number, "few.test", "F") for number in range(4)]

    found = report(tmp_path, *same, *near, *few).stale_hosts

    assert [(row["host"], row["new"], row["pages"]) for row in found] == [("same.test", 1, 10), ("near.test", 4, 10)]


def test_new_is_what_a_page_is_now(tmp_path: Path) -> None:
    """As it was visited last; what belongs to a page is none. Of one that was rendered the browser's text counts."""
    was = [attempt(number, "was.test", f"W{number}", duplicate="canonical") for number in range(10)]
    now = [attempt(100 + number, "was.test", f"X{number}", url=each["url"]) for number, each in enumerate(was)]
    shells = [attempt(200 + number, "app.test", "SHELL") for number in range(10)]
    shown = [
        attempt(300 + n, "app.test", f"DOM{n}", url=each["url"], status=None, reason="rendered", rendered=True,
                duplicate="near" if n == 9 else "")
        for n, each in enumerate(shells)
    ]  # fmt: skip
    scripts = [attempt(400 + number, "app.test", "JS", hop="LE") for number in range(50)]

    found = report(tmp_path, *was, *now, *shells, *shown, *scripts)

    assert found.stale_hosts == []
    assert {each.name: each.number for each in found.duplicates} == {"new": 19, "near": 1}


def test_axes_have_units(tmp_path: Path) -> None:
    """Rates, not counts of intervals of unsaid length: one page a second is one page a second."""
    found = report(tmp_path, *(attempt(number, f"h{number}.test", str(number), bytes=5000) for number in range(600)))
    shown = page(Title("Crawl", ""), found, {}, [], "crawls/web")

    assert found.moment_seconds == pytest.approx(5.0, rel=0.01)
    assert re.search(r"<text [^>]+>1 pages/s</text>", shown)
    assert re.search(r"<text [^>]+>[1-6]\.0 kB/s</text>", shown)
    assert "Times are UTC, of 2026-03-02." in shown


@pytest.mark.parametrize("most", [0.0, 0.03, 0.5, 1.0, 7.0, 99.0, 100.0, 12_345.0, 3e12])
def test_marks_of_an_axis_are_round(most: float) -> None:
    """A few of them, the highest no higher than what is shown needs."""
    marks = ticks(most)

    assert 1 <= len(marks) <= 5
    assert [float(f"{mark:.3g}") for mark in marks] == pytest.approx(marks, rel=1e-9)
    assert marks[-1] <= max(most, marks[0])


def test_marks_of_whole_things_are_whole() -> None:
    """No axis says 2 twice."""
    for most in (0.3, 1, 2, 7, 10, 26, 999):
        marks = ticks(most, whole=True)
        assert all(mark == int(mark) for mark in marks)
        assert len(set(marks)) == len(marks)


def test_heads_stand_as_their_numbers_do() -> None:
    """Shares too."""
    shown = table(["host", "pages", "share"], [["a.test", 1234, "12%"]])

    assert '<th>host</th><th class="n">pages</th><th class="n">share</th>' in shown
    assert '<td>a.test</td><td class="n">1,234</td><td class="n">12%</td>' in shown


def test_what_strangers_wrote_is_text() -> None:
    """Names of hosts, templates and types."""
    shown = table(["<b>"], [["<script>alert(1)</script>"]]) + line(
        "<i>", ("<u>", ""), [1.0], lambda value: f"<{value}>"
    )

    assert not re.search(r"<(b|script|i|u|1\.0)>", shown)


@pytest.mark.parametrize("seed", range(5))
def test_pauses_are_those_of_the_audit(tmp_path: Path, seed: int) -> None:
    """Requests of some hosts at random, some of them within others: both name as many that came too soon."""
    chance = random.Random(seed)
    lines = []
    for number in range(40):
        at, host = START + chance.uniform(0, 60), chance.choice(["a.test", "a.test:8080", "b.test"])
        lines.append(attempt(number, host, started_at=at, ended_at=at + chance.uniform(0.1, 3)))
    found, audit = report(tmp_path, *lines), Audit(None)
    for each in sorted(lines, key=lambda each: str(each["time"])):
        asked = asked_of(each)
        assert asked is not None
        audit.add(asked)
    audit.close()
    assert found.short_pauses == len(audit.violations) > 0
    assert sum(count.number for count in found.margins) == audit.pauses
    assert found.margins[0].name == "shorter than promised"


def test_an_empty_log_has_a_report(tmp_path: Path) -> None:
    """All figures are nothing, and no part of the page is empty: only how to look at it is left."""
    found = report(tmp_path)
    assert (found.attempts, found.began, found.margins) == (0, "", [])
    shown = page(Title("Crawl", ""), found, {}, [], "crawls/web")
    assert re.findall(r"<h2>(.*?)</h2>", shown) == ["How to look at it"]
    assert "<dd></dd>" not in shown


def test_what_became_of_seeds_and_urls(tmp_path: Path) -> None:
    """By the last attempt: a seed that was redirected by where that led, one that failed with what helps."""
    old, new, lost = "http://a.test/old", "http://a.test/new", "http://c.test/"
    moved: dict[str, Any] = {"status": 301, "reason": "redirect"}
    found = report(
        tmp_path,
        attempt(0, "a.test", url=old, **moved, location=new),
        attempt(1, "a.test", url=new, hop="R", status=503, reason="http-error"),
        attempt(2, "a.test", url=new, hop="R"),
        attempt(3, "b.test", url="http://b.test/", **moved, location="http://z.test/"),
        attempt(4, "c.test", url=lost, status=None, reason="dns-not-found", ip="", bytes=0),
        attempt(5, "c.test", url="http://c.test/robots.txt", hop="P", status=None, reason="dns-not-found", ip=""),
        attempt(6, "a.test", url="http://a.test/x", hop="L", status=404, reason="http-error", bytes=10),
        attempt(7, "a.test", url="http://a.test/x.css", hop="LE", status=404, reason="http-error"),
        attempt(8, "a.test", url="http://a.test/y"),
        attempt(9, "a.test", url="http://a.test/y", status=304, reason="not-modified"),
    )

    assert [(seed.url, seed.good, seed.became) for seed in found.seeds] == [
        (old, True, f"redirect to {new}, fetched"),
        ("http://b.test/", False, "redirect to http://z.test/"),
        (lost, False, f"dns-not-found. {REMEDIES[Reason.DNS_NOT_FOUND]}"),
        ("http://a.test/y", True, "304, not-modified"),
    ]
    assert [seed.good for seed in listed(found.seeds)] == [False, False, True, True]
    failed = [(row["url"], row["status"], row["reason"], row["attempts"]) for row in found.failed]
    assert failed == [("http://a.test/x", 404, "http-error", 1), (lost, None, "dns-not-found", 1)]
    assert {row["host"]: (row["pages"], row["errors"]) for row in found.by_host} == {
        "a.test": (4, 2), "b.test": (1, 0), "c.test": (0, 2),
    }  # fmt: skip


def test_totals_and_bars(tmp_path: Path) -> None:
    """robots.txt is an answer and no page, nor is what a page needs; each value is in one bar."""
    found = report(
        tmp_path,
        attempt(0, "e.test", "E", hop="LER", ttfb_seconds=None, ip="127.0.0.2"),
        attempt(0, "a.test", "A", hop="P", bytes=10, ttfb_seconds=0.04),
        attempt(5, "a.test", "B", bytes=100, mime="text/html"),
        attempt(10, "a.test", "C", bytes=100, status=404, ttfb_seconds=30.0),
    )
    assert (found.attempts, found.pages, found.bytes, found.hosts) == (4, 2, 210, 2)
    assert [(count.name, count.number) for count in found.statuses] == [("200", 3), ("404", 1)]
    times = {count.name: count.number for count in found.response_times if count.number}
    assert times == {"up to 0.05 s": 1, "up to 0.1 s": 1, "over 20 s": 1}
    assert {count.name: count.number for count in found.margins if count.number} == {"up to 5 s": 2}
    assert [(count.name, count.number) for count in found.types] == [("(none)", 1), ("text/html", 1)]
    assert sum(moment.pages for moment in found.over_time) == 2


def test_visits_and_what_pages_need_are_no_pages(tmp_path: Path) -> None:
    """A page counts once, however often it was visited; style sheets stand apart, in the table of extensions too."""
    again = [attempt(0, "a.test", "A", started_at=START + at, ended_at=START + at, mime="text/html") for at in (0, 9)]
    style = attempt(3, "a.test", "C", url="http://a.test/look.css", hop="LE", mime="text/css")

    found = report(tmp_path, *again, style)

    assert (found.pages, found.visits, found.requisites) == (1, 2, 1)
    assert [(row["type"], row["pages"]) for row in found.extensions] == [("text/html", 1)]
    assert "1, visited 2 times, and 1 file that pages need" in page(Title("Crawl", ""), found, {}, [], "crawls/web")


def test_a_usual_pause_is_no_mean(tmp_path: Path) -> None:
    """One night between two starts says nothing of the pauses that a site has had."""
    moments = [0.0, 1.0, 2.0, 3.0, 40_000.0]
    report(
        tmp_path,
        *(attempt(n, "a.test", started_at=START + at, ended_at=START + at + 0.5) for n, at in enumerate(moments)),
    )

    told = _what_was_asked("Bot", host_story([CrawlDir(tmp_path)], "a.test"))

    assert "it paused 0.5 s as a rule, never under 0.5 s" in told


def test_a_seed_that_a_link_led_to_later_is_as_it_was_then(tmp_path: Path) -> None:
    """Its redirect is followed too, though that attempt was no seed's."""
    found = report(
        tmp_path,
        attempt(0, "a.test", "A", url="http://a.test/"),
        attempt(1, "a.test", "B", url="http://a.test/new", hop="R"),
        attempt(9, "a.test", url="http://a.test/", hop="LL", status=301, reason="redirect",
                location="http://a.test/new"),
    )  # fmt: skip

    (seed,) = found.seeds
    assert (seed.url, seed.good) == ("http://a.test/", True)
    assert seed.became == "redirect to http://a.test/new, fetched"


def test_without_room_it_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That says where room is wanted, in place of DuckDB's own report."""
    monkeypatch.setattr(log_query, "QUERY_MEMORY", "300KB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no folder"))
    many = [attempt(number, f"h{number % 99}.test", f"D{number}") for number in range(3000)]

    with pytest.raises(OperatorError, match=r"The request log cannot be asked \(.+; it needs some room in .*no folder"):
        report(tmp_path, *many)
