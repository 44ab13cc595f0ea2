"""The open WARC file: whole captures or nothing, whatever the disk says."""

from __future__ import annotations

import errno
import io
import os
import resource
import shutil
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from crawlerproject.errors import StorageError
from crawlerproject.reports.warc_check import check_file
from crawlerproject.rules.archive.warc_records import Capture
from crawlerproject.stores.archive.archive import Position, WarcFiles, WarcSeries, new_record_id
from crawlerproject.stores.archive.recovery import recover
from crawlerproject.stores.atomic_files import StorageFull
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.protocols import OpenFile
from tests.warc_samples import STARTED_AT, make

SERIES = WarcSeries("crawl", "host.test", 1_000_000, [("software", "Test/1.0")])


def files(folder: Path, series: WarcSeries = SERIES, **changes: Any) -> WarcFiles:
    """A writer into ``folder`` with small files."""
    return WarcFiles(folder, series, lambda: STARTED_AT, **changes)


def add(warc: WarcFiles, url: str = "http://a.test/", index: CdxjFiles | None = None) -> tuple[Capture, Position]:
    """Append a capture of ``url`` and its index row."""
    start = (warc.state() or warc.begin_file()).length
    built = make(url=url, warcinfo_id=warc.warcinfo_id, new_id=new_record_id, start=start)
    position = warc.append(built.members)
    if index:
        index.append(position.filename, built.line)
    return built, position


def assert_clean(path: Path) -> None:
    """Strictly good for us, and for warcio's checker."""
    report = check_file(path)
    assert report.clean, report
    arguments = type("Arguments", (), {"inputs": [str(path)], "verbose": False})
    assert Checker(arguments).process_all() == 0


class FullDisk:
    """An ``os.pwrite`` that takes ``room`` bytes in all, then says the disk is full."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.really = os.pwrite

    def __call__(self, descriptor: int, data: Any, offset: int) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.really(descriptor, bytes(data)[: self.room], offset)
        self.room -= taken
        return taken


def test_life_of_a_file(tmp_path: Path) -> None:
    """Nothing exists before the first append; then ``.open``; after close the final name, clean for all readers."""
    warc = files(tmp_path)
    assert warc.state() is None
    assert list(tmp_path.iterdir()) == []
    built, position = add(warc)
    _, second = add(warc)
    assert second.offset == position.offset + len(built.members)
    assert position.filename == "crawl-20260921141320250-00000-host.test.warc.gz"
    assert [path.name for path in tmp_path.iterdir()] == [f"{position.filename}.open"]
    state = warc.state()
    assert state == OpenFile(position.filename, (tmp_path / f"{position.filename}.open").stat().st_size)
    warc.sync()
    assert warc.close() == position.filename
    assert [path.name for path in tmp_path.iterdir()] == [position.filename]
    assert_clean(tmp_path / position.filename)
    assert warc.state() is None
    assert warc.close() is None


def test_rolls_between_captures(tmp_path: Path) -> None:
    """A full file is closed by ``roll_if_full`` only; the next has its own warcinfo, id and number."""
    warc = files(tmp_path, SERIES._replace(max_bytes=1))
    assert warc.roll_if_full() is None
    first_id = warc.warcinfo_id
    _, first = add(warc)
    assert warc.roll_if_full() == first.filename
    _, second = add(warc)
    assert warc.warcinfo_id != first_id
    assert "-00001-" in second.filename
    warc.close()
    for path in tmp_path.iterdir():
        assert_clean(path)


def test_resumes_where_it_was(tmp_path: Path) -> None:
    """An open file is gone on with: same name, same warcinfo id, next offset."""
    warc = files(tmp_path)
    _, position = add(warc)
    state, warcinfo_id = warc.state(), warc.warcinfo_id
    warc.abandon()
    again = files(tmp_path, resume=state)
    assert again.warcinfo_id == warcinfo_id
    _, second = add(again)
    assert state is not None
    assert second == (position.filename, state.length)
    again.close()
    assert_clean(tmp_path / position.filename)


def test_refuses_to_resume_a_torn_file(tmp_path: Path) -> None:
    """A file that is longer or shorter than committed must be recovered first; numbers go on after old files."""
    warc = files(tmp_path)
    _, position = add(warc)
    warc.abandon()
    with pytest.raises(StorageError, match="recover it first"):
        files(tmp_path, resume=OpenFile(position.filename, 17))
    with pytest.raises(StorageError):
        files(tmp_path, resume=OpenFile("missing.warc.gz", 17))
    _, other = add(files(tmp_path))
    assert "-00001-" in other.filename


@pytest.mark.parametrize("room", [0, 1, 500])
def test_full_disk_tears_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """A write that the disk takes only in part leaves the file as it was, and works when there is room again."""
    warc = files(tmp_path)
    add(warc)
    state = warc.state()
    assert state is not None
    with monkeypatch.context() as patched:
        patched.setattr("os.pwrite", FullDisk(room))
        with pytest.raises(StorageFull, match="No space left"):
            add(warc)
    assert warc.state() == state
    assert (tmp_path / f"{state.filename}.open").stat().st_size == state.length
    add(warc)
    warc.close()
    assert_clean(tmp_path / state.filename)


def test_full_disk_that_cannot_be_cut_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when the cut fails, the next capture overwrites the torn bytes and close cuts what stays."""
    warc = files(tmp_path)
    add(warc)

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr("os.pwrite", FullDisk(700))
        patched.setattr("os.ftruncate", refuse)
        with pytest.raises(StorageFull):
            add(warc)
    name = warc.close()
    assert name is not None
    assert_clean(tmp_path / name)


