"""Backups of a crawl: made while it runs, put back, and gone on from; judged by what is archived in the end."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive.upload_rules import Here, Measured, Stage, Upload
from crawlerproject.stores.backup import making, restoring
from crawlerproject.stores.backup.making import Backup, read_backup
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.uploads.upload_journal import Journal
from tests.commands.crawled import scrapy
from tests.commands.running import Done
from tests.crawls.fleet.local_fleets import processes_of
from tests.crawls.operator.spoken_to import chain, crawling, log_of, moved_on
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.web.waiting import wait_until
from tests.web.zygote import Process

PAGES = 20
AT_BACKUP, AT_KILL = 8, 16
"""Pages of each site that are answered before; the next one's answer waits."""
SITES = ("one.test", "two.test")
# So small that there are several files; and so seldom a commit that the archive is ahead of the frontier.
SETTINGS = {"WARC_MAX_BYTES": "9000", "COMMIT_SECONDS": "0.4", "FETCH_TIMEOUT_SECONDS": "300"}
WORKERS = ("worker-1", "worker-2")
_SECONDS = 60.0


class Story(NamedTuple):
    """A crawl that was backed up, killed, and put back in two places."""

    web: Arena
    backup: Backup
    said: Done  # by the backup
    put_back: dict[str, Done]
    folders: dict[str, CrawlDir]  # the two places, each gone on from to the end
    at_backup: int  # files that were closed or open then
    at_kill: int


def archived(folder: CrawlDir) -> Counter[str]:
    """How often each page is in the index, be it one process's or several workers'."""
    indexes = [*folder.index.glob("*.cdxj"), *folder.glob("worker-*/index/*.cdxj")]
    lines = [line for path in indexes for line in path.read_text().splitlines()]
    urls = (json.loads(line.split(" ", 2)[2])["url"] for line in lines)
    return Counter(url for url in urls if not url.endswith("/robots.txt"))


def all_pages(web: Arena, sites: Sequence[str] = SITES) -> set[str]:
    """Those of all sites."""
    return {web.url(site, f"/{number}" if number else "/") for site in sites for number in range(PAGES)}


def good(folder: CrawlDir) -> None:
    """Index and archive agree, and every pause was kept."""
    for command in (("verify", str(folder)), ("audit", str(folder))):
        done = scrapy(*command)
        assert done.returncode == 0, done.stdout + done.stderr


class Gate:
    """Sites whose pages come one after the other, as far as it is open; each names the same page of the next site."""

    def __init__(self, web: Arena, sites: Sequence[str]) -> None:
        self.open_to = AT_BACKUP
        self.seeds = [
            self._site(web, name, web.url(beside)) for name, beside in zip(sites, [*sites[1:], sites[0]], strict=True)
        ]

    def _site(self, web: Arena, name: str, beside: str) -> str:

        async def talk(asked: Asked, writer: asyncio.StreamWriter) -> float:
            at = int(asked.path.strip("/") or 0) if asked.path.strip("/").isdigit() or asked.path == "/" else -1
            while at >= self.open_to:
                await asyncio.sleep(0.02)
            words = " ".join(f"{name}x{at}x{place}" for place in range(40))
            writer.write(answer("", mime="text/plain") if at < 0 else page(*_next(at, beside), text=words))
            await writer.drain()
            return time.time()

        return web.raw_site(name, talk)


def _next(at: int, beside: str) -> list[str]:
    return [f"/{at + 1}", f"{beside}{at or ''}"] if at + 1 < PAGES else []


