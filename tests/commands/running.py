"""Run a command of ours on an archive that is made here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from scrapy import cmdline

from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.archive import Archive, WarcSeries, Written
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, OpenFile, PageRecord, pack_open
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.warc_samples import PAGE, STARTED_AT, exchange
from tests.web.running import PROJECT

# Scrapy looks for commands of every installed package before each of ours, which takes longer than many of them.
vars(cmdline)["entry_points"] = cache(entry_points)
URLS = ("http://a.example.com/", "http://a.example.com/robots.txt", "https://b.example.com/x?y=1")


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str
    output: bytes  # what ``stdout`` is the text of


def scrapy(*arguments: str, encoding: str = "utf-8") -> Done:
    """``scrapy ARGUMENTS`` in the project's folder, in this process: starting one takes longer than most commands.

    ``encoding``: the terminal's.
    """
    raw, errors = io.BytesIO(), io.BytesIO()
    out, err = io.TextIOWrapper(raw, encoding), io.TextIOWrapper(errors, encoding)
    with contextlib.chdir(PROJECT), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cmdline.execute(["scrapy", *arguments])
        except SystemExit as end:
            out.flush()
            err.flush()
            output = raw.getvalue()
            told = errors.getvalue().decode(errors="replace")
            return Done(int(end.code or 0), output.decode(errors="replace"), told, output)
    raise AssertionError("a command of Scrapy's ends the process")


def archive_of(
    folder: Path,
    clock: Callable[[], float] = lambda: STARTED_AT,
    *,
    max_bytes: int = 10**9,
    committed: OpenFile | None = None,
) -> Archive:
    """An archive in ``folder`` that is still written, in files of so many bytes; it goes on with what is committed."""
    return Archive(
        CrawlDir(folder),
        committed,
        WarcSeries("crawl", "host.test", max_bytes, [("software", "crawlerproject/1.0"), ("isPartOf", "small")]),
        keep_days=31,
        clock=clock,
    )


def write(into: Archive, url: str, what: Wire | None = None) -> Written:
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


def crawl(folder: Path, count: int = 20, *, close: bool = True, truncated: str | None = None) -> list[str]:
    """A whole crawl folder with a frontier that knows its captures; the URLs archived, in order.

    ``close=False``: the process died after its last commit. ``truncated``: why no capture is whole.
    """
    (folder / "frontier").mkdir(parents=True)
    urls = [f"http://h{number % 3}.example.com/{number}" for number in range(count)]
    made = archive_of(folder)
    store = RocksStore(folder / "frontier")
    changes = Changes()
    for number, url in enumerate(urls):
        body = PAGE + b"<p>%d</p>" % number
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        written = write(made, url, exchange(body, head, truncated=truncated))
        changes.pages.append((parse(url).key, PageRecord(url, "fetched", 200, STARTED_AT, written.digest)))
        changes.payloads.append((written.digest, Original(written.record_id, url, written.date)))
    made.flush()
    made.warc.sync()
    changes.facts = [(ARCHIVE_FACT, pack_open(made.warc.state()))]
    store.apply(changes)
    if close:
        made.close()
    else:
        made.abandon()
    store.close()
    return urls
