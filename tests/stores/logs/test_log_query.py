"""The request log asked in SQL: lines, compressed days and their twins give one answer."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.logs.log_query import LOG_COLUMNS, attempts, open_log, rows, write_twin
from crawlerproject.stores.logs.request_log import attempt_line, twin_of

DAY = 86400.0


def entry(at: float, url: str, host: str = "a.test", **more: Any) -> bytes:
    """A line of the log."""
    return json.dumps(attempt_line(at, at + 0.5, url, "fetched", status=200, host=host, **more)).encode() + b"\n"


def test_a_twin_of_an_older_version_is_read(tmp_path: Path) -> None:
    """A field that came later is empty in it, not an error."""
    packed = tmp_path / "requests-1970-01-01.jsonl.gz"
    packed.write_bytes(gzip.compress(entry(1, "http://a.test/1")))
    twin = write_twin(packed)
    older = tmp_path / "older.parquet"
    duckdb.sql(f"COPY (SELECT * EXCLUDE (truncated, tries) FROM '{twin}') TO '{older}'")
    older.replace(twin)
    (tmp_path / "requests-1970-01-02.jsonl").write_bytes(entry(DAY + 1, "http://a.test/2", tries=3))

    assert [(row["url"], row["tries"]) for row in attempts(tmp_path)] == [
        ("http://a.test/1", None),
        ("http://a.test/2", 3),
    ]
    assert set(attempts(tmp_path)[0]) == set(LOG_COLUMNS)


def test_a_host_over_plain_and_compressed_days(tmp_path: Path) -> None:
    """Oldest first, whatever form the days have; torn lines are passed over; bounds hold."""
    (tmp_path / "requests-1970-01-01.jsonl.gz").write_bytes(
        gzip.compress(entry(10, "http://a.test/1") + entry(5, "http://b.test/", "b.test") + b'{"torn":')
    )
    (tmp_path / "requests-1970-01-02.jsonl").write_bytes(entry(DAY + 1, "http://a.test/2") + b'{"time":"19')

    assert [row["url"] for row in attempts(tmp_path, host="a.test")] == ["http://a.test/1", "http://a.test/2"]
    assert [row["url"] for row in attempts(tmp_path, since="1970-01-02")] == ["http://a.test/2"]
    assert [row["url"] for row in attempts(tmp_path, host="a.test", until="1970-01-02")] == ["http://a.test/1"]
    assert attempts(tmp_path, url="http://b.test/")[0]["status"] == 200


def test_a_twin_answers_as_its_lines_do(tmp_path: Path) -> None:
    """Made by a process of its own; used while it is no older than the lines."""
    packed = tmp_path / "requests-1970-01-01.jsonl.gz"
    packed.write_bytes(
        gzip.compress(b"".join(entry(i, f"http://h{i % 7}.test/{i}", f"h{i % 7}.test") for i in range(500)))
    )
    before = attempts(tmp_path, host="h3.test")

    subprocess.run([sys.executable, "-m", "crawlerproject.stores.logs.log_query", packed], check=True, timeout=60)
    packed.write_bytes(b"")  # so that only the twin can answer; its lines keep an older time
    os.utime(packed, (1, 1))

    assert twin_of(packed).is_file()
    assert attempts(tmp_path, host="h3.test") == before
    assert len(before) == 71


def test_no_log_is_said(tmp_path: Path) -> None:
    """An empty folder is an operator's error for those who need a log, and nothing for those who do not."""
    with pytest.raises(OperatorError, match="no request log"):
        open_log(tmp_path)
    assert attempts(tmp_path, host="a.test") == []


def test_names_from_the_web_cannot_break_the_question(tmp_path: Path) -> None:
    """A quote in a folder's name, a URL or a host is text."""
    folder = tmp_path / "it's"
    folder.mkdir()
    url = "http://a.test/'; DROP VIEW log; --"
    (folder / "requests-1970-01-01.jsonl").write_bytes(entry(1, url))

    assert attempts(folder, url=url)[0]["url"] == url
    with open_log(folder, since="1971-01-01' OR '1'='1") as connection:
        assert rows(connection, "SELECT count(*) AS n FROM log") == [{"n": 0}]


def test_a_damaged_day_leaves_no_twin(tmp_path: Path) -> None:
    """No twin is made of what cannot be read, and nothing is left lying about."""
    packed = tmp_path / "requests-1970-01-01.jsonl.gz"
    packed.write_bytes(b"not gzip")

    with pytest.raises(OSError, match="no Parquet twin"):
        write_twin(packed)
    assert list(tmp_path.iterdir()) == [packed]


def test_what_a_question_spills_is_not_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be anyone's, or not writable; nothing is left of it afterwards."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requests-1970-01-01.jsonl").write_bytes(entry(1, "http://a.test/1"))
    with open_log(tmp_path) as connection:
        ((spilled,),) = connection.sql("SELECT current_setting('temp_directory')").fetchall()
        connection.execute("SET memory_limit='40MB'; SET threads=1")
        connection.execute("CREATE TABLE large AS SELECT range, md5(range::VARCHAR) AS text FROM range(2_000_000)")
        assert list(Path(spilled).iterdir())

    assert Path(spilled).parent == Path(tempfile.gettempdir())
    assert not Path(spilled).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["requests-1970-01-01.jsonl"]