def reached(web: Arena, pages: int, sites: Sequence[str] = SITES) -> None:
    """Wait until all are answered that the gate lets through."""

    def through() -> bool:
        return all(len(web.paths(site)) >= pages for site in sites)

    wait_until(through, f"{pages} pages of each", seconds=_SECONDS)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Backed up on its way and killed later; put back beside its archive of then, and in its own folder."""
    with arena(tmp_path_factory.mktemp("backups")) as web:
        old, new, target = CrawlDir(web.folder / "crawl"), CrawlDir(web.folder / "new"), web.folder / "kept" / "b1"
        gate = Gate(web, SITES)
        seeds = ",".join(gate.seeds)
        with crawling(web, "-a", f"seeds={seeds}", "-a", "scope=host", settings=SETTINGS) as process:
            reached(web, AT_BACKUP)
            wait_until(old.closed_warcs, "a file is full", seconds=_SECONDS)
            said = scrapy("state", "backup", str(target), folder=old)
            assert said.returncode == 0, said.stdout + said.stderr
            for part in (old.warc, old.index, old.log):  # as rsync would, while the crawl goes on
                shutil.copytree(part, new / part.name)
            at_backup = len(list(new.warc.iterdir()))
            gate.open_to = AT_KILL
            reached(web, AT_KILL)
            was_open = [path.name for path in new.open_warcs()]
            wait_until(lambda: not any((old.warc / name).exists() for name in was_open), "it is full", seconds=_SECONDS)
            gate.open_to = AT_KILL + 1
            wait_until(lambda: len(list(old.warc.iterdir())) > at_backup, "another is begun", seconds=_SECONDS)
            process.kill()
            process.wait()
        gate.open_to = PAGES
        at_kill = len(list(old.warc.iterdir()))
        folders = {"its own folder": old, "a new folder": new}
        put_back = {name: scrapy("state", "restore", str(target), folder=folder) for name, folder in folders.items()}
        for name, folder in folders.items():
            assert put_back[name].returncode == 0, put_back[name].stdout + put_back[name].stderr
            with crawling(web, settings={**SETTINGS, "CRAWL_DIR": str(folder)}) as process:
                assert process.wait(timeout=_SECONDS) == 0, log_of(web)
        yield Story(web, read_backup(target), said, put_back, folders, at_backup, at_kill)


@pytest.mark.parametrize("place", ["its own folder", "a new folder"])
def test_what_is_put_back_goes_on_exactly(story: Story, place: str) -> None:
    """Every page is archived once; index and archive agree; every pause was kept."""
    folder = story.folders[place]

    assert archived(folder) == Counter(all_pages(story.web))
    good(folder)
    assert not folder.restoring.exists()
    assert "Traceback" not in log_of(story.web)


def test_what_came_later_is_kept_aside(story: Story) -> None:
    """Files begun after the backup are in torn/, and no index knows them; the old frontier is beside the new one."""
    folder = story.folders["its own folder"]

    assert story.at_kill > story.at_backup
    assert len(list(folder.torn.iterdir())) >= story.at_kill - story.at_backup
    # One that was still open at the kill is named as begun after the last commit.
    assert "begun after the" in story.put_back["its own folder"].stderr
    assert len(list(folder.glob("frontier.damaged-*"))) == 1


def test_a_backup_is_as_closed_as_the_crawl(story: Story) -> None:
    """The same secrets are in it; nothing of the archive is."""
    kept = story.backup.folder

    assert kept.stat().st_mode & 0o777 == kept.frontier.stat().st_mode & 0o777 == 0o700
    assert not (kept / "warc").exists()
    assert story.backup.folders[0].closed
    assert story.backup.folders[0].open_file is not None
    assert "closed WARC file" in story.said.stdout
    assert not story.folders["its own folder"].frontier_checkpoint.exists()


def refused(*arguments: str, folder: Path) -> str:
    """The one sentence with which a command refuses."""
    done = scrapy("state", *arguments, folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_what_cannot_be_is_one_sentence(story: Story, tmp_path: Path) -> None:
    """A place that is taken or within the crawl; what is no backup, not whole, or newer; an archive that is gone."""
    crawl, kept = story.folders["its own folder"], story.backup.folder
    damaged, newer = tmp_path / "damaged", tmp_path / "newer"
    shutil.copytree(kept, damaged)
    shutil.copytree(kept, newer)
    next(iter((damaged / "frontier").glob("*.sst"))).unlink()
    manifest = json.loads((kept / "backup.json").read_bytes())
    (newer / "backup.json").write_text(json.dumps(manifest | {"format": 2}))

    assert "is there already" in refused("backup", str(kept), folder=crawl)
    assert "choose one outside" in refused("backup", str(crawl / "b2"), folder=crawl)
    assert "There is no folder" in refused("backup", str(tmp_path / "b2"), folder=tmp_path / "none")
    assert "holds no whole backup" in refused("restore", str(tmp_path), folder=tmp_path / "none")
    assert "is not whole" in refused("restore", str(damaged), folder=tmp_path / "none")
    assert "made by a newer version" in refused("restore", str(newer), folder=tmp_path / "none")
    assert "copy the archive there first" in refused("restore", str(kept), folder=tmp_path / "bare")
    assert not CrawlDir(tmp_path / "bare").has_frontier()


def test_what_another_place_has_since_is_not_archived_twice(story: Story, tmp_path: Path) -> None:
    """A file that was begun after the backup and sent away cannot be taken back: the restore is refused."""
    crawl = CrawlDir(tmp_path / "crawl")
    shutil.copytree(story.folders["a new folder"], crawl)
    with closing(Journal(crawl)) as journal:
        journal.open("file:///archive")
        journal.set("warc/later.warc.gz", Upload(Stage.CONFIRMED, Here(1, 1), Measured(1, "", "", "")))

    assert "such as later.warc.gz, went to another place" in refused("restore", str(story.backup.folder), folder=crawl)
    assert not crawl.restoring.exists()


@pytest.mark.parametrize("step", ["recover", "_put_small", "finish", "put_in_place"])
def test_a_restore_that_was_interrupted_is_done_again(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Wherever it ended: until it is done nothing else may write into the folder."""
    crawl, then = CrawlDir(tmp_path / "crawl"), story.backup.folders[0]
    shutil.copytree(story.folders["a new folder"], crawl)
    with monkeypatch.context() as broken:
        broken.setattr(restoring, step, _no_more)
        assert "the power goes" in refused("restore", str(story.backup.folder), folder=crawl)
    with pytest.raises(OperatorError, match="is not yet whole"):
        take_lock(crawl)
    assert "is not yet whole" in refused("backup", str(tmp_path / "b"), folder=crawl)

    again = scrapy("state", "restore", str(story.backup.folder), folder=crawl)

    assert again.returncode == 0, again.stderr
    assert not crawl.restoring.exists()
    assert {path.name for path in crawl.closed_warcs()} == {*then.closed}
    assert scrapy("verify", str(crawl)).returncode == 0


