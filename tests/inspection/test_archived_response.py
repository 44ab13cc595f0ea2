"""A capture as the response that the spider saw, whatever was done to it on its way into the archive."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.archived_response import archived
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, Render
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import attempt_line
from tests.commands.running import archive, archive_of
from tests.warc_samples import PAGE, STARTED_AT, exchange

URL = "http://a.example.com/"
DAY_SECONDS = 86_400.0


def head(*lines: str, status: str = "200 OK") -> bytes:
    """An HTTP head."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def test_the_body_is_decoded_and_the_headers_are_those_received(tmp_path: Path) -> None:
    """Sent chunked and compressed: the coding is taken off, and what the archive had to rename has its name again."""
    packed = gzip.compress(PAGE)
    sent = head(
        "Content-Type: text/html; charset=utf-8", "Content-Encoding: gzip", "Transfer-Encoding: chunked", "X-A: 1"
    )
    made = archive_of(tmp_path)
    made.write(exchange(packed, sent, chunked=True), Context(URL))
    made.close()

    found = archived([CrawlDir(tmp_path)], URL)

    assert found is not None
    shown = found.response
    assert isinstance(shown, HtmlResponse)
    assert (shown.status, shown.body, str(shown.ip_address)) == (200, PAGE, "127.0.0.1")
    assert shown.headers.to_unicode_dict() == {
        "Content-Type": "text/html; charset=utf-8", "Transfer-Encoding": "chunked", "X-A": "1"
    }  # fmt: skip
    assert shown.request is not None
    assert shown.request.meta == {"archived": found.date}


def test_the_newest_or_the_nearest_capture(tmp_path: Path) -> None:
    """Also one that repeats another payload, and one that had not changed: the body is the earlier one's."""
    made = archive_of(tmp_path)
    first = made.write(exchange(), Context(URL))
    original = Original(first.record_id, URL, first.date)
    packed = head("Content-Type: text/html", "Content-Length: 5")
    made.write(exchange(b"other", packed, started_at=STARTED_AT + DAY_SECONDS), Context(URL))
    made.write(exchange(started_at=STARTED_AT + 2 * DAY_SECONDS), Context(URL), original=original)
    silent = exchange(b"", head(status="304 Not Modified"), started_at=STARTED_AT + 3 * DAY_SECONDS)
    made.write(silent, Context(URL), original=original._replace(profile=NOT_MODIFIED))
    made.flush()  # and still open

    newest, repeated = archived([CrawlDir(tmp_path)], URL), archived([CrawlDir(tmp_path)], URL, "20260923")
    oldest, other = archived([CrawlDir(tmp_path)], URL, "2020"), archived([CrawlDir(tmp_path)], URL, "2026-09-22")

    assert newest is not None
    assert (newest.response.status, newest.response.body, newest.date) == (200, PAGE, first.date)
    assert newest.since.startswith("2026-09-24")
    assert repeated is not None
    assert (repeated.response.body, repeated.date[:10], repeated.since) == (PAGE, "2026-09-23", "")
    assert oldest is not None
    assert oldest.date == first.date
    assert other is not None
    assert other.response.body == b"other"
    made.close()


def test_what_a_browser_made_of_the_page_is_what_the_spider_saw(tmp_path: Path) -> None:
    """Found by the request log; an earlier capture has no part in a later one's render."""
    made = archive_of(tmp_path, lambda: STARTED_AT + DAY_SECONDS)
    made.write(exchange(), Context(URL))
    plain = made.write(exchange(started_at=STARTED_AT + DAY_SECONDS), Context(URL))
    times = STARTED_AT + DAY_SECONDS + 1, STARTED_AT + DAY_SECONDS + 2
    written = made.write_render(Render(URL, plain.record_id, b"<p>by a script", *times, []))
    place: dict[str, Any] = {"warc": written.filename, "offset": written.offset, "length": written.length}
    made.log.write(times[1], attempt_line(*times, URL, Reason.RENDERED, rendered=True, **place))
    made.close()

    newest, before = archived([CrawlDir(tmp_path)], URL), archived([CrawlDir(tmp_path)], URL, "20260921")

    assert newest is not None
    assert (newest.rendered, newest.response.body, newest.response.flags) == (True, b"<p>by a script", ["rendered"])
    assert before is not None
    assert (before.rendered, before.response.body) == (False, PAGE)


def test_a_page_that_is_not_archived(tmp_path: Path) -> None:
    """None for a URL without captures; an error for what is no URL or no time."""
    folder = archive(tmp_path)

    assert archived([CrawlDir(folder)], "http://elsewhere.example/") is None
    with pytest.raises(OperatorError, match="no http or https URL"):
        archived([CrawlDir(folder)], "ftp://a.example.com/")
    with pytest.raises(OperatorError, match="no time"):
        archived([CrawlDir(folder)], URL, "yesterday")
