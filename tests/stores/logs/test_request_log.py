"""The request log: every line once, whatever midnight, a crash or a full disk does."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.reasons import Reason
from crawlerproject.stores.atomic_files import StorageFull
from crawlerproject.stores.logs.log_query import attempts
from crawlerproject.stores.logs.request_log import DAY_SECONDS, RequestLog, attempt_line, last_of_host, read_log, tidy
from tests.web.waiting import wait_until

NOON = 1_790_000_000.0 // DAY_SECONDS * DAY_SECONDS + DAY_SECONDS / 2  # 2026-09-21


def numbers(folder: Path) -> list[object]:
    """The field n of every line."""
    return [fields["n"] for fields in read_log(folder)]


def names(folder: Path) -> list[str]:
    """Names of the files of lines, sorted; twins come in their own time."""
    return sorted(path.name for path in folder.iterdir() if ".jsonl" in path.name)


def test_lines_come_back(tmp_path: Path) -> None:
    """Nothing is on disk before flush; after it, what was written is read."""
    log = RequestLog(tmp_path, 31)
    log.write(NOON, attempt_line(NOON, NOON + 1, "http://a.test/é", Reason.FETCHED, status=200))
    assert names(tmp_path) == []
    log.flush()
    assert names(tmp_path) == ["requests-2026-09-21.jsonl"]
    (fields,) = read_log(tmp_path)
    assert fields["url"] == "http://a.test/é"
    assert fields["reason"] == "fetched"
    log.close()


def test_midnight(tmp_path: Path) -> None:
    """Lines go to their own UTC day, the day before is compressed, nothing is lost or read twice."""
    log = RequestLog(tmp_path, 31)
    for n in range(4):
        log.write(NOON + n * DAY_SECONDS / 2, {"n": n})
    log.flush()
    log.write(NOON, {"n": 4})  # the clock was set back
    log.close()
    days = ["requests-2026-09-21.jsonl.gz", "requests-2026-09-22.jsonl.gz", "requests-2026-09-23.jsonl"]
    assert names(tmp_path) == days
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_old_days_go(tmp_path: Path) -> None:
    """With three days to keep, today and two before stay."""
    log = RequestLog(tmp_path, 3)
    for n in range(6):
        log.write(NOON + n * DAY_SECONDS, {"n": n})
        log.flush()
    log.close()
    assert numbers(tmp_path) == [3, 4, 5]


def test_torn_last_line(tmp_path: Path) -> None:
    """A line torn by a crash is ended at the next start, and readers pass over it."""
    path = tmp_path / "requests-2026-09-21.jsonl"
    path.write_bytes(b'{"n":1}\n{"n":2')
    assert numbers(tmp_path) == [1]
    log = RequestLog(tmp_path, 31)
    log.write(NOON, {"n": 3})
    log.close()
    assert path.read_bytes() == b'{"n":1}\n{"n":2\n{"n":3}\n'
    assert numbers(tmp_path) == [1, 3]


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk did not take stays in memory and is written once there is room; no line is torn."""
    log = RequestLog(tmp_path, 31)
    log.write(NOON, {"n": 1})
    log.flush()
    room = [5]
    really = os.write

    def write(descriptor: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(descriptor, data[: room.pop()])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        for n in (2, 3):
            log.write(NOON, {"n": n})
            with pytest.raises(StorageFull):
                log.flush()
    log.close()
    assert numbers(tmp_path) == [1, 2, 3]


@pytest.mark.parametrize("packed", [b"", b'{"n":1}\n', b'{"n":0}\n'])
def test_compression_after_a_crash(tmp_path: Path, packed: bytes) -> None:
    """A plain file next to its .gz is the crash before its removal, or has more to say: no line twice, none lost."""
    plain = tmp_path / "requests-2026-09-20.jsonl"
    plain.write_bytes(b'{"n":1}\n')
    if packed:
        (tmp_path / f"{plain.name}.gz").write_bytes(gzip.compress(packed))
    (tmp_path / f"{plain.name}.gz.part").write_bytes(b"half")
    tidy(tmp_path, "2026-09-21", 31)
    assert names(tmp_path) == [f"{plain.name}.gz"]
    assert numbers(tmp_path) == ([0, 1] if b"0" in packed else [1])


def test_damaged_archive_is_read_in_part(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A torn .gz gives its good lines and a warning; other files in the folder are left alone."""
    data = gzip.compress(b"".join(b'{"n":%d,"x":"%s"}\n' % (n, os.urandom(20).hex().encode()) for n in range(5000)))
    (tmp_path / "requests-2026-09-20.jsonl.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "requests-2026-09-21.jsonl").write_bytes(b'[1]\n{"n":9}\nnot json\n')
    (tmp_path / "robots").mkdir()
    read = numbers(tmp_path)
    assert read[:3] == [0, 1, 2]
    assert read[-1] == 9
    assert "read only in part" in caplog.text


def test_a_closed_day_gets_a_twin_that_goes_with_it(tmp_path: Path) -> None:
    """Made in the background by a process of its own, used for questions, removed with its day."""
    log = RequestLog(tmp_path, 2)
    for day in range(2):
        log.write(
            NOON + day * DAY_SECONDS, attempt_line(NOON, NOON + 1, f"http://a.test/{day}", "fetched", host="a.test")
        )
        log.flush()
    twin = tmp_path / "requests-2026-09-21.parquet"
    wait_until(twin.exists)
    assert {row["url"] for row in attempts(tmp_path, host="a.test")} == {"http://a.test/0", "http://a.test/1"}

    log.write(NOON + 2 * DAY_SECONDS, {"n": 1})
    log.close()

    assert not twin.exists()


def test_a_log_that_is_removed_is_made_again(tmp_path: Path) -> None:
    """By an operator who wants room: lines of today come back, folder and all, and each once."""
    log = RequestLog(tmp_path / "log", 31)
    log.write(NOON, {"n": 0})
    log.flush()
    shutil.rmtree(tmp_path / "log")
    log.write(NOON, {"n": 1})
    log.flush()
    log.write(NOON, {"n": 2})
    log.close()

    assert numbers(tmp_path / "log") == [0, 1, 2]


def write(folder: Path, day: str, *rows: dict[str, Any], torn: bytes = b"") -> None:
    """A day's lines."""
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    (folder / f"requests-{day}.jsonl").write_bytes(lines + torn)


def row(number: int, host: str = "a.test") -> dict[str, Any]:
    """One attempt."""
    return {"url": f"http://{host}/{number}", "host": host}


def test_the_last_ones_oldest_first(tmp_path: Path) -> None:
    """Of this host alone, also when another's URL has its name in it."""
    others = [row(1, "b.test"), {"url": 'http://b.test/"host":"a.test"', "host": "b.test"}]
    write(tmp_path, "2026-03-02", *(row(number) for number in range(9)), *others, torn=b'{"host":"a.test","ur')

    assert [each["url"][-1] for each in last_of_host(tmp_path, "a.test", 3)] == ["6", "7", "8"]
    assert last_of_host(tmp_path, "c.test", 3) == []


def test_shortly_after_midnight_yesterday_counts_while_it_has_lines(tmp_path: Path) -> None:
    """It is compressed soon, and then asked elsewhere."""
    write(tmp_path, "2026-03-01", row(1), row(2))
    write(tmp_path, "2026-03-02", row(3))

    assert [each["url"][-1] for each in last_of_host(tmp_path, "a.test", 9)] == ["1", "2", "3"]


def test_no_more_is_read_than_asked(tmp_path: Path) -> None:
    """A log of gigabytes costs what its end costs; a line that was cut is none."""
    write(tmp_path, "2026-03-02", *(row(number) for number in range(1000)))
    line_bytes = len(orjson.dumps(row(999))) + 1

    found = last_of_host(tmp_path, "a.test", 1000, tail_bytes=10 * line_bytes + 5)

    assert [each["url"][-3:] for each in found] == [str(number) for number in range(990, 1000)]


def test_no_log_is_no_line(tmp_path: Path) -> None:
    """As in a crawl that has just begun."""
    assert last_of_host(tmp_path / "log", "a.test", 3) == []


ORDER = [
    "time",
    "end",
    "url",
    "method",
    "status",
    "reason",
    "host",
    "ip",
    "via",
    "depth",
    "hop",
    "mime",
    "bytes",
    "location",
    "ttfb_seconds",
    "seconds",
    "delay_seconds",
    "digest",
    "warc",
    "offset",
    "length",
    "error",
    "tries",
    "truncated",
    "rendered",
    "duplicate",
    "duplicate_of",
]


def test_fields_and_order() -> None:
    """Every field is always there, in the fixed order."""
    assert list(attempt_line(0.0, 1.0, "http://a.test/", Reason.FETCHED)) == ORDER


def test_values() -> None:
    """Times are UTC with microseconds, unknown is null, an error has no status."""
    fields = attempt_line(1_790_000_000.25, 1_790_000_001.5, "http://a.test/", Reason.DNS_FAILED, error="no answer")
    assert fields["time"] == "2026-09-21T14:13:20.250000Z"
    assert fields["end"] == "2026-09-21T14:13:21.500000Z"
    assert fields["seconds"] == 1.25
    assert fields["status"] is None
    assert fields["reason"] == "dns-failed"
    assert fields["error"] == "no answer"
    assert fields["offset"] is None
    assert fields["rendered"] is False
