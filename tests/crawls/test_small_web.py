"""One whole crawl of the synthetic web, judged by the server's log, the WARC files and the request log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.logs.request_log import read_log
from tests.stores.logs.test_request_log import ORDER
from tests.web import zygote
from tests.web.judge import judge_folder, judge_references, read_visits
from tests.web.running import RunningWeb, crawl_command, measured, small_settings, synthetic_web

# Hosts of the web that fail on purpose rest longer than this; nothing else waits so long.
PATIENCE = {"FRONTIER_MAX_REST_SECONDS": "8"}


class Crawled(NamedTuple):
    """A finished crawl."""

    web: RunningWeb
    folder: Path
    status: int
    output: str


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("crawled")
    with synthetic_web(folder / "web") as web:
        yield run(web, folder / "crawl")


def run(web: RunningWeb, crawl_dir: Path) -> Crawled:
    """Crawl to the end."""
    settings = {**small_settings(web), **PATIENCE}
    log = crawl_dir.with_suffix(".log")
    spent = measured(crawl_command(web.folder / "seeds.txt", crawl_dir, web.folder / "hosts", settings), log)
    return Crawled(web, crawl_dir, spent.status, log.read_text())


def test_nothing_is_missing_twice_or_too_soon(crawled: Crawled) -> None:
    """Every reachable page once, robots and NeverCrawl obeyed, every pause kept, both logs in agreement."""
    assert crawled.status == 0, crawled.output[-3000:]

    verdict = judge_folder(crawled.web.folder, crawled.folder, host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []


def test_robots_comes_first_and_once(crawled: Crawled) -> None:
    """Nothing was asked of a host before its robots.txt, which was answered for once."""
    first: dict[str, str] = {}
    good: dict[str, int] = {}
    for visit in read_visits(crawled.web.folder / "server.jsonl"):
        first.setdefault(visit.host, visit.path)
        if visit.path == "/robots.txt" and visit.status == 200:
            good[visit.host] = good.get(visit.host, 0) + 1

    assert set(first.values()) <= {"/robots.txt", "/rules/robots.txt"} | {
        path for path in first.values() if path.endswith("robots.txt")
    }
    assert set(good.values()) == {1}


def test_the_archive_is_whole_and_indexed(crawled: Crawled) -> None:
    """Closed files only, each strictly readable, each with its sorted index that names real records."""
    files = sorted((crawled.folder / "warc").iterdir())
    assert files
    assert all(path.name.endswith(".warc.gz") for path in files)
    for path in files:
        assert check_file(path).flaws == []
        lines = (crawled.folder / "index" / f"{path.name.removesuffix('.warc.gz')}.cdxj").read_bytes().splitlines()
        assert lines == sorted(lines)
        fields = json.loads(lines[0].split(b" ", 2)[2])
        assert fields["filename"] == path.name


def test_every_attempt_has_a_log_line_with_every_field(crawled: Crawled) -> None:
    """The log's fields are those promised, in order; failures that reached no server are there as well."""
    rows = list(read_log(crawled.folder / "log"))

    assert all(list(row) == ORDER for row in rows)
    reasons = {str(row["reason"]) for row in rows}
    assert {"fetched", "redirect", "http-error", "dns-not-found", "connect-refused", "rate-limited"} <= reasons
    assert any(str(row["url"]).endswith("/robots.txt") and row["hop"] == "P" for row in rows)