def _no_more(*given: object) -> None:
    raise StorageError("the power goes")


def test_a_kill_leaves_no_backup(tmp_path: Path) -> None:
    """Of the command: the crawl tidies up, the next backup is made. Of the crawl: the command says so."""
    with arena(tmp_path) as web:
        crawl, target = CrawlDir(tmp_path / "crawl"), tmp_path / "b"
        order = crawl.control / "backup.json"
        command = [sys.executable, "-m", "scrapy", "state", "backup", str(target), "-s", f"CRAWL_DIR={crawl}"]
        with crawling(web, "-a", f"seeds={chain(web, 'one.test', 3000)}") as process:
            moved_on(web, "one.test")
            process.send_signal(signal.SIGSTOP)
            with Process(command) as asking:
                wait_until(order.exists, "it has asked", seconds=_SECONDS)
                asking.kill()
                asking.wait()
            left = tmp_path / "b.unfinished"
            assert left.is_dir()
            assert not target.exists()
            assert "holds no whole backup" in refused("restore", str(left), folder=tmp_path / "none")
            process.send_signal(signal.SIGCONT)
            wait_until(lambda: not order.exists(), "the crawl has tidied up", seconds=_SECONDS)
            done = scrapy("state", "backup", str(target), folder=crawl)
            assert done.returncode == 0, done.stderr
            assert not left.exists()
            process.send_signal(signal.SIGSTOP)
            with (
                (tmp_path / "said").open("wb") as said,
                Process([*command[:5], f"{target}2", *command[6:]], said) as asking,
            ):
                wait_until(order.exists, "it has asked", seconds=_SECONDS)
                process.kill()
                process.wait()
                assert asking.wait(timeout=_SECONDS) == 2
        assert "has ended, or is starting" in (tmp_path / "said").read_text()
        assert not (tmp_path / "b2").exists()
        stopped = scrapy("state", "backup", str(tmp_path / "b3"), folder=crawl)

    assert stopped.returncode == 0, stopped.stderr
    assert read_backup(tmp_path / "b3").folders[0].has_frontier


