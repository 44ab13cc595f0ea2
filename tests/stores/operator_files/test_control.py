"""stores/control: what is said from outside is whole, durable, the owner's alone, and never lost to another command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir, close_to_others
from crawlerproject.stores.operator_files.control import (
    Control,
    Pauses,
    change_pauses,
    ever_added,
    hand_on,
    read_pauses,
    spool_seeds,
    take_back,
)


def pause(folder: Path, name: str) -> int:
    """Pause one host."""
    return change_pauses(folder, lambda pauses: pauses.hosts.setdefault(name, "now"))


def test_a_look_sees_a_change_once(tmp_path: Path) -> None:
    """Nothing before the first command; its version is what a command waits for; look_again gives it once more."""
    control = Control(tmp_path)
    assert (control.changed(), control.added(), control.version) == (None, [], 0)

    version = pause(tmp_path, "a.test")

    assert control.changed() == Pauses("", {"a.test": "now"})
    assert control.changed() is None
    assert control.version == version
    control.look_again()
    assert control.changed() == Pauses("", {"a.test": "now"})


def test_files_are_the_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask; a folder that others could write into is closed at the start; a link is not followed."""
    before = os.umask(0)
    try:
        pause(tmp_path, "a.test")
        spooled = spool_seeds(tmp_path, ["https://a.test/"])
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in CrawlDir(tmp_path).control.iterdir()}
    assert (modes, CrawlDir(tmp_path).control.stat().st_mode & 0o777) == ({0o600}, 0o700)
    assert Control(tmp_path).added() == [spooled]
    assert ever_added(tmp_path / "other") == []

    CrawlDir(tmp_path).control.chmod(0o777)
    close_to_others(tmp_path)
    assert CrawlDir(tmp_path).control.stat().st_mode & 0o777 == 0o700

    elsewhere, other = tmp_path / "elsewhere", tmp_path / "other"
    elsewhere.mkdir()
    other.mkdir()
    CrawlDir(other).control.symlink_to(elsewhere)
    with pytest.raises(OperatorError, match="cannot be made or opened"):
        pause(other, "a.test")
    assert list(elsewhere.iterdir()) == []


def test_two_commands_at_a_time_lose_nothing(tmp_path: Path) -> None:
    """Eight processes, each with five hosts of its own: all of them are paused."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.stores.operator_files.test_control import pause\n"
        "for number in range(5): pause(Path(sys.argv[1]), f'{sys.argv[2]}-{number}.test')\n"
    )
    root = Path(__file__).resolve().parents[3]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), str(worker)], cwd=root) for worker in range(8)
    ]

    assert [process.wait(60) for process in processes] == [0] * 8
    assert len(read_pauses(tmp_path).hosts) == 40


def test_lists_of_seeds_come_in_their_order(tmp_path: Path) -> None:
    """And one that is half written is none yet."""
    paths = [spool_seeds(tmp_path, [f"https://h{number}.test/", "https://x.test/ scope=path"]) for number in range(3)]
    (CrawlDir(tmp_path).control / "add-9.txt.part").write_text("https://half")

    assert Control(tmp_path).added() == paths
    assert ever_added(tmp_path) == [
        line for number in range(3) for line in (f"https://h{number}.test/", "https://x.test/ scope=path")
    ]
    assert paths[1].read_text() == "https://h1.test/\nhttps://x.test/ scope=path\n"


def test_seeds_that_workers_have_not_queued_come_back(tmp_path: Path) -> None:
    """Each list once, whoever had it and however far an earlier try came; every worker gets it anew."""
    crawl, workers = CrawlDir(tmp_path), [CrawlDir(tmp_path / name) for name in ("worker-1", "worker-2")]
    spool_seeds(tmp_path, ["http://a.test/"])
    hand_on(crawl, workers)
    spool_seeds(tmp_path, ["http://b.test/"])
    hand_on(crawl, workers)
    Control(workers[0]).added()[0].unlink()  # the first has queued its part of the first list
    shutil.copy(Control(workers[1]).added()[0], crawl.control)  # a crash came in between
    take_back(crawl, workers)
    take_back(crawl, workers)

    assert [path.read_text() for path in Control(crawl).added()] == ["http://a.test/\n", "http://b.test/\n"]
    assert [Control(worker).added() for worker in workers] == [[], []]


def test_a_file_that_was_edited_badly_pauses(tmp_path: Path) -> None:
    """What cannot be read may have been a pause: doubt asks nothing."""
    pause(tmp_path, "a.test")
    (CrawlDir(tmp_path).control / "paused.json").write_text("{")

    assert "cannot be read" in read_pauses(tmp_path).crawl
