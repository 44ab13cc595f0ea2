"""Migrations: whole or to be gone on with, wherever a kill falls."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.stores import migrations
from crawlerproject.stores.crawl_dir import FORMATS, CrawlDir, read_facts, stamp_formats, write_facts
from crawlerproject.stores.migrations import MIGRATIONS, Migration, Move, described, migrate, pending

_TAILS = {"a.warc.gz.open.0.torn": b"one", "a.warc.gz.open.7.torn": b"two", "b.warc.gz.open.0.torn": b"three"}
# What changes a disk, below Python's own functions.
_CALLS = ("mkdir", "rename", "replace", "open", "write", "fsync", "link", "unlink")


def old_folder(home: Path) -> CrawlDir:
    """As 1.0.0 left one: tails among the files of the archive; one name is taken in the other folder."""
    crawl = CrawlDir(home)
    for folder in (crawl.warc, crawl.torn):
        folder.mkdir(parents=True)
    (crawl.warc / "b.warc.gz").write_bytes(b"pages")
    for name, content in _TAILS.items():
        (crawl.warc / name).write_bytes(content)
    (crawl.torn / "a.warc.gz.open.0.torn").write_bytes(b"before")
    return crawl


def contents(crawl: CrawlDir) -> dict[str, bytes]:
    """Every file."""
    return {str(path.relative_to(crawl)): path.read_bytes() for path in crawl.rglob("*") if path.is_file()}


def killed_at(call: int, crawl: CrawlDir) -> bool:
    """Have another process migrate and die by SIGKILL instead of its n-th call; whether it did."""
    child = os.fork()
    if not child:
        left = call

        def counting(real: Callable[..., Any]) -> Callable[..., Any]:
            def counted(*args: Any, **options: Any) -> Any:
                nonlocal left
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
                return real(*args, **options)

            return counted

        try:
            for name in _CALLS:
                setattr(os, name, counting(getattr(os, name)))
            migrate(crawl, lambda line: None)
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def test_a_kill_at_every_step(tmp_path: Path) -> None:
    """Nothing is recorded before all is done, nothing is lost, and the next call does the rest."""
    call, before_record = 0, 0
    while killed_at(call, crawl := old_folder(tmp_path / str(call))):
        recorded = "layout" in read_facts(crawl.formats)
        assert not (recorded and MIGRATIONS[0].moves(crawl))
        before_record += not recorded
        migrate(crawl, lambda line: None)
        found = contents(crawl)
        assert sorted(body for name, body in found.items() if name.startswith("torn/")) == sorted(
            [b"before", *_TAILS.values()]
        )
        assert [name for name in found if name.startswith("warc/")] == ["warc/b.warc.gz"]
        assert read_facts(crawl.formats) == {"layout": 2}
        assert pending(crawl) == []
        call += 1
    assert before_record >= len(_TAILS) + 3  # each move, each folder made durable


def test_what_is_recorded_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names in both folders are on the disk after the last move, before the record: no power loss undoes them."""
    crawl, seen = old_folder(tmp_path), list[str]()

    def noting(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def noted(path: Path, *args: Any) -> Any:
            seen.append(f"{name} {path.relative_to(crawl)}")
            return real(path, *args)

        return noted

    monkeypatch.setattr(Path, "rename", noting("move", Path.rename))
    for name in ("sync_path", "replace_file"):
        monkeypatch.setattr(migrations, name, noting(name, getattr(migrations, name)))
    migrate(crawl, lambda line: None)

    moves = [f"move warc/{name}" for name in sorted(_TAILS)]
    assert seen == [*moves, "sync_path .", "sync_path torn", "sync_path warc", "replace_file format.json"]


def test_a_kill_between_two_migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is recorded by itself, and what is behind a folder is not done again."""
    crawl, done = old_folder(tmp_path), list[int]()

    def step(version: int, *, fails: bool) -> Migration:
        def moves(folder: CrawlDir) -> list[Move]:
            if fails:
                raise KeyboardInterrupt
            done.append(version)
            return []

        return Migration("log", version, "nothing", moves)

    monkeypatch.setattr(migrations, "MIGRATIONS", (step(2, fails=False), step(3, fails=True)))
    with pytest.raises(KeyboardInterrupt):
        migrate(crawl, lambda line: None)
    assert read_facts(crawl.formats) == {"log": 2}
    monkeypatch.setattr(migrations, "MIGRATIONS", (step(2, fails=False), step(3, fails=False)))
    migrate(crawl, lambda line: None)

    assert (done, read_facts(crawl.formats)) == ([2, 3], {"log": 3})


def test_of_a_new_folder_nothing_is_pending(tmp_path: Path) -> None:
    """Nor of one that this version has stamped; nothing is written."""
    new, stamped = CrawlDir(tmp_path / "new"), CrawlDir(tmp_path / "stamped")
    for crawl in (new, stamped):
        crawl.mkdir()
    stamp_formats(stamped, "1.6.0")
    for crawl in (new, stamped):
        assert pending(crawl) == []
        migrate(crawl, pytest.fail)
    assert contents(new) == {}


def test_what_is_said_of_a_folder_changes_nothing(tmp_path: Path) -> None:
    """Versions, and of each migration what it moves."""
    crawl = old_folder(tmp_path)
    write_facts(crawl.formats, {"version": "1.5.0", "frontier": 2, "index": 1, "log": 1})
    before = contents(crawl)

    said = described(crawl)

    assert said[0].endswith("written by version 1.5.0 (frontier 2, index 1, log 1, layout not recorded)")
    assert said[1].startswith("  layout 1 to 2: ")
    assert said[1].endswith(": 3 files to move, 11 B")
    assert contents(crawl) == before
    migrate(crawl, lambda line: None)
    assert len(described(crawl)) == 1
    assert read_facts(crawl.formats) == {"version": "1.5.0", **FORMATS}
