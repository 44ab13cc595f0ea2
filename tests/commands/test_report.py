"""The report of a crawl of the synthetic web: figures against the log, the page in a real browser."""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from playwright.sync_api import Browser

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.browser import Window, window
from tests.commands.browser import axe as axe
from tests.commands.browser import browser as browser
from tests.commands.crawled import ask, scrapy
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

PARTS = (
    "Seeds", "Hosts", "URLs that failed", "Refused", "How to look at it", "Pages and bytes over time", "Status codes",
    "Response times (to the first byte)", "Pauses: kept minus promised", "Hosts by state", "File types",
    "Near-duplicates", "Top errors", "Trap suspects", "Extension against Content-Type",
    "Hosts that mostly repeat themselves",
)  # fmt: skip
TITLE, DESCRIPTION = "The small <web>", "What it is, for those who come later."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of the small web, cut short by its depth."""
    home = tmp_path_factory.mktemp("report")
    with synthetic_web(home / "web") as web:
        settings = {
            **small_settings(web), "FRONTIER_MAX_REST_SECONDS": "1", "BACKOFF_MAX_SECONDS": "1", "SCOPE_MAX_DEPTH": "4",
        }  # fmt: skip
        port, given = web.port, (web.folder / "seeds.txt").read_text()
        more = (f"http://redirects.test:{port}/permanent", f"http://excluded.test:{port}/", "ftp://plain1.test/")
        (home / "seeds.txt").write_text(given + "\n".join(more))
        settings |= {"CRAWL_TITLE": TITLE, "CRAWL_DESCRIPTION": DESCRIPTION}
        command = crawl_command(home / "seeds.txt", home / "crawl", web.folder / "hosts", settings)
        assert measured(command, home / "crawl.log").status == 0
    return home / "crawl"


def test_a_seed_that_is_skipped_is_named_once(folder: Path) -> None:
    """Not by the check before the start and by the spider."""
    named = [line for line in (folder.parent / "crawl.log").read_text().splitlines() if "is skipped" in line]
    assert [line.partition("WARNING: ")[2].split(": ", 1)[1] for line in named] == [
        "unsupported-scheme: 'ftp://plain1.test/' is skipped"
    ]


def robots(row: dict[str, Any]) -> bool:
    """Whether the line is of a robots.txt."""
    return str(row["hop"]).rstrip("R").endswith("P")


def test_the_figures_are_those_of_the_log(folder: Path) -> None:
    """Counted again from the lines, one by one."""
    told = ask(folder, "report")
    log: list[dict[str, Any]] = list(read_log(folder / "log"))
    pages = [row for row in log if row["status"] is not None and not robots(row)]

    assert (told["attempts"], told["pages"]) == (len(log), len({row["url"] for row in pages}))
    assert told["visits"] == len(pages)
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

    pages = [row for row in told["extensions"] if row["extension"] == "html"]
    assert [(row["type"], row["html_share"]) for row in pages] == [("text/html", 1.0)]
    stale = {row["host"].partition(":")[0]: row for row in told["stale_hosts"]}
    assert "ugly.test" in stale
    assert all(row["new"] <= row["pages"] / 2 for row in stale.values())


def test_it_says_what_the_crawl_was(folder: Path) -> None:
    """By whom and how far; each seed, also one that was never asked for; what failed and what was refused."""
    told = ask(folder, "report")
    log: list[dict[str, Any]] = list(read_log(folder / "log"))

    about = dict(told["about"])
    assert about["Bot"] == "TestBed/1.0 (+https://example.org/bot; bot@example.org)"
    assert about["Contact"] == "bot@example.org, https://example.org/bot"
    assert about["Scope"] == "scope=any; at most 4 links deep"
    assert about["How it ended"] == "finished"
    assert {"Began", "Ended", "Made with", "Purpose"} < about.keys()
    seeds = {
        re.sub(r":\d+", "", seed["url"]): (seed["good"], re.sub(r":\d+", "", seed["became"])) for seed in told["seeds"]
    }
    assert seeds["http://excluded.test/"] == (False, "refused, nevercrawl")
    assert seeds["ftp://plain1.test/"] == (False, "no URL to crawl: unsupported-scheme")
    assert seeds["http://redirects.test/permanent"][0]
    assert seeds["http://redirects.test/permanent"][1].startswith("redirect to http://redirects.test/")
    assert told["seeds_in_all"] == len(seeds) == 7
    for name in ("pages", "bytes"):
        assert sum(row[name] for row in told["by_host"]) == told[name]
    last = {row["url"]: row for row in log if not robots(row)}
    gone = {url for url, row in last.items() if (row["status"] or 0) >= 400}
    assert gone <= {row["url"] for row in told["failed"]} <= last.keys()
    assert told["failed_in_all"] == len(told["failed"])
    assert {entry["name"]: entry["number"] for entry in told["refused"]}["nevercrawl"] >= 1


def test_its_traps_are_those_of_the_command(folder: Path) -> None:
    """Row by row, in the order in which `traps` has them."""
    written = scrapy("traps", "--json", folder=folder)
    rows = [orjson.loads(line) for line in written.stdout.splitlines()]
    page = folder / "traps.html"
    scrapy("report", str(page), folder=folder)
    shown = page.read_text().partition("Trap suspects")[2].partition("</section>")[0]

    assert rows
    cells = [[html.unescape(cell) for cell in re.findall("<td[^>]*>([^<]*)", row)] for row in shown.split("<tr>")[2:]]
    assert cells == [[row["host"], row["template"], row["why"]] for row in rows]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_page_in_a_browser(folder: Path, browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    """Wide and narrow: every part is there, no text is cut or sticks out, nothing is loaded, no error."""
    page = tmp_path / "report.html"
    ended = scrapy("report", str(page), folder=folder)
    assert ended.returncode == 0, ended.stderr

    with window(browser, width, scheme) as seen:
        seen.page.goto(page.as_uri())

        assert seen.messages == []
        assert [url for url in seen.requests if not url.startswith("data:")] == [page.as_uri()]
        assert seen.width <= width
        assert seen.clipped() == []
        assert [heading.inner_text() for heading in seen.page.query_selector_all("h2")] == list(PARTS)
        # Colour says nothing that text does not: every bar has its number beside it.
        assert seen.page.locator("rect.bar").count() == seen.page.locator(".bars .value").count() > 20
        marks = seen.page.locator(".line .marks").all_text_contents()
        assert [bool(re.search(unit, text)) for unit, text in zip((r"pages/(s|min)", "B/s"), marks, strict=True)]
        assert misaligned(seen) == []
        assert seen.page.locator("h1").inner_text() == TITLE
        assert seen.page.locator(".cover p").inner_text() == DESCRIPTION
        seen.page.emulate_media(media="print")  # on white, in either scheme
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_the_page_is_accessible(folder: Path, browser: Browser, axe: str, tmp_path: Path) -> None:
    """As axe-core judges."""
    assert scrapy("report", str(tmp_path / "report.html"), folder=folder).returncode == 0
    with window(browser, 390) as seen:
        seen.page.goto((tmp_path / "report.html").as_uri())
        assert seen.inaccessible(axe) == []


def misaligned(seen: Window) -> list[str]:
    """Heads of columns that are not aligned as what stands below them."""
    found: list[str] = seen.page.evaluate(
        """() => [...document.querySelectorAll("table")].flatMap((table) => [...table.tHead.rows[0].cells].filter(
          (head, at) => [...table.tBodies[0].rows].some(
            (row) => getComputedStyle(row.cells[at]).textAlign !== getComputedStyle(head).textAlign))
          .map((head) => head.textContent))"""
    )
    return found


def test_without_a_log_it_says_so(tmp_path: Path) -> None:
    """One sentence, status 2."""
    ended = scrapy("report", folder=tmp_path)

    assert (ended.returncode, "no request log" in ended.stderr) == (2, True)
