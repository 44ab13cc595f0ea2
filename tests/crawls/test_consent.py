"""Forty sites with all combinations of words on use: what is fetched, kept and exported, by the servers' log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch.process_warcs import process_warc
from crawlerproject.batch.warc_extract import ExtractOptions
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.crawled import ask
from tests.web.judge import log_rows, read_visits
from tests.web.profiles.consent import PAID, PATHS, SITES
from tests.web.running import HASTE, crawl_command, finish, one_pace, start, synthetic_web

Pages = set[tuple[str, str]]
"""Of host and path."""
PAGES = {(host, path) for host, path in product(SITES, PATHS)}


class Crawled(NamedTuple):
    """A crawl for one purpose that has ended."""

    purpose: str
    asked: list[tuple[str, str]]
    kept: Pages
    exported: dict[tuple[str, str], str]  # the column consent
    reasons: dict[tuple[str, str], str]
    warcs: list[Path]
    folder: CrawlDir


def place(url: str) -> tuple[str, str]:
    """Host and path of a page."""
    parts = urlsplit(url)
    return str(parts.hostname), parts.path


def reserved(host: str, path: str, purpose: str) -> str:
    """Where, in the order in which a crawl learns of it, the site reserves the page; "" when it does not.

    From the table of words, without the code that is tested.
    """
    robots, header, page = SITES[host]
    trains = purpose == "ai-train"
    if trains and (robots in ("no", "signal") or (robots == "path" and path.startswith("/part"))):
        return "robots"
    if header == "tdm1" or (trains and header == "no"):
        return "header"
    return "page" if trains and page == "noai" else ""


@pytest.fixture(scope="module", params=["ai-train", "research"])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """With the default of CONSENT: obeyed for training, recorded for research."""
    folder = tmp_path_factory.mktemp("consent")
    settings = {
        **HASTE,
        **one_pace(0.05),
        "PACE_PRESET": "fixed5",
        "PACE_IP_SECONDS": "0.002",
        "PURPOSE": request.param,
    }
    with synthetic_web(folder / "web", "--profile", "consent") as web:
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        began = time.monotonic()
        with (folder / "log").open("wb") as output:
            assert finish(start(command, output), began).status == 0, (folder / "log").read_text()[-3000:]
        visits = read_visits(web.folder / "server.jsonl")
    crawl = CrawlDir(folder / "crawl")
    warcs, kept, exported = sorted(crawl.warc.glob("*.warc.gz")), Pages(), dict[tuple[str, str], str]()
    for warc in warcs:
        with warc.open("rb") as file:
            kept |= {
                place(each.rec_headers["WARC-Target-URI"])
                for each in ArchiveIterator(file)
                if each.rec_type == "response"
            }
        process_warc(warc, folder / "out", ExtractOptions())
    for table in (folder / "out" / "pages").iterdir():
        rows = pq.read_table(table, columns=["url", "consent"]).to_pylist()
        exported |= {place(row["url"]): row["consent"] for row in rows}
    reasons = {place(str(line["url"])): str(line["reason"]) for line in log_rows(crawl.log)}
    asked = [(visit.host, visit.path) for visit in visits if visit.path != "/robots.txt"]
    yield Crawled(request.param, asked, kept, exported, reasons, warcs, crawl)


def test_what_is_reserved_before_the_request_is_not_asked_for(crawled: Crawled) -> None:
    """Nor what only pages lead to that are not kept. Where words are only recorded everything is, each once."""
    obeyed = crawled.purpose == "ai-train"
    wanted = set()
    for host, path in PAGES:
        front = reserved(host, "/", crawled.purpose)
        if not obeyed or (
            front != "robots" and (path == "/" or not front) and reserved(host, path, crawled.purpose) != "robots"
        ):
            wanted.add((host, path))

    assert sorted(crawled.asked) == sorted([*wanted, (PAID, "/")])


def test_what_an_answer_reserves_is_neither_kept_nor_exported(crawled: Crawled) -> None:
    """Its reason is logged. Where words are only recorded the verdict is exported with the page."""
    if crawled.purpose == "ai-train":
        asked = set(crawled.asked) - {(PAID, "/")}
        wanted = {page for page in asked if not reserved(*page, crawled.purpose)}
        assert {crawled.reasons[page] for page in wanted} == {"fetched"}
        # Of several places the nearest to the page is named.
        nearest = {page: "page" if SITES[page[0]][2] == "noai" else "header" for page in asked - wanted}
        assert {page: crawled.reasons[page] for page in nearest} == {
            page: f"reserved-{where}" for page, where in nearest.items()
        }
    else:
        wanted = PAGES

    assert {page for page in crawled.kept if page[0] in SITES and page[1] != "/robots.txt"} == wanted
    exported = {page: verdict for page, verdict in crawled.exported.items() if page[0] in SITES}
    assert set(exported) == wanted
    for (host, path), verdict in exported.items():
        robots, header, _ = SITES[host]
        allowed = robots == "yes" and crawled.purpose == "ai-train"
        expected = (
            "reserved"
            if reserved(host, path, crawled.purpose)
            else "allowed"
            if allowed or header == "tdm0"
            else "unknown"
        )
        assert verdict == expected, (host, path)


def test_no_byte_of_a_page_that_is_reserved_is_in_the_archive(crawled: Crawled) -> None:
    """But a metadata record with its words."""
    withheld = {page for page, reason in crawled.reasons.items() if reason in ("reserved-header", "reserved-page")}
    blocks: dict[tuple[str, str], list[tuple[str, bytes]]] = {}
    for warc in crawled.warcs:
        with warc.open("rb") as file:
            for each in ArchiveIterator(file):
                if each.rec_type != "warcinfo":
                    found = blocks.setdefault(place(each.rec_headers["WARC-Target-URI"]), [])
                    found.append((each.rec_type, each.content_stream().read()))

    assert len(withheld) == (18 if crawled.purpose == "ai-train" else 0)
    for page in withheld:
        assert [kind for kind, _ in blocks[page]] == ["metadata"]
        assert b"consent: reserved" in blocks[page][0][1]


def test_a_page_that_costs_money_is_asked_for_once(crawled: Crawled) -> None:
    """And is no error of its host's."""
    assert crawled.reasons[PAID, "/"] == "payment-required"
    assert crawled.asked.count((PAID, "/")) == 1


