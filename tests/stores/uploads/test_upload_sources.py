"""Copies of robots.txt go packed: each in exactly one pack, whatever dies in between."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.robots_copies import save_robots
from crawlerproject.stores.uploads import upload_sources
from crawlerproject.stores.uploads.upload_sources import groups, pack, packs

NOW = 1.8e9


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """A crawl's folder with three copies."""
    made = CrawlDir(tmp_path / "crawl")
    for number in range(3):
        save_robots(made.robots_copies, f"http://h{number}.test", NOW, b"User-agent: *\n")
    return made


def packed(folder: CrawlDir) -> list[str]:
    """What all packs hold, a name as often as it is in one."""
    names = []
    for path in packs(folder):
        with tarfile.open(path) as tar:
            names += tar.getnames()
    return sorted(names)


def copies(folder: CrawlDir) -> list[str]:
    """The copies, as a pack names them."""
    return sorted(str(path.relative_to(folder.log)) for path in folder.robots_copies.rglob("*.txt"))


def test_each_copy_is_in_one_pack(folder: CrawlDir) -> None:
    """A second round packs what came since, and a third one nothing."""
    assert len(pack(folder, NOW)) == 1
    save_robots(folder.robots_copies, "http://late.test", NOW + 1, b"Disallow: /\n")
    assert len(pack(folder, NOW + 86400)) == 1
    assert pack(folder, NOW + 2 * 86400) == []

    assert packed(folder) == copies(folder)
    assert len(packs(folder)) == 2


def test_unpacked_in_the_log_it_is_as_it_was(folder: CrawlDir, tmp_path: Path) -> None:
    """Names and bytes."""
    (path,) = pack(folder, NOW)
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path / "log", filter="data")

    for name in copies(folder):
        assert (tmp_path / "log" / name).read_bytes() == (folder.log / name).read_bytes()


def test_a_death_before_the_record_packs_nothing_twice(folder: CrawlDir) -> None:
    """What was packed is read from the packs that still wait; one that was sent stays recorded."""
    pack(folder, NOW)
    record = folder.upload_staged / "robots.packed"
    record.unlink()

    assert pack(folder, NOW + 1) == []
    assert record.stat().st_size == 8 * 3
    for path in packs(folder):
        path.unlink()  # sent
    assert pack(folder, NOW + 2) == []


def test_many_copies_go_in_several(folder: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pack has so many at most, and a name of its own."""
    monkeypatch.setattr(upload_sources, "_MOST_COPIES", 2)

    assert len({path.name for path in pack(folder, NOW)}) == 2
    assert packed(folder) == copies(folder)


def test_links_are_left_out(folder: CrawlDir, tmp_path: Path) -> None:
    """What lies elsewhere is not the crawl's to send."""
    (tmp_path / "secret.txt").write_text("secret")
    home = next(folder.robots_copies.glob("*/*"))
    (home / "link.txt").symlink_to(tmp_path / "secret.txt")
    (home.parent / "linked").symlink_to(home)
    pack(folder, NOW)

    assert len(packed(folder)) == 3


def test_a_pack_is_sent_and_goes(folder: CrawlDir) -> None:
    """It is a file that passes; a day of the log that is not over waits for the crawl's end."""
    pack(folder, NOW)
    (folder.log / "requests-2026-11-24.jsonl").write_text("{}\n")

    during = [source for group in groups(folder, ended=False) for source in group.sources]
    after = [source for group in groups(folder, ended=True) for source in group.sources]

    assert [(source.passing, source.name.startswith("log/robots-")) for source in during] == [(True, True)]
    assert [source.name for source in after if source.plain] == ["log/requests-2026-11-24.jsonl.gz"]
