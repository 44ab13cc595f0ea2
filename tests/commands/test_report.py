"""The report of a crawl of the synthetic web: figures against the log, the page in a real browser."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.stores.request_log import read_log
from tests.commands.browser import Looked, look_at
from tests.commands.crawled import ask, scrapy
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

PARTS = (
    "Pages and bytes over time", "Status codes", "Response times (to the first byte)", "Pauses: kept minus promised",
    "Hosts by state", "File types", "Near-duplicates", "Renders", "Top errors", "Trap suspects",
    "Extension against Content-Type", "Hosts that yield nothing new",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A crawl of the small web, cut short by its depth."""
    home = tmp_path_factory.mktemp("report")
    with synthetic_web(home / "web") as web:
        settings = {
            **small_settings(web), "FRONTIER_PATIENCE_SECONDS": "1", "BACKOFF_MAX_SECONDS": "1", "SCOPE_MAX_DEPTH": "4",
        }  # fmt: skip
        command = crawl_command(web.folder / "seeds.txt", home / "crawl", web.folder / "hosts", settings)
        assert measured(command, home / "crawl.log").status == 0
    return home / "crawl"


def robots(row: dict[str, Any]) -> bool:
    """Whether the line is of a robots.txt."""
    return str(row["hop"]).rstrip("R").endswith("P")


def test_the_figures_are_those_of_the_log(folder: Path) -> None:
    """Counted again from the lines, one by one."""
    told = ask(folder, "report")
    log: list[dict[str, Any]] = list(read_log(folder / "log"))
    pages = [row for row in log if row["status"] is not None and not robots(row)]

    assert (told["attempts"], told["pages"]) == (len(log), len(pages))
    assert told["bytes"] == sum(row["bytes"] or 0 for row in log)
    assert sum(moment["pages"] for moment in told["over_time"]) == len(pages)
    assert sum(moment["bytes"] for moment in told["over_time"]) == told["bytes"]
    statuses = Counter(str(row["status"]) for row in log if row["status"] is not None)
    assert {entry["name"]: entry["number"] for entry in told["statuses"]} == statuses
    errors = Counter(row["reason"] for row in log if row["status"] is None)
    assert {entry["name"]: entry["number"] for entry in told["errors"]} == errors
    assert told["short_pauses"] == 0
    kinds = Counter(row["mime"] or "(none)" for row in pages if row["status"] == 200)
    assert {entry["name"]: entry["number"] for entry in told["types"]} == kinds


def test_the_tables_say_what_to_skip(folder: Path) -> None:
    """Extensions by what they turned out to be, and the host whose pages repeat each other."""
    told = ask(folder, "report")

    html = [row for row in told["extensions"] if row["extension"] == "html"]
    assert [(row["type"], row["html_share"]) for row in html] == [("text/html", 1.0)]
    stale = {row["host"].partition(":")[0]: row for row in told["stale_hosts"]}
    assert stale["copies.test"]["new"] < stale["copies.test"]["pages"]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(folder: Path, tmp_path: Path, width: int) -> None:
    """Wide and narrow: every part is there, nothing sticks out, nothing is loaded, no error, no colour needed."""
    page = tmp_path / "report.html"
    ended = scrapy("report", str(page), folder=folder)
    assert ended.returncode == 0, ended.stderr

    looked: Looked = look_at(page.as_uri(), width)

    assert looked.messages == []
    assert looked.requests == [page.as_uri()]
    assert looked.page_width <= width
    assert looked.headings == list(PARTS)
    # Every bar has its number beside it, every second line is dashed: colour says nothing that text does not.
    source = page.read_text()
    assert source.count('class="bar"') <= len(re.findall(r"\(\d+%\)</text>", source))
    assert "stroke-dasharray" in source


def test_without_a_log_it_says_so(tmp_path: Path) -> None:
    """One sentence, status 2."""
    ended = scrapy("report", folder=tmp_path)

    assert (ended.returncode, "no request log" in ended.stderr) == (2, True)
