"""Run a command of ours as an operator does, on an archive that is made here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from crawlerproject.rules.warc_records import Context, Exchange
from crawlerproject.stores.archive import Archive, Written
from tests.warc_samples import STARTED_AT, exchange
from tests.web.running import PROJECT

URLS = ("http://a.example.com/", "http://a.example.com/robots.txt", "https://b.example.com/x?y=1")


def scrapy(*arguments: str) -> subprocess.CompletedProcess[str]:
    """``scrapy ARGUMENTS`` in the project's folder, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def archive_of(folder: Path, clock: Callable[[], float] = lambda: STARTED_AT) -> Archive:
    """An archive in ``folder`` that is still written."""
    return Archive(
        folder,
        None,
        prefix="crawl",
        max_bytes=10**9,
        host_name="host.test",
        keep_days=31,
        description=[("software", "crawlerproject/1.0"), ("isPartOf", "small")],
        clock=clock,
    )


def write(into: Archive, url: str, what: Exchange | None = None) -> Written:
    """One capture of ``url``."""
    what = what or exchange()
    return into.write(what, Context(url=url, sample=what.body))


def archive(folder: Path, urls: Sequence[str] = URLS) -> Path:
    """A crawl folder with one closed WARC file that holds ``urls``."""
    made = archive_of(folder / "crawl")
    for url in urls:
        write(made, url)
    made.close()
    return folder / "crawl"
