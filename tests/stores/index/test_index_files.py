"""The process that makes a WARC's indexes: it fails in a sentence, and ends when the crawl does."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.stores.archive.warc_reader import member_at
from crawlerproject.stores.index import index_files as cdxj_files
from crawlerproject.stores.index.index_files import CdxjFiles, finish_apart, merged_lines
from tests.stores.archive.test_archive import FullDisk, add, files
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

URLS = [f"http://{host}.test/{path}" for host in ("b", "a", "c") for path in ("z", "A", "é", "")]


@pytest.fixture
def closed(tmp_path: Path) -> tuple[Path, CdxjFiles, bytes]:
    """A closed WARC without an index, its journal still there, and the index it must get."""
    index = CdxjFiles(tmp_path / "index")
    warc = files(tmp_path / "warc")
    for url in URLS:
        add(warc, url, index)
    index.flush()
    name = warc.close()
    assert name is not None
    path = tmp_path / "warc" / name
    index.rebuild(path)
    expected = index.path(name).read_bytes()
    index.path(name).unlink()
    return path, index, expected


def journal_of(index: CdxjFiles) -> Path:
    """The one journal."""
    (path,) = index.folder.glob("*.cdxj.open")
    return path


def test_sorted_bytewise_and_pointing_right(closed: tuple[Path, CdxjFiles, bytes]) -> None:
    """Lines are in byte order, and each offset is that of the record of its URL."""
    warc, _, expected = closed
    lines = expected.splitlines()
    assert lines == sorted(lines)
    assert len(lines) == len(URLS)
    for line in lines:
        fields = orjson.loads(line.split(b" ", 2)[2])
        start = int(fields["offset"])
        member = member_at(warc, start, int(fields["length"]))
        assert isinstance(member, Member)
        assert member.field("warc-target-uri") == fields["url"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "none": lambda data: data,
    "twice": lambda data: data + data,
    "torn": lambda data: data[:-30],
    "empty": lambda data: b"",
    "a row lost": lambda data: b"\n".join(data.split(b"\n")[:3] + data.split(b"\n")[4:]),
    "stale row": lambda data: b'{"start":1,"end":2}\n' + data,
    "junk": lambda data: b"\0\0junk\n" + data,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_journal_damage(closed: tuple[Path, CdxjFiles, bytes], damage: str) -> None:
    """Whatever is in the journal, the index is that of the file; the journal is gone then."""
    warc, index, expected = closed
    journal = journal_of(index)
    journal.write_bytes(DAMAGE[damage](journal.read_bytes()))
    assert index.finish(warc) == []
    assert index.path(warc.name).read_bytes() == expected
    assert not journal.exists()


def test_whole_journal_is_trusted(closed: tuple[Path, CdxjFiles, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A complete journal spares the reading of the WARC."""
    warc, index, expected = closed
    monkeypatch.setattr(cdxj_files, "_read_rows", None)
    index.finish(warc)
    assert index.path(warc.name).read_bytes() == expected


def test_catch_up(closed: tuple[Path, CdxjFiles, bytes]) -> None:
    """At start a closed WARC without index gets one, a journal without WARC goes, one of an open WARC stays."""
    warc, index, expected = closed
    (index.folder / "orphan.cdxj.open").write_bytes(b"x")
    (index.folder / "going-on.cdxj.open").write_bytes(b"x")
    (warc.parent / "going-on.warc.gz.open").write_bytes(b"x")
    assert len(index.catch_up(warc.parent)) == 1
    assert index.path(warc.name).read_bytes() == expected
    assert [path.name for path in index.folder.glob("*.open")] == ["going-on.cdxj.open"]
    assert index.catch_up(warc.parent) == []


def test_rows_past_a_cut_are_forgotten(closed: tuple[Path, CdxjFiles, bytes]) -> None:
    """After a cut the journal holds only rows of captures that are still there."""
    warc, index, _ = closed
    rows = [orjson.loads(line) for line in journal_of(index).read_bytes().splitlines()]
    index.cut(warc.name, rows[5]["end"])
    assert [orjson.loads(line) for line in journal_of(index).read_bytes().splitlines()] == rows[:6]


