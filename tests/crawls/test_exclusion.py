"""NeverCrawl while the crawl runs: after the reload interval nothing is asked for, by the server's log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.web.judge import Visit, read_visits
from tests.web.profiles.exclusion import BELOW, HOP_PAGES, LATE, LATE_PAGES, STAYS_PAGES
from tests.web.running import HASTE, crawl_command, finish, one_pace, start, synthetic_web
from tests.web.waiting import wait_until

PACE_SECONDS = 0.1
RELOAD_SECONDS = 1.0
# A request that was on its way when the list was read, the writing of the file itself, and a machine that is busy.
SLACK_SECONDS = 1.5
SETTINGS = {
    **HASTE,
    "PACE_PRESET": "fixed5",
    **one_pace(PACE_SECONDS),
    "PACE_IP_SECONDS": str(PACE_SECONDS),
    "NEVERCRAWL_RELOAD_SECONDS": str(RELOAD_SECONDS),
}


class Crawled(NamedTuple):
    """A finished crawl, and when the list changed under it."""

    folder: Path
    output: str
    visits: list[Visit]
    excluded_at: float  # epoch seconds: the line was in the file
    vanished_at: float  # epoch seconds: the file was gone


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("exclusion")
    never, log = folder / "never.txt", folder / "crawl.log"
    never.write_text("# ours\nelsewhere.test\n")
    with synthetic_web(folder / "web", "--profile", "exclusion") as web:
        seen = web.folder / "server.jsonl"
        settings = {**SETTINGS, "NEVERCRAWL_FILE": str(never)}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        began = time.monotonic()
        with log.open("wb") as output:
            process = start(command, output)
            wait_until(lambda: seen.exists() and sum(visit.host == LATE for visit in read_visits(seen)) > 8)
            never.write_text(f"# ours\nelsewhere.test\nno domain at all!\n{LATE}  # a complaint\n")
            excluded_at = time.time()
            wait_until(lambda: "excluded from now on" in log.read_text())
            never.unlink()
            vanished_at = time.time()
            assert finish(process, began).status == 0, log.read_text()[-3000:]
        yield Crawled(folder / "crawl", log.read_text(), read_visits(seen), excluded_at, vanished_at)


@pytest.mark.parametrize("host", [LATE, BELOW])
def test_no_request_after_the_reload_interval(crawled: Crawled, host: str) -> None:
    """Neither the domain nor what is below it, by the server's log; and the crawl did go on for much longer."""
    asked = [visit.start for visit in crawled.visits if visit.host == host]
    assert len(asked) > 4
    assert max(asked) <= crawled.excluded_at + RELOAD_SECONDS + SLACK_SECONDS
    assert max(visit.start for visit in crawled.visits) > crawled.excluded_at + 2 * RELOAD_SECONDS + SLACK_SECONDS


def test_a_vanished_list_keeps_the_last_good_one(crawled: Crawled) -> None:
    """With a warning, and without one request to what it excluded."""
    after = [visit.host for visit in crawled.visits if visit.start > crawled.vanished_at + 2 * RELOAD_SECONDS]
    assert after
    assert not {LATE, BELOW} & set(after)
    assert "cannot be read (No such file or directory); what was read last holds" in crawled.output


def test_other_hosts_are_crawled_whole(crawled: Crawled) -> None:
    """Also the one whose pages all lead to the excluded domain."""
    asked = {(visit.host, visit.path) for visit in crawled.visits}
    assert {path for host, path in asked if host == "stays.test"} >= {f"/{number}" for number in range(STAYS_PAGES)}
    assert {path for host, path in asked if host == "hop.test"} >= {f"/{number}" for number in range(HOP_PAGES)}


def test_the_change_is_in_the_log(crawled: Crawled) -> None:
    """The domain by name, the bad line by its number; the list itself once, since it has one reader."""
    assert crawled.output.count("Never-crawl list") - crawled.output.count("Never-crawl list: excluded") == 2
    assert f"excluded from now on: {LATE}" in crawled.output
    assert "never.txt line 3 is skipped: 'no domain at all!'" in crawled.output


def test_queued_urls_and_redirects_are_dropped_and_counted(crawled: Crawled) -> None:
    """All that was queued there and not asked for, and every redirect that came later."""
    asked = sum(visit.host in (LATE, BELOW) and visit.path not in ("/", "/robots.txt") for visit in crawled.visits)
    late_redirects = sum(
        visit.host == "hop.test" and visit.status == 302 and visit.start > crawled.excluded_at + RELOAD_SECONDS
        for visit in crawled.visits
    )
    counted = int(crawled.output.partition("'refused/nevercrawl': ")[2].partition(",")[0])
    assert late_redirects > 0
    assert counted >= 2 * LATE_PAGES - asked + late_redirects - 2  # in flight when the list changed
    assert counted <= 2 * LATE_PAGES + HOP_PAGES


def test_content_signals_are_in_the_metadata_of_each_page(crawled: Crawled) -> None:
    """What robots.txt says about use by artificial intelligence."""
    notes = []
    for path in (crawled.folder / "warc").glob("*.warc.gz"):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                target = record.rec_headers.get_header("WARC-Target-URI") or ""
                if record.rec_type == "metadata" and "//stays.test" in target and not target.endswith("/robots.txt"):
                    notes.append(record.content_stream().read())
    assert len(notes) == STAYS_PAGES + 1
    assert all(b"ai-use-robots-txt: search=yes, ai-train=no\r\n" in note for note in notes)