def test_a_second_command_for_one_place_is_refused(tmp_path: Path) -> None:
    """In one sentence, at once; the first one's backup lacks nothing of what is small either."""
    with arena(tmp_path) as web:
        crawl, target = CrawlDir(tmp_path / "crawl"), tmp_path / "b"
        command = [sys.executable, "-m", "scrapy", "state", "backup", str(target), "-s", f"CRAWL_DIR={crawl}"]
        with crawling(web, "-a", f"seeds={chain(web, 'one.test', 3000)}") as process:
            moved_on(web, "one.test")
            process.send_signal(signal.SIGSTOP)  # so that the first one waits
            with (tmp_path / "said").open("wb") as said, Process(command, said) as first:
                wait_until((crawl.control / "backup.json").exists, "it has asked", seconds=_SECONDS, process=first)
                second = scrapy("state", "backup", str(target), folder=crawl)
                process.send_signal(signal.SIGCONT)
            assert first.returncode == 0, (tmp_path / "said").read_text()

    kept = read_backup(target)
    assert kept.folders[0].has_frontier
    assert kept.folder.run.read_bytes() == crawl.run.read_bytes()
    assert not kept.folder.lock_file.exists()
    assert second.returncode == 2
    assert second.stderr == f"Another backup is being made in {target}; wait for it, or choose another folder.\n"


def test_a_place_without_locks_takes_a_backup(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As some file systems over a network are; the crawl's own folder is on this machine."""
    monkeypatch.setattr(making, "lock_now", _no_locks)

    done = scrapy("state", "backup", str(tmp_path / "b"), folder=story.folders["a new folder"])

    assert done.returncode == 0, done.stderr
    assert read_backup(tmp_path / "b").folders[0].has_frontier


def _no_locks(descriptor: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_workers_of_one_machine_are_backed_up_in_step(tmp_path: Path) -> None:
    """Both are killed later and put back: what one had written to the other is lost nowhere."""
    sites = ("ant.test", "bee.test", "cat.test", "dog.test")
    with arena(tmp_path) as web:
        crawl, target = CrawlDir(tmp_path / "crawl"), tmp_path / "b"
        gate, fleet = Gate(web, sites), "fleet --workers 2"
        arguments = ("-a", f"seeds={gate.seeds[0]}", "-a", "scope=any")
        with crawling(web, *arguments, settings=SETTINGS, command=fleet) as process:
            reached(web, AT_BACKUP, sites)
            said = scrapy("state", "backup", str(target), folder=crawl)
            assert said.returncode == 0, said.stdout + said.stderr
            gate.open_to = AT_KILL
            reached(web, AT_KILL, sites)
            for worker in processes_of(web.folder / "log.txt").values():
                os.kill(worker, signal.SIGKILL)
            process.kill()
            process.wait()
        wait_until(
            lambda: not any(CrawlDir(crawl / name).locked() for name in WORKERS), "all are dead", seconds=_SECONDS
        )
        gate.open_to = PAGES
        put_back = scrapy("state", "restore", str(target), folder=crawl)
        assert put_back.returncode == 0, put_back.stdout + put_back.stderr
        with crawling(web, settings=SETTINGS, command=fleet) as process:
            assert process.wait(timeout=_SECONDS) == 0, log_of(web)

    assert archived(crawl) == Counter(all_pages(web, sites))
    good(crawl)
    assert [each.name for each in read_backup(target).folders if each.has_frontier] == list(WORKERS)
    assert "Traceback" not in log_of(web) + "".join((crawl / f"{name}.log").read_text() for name in WORKERS)