def test_damaged_warc_is_indexed_as_far_as_it_is_good(closed: tuple[Path, CdxjFiles, bytes]) -> None:
    """A bit flip in the middle is said with its offset; what comes before is indexed."""
    warc, index, expected = closed
    data = bytearray(warc.read_bytes())
    data[len(data) // 2] ^= 255
    warc.write_bytes(data)
    (message,) = index.rebuild(warc)
    assert "is not good from byte" in message
    assert 0 < len(index.path(warc.name).read_bytes()) < len(expected)


def test_full_disk_keeps_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows the disk did not take are written by the next flush, each once."""
    index = CdxjFiles(tmp_path / "index")
    warc = files(tmp_path / "warc")
    add(warc, "http://a.test/1", index)
    add(warc, "http://a.test/2", index)
    really = os.write
    full = FullDisk(100)
    full.really = lambda descriptor, data, offset: really(descriptor, data)
    with monkeypatch.context() as patched:
        patched.setattr("os.write", lambda descriptor, data: full(descriptor, data, 0))
        with pytest.raises(StorageError):
            index.flush()
        with pytest.raises(StorageError):
            index.flush()
    add(warc, "http://a.test/3", index)
    index.flush()
    rows = [orjson.loads(line)["url"] for line in journal_of(index).read_bytes().splitlines()]
    assert rows == ["http://a.test/1", "http://a.test/2", "http://a.test/3"]


@pytest.mark.parametrize("apart_bytes", [0, 1 << 20])
def test_in_the_background_it_is_the_same_index(
    closed: tuple[Path, CdxjFiles, bytes], monkeypatch: pytest.MonkeyPatch, apart_bytes: int
) -> None:
    """Made in a process of its own, or in a thread; what was odd is told as if it had been made here."""
    monkeypatch.setattr(cdxj_files, "_APART_BYTES", apart_bytes)
    warc, index, expected = closed
    journal_of(index).write_bytes(b"junk")
    with warc.open("ab") as file:
        file.write(b"junk")

    index.finish_in_background(warc)
    ((_, future),) = index._running
    (message,) = future.result()
    index.close()

    assert "is not good from byte" in message
    assert index.path(warc.name).read_bytes() == expected
    assert not list(index.folder.glob("*.open"))


def test_background_failure_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An index that cannot be written is no reason to stop; the log says that the next start makes it."""
    index = CdxjFiles(tmp_path / "index")
    index.finish_in_background(tmp_path / "missing.warc.gz")
    index.close()
    assert "the next start makes it" in caplog.text


_FILES = 40


def test_many_files_are_one_in_order(tmp_path: Path) -> None:
    """Lines of any length, empty files, lines that several have; meanwhile no file stays open."""
    chance = random.Random(26)
    paths, wanted = [], []
    for number in range(_FILES):
        lines = sorted(
            b"%b %d\n" % (chance.randbytes(4).hex().encode() * chance.choice((1, 40, 4000)), number)
            for _ in range(chance.choice((0, 1, 30)))
        )
        lines.append(b"~ in all\n")
        paths.append(tmp_path / f"{number}.cdxj")
        paths[-1].write_bytes(b"".join(lines))
        wanted += lines
    (tmp_path / "none.cdxj").touch()
    opened = len(os.listdir("/proc/self/fd"))

    found = merged_lines([*paths, tmp_path / "none.cdxj"])
    first = next(found)

    assert len(os.listdir("/proc/self/fd")) == opened
    assert [first, *found] == sorted(wanted)


URL = "http://a.test/"


@pytest.fixture
def warc(tmp_path: Path) -> Path:
    """A closed WARC with one capture, and no index."""
    made = files(tmp_path / "warc")
    add(made, URL)
    name = made.close()
    assert name is not None
    return tmp_path / "warc" / name


def test_both_indexes(warc: Path, tmp_path: Path) -> None:
    """The CDXJ and the Parquet part are there when it has ended, and nothing was odd."""
    assert finish_apart(warc, tmp_path / "index", (tmp_path / "parquet", "a crawl")) == []

    stem = warc.name.removesuffix(".warc.gz")
    assert URL.encode() in (tmp_path / "index" / f"{stem}.cdxj").read_bytes()
    assert [path.stem for path in (tmp_path / "parquet").rglob("subset=warc/*.parquet")] == [stem]


def test_a_failure_is_a_sentence(tmp_path: Path) -> None:
    """Not the process's traceback."""
    with pytest.raises(StorageError, match="No such file"):
        finish_apart(tmp_path / "missing.warc.gz", tmp_path / "index", None)


def test_it_ends_with_the_crawl(tmp_path: Path) -> None:
    """Whatever it is at: here it waits for a file that nobody writes."""
    os.mkfifo(tmp_path / "endless.warc.gz")
    command = [sys.executable, "-m", "crawlerproject.stores.index.index_files", str(tmp_path / "endless.warc.gz")]
    with subprocess.Popen([*command, str(tmp_path / "index")], cwd=PROJECT, stdin=subprocess.PIPE) as process:
        wait_until((tmp_path / "index").exists)
        assert process.poll() is None
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 1