def test_hosts_by_verdict_with_the_words_that_decided(crawled: Crawled) -> None:
    """Also for a purpose that is not the crawl's."""
    said = ask(crawled.folder, "consent", "--purpose", "ai-input")
    rows = {row["host"].partition(":")[0]: row for row in said["hosts"]}

    assert said["purpose"] == "ai-input"
    host = "none-tdm0-none.test"
    assert (rows[host]["verdict"], rows[host]["words"]) == ("allowed", "tdm-reservation: 0")
    assert rows["none-none-noai.test"]["verdict"] == rows["none-tdm1-none.test"]["verdict"] == "reserved"
    assert rows["none-none-none.test"]["verdict"] == rows["no-none-none.test"]["verdict"] == "unknown"
    assert [row["verdict"] for row in said["hosts"]] == sorted(
        (row["verdict"] for row in said["hosts"]), key=["reserved", "allowed", "unknown"].index
    )


def test_why_says_the_words_of_robots_txt(crawled: Crawled) -> None:
    """Of a page that they reserve."""
    hosts = ask(crawled.folder, "consent")["hosts"]
    host = next(row["host"] for row in hosts if row["host"].startswith("no-none-none."))
    said = ask(crawled.folder, "why", f"http://{host}/")

    assert said["reason"] == crawled.reasons.get((host.partition(":")[0], "/"), "reserved-robots")
    assert ("train-ai=n" in str(said.get("rule"))) == (crawled.purpose == "ai-train")
