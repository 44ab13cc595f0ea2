"""What browsers made of pages is found by URL, and does not fill the memory."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.reparse.render_lines import RenderLine, RenderLines
from crawlerproject.stores.crawl_dir import CrawlDir

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


def test_a_folder_without_a_log_has_none(tmp_path: Path) -> None:
    """An archive alone can be read again."""
    with closing(RenderLines([CrawlDir(tmp_path)])) as lines:
        assert lines.of("http://a.test/") == []


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