def test_repeated_pages_are_marked_and_archived(crawled: Crawled) -> None:
    """Same bytes, nearly the same text, rel=canonical: each names the page it repeats, in log and metadata record."""
    base = f"http://copies.test:{crawled.web.port}"
    rows = {str(row["url"]): row for row in read_log(crawled.folder / "log") if row["status"] == 200}
    marks = {url: (row["duplicate"], row["duplicate_of"]) for url, row in rows.items() if row["duplicate"]}

    for kind in ("exact", "near"):
        urls = [f"{base}/{kind}/{number}" for number in range(5)]
        first = min(urls, key=lambda url: str(rows[url]["time"]))
        assert {url: marks.get(url) for url in urls} == {url: None if url == first else (kind, first) for url in urls}
    named = [f"{base}/named/{number}" for number in range(5)]
    assert [marks.get(url) for url in named] == [
        None,
        *[("canonical", named[0])] * 3,
        None,
    ]  # the last says other things
    assert [marks.get(f"{base}/mirrored/{number}") for number in range(4)] == [None] * 4
    assert f"http://etiquette.test:{crawled.web.port}/odd" not in marks  # names a page that says other things
    notes = metadata_fields(crawled.folder / "warc")
    assert {url: (notes[url].get("duplicate"), notes[url].get("duplicate-of")) for url in marks} == marks
    near = [url for url, (kind, _) in marks.items() if kind == "near"]
    assert f"'duplicates/near': {len(near)}," in crawled.output


def test_links_of_a_repeated_page_wait_behind_others(crawled: Crawled) -> None:
    """Found earlier than the last page's, but on pages that repeat one: asked for later."""
    paths = [visit.path for visit in read_visits(crawled.web.folder / "server.jsonl") if visit.host == "copies.test"]
    after = [path for path in paths if path.startswith("/after-")]

    assert after[:2] == ["/after-near/0", "/after-last"]
    assert sorted(after[2:]) == [f"/after-near/{number}" for number in range(1, 5)]


def test_identical_payloads_are_stored_once(crawled: Crawled) -> None:
    """Four of five equal pages are revisits that name the first; the judge compares every one with its original."""
    verdict = judge_references(crawled.folder / "warc")

    assert verdict.faults == []
    revisits = int(verdict.facts[0].split()[3])
    assert revisits >= 4


def metadata_fields(folder: Path) -> dict[str, dict[str, str]]:
    """The lines of each URL's last metadata record."""
    found = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "metadata":
                    lines = record.content_stream().read().decode().splitlines()
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    found[url] = dict(line.split(": ", 1) for line in lines if ": " in line)
    return found


def test_the_log_says_how_it_stands(crawled: Crawled) -> None:
    """The line for a person: its last one knows every answer, and that nothing is left."""
    told = [line for line in crawled.output.splitlines() if " pages/s · " in line]

    answered = sum(
        row["status"] is not None and not str(row["hop"]).startswith("P") for row in read_log(crawled.folder / "log")
    )
    assert f"INFO: {answered:,} pages · " in told[-1]
    assert " · 0 queued · " in told[-1]


def test_our_guard_never_had_to_act(crawled: Crawled) -> None:
    """The guard above the network found nothing to refuse, and nothing of ours failed."""
    assert "guard_refused" not in crawled.output
    assert "Traceback" not in crawled.output


def test_a_second_start_asks_for_nothing_again(crawled: Crawled) -> None:
    """Continuing a finished crawl fetches no page twice (hosts that failed may be probed)."""
    before = {
        (visit.host, visit.path) for visit in read_visits(crawled.web.folder / "server.jsonl") if visit.status == 200
    }
    seen = len(read_visits(crawled.web.folder / "server.jsonl"))

    again = run(crawled.web, crawled.folder)

    assert again.status == 0
    later = read_visits(crawled.web.folder / "server.jsonl")[seen:]
    assert [visit for visit in later if (visit.host, visit.path) in before] == []


def test_a_second_process_is_refused(crawled: Crawled, tmp_path: Path) -> None:
    """Two crawls on one folder: the second says so in a sentence and does nothing."""
    from crawlerproject.stores.crawl_dir import take_lock

    lock = take_lock(crawled.folder)
    try:
        command = crawl_command(crawled.web.folder / "seeds.txt", crawled.folder, crawled.web.folder / "hosts", {})
        second = zygote.run(command)
    finally:
        import os

        os.close(lock)

    assert second.returncode == 2
    assert "is in use by a running crawl" in second.stderr
    assert "Traceback" not in second.stderr
