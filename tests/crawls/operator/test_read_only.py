"""The crawl's folder takes no new file from the middle of the crawl on: it goes on with those it has, and ends."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.commands.crawled import scrapy
from tests.ordinary_user import as_ordinary_user
from tests.web.fixed import HALF, PAGES, SITES, archived_once, fixed_web, settings, url
from tests.web.judge import read_captures
from tests.web.waiting import wait_until
from tests.web.zygote import Process, direct, run

DEADLINE_SECONDS = 60.0


def set_writable(folder: Path, *, writable: bool) -> None:
    """Every folder below, for its owner; files that are open stay so."""
    for path in [folder, *(path for path in folder.rglob("*") if path.is_dir())]:
        path.chmod(0o755 if writable else 0o555)


def robots_logged(folder: Path) -> int:
    """How many requests for a robots.txt the log has."""
    return sum(path.read_bytes().count(b'/robots.txt",') for path in folder.glob("requests-*.jsonl"))


@pytest.mark.skipif(shutil.which("setpriv") is None and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_becomes_read_only() -> None:
    """It says so, ends in time though it cannot close cleanly, and another start finds everything, each page once."""
    with tempfile.TemporaryDirectory() as name, fixed_web(Path(name)) as web:  # pytest's folders are closed to others
        home = Path(name)
        home.chmod(0o755)
        log, crawl = home / "log", home / "crawl"
        (home / "seeds.txt").write_text("".join(f"{url(site)}\n" for site in SITES))
        options = [
            "crawl",
            "web",
            "-a",
            f"seeds={home / 'seeds.txt'}",
            *settings(web, crawl),
            "-s",
            "WARC_MAX_BYTES=1000000",
        ]
        command = [sys.executable, "-m", "scrapy", *options]
        web.open_to = HALF
        place = {"HOME": name, "TMPDIR": name, "XDG_CONFIG_HOME": name, "PYTHONDONTWRITEBYTECODE": "1"}
        with log.open("wb") as output:
            process = Process(as_ordinary_user(command, home), output, env=direct(**place))
        try:
            half = {url(site, f"/{HALF - 1}") for site in SITES}
            wait_until(lambda: half <= {*web.asked}, process=process, log=log)
            wait_until(lambda: robots_logged(crawl / "log") >= len(SITES), process=process, log=log)
            set_writable(crawl, writable=False)
            web.open_to = PAGES
            ended = process.wait(DEADLINE_SECONDS)
        finally:
            process.kill()
            set_writable(crawl, writable=True)
        again = run(command)
        said, asked = log.read_text(), [*web.asked]
        captures = read_captures(crawl / "warc")
        verified = scrapy("verify", folder=crawl)

    assert ended == 0, said[-3000:]
    assert "could not be closed cleanly" in said
    assert "Traceback" not in said
    assert again.returncode == 0, again.stderr
    assert {page for page in captures if not page.endswith("/robots.txt")} == archived_once()
    assert {sum(found.values()) for found in captures.values()} == {1}
    assert len(asked) == len(captures)
    assert verified.returncode == 0, verified.stdout
