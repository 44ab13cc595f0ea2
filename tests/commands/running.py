"""Run a command of ours on an archive that is made here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from scrapy.cmdline import execute

from crawlerproject.rules.warc_records import Context, Exchange
from crawlerproject.stores.archive import Archive, Written
from tests.warc_samples import STARTED_AT, exchange
from tests.web.running import PROJECT

URLS = ("http://a.example.com/", "http://a.example.com/robots.txt", "https://b.example.com/x?y=1")


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    output: bytes  # what ``stdout`` is the text of


def scrapy(*arguments: str) -> Done:
    """``scrapy ARGUMENTS`` in the project's folder, in this process: starting one takes longer than most commands."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, "utf-8")
    with contextlib.chdir(PROJECT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            execute(["scrapy", *arguments])
        except SystemExit as end:
            out.flush()
            output = raw.getvalue()
            return Done(int(end.code or 0), output.decode(errors="replace"), err.getvalue(), output)
    raise AssertionError("a command of Scrapy's ends the process")


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
