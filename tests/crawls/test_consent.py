"""Forty sites with words on use in all places: what is fetched, kept and exported, by the servers' log.

``python -m benchmarks.consent`` crawls them for each purpose, and as both kinds of fleet.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.crawled import ask
from tests.crawls.consents import Crawled, Place, complaints, crawl_for, place
from tests.web.judge import log_rows, read_visits
from tests.web.profiles.consent import LATER, PAID, SITES, before_asking
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
