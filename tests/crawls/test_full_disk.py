"""A disk without room: the crawl pauses with a reason, nothing is torn, and it goes on when there is room."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.reports.warc_check import check_file
from tests.commands.crawled import ask, scrapy
from tests.crawls.test_small_web import PATIENCE
from tests.web.judge import judge_folder, judge_pauses, judge_references, read_captures, read_visits
from tests.web.running import crawl_command, read_pages, small_settings, synthetic_web
from tests.web.waiting import busyness, wait_until
from tests.web.zygote import Process

# A file may not grow beyond this until the test lifts the limit: the kernel then refuses writes as a full disk does.
SMALL_FILE_BYTES = 150_000
DEADLINE_SECONDS = 60.0


DISK_BYTES = 400_000_000
HOSTS, PAGES = 24, 12  # enough to be in the middle of them when the disk is full
# Between what the store keeps free for itself (100 MB) and the watermark.
FREE_BYTES, WATERMARK_BYTES = 130_000_000, 180_000_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which can be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_the_crawl_pauses_and_goes_on(tmp_path: Path) -> None:
    """Refused writes lose no page, tear no record and store nothing twice."""
    log = tmp_path / "crawl.log"
    with synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), **PATIENCE}
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        with log.open("wb") as output:
            process = Process(command, output)
        try:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (SMALL_FILE_BYTES, resource.RLIM_INFINITY))
            wait_until(lambda: "The crawl pauses:" in log.read_text(), process=process, log=log)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            wait_until(lambda: "The crawl goes on" in log.read_text(), process=process, log=log)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
        verdict = judge_folder(web.folder, tmp_path / "crawl", host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []
    assert "Traceback" not in log.read_text()


def test_it_pauses_below_the_watermark_and_goes_on_above(tmp_path: Path, small_disk: Path) -> None:
    """Before a write fails: the reason is said, nothing is asked for meanwhile, nothing is missing afterwards."""
    log, crawl, filler = tmp_path / "crawl.log", small_disk / "crawl", small_disk / "filler"
    with synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", str(HOSTS)) as web:
        visits = web.folder / "server.jsonl"
        settings = {
            **small_settings(web),
            "DISK_MIN_FREE_BYTES": str(WATERMARK_BYTES),
            "SCOPE_MAX_URLS_PER_HOST": str(PAGES),
        }
        command = crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings)
        with log.open("wb") as output:
            process = Process(command, output)
        try:
            wait_until(lambda: read_pages(visits) > 100, process=process, log=log)
            with filler.open("wb") as stream:
                # At once: to write as much takes a busy machine as long as the crawl.
                os.posix_fallocate(stream.fileno(), 0, shutil.disk_usage(small_disk).free - FREE_BYTES)
            wait_until(lambda: "under DISK_MIN_FREE_BYTES" in log.read_text(), process=process, log=log)
            wait_until(lambda: ask(crawl, "status")["paused"], process=process, log=log)
            status, text = ask(crawl, "status"), scrapy("status", folder=crawl).stdout
            asked = -1
            while asked != (asked := read_pages(visits)):  # what was in flight comes to its end
                time.sleep(2.0 * busyness())  # many times the pause that a host is given
            filler.unlink()
            wait_until(lambda: "The crawl goes on" in log.read_text(), process=process, log=log)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
        seen = read_visits(visits)
        captures = read_captures(crawl / "warc")
        flaws = [flaw for path in (crawl / "warc").iterdir() for flaw in check_file(path).flaws]
        verdict = judge_pauses(seen, host_seconds=0.25, ip_seconds=0.5)
        verdict.add(judge_references(crawl / "warc"))

    assert "under DISK_MIN_FREE_BYTES" in status["paused"]
    assert (status["running"], status["pages_per_second"], status["bytes_per_second"]) == (True, 0.0, 0.0)
    assert "\nPaused    " in text
    assert "\nRate" not in text
    assert 100 < asked < len(seen)
    assert len(seen) >= HOSTS * (1 + PAGES)  # robots.txt and the pages of each host
    assert {sum(found.values()) for found in captures.values()} == {1}
    assert len(captures) == len(seen)
    assert flaws + verdict.faults == []
    assert "Traceback" not in log.read_text()
