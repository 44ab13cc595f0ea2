"""Forty sites with words on use in all places: what is fetched, kept and exported, by the servers' log.

``python -m benchmarks.consent`` crawls them for each purpose, and as both kinds of fleet.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch.bulk_export import document
from crawlerproject.batch.fulltext import Search, search
from crawlerproject.batch.page_captures import pages_of
from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.batch.loaded import load
from tests.commands.crawled import ask, scrapy
from tests.crawls.consents import Crawled, Place, complaints, crawl_for, place
from tests.web.judge import log_rows, read_visits
from tests.web.profiles.consent import LATER, PAGES, PAID, SITES, before_asking
from tests.web.running import HASTE, crawl_command, measured, one_pace, synthetic_web


@pytest.fixture(scope="module", params=["ai-train", "research"])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """With the default of CONSENT it is obeyed for training; for research all words are asked for and recorded."""
    consent = "auto" if request.param == "ai-train" else "ask"
    return crawl_for(tmp_path_factory.mktemp("consent"), request.param, consent)


def test_what_is_reserved_is_not_asked_for_or_not_kept(crawled: Crawled) -> None:
    """By the table of words, with the reasons in the log; where words are recorded each page has its verdict."""
    assert complaints(crawled) == []


def test_no_byte_of_a_page_that_is_reserved_is_in_the_archive(crawled: Crawled) -> None:
    """But a metadata record with its words."""
    withheld = {page for page, reason in crawled.reasons.items() if reason in ("reserved-header", "reserved-page")}
    blocks: dict[Place, list[tuple[str, bytes]]] = {}
    for warc in crawled.warcs:
        with warc.open("rb") as file:
            for each in ArchiveIterator(file):
                if each.rec_type != "warcinfo":
                    found = blocks.setdefault(place(each.rec_headers["WARC-Target-URI"]), [])
                    found.append((each.rec_type, each.content_stream().read()))

    assert bool(withheld) == (crawled.purpose == "ai-train")
    for page in withheld:
        assert [kind for kind, _ in blocks[page]] == ["metadata"]
        assert b"consent: reserved" in blocks[page][0][1]


def test_the_purpose_is_said_wherever_a_crawl_says_what_it_is(crawled: Crawled, tmp_path: Path) -> None:
    """In its crawl.toml, in each WARC file, and in its report."""
    page = tmp_path / "report.html"
    assert scrapy("report", str(page), "-s", f"CRAWL_DIR={crawled.folder}").returncode == 0
    infos = list[str]()
    for warc in crawled.warcs:
        with warc.open("rb") as file:
            infos.append(next(iter(ArchiveIterator(file))).content_stream().read().decode())

    assert f'PURPOSE = "{crawled.purpose}"' in (crawled.folder / "crawl.toml").read_text()
    assert all(re.search(rf"^purpose: {crawled.purpose}\r$", info, re.MULTILINE) for info in infos)
    assert re.search(rf"Purpose<[^>]*>\s*<[^>]*>{crawled.purpose}<", page.read_text())


def test_every_export_has_the_verdict(crawled: Crawled, tmp_path: Path) -> None:
    """Parquet's column is judged above: WET, WAT, WACZ's list of pages, documents for engines and our index agree."""
    texts, facts, bulk = dict[Place, str](), dict[Place, str](), dict[Place, str]()
    for warc in crawled.warcs:
        process_warc(warc, tmp_path, ExtractOptions(wet=True, wat=True))
    for file in (tmp_path / "wet").iterdir():
        with file.open("rb") as opened:
            headers = [each.rec_headers for each in ArchiveIterator(opened) if each.rec_type == "conversion"]
            texts |= {place(each["WARC-Target-URI"]): each["Consent"] for each in headers}
    for file in (tmp_path / "wat").iterdir():
        with file.open("rb") as opened:
            for each in ArchiveIterator(opened):
                said = re.search(rb'{"Name":"consent","Value":"([a-z]+)"}', each.content_stream().read())
                if said is not None:
                    facts[place(each.rec_headers["WARC-Target-URI"])] = said[1].decode()
    for table in (tmp_path / "pages").iterdir():
        bulk |= {place(made["url"]): made["consent"] for made in map(document, pq.read_table(table).to_pylist())}
    listed = [page for warc in crawled.warcs for page in pages_of(warc, text=False, progress=lambda _: None)]
    load(tmp_path / "pages", tmp_path / "search")
    found = search(tmp_path / "search", Search("free part test", 500)).hits

    assert crawled.exported.items() <= bulk.items()
    assert texts.items() <= bulk.items()
    assert {page: said for page, said in bulk.items() if page in PAGES and said != "unknown"}.items() <= facts.items()
    assert {place(page.url): page.consent for page in listed}.items() <= bulk.items()
    assert found
    assert {place(hit.url): hit.consent for hit in found}.items() <= bulk.items()
    # Where words are obeyed little is kept.
    assert min(len(texts), len(bulk), len(listed)) > (4 if crawled.purpose == "ai-train" else 20)


def test_hosts_by_verdict_with_the_words_that_decided(crawled: Crawled) -> None:
    """Also for a purpose that is not the crawl's, and of hosts of which no page was asked for."""
    said = ask(crawled.folder, "consent", "--purpose", "ai-input")
    rows = {row["host"].partition(":")[0]: row for row in said["hosts"]}

    assert said["purpose"] == "ai-input"
    for host in SITES:
        if before_asking(host, "/", "ai-input") or ("noai" in host and crawled.asked[host, "/"]):
            assert rows[host]["verdict"] == "reserved", host
    assert rows[PAID]["verdict"] == "unknown"
    assert any(row["words"].startswith("tdm-reservation: 1") for row in rows.values())
    assert any("payment: crawl" in row["words"] for row in rows.values())
    assert [row["verdict"] for row in said["hosts"]] == sorted(
        (row["verdict"] for row in said["hosts"]), key=["reserved", "allowed", "unknown"].index
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("reserved-robots", "train-ai=n"),
        ("reserved-tdmrep", "tdm-reservation: 1"),
        ("reserved-license", "prohibits: ai-train"),
        ("payment-required", "payment: crawl"),
    ],
)
def test_why_says_the_words_of_the_site(crawled: Crawled, reason: str, words: str) -> None:
    """Of a page that was not asked for; where words are recorded it was fetched."""
    hosts = {row["host"].partition(":")[0]: row["host"] for row in ask(crawled.folder, "consent")["hosts"]}
    host = next(
        host for host in SITES if before_asking(host, "/", "ai-train") == reason and not host.startswith("signal")
        and "broken" not in host
    )  # fmt: skip
    said = ask(crawled.folder, "why", f"http://{hosts[host]}/")

    assert said["reason"] == (reason if crawled.obeyed else "fetched")
    assert (words in str(said.get("rule"))) == crawled.obeyed