def test_full_disk_at_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose warcinfo does not fit is not left behind."""
    warc = files(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("os.pwrite", FullDisk(10))
        with pytest.raises(StorageFull):
            add(warc)
    assert list(tmp_path.iterdir()) == []
    add(warc)
    name = warc.close()
    assert name is not None
    assert_clean(tmp_path / name)


def test_short_writes_are_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that takes 100 bytes at a time still gets every byte."""
    really = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda fd, data, offset: really(fd, bytes(data)[:100], offset))
    warc = files(tmp_path)
    add(warc)
    name = warc.close()
    assert name is not None
    assert_clean(tmp_path / name)


def test_a_real_limit(tmp_path: Path) -> None:
    """Against the kernel's own refusal (RLIMIT_FSIZE), the file ends at its last whole capture."""
    script = f"""
        import resource
        from pathlib import Path
        from tests.stores.archive.test_archive import StorageFull, add, files
        warc = files(Path({str(tmp_path)!r}))
        add(warc)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, {resource.RLIM_INFINITY}))
        try:
            while True:
                add(warc)
        except StorageFull as error:
            print(error, warc.state().length)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "File too large" in ran.stdout
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == int(ran.stdout.split()[-1])
    assert check_file(path).clean


def test_failed_sync_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An fdatasync that fails must keep the caller from committing."""
    warc = files(tmp_path)
    warc.sync()
    add(warc)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(StorageError):
        warc.sync()


def test_close_can_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close that fails after the rename ends well at the second try."""
    warc = files(tmp_path)
    add(warc)
    failures: Iterator[bool] = iter([True])

    def fail_once(folder: Path) -> None:
        if next(failures, False):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("crawlerproject.stores.archive.archive.sync_path", fail_once)
    with pytest.raises(StorageError):
        warc.close()
    assert warc.close() is not None


def test_what_comes_behind_a_close_that_failed_is_cut_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is an open one again: what was appended meanwhile is not committed, and its page comes again."""
    warc = files(tmp_path / "warc")
    add(warc)
    committed = warc.state()
    assert committed is not None

    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("crawlerproject.stores.archive.archive.sync_path", fail)
        with pytest.raises(StorageError):
            warc.close()
    add(warc, "http://a.test/again")
    warc.abandon()
    assert recover(tmp_path / "warc", committed).open_file == committed
    [path] = (tmp_path / "warc").iterdir()
    assert path.stat().st_size == committed.length


def test_a_file_that_is_removed_is_made_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With its folder, before or after a capture: all that it held is in the file that is closed in the end."""
    warc = files(tmp_path / "warc")
    add(warc)
    warc.keep()
    shutil.rmtree(tmp_path / "warc")
    add(warc, "http://a.test/2")
    warc.keep()
    add(warc, "http://a.test/3")
    warc.sync()
    warc.close()

    (path,) = (tmp_path / "warc").iterdir()
    assert_clean(path)
    with path.open("rb") as stream:
        assert sum(record.rec_type == "response" for record in ArchiveIterator(stream)) == 3
    assert caplog.text.count("made again") == 1


def test_index_of_a_closed_file(tmp_path: Path) -> None:
    """Closing writes the index from the journal and drops the journal."""
    index = CdxjFiles(tmp_path / "index")
    warc = files(tmp_path / "warc", index=index)
    for letter in "cab":
        add(warc, f"http://{letter}.test/", index)
    index.flush()
    name = warc.close()
    assert name is not None
    (path,) = (tmp_path / "index").iterdir()
    assert path == index.path(name)
    assert [line.split(b" ")[0] for line in io.BytesIO(path.read_bytes())] == [b"test,a)/", b"test,b)/", b"test,c)/"]


def test_record_ids_are_version_4() -> None:
    """Ids are well-formed random UUIDs and never the same."""
    made = {new_record_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(uuid.UUID(one[10:-1]).version == 4 for one in made)
    assert all(str(uuid.UUID(one[10:-1])) == one[10:-1] for one in made)
