"""Commands that promise to read only change nothing: no byte, no moment, no right, and need no right to write."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.crawled import scrapy, started
from tests.commands.reading import OTHERS, WITH_AN_ENGINE, Reading, read_answers, readings
from tests.commands.running import Done
from tests.crawls.operator.spoken_to import crawling
from tests.crawls.test_old_folders import FOLDERS
from tests.hostile.arena import Arena, arena
from tests.hostile.test_terminal import names
from tests.ordinary_user import as_ordinary_user
from tests.web import fixed
from tests.web.running import IDENTITY
from tests.web.waiting import wait_until
from tests.web.zygote import direct

_SECONDS = 120.0
# Some files are closed, one is open.
_SETTINGS = {"WARC_MAX_BYTES": "9000", "COMMIT_SECONDS": "0.3"}
# A folder with all that has been migrated since, and one of several workers.
_FOLDERS = ("folders/1.0.0", "fleets/1.5.0")


class Frozen(NamedTuple):
    """A crawl that runs, and does nothing just now."""

    web: Arena
    crawl: CrawlDir
    url: str
    pid: int


def seen(crawl: Path) -> dict[str, tuple[object, ...]]:
    """All that is there: kind and rights, owner, when it was changed, and what is in it."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (crawl, *sorted(crawl.rglob("*"))):
        facts = path.lstat()
        digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(crawl))] = (facts.st_mode, facts.st_uid, facts.st_mtime_ns, facts.st_size, digest)
    return found


def options(crawl: Path, hosts: Path) -> list[str]:
    """What every command line here ends with."""
    given = {
        **IDENTITY, "CRAWL_DIR": str(crawl), "FETCH_HOSTS_FILE": str(hosts), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "PACE_PRESET": "mirror", "NEVERCRAWL_FILE": "", "RENDER": "never",
    }  # fmt: skip
    return [part for name, value in given.items() for part in ("-s", f"{name}={value}")]


def ended_well(reading: Reading, done: Done) -> None:
    """It did what it is for."""
    said = f"{' '.join(reading.arguments)}: {done.returncode}\n{done.stdout[-500:]}{done.stderr[-2000:]}"
    assert done.returncode in reading.statuses, said
    assert "Traceback" not in done.stderr, said
    assert done.output or done.stderr, said


def changed(before: dict[str, tuple[object, ...]], crawl: Path) -> list[str]:
    """What is another, new or gone."""
    now = seen(crawl)
    return [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]


def test_the_table_has_every_command(tmp_path: Path) -> None:
    """Each reads only, or is named with what it changes; some do both, by their options."""
    reads = {reading.arguments[0] for reading in readings(CrawlDir(tmp_path), "http://a.test/", tmp_path)}

    assert reads | set(OTHERS) == set(names()), "a new command belongs into the table"
    assert reads & set(OTHERS) == {"pause", "state", "withdraw"}


@pytest.mark.parametrize("kept", _FOLDERS)
def test_a_killed_crawls_folder_stays_as_it_is(kept: str, tmp_path: Path) -> None:
    """Of the first release, or of two workers: nothing is mended or migrated, no lock is made."""
    shutil.unpack_archive(FOLDERS.parent / f"{kept}.tar.xz", tmp_path)
    crawl = CrawlDir(tmp_path / Path(kept).name)
    (tmp_path / "out").mkdir()
    before = seen(crawl)

    for reading in readings(crawl, fixed.url(fixed.SITES[0]), tmp_path / "out"):
        if reading.arguments[0] not in WITH_AN_ENGINE:
            ended_well(reading, scrapy(*reading.arguments, *options(crawl, tmp_path / "hosts")))
            assert changed(before, crawl) == [], reading.arguments


@pytest.fixture(scope="module")
def frozen() -> Iterator[Frozen]:
    """Stopped by a signal, amid its work; what it has closed is processed and can be searched."""
    with tempfile.TemporaryDirectory() as name, arena(Path(name)) as web:  # pytest's folders are closed to other users
        Path(name).chmod(0o755)
        crawl, seed = CrawlDir(name, "crawl"), web.innocent()
        with crawling(web, "-a", f"seeds={seed}", settings=_SETTINGS) as process:
            wait_until(lambda: len(crawl.closed_warcs()) > 1, "two files are full", process=process)
            for made in (scrapy("process", str(crawl), "--workers", "1"), scrapy("load", str(crawl))):
                assert made.returncode == 0, made.stdout + made.stderr
            process.send_signal(signal.SIGSTOP)
            wait_until(lambda: _is_stopped(process.pid), "stopped")
            (web.folder / "out").mkdir()
            yield Frozen(web, crawl, seed, process.pid)


def _is_stopped(pid: int) -> bool:
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return {task.read_text().rpartition(")")[2].split()[0] for task in tasks} == {"T"}


def test_a_running_crawls_folder_stays_as_it_is(frozen: Frozen) -> None:
    """Every command of the table beside a crawl, which goes on afterwards."""
    crawl, before = frozen.crawl, seen(frozen.crawl)

    for reading in readings(crawl, frozen.url, frozen.web.folder / "out"):
        run = started if reading.arguments[0] in WITH_AN_ENGINE else scrapy
        ended_well(reading, run(*reading.arguments, *options(crawl, frozen.web.folder / "hosts")))
        assert changed(before, crawl) == [], reading.arguments


def test_who_may_not_write_may_read(frozen: Frozen) -> None:
    """A copy of that folder on which its owner, an ordinary user, has no right to write: a snapshot, or a full disk."""
    home = frozen.web.folder / "ordinary"
    crawl, out = CrawlDir(home / "crawl"), home / "out"
    out.mkdir(parents=True)
    shutil.copytree(frozen.crawl, crawl, ignore=shutil.ignore_patterns("*.sock"))
    found = [each for each in readings(crawl, frozen.url, out) if each.arguments[0] not in WITH_AN_ENGINE]
    lines = [[*each.arguments, *options(crawl, frozen.web.folder / "hosts")] for each in found]
    command = as_ordinary_user([sys.executable, "-m", "tests.commands.reading"], home)
    for path in (*crawl.rglob("*"), crawl):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = seen(crawl)

    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME"), str(out))
    ended = subprocess.run(
        command, input=json.dumps(lines), env=direct(**places, PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True, text=True, timeout=_SECONDS, check=False,
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr[-3000:]
    for reading, done in zip(found, read_answers(ended.stdout), strict=True):
        ended_well(reading, done)
    assert changed(before, crawl) == []