def test_a_reservation_that_appears_later_is_seen_on_a_recrawl(tmp_path: Path) -> None:
    """Before the request where robots.txt, tdmrep.json or a licence say so; what an answer reserves is not kept."""
    settings = {**HASTE, **one_pace(0.02), "PACE_PRESET": "fixed5", "PACE_IP_SECONDS": "0.002", "PURPOSE": "ai-train"}
    asked = list[set[str]]()
    with synthetic_web(tmp_path / "web", "--profile", "consent-later") as web:
        seeds = web.folder / "seeds.txt"
        command = crawl_command(seeds, tmp_path / "crawl", web.folder / "hosts", settings)
        for days in (0, 40):
            log, begin = tmp_path / f"{days}.log", ["-m", "tests.web.later", str(days)]
            given = [*command[:1], *begin, *command[command.index("crawl") :]]
            if days:
                given[given.index(f"seeds={seeds}")] = "mode=recrawl"
            assert measured(given, log).status == 0, log.read_text()[-3000:]
            visits = [visit for visit in read_visits(web.folder / "server.jsonl") if visit.path == "/"]
            asked.append({visit.host.removesuffix(".test") for visit in visits[sum(map(len, asked)) :]})
    crawl = CrawlDir(tmp_path / "crawl")
    reasons = {(place(str(line["url"])), str(line["reason"])) for line in log_rows(crawl.log)}

    assert asked == [set(LATER), {"header", "page", "none"}]
    assert (("none.test", "/"), "fetched") in reasons
    assert (("header.test", "/"), "reserved-header") in reasons
    assert (("page.test", "/"), "reserved-page") in reasons
    hosts = {row["host"].partition(".")[0]: row["verdict"] for row in ask(crawl, "consent")["hosts"]}
    assert hosts == {name: "unknown" if name == "none" else "reserved" for name in LATER}
