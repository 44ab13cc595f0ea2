"""Memory and disk of this very process, and how large a crawl's stores have grown."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.watch import machine
from crawlerproject.watch.machine import LOOK_SECONDS, StoreSizes, machine_facts, sizes


def test_it_says_what_is_there(tmp_path: Path) -> None:
    """The process has some memory of what it may have; the disk is the folder's."""
    facts = machine_facts(tmp_path, 5)

    assert 1_000_000 < facts["rss_bytes"] < facts["memory_bytes"]
    assert facts["disk_bytes"] == shutil.disk_usage(tmp_path).total
    assert 0 < facts["disk_free_bytes"] <= facts["disk_bytes"]
    assert facts["disk_min_free_bytes"] == 5


def test_a_folder_that_is_gone_ends_no_look(tmp_path: Path) -> None:
    """What the crawl says of it is its own business."""
    assert machine_facts(tmp_path / "gone", 5)["disk_bytes"] == 0


@pytest.mark.parametrize(
    ("lines", "limits", "least"),
    [
        ("0::/system.slice/crawl@a.service\n", {"new/system.slice/crawl@a.service/memory.max": "5000000\n"}, 5_000_000),
        ("0::/a/b\n", {"new/a/b/memory.max": "max\n", "new/a/memory.max": "4000000\n"}, 4_000_000),
        ("0::/\n", {"new/memory.max": "3000000\n"}, 3_000_000),
        ("0::/not/seen/from/within\n", {"new/memory.max": "3000000\n"}, 3_000_000),
        ("4:memory:/docker/a\n0::/\n", {"old/docker/a/memory.limit_in_bytes": "2000000\n"}, 2_000_000),
        ("4:memory:/docker/a\n", {"old/memory.limit_in_bytes": "2000000\n"}, 2_000_000),
        ("0::/a\n", {"new/a/memory.max": "max\n"}, None),
    ],
    ids=["unit", "slice", "container", "outer name", "first version", "its container", "none"],
)
def test_the_least_limit_of_memory_counts(
    lines: str, limits: dict[str, str], least: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the unit, what it is in, and the container, by either version of control groups; else the machine's memory."""
    for name, text in {"groups": lines, **limits}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    machines = machine_facts(tmp_path, 5)["memory_bytes"]
    roots = {"": (tmp_path / "new", "memory.max"), "memory": (tmp_path / "old", "memory.limit_in_bytes")}
    monkeypatch.setattr(machine, "_CGROUPS_OF", tmp_path / "groups")
    monkeypatch.setattr(machine, "_CGROUP_ROOTS", roots)

    assert machine_facts(tmp_path, 5)["memory_bytes"] == (least or machines)


def test_files_of_all_depths_count(tmp_path: Path) -> None:
    """What is not there has no bytes; a link counts as itself."""
    folder = CrawlDir(tmp_path)
    for path, size in ((folder.warc / "a.warc.gz", 10), (folder.parquet / "a" / "b.parquet", 5)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a" * size)
    (folder.warc / "link").symlink_to("/nowhere")
    (folder.robots_copies / "ab").mkdir(parents=True)
    (folder.robots_copies / "ab" / "old.txt").write_bytes(b"left out: a file a host")

    assert sizes(folder) == {"frontier": 0, "warc": 10 + len("/nowhere"), "index": 5, "log": 0}


def test_the_crawl_does_not_wait_for_a_look(tmp_path: Path) -> None:
    """What is asked for meanwhile is the last whole look."""
    work: list[Callable[[], None]] = []
    seen = StoreSizes(CrawlDir(tmp_path), work.append)

    assert seen.now(100.0) == {}
    work.pop()()
    assert seen.now(100.0 + LOOK_SECONDS / 2)["warc"] == 0
    assert work == []
    seen.now(100.0 + LOOK_SECONDS)
    assert len(work) == 1
