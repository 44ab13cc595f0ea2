"""What a report says of a log written here: errors, and hosts that repeat themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.reports.crawl_report import CrawlReport, crawl_report
from crawlerproject.reports.report_page import page, table
from crawlerproject.reports.svg import line, ticks
from crawlerproject.rules.archive.log_line import Attempt
from crawlerproject.rules.archive.log_line import line as log_line

START = 1_772_445_600.0  # 2026-03-02 10:00:00 UTC


def attempt(number: int, host: str, digest: str = "", **changes: Any) -> Attempt:
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
    return Attempt(at, at + 0.2, f"http://{host}/{number}", "fetched")._replace(**fields | changes)


def report(folder: Path, *attempts: Attempt) -> CrawlReport:
    """Of a log with these."""
    (folder / "log").mkdir()
    lines = b"".join(orjson.dumps(log_line(each)) + b"\n" for each in attempts)
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


def test_axes_have_units(tmp_path: Path) -> None:
    """Rates, not counts of intervals of unsaid length: one page a second is one page a second."""
    found = report(
        tmp_path, *(attempt(number, f"h{number}.test", str(number), received_bytes=5000) for number in range(600))
    )
    shown = page("Crawl", found, {}, [])

    assert found.moment_seconds == pytest.approx(5.0, rel=0.01)
    assert re.search(r"<span [^>]+>1 pages/s</span>", shown)
    assert re.search(r"<span [^>]+>[1-6]\.0 kB/s</span>", shown)
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
