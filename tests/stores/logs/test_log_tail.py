"""The end of the request log: a host's last lines, within so many bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from crawlerproject.stores.logs.log_tail import last_of_host


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
