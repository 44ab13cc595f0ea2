"""The index: sorted, complete and equal to the file, whatever became of the journal."""

import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.stores.archive.warc_reader import member_at
from crawlerproject.stores.index import cdxj as cdxj_files
from crawlerproject.stores.index.cdxj import CdxjFiles
from tests.stores.archive.test_warc_writer import FullDisk, add, files

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
