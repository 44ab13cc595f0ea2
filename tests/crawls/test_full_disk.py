"""A disk without room: the crawl pauses with a reason, nothing is torn, and it goes on when there is room."""

from __future__ import annotations

import resource
import subprocess
import time
from pathlib import Path

from tests.crawls.test_small_web import PATIENCE
from tests.web.judge import judge_folder
from tests.web.running import PROJECT, crawl_command, small_settings, synthetic_web

# A file may not grow beyond this until the test lifts the limit: the kernel then refuses writes as a full disk does.
SMALL_FILE_BYTES = 150_000
DEADLINE_SECONDS = 60.0


def _wait_for(log: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + DEADLINE_SECONDS
    while words not in log.read_text():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < until, f"never said {words!r}: {log.read_text()[-3000:]}"
        time.sleep(0.1)


def test_the_crawl_pauses_and_goes_on(tmp_path: Path) -> None:
    """Refused writes lose no page, tear no record and store nothing twice."""
    log = tmp_path / "crawl.log"
    with synthetic_web(tmp_path / "web") as web:
        settings = {**small_settings(web), **PATIENCE}
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT)
        try:
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (SMALL_FILE_BYTES, resource.RLIM_INFINITY))
            _wait_for(log, "The crawl pauses:", process)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            _wait_for(log, "There is room again", process)
            assert process.wait(DEADLINE_SECONDS) == 0
        finally:
            process.kill()
        verdict = judge_folder(web.folder, tmp_path / "crawl", host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []
    assert "Traceback" not in log.read_text()
