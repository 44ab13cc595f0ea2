"""Captures and lines of the log, brought into the order in which they happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from crawlerproject.reasons import Reason
from crawlerproject.recovery.attempts import attempts
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import Context
from crawlerproject.stores.archive.archive import Archive, Written
from crawlerproject.stores.archive.warc_reader import members
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import attempt_line
from tests.commands.running import archive_of
from tests.warc_samples import STARTED_AT, exchange


def url(name: str) -> str:
    """A page."""
    return f"http://a.example.com/{name}"


def captured(made: Archive, name: str) -> Written:
    """A capture without a line in the log."""
    return made.write(exchange(ended_at=STARTED_AT + 0.1234), Context(url(name), url("via"), "LL"))


def logged(made: Archive, name: str, written: Written | None, ended: float = 0.0) -> None:
    """A line in the log; of a failure when nothing was written."""
    place: dict[str, Any] = (
        {} if written is None else {"warc": written.filename, "offset": written.offset, "length": written.length}
    )
    reason = Reason.CONNECT_TIMEOUT if written is None else Reason.FETCHED
    status = None if written is None else 200
    end = STARTED_AT + ended
    made.log.write(
        STARTED_AT, attempt_line(STARTED_AT, end, url(name), reason, status=status, depth=7, hop="LLM", **place)
    )


def told(folder: Path) -> list[tuple[str, bool, bool]]:
    """Of each attempt: the page, whether the log has it, whether the archive has it."""
    read: list[int] = []
    found = [
        (attempt.url.rpartition("/")[2], attempt.line is not None, attempt.capture is not None)
        for attempt in attempts([CrawlDir(folder)], read.append)
    ]
    assert sum(read) == sum(path.stat().st_size for path in (folder / "warc").iterdir())
    return found


def test_both_in_one_order(tmp_path: Path) -> None:
    """What is older than the log first, then as the log has it; what it does not tell of has its place by the file."""
    made = archive_of(tmp_path)
    captured(made, "old")
    first = captured(made, "first")
    logged(made, "failed", None)
    logged(made, "first", first)
    captured(made, "untold")
    last = captured(made, "last")
    logged(made, "last", last)
    captured(made, "tail")
    made.close()

    assert told(tmp_path) == [
        ("old", False, True),
        ("failed", True, False),
        ("first", True, True),
        ("untold", False, True),
        ("last", True, True),
        ("tail", False, True),
    ]


def test_what_each_tells(tmp_path: Path) -> None:
    """The log knows the depth and the end; without it the archive tells as much as it can."""
    made = archive_of(tmp_path)
    captured(made, "alone")
    logged(made, "both", captured(made, "both"), ended=5.0)
    made.close()

    alone, both = attempts([CrawlDir(tmp_path)], lambda count: None)

    assert (alone.hops, alone.via, alone.depth) == ("LL", url("via"), 2)
    assert (both.hops, both.depth, both.ended_at) == ("LLM", 7, STARTED_AT + 5.0)
    assert abs(alone.ended_at - STARTED_AT - 0.123) < 0.001
    assert not (alone.lost or both.lost)


def test_a_place_that_comes_again(tmp_path: Path) -> None:
    """A crash cut off a capture that the log tells of, and another came in its place: the first one is lost."""
    made = archive_of(tmp_path)
    written = captured(made, "second")
    logged(made, "cut", written)
    logged(made, "second", written)
    logged(made, "gone", Written("other.warc.gz", 10, 10, b"", "", ""))
    made.close()

    found = list(attempts([CrawlDir(tmp_path)], lambda count: None))

    assert told(tmp_path) == [("cut", True, False), ("second", True, True), ("gone", True, False)]
    assert [attempt.lost for attempt in found] == [True, False, True]


def test_a_file_that_was_mended(tmp_path: Path) -> None:
    """What was cut out of it moved all that follows: line and capture are told by page and moment."""
    made = archive_of(tmp_path)
    for name in ("one", "two", "three"):
        logged(made, name, captured(made, name))
    made.close()
    (warc,) = (tmp_path / "warc").iterdir()
    records = [member for member in members(warc) if isinstance(member, Member)]
    data = warc.read_bytes()
    warc.write_bytes(data[: records[1].offset] + data[records[4].offset :])

    assert told(tmp_path) == [("one", True, False), ("two", True, True), ("three", True, True)]


def test_odd_lines_and_files(tmp_path: Path) -> None:
    """Torn lines, lines of nothing, and WARC files that another program wrote are passed over."""
    made = archive_of(tmp_path)
    logged(made, "one", captured(made, "one"))
    made.close()
    (log,) = (tmp_path / "log").glob("*.jsonl")
    whole = orjson.dumps(attempt_line(STARTED_AT, STARTED_AT, url("two"), Reason.DNS_NOT_FOUND))
    log.write_bytes(log.read_bytes() + b'{"url": 5}\n{"torn": \n[]\n' + whole + b"\n" + whole[:40])
    (tmp_path / "warc" / "theirs.warc.gz").write_bytes(b"")

    assert told(tmp_path) == [("one", True, True), ("two", True, False)]
