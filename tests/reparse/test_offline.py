"""What browsers made of pages is found by URL, and does not fill the memory."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.reparse.offline import RenderLine, RenderLines
from crawlerproject.rules.archive.warc_records import Context, Render
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import archive_of
from tests.warc_samples import STARTED_AT, exchange

_LINES = 20_000
_URLS = _LINES // 2


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """A request log with two renders of each page, the later one first, and as many lines of other attempts."""
    crawl = CrawlDir(tmp_path / "crawl")
    crawl.log.mkdir(parents=True)
    with (crawl.log / "requests-2026-11-23.jsonl").open("w") as log:
        for number in range(_LINES):
            when = f"2026-11-23T{number < _URLS:02d}:00:00.000000Z"
            line = {"time": when, "url": f"http://a.test/{number % _URLS}", "warc": "a.warc.gz"}
            place = {"offset": number, "length": 7}
            log.write(json.dumps(line | place | {"rendered": True}) + "\n" + json.dumps(line | place) + "\n")
    return crawl


def test_the_renders_of_a_page_are_found_oldest_first(crawl: CrawlDir) -> None:
    """Those alone; none of a page that has none."""
    with closing(RenderLines([crawl])) as lines:
        assert [line.offset for line in lines.of("http://a.test/5")] == [_URLS + 5, 5]
        assert lines.of("http://a.test/5")[0] == RenderLine("2026-11-23T00:00:00.000000Z", "a.warc.gz", _URLS + 5, 7)
        assert lines.of("http://a.test/none") == []


def test_what_is_older_than_the_log_is_read_from_the_archive(tmp_path: Path) -> None:
    """Days of the log are removed in time; a render is found all the same, and one that both know once."""
    made = archive_of(tmp_path)
    plain = made.write(exchange(), Context("http://a.test/"))
    times = STARTED_AT + 1, STARTED_AT + 2
    shown = made.write_render(Render("http://a.test/", plain.record_id, b"<p>shown", *times, []))
    made.close()
    line = RenderLine(shown.date, shown.filename, shown.offset, shown.length)
    with closing(RenderLines([CrawlDir(tmp_path)])) as lines:
        assert lines.of("http://a.test/") == [line]
        assert lines.of("http://b.test/") == []

    place = {"warc": shown.filename, "offset": shown.offset, "length": shown.length, "rendered": True}
    began = "2026-09-21T14:13:21.250000Z"
    logged = json.dumps({"time": began, "url": "http://a.test/"} | place)
    (CrawlDir(tmp_path).log / "requests-2026-09-21.jsonl").write_text(logged + "\n")
    with closing(RenderLines([CrawlDir(tmp_path)])) as lines:
        assert lines.of("http://a.test/") == [line._replace(time=began)]


def test_lines_do_not_stay_in_memory(crawl: CrawlDir) -> None:
    """Of twenty thousand, fewer than a thousand at any time: each is half a kilobyte and more."""
    with closing(RenderLines([crawl])):  # what is imported is not counted
        pass
    tracemalloc.start()
    try:
        with closing(RenderLines([crawl])) as lines:
            assert len(lines.of("http://a.test/5")) == 2
            _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < _LINES * 100
