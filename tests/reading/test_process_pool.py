"""The reading processes: the same facts as ever, and an end to whatever takes too long, too much memory, or dies."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

import pytest

import crawlerproject.reading.process_pool as reader_module
from crawlerproject import native
from crawlerproject.errors import FetchError
from crawlerproject.parse.links import entries_of_sitemap, followed
from crawlerproject.reading.jobs import Job, Kind, ReadPage
from crawlerproject.reading.process_pool import NotRead, Reader
from crawlerproject.rules.page.page import read_html
from crawlerproject.rules.page.text_fingerprint import text_fingerprint
from crawlerproject.rules.row_kinds import FLAG_SITEMAP
from crawlerproject.rules.text_likeness import text_marks
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from tests.fetch.servers import run
from tests.open_files import no_more_files
from tests.web.unread_pages import triage

URL = "http://big.test/page"
WORDS = " ".join(f"word{number}" for number in range(400))
PAGE = (f"<title>big</title><body><p>{WORDS}" + "".join(f'<p><a href="/p/{n}">x</a>' for n in range(12_345))).encode()


@cache
def slow_map() -> bytes:
    """49 MB of elements in 50 KB: seconds of the processor."""
    return gzip.compress(b"<urlset>" + b"<a></a>" * 7_000_000)


def row_of(url: str = URL, flags: int = 0) -> QueuedPage:
    """A queue's row."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 10, 1, 2, "LL", "http://big.test/", flags=flags)


def job(kind: Kind = Kind.HTML, url: str = URL) -> Job:
    """A page to be read."""
    row = row_of(url, FLAG_SITEMAP if kind is Kind.SITEMAP else 0)
    return Job(kind, row, url, "text/html", [], "TestBot")


def reading_with(use: Callable[[Reader], Awaitable[None]], *, seconds: float = 20, memory_bytes: int = 2 << 30) -> None:
    """A reader for one test."""

    async def main() -> None:
        reader = Reader(seconds=seconds, memory_bytes=memory_bytes)
        try:
            await use(reader)
        finally:
            reader.close()

    run(main(), 90)


def children() -> set[int]:
    """The processes that this one has started and that live; one that has ended may be reaped later."""
    started = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in started if not _has_ended(pid)}


def _has_ended(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_another_process_reads_what_we_read() -> None:
    """Facts, links in order, the text's mark and fingerprint, the verdict of the triage."""

    async def use(reader: Reader) -> None:
        found: ReadPage = await reader.read(job(), PAGE)
        facts = read_html(PAGE, url=URL, content_type="text/html", x_robots=[], token="TestBot")

        assert found.found == followed(row_of(), facts.links)
        assert len(found.found) == found.links == 12_345
        assert found.text_marks == text_marks(facts.title, facts.text, URL)
        assert found.facts is not None
        assert found.facts.fingerprint == text_fingerprint(facts.text)
        assert (found.facts.title, found.facts.words) == (facts.title, facts.words)
        shell = b"<div id=root></div><noscript>enable javascript</noscript><script src=x></script>"
        assert (await reader.read(job(), shell)).triage == triage(shell, "text/html")

    reading_with(use)


def test_another_process_reads_with_the_reader_that_was_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its environment: the setting is the crawl's."""
    monkeypatch.setattr(native, "reader", None)

    async def use(reader: Reader) -> None:
        before = children()
        await reader.read(job(), b"<p>first")
        (started,) = children() - before
        assert b"CRAWLER_NATIVE=0" in Path(f"/proc/{started}/environ").read_bytes().split(b"\0")

    reading_with(use)


def test_a_process_is_kept_however_much_memory_the_crawl_took() -> None:
    """The peak of a process that has just been started is that of the one that started it."""
    large = b"x" * (600 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > len(large) >> 10
    del large

    async def use(reader: Reader) -> None:
        before = children()
        await reader.read(job(), b"<p>first")
        (started,) = children() - before
        await reader.read(job(), b"<p>second")
        assert children() - before == {started}

    reading_with(use)


def test_sitemaps_and_feeds() -> None:
    """Pages of a sitemap with their dates; entries of a feed, and its hubs without them; by charset and base."""
    entries = "".join(f"<url><loc>http://big.test/{n}</loc><lastmod>2026-01-02</lastmod></url>" for n in range(1_001))
    sitemap = f"<urlset>{entries}</urlset>".encode()
    feed = b"<feed xmlns='http://www.w3.org/2005/Atom'><link rel='hub' href='http://hub.test/'/>"
    feed += b"<entry><link href='/1'/></entry></feed>"

    async def use(reader: Reader) -> None:
        listed = await reader.read(job(Kind.SITEMAP), sitemap)
        here = entries_of_sitemap(row_of(flags=FLAG_SITEMAP), sitemap)
        assert (listed.found, listed.changed) == (here.found, here.changed)
        assert len(listed.found) == len(listed.changed) == 1_001
        found = await reader.read(job(Kind.FEED), feed)
        assert found.feed is not None
        assert (found.feed.hubs, found.feed.entries) == (["http://hub.test/"], [])
        assert [link.address.url for link in found.found] == ["http://big.test/1"]
        labelled = job(Kind.FEED)._replace(content_type="text/xml; charset=gbk")
        chinese = "<feed xml:base='/x/'><entry><link href='港'/></entry></feed>".encode("gbk")
        found = await reader.read(labelled, chinese)
        assert [link.address.url for link in found.found] == ["http://big.test/x/%E6%B8%AF"]
        listed = await reader.read(labelled._replace(kind=Kind.SITEMAP), "http://big.test/港".encode("gbk"))
        assert [link.address.url for link in listed.found] == ["http://big.test/%E6%B8%AF"]

    reading_with(use)


def test_what_takes_too_long_is_given_up_and_the_next_page_is_read() -> None:
    """The kernel ends the process; another one takes its place."""

    async def use(reader: Reader) -> None:
        await reader.read(job(), b"<p>first")
        with pytest.raises(NotRead, match=r"could not be read in 0\.2 s"):
            await reader.read(job(Kind.SITEMAP), slow_map())
        assert (await reader.read(job(), b"<a href=/x>")).links == 1

    reading_with(use, seconds=0.2)


def test_what_takes_too_much_memory_is_given_up() -> None:
    """The process is bounded, and goes on or is replaced."""

    async def use(reader: Reader) -> None:
        with pytest.raises(NotRead, match=r"could not be read|MEMORY|died"):
            await reader.read(job(), b"<p>" * 699_000)
        assert (await reader.read(job(), b"<a href=/x>")).links == 1

    reading_with(use, memory_bytes=130 << 20)  # the process alone takes half of it, with the page 160 MiB


def test_a_reader_that_dies_takes_only_its_page_with_it() -> None:
    """As by a fault in the parser, or the kernel in need of memory."""

    async def use(reader: Reader) -> None:
        before = children()
        reading = asyncio.ensure_future(reader.read(job(Kind.SITEMAP), slow_map()))
        while not (started := children() - before):
            await asyncio.sleep(0.01)
        for pid in started:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(NotRead, match=r"its reader died \(-9\)"):
            await reading
        assert (await reader.read(job(), b"<a href=/x>")).links == 1

    reading_with(use)


def test_a_reader_whose_end_takes_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl learns its status: on a busy machine that comes long after the broken socket."""
    dies, program = tmp_path / "dies", tmp_path / "program"
    os.mkfifo(dies)
    program.write_text(f"#!/bin/sh\nexec <&- >&-\nread now <{dies}\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    async def use(reader: Reader) -> None:
        reading = asyncio.ensure_future(reader.read(job(), PAGE))
        end = await asyncio.to_thread(dies.open, "w")  # it has closed its socket by then
        await asyncio.sleep(0.1)
        end.close()
        with pytest.raises(NotRead, match=r"its reader died \(7\)"):
            await reading

    reading_with(use)


def test_no_process_outlives_its_reader() -> None:
    """Closing ends those that wait and those that read."""

    async def use(reader: Reader) -> None:
        before = children()
        await reader.read(job(), b"<p>x")
        slow = asyncio.ensure_future(reader.read(job(Kind.SITEMAP), slow_map()))
        await asyncio.sleep(0)
        assert children() - before
        reader.close()
        with pytest.raises(NotRead):
            await slow
        while children() - before:  # a large one frees its memory first
            await asyncio.sleep(0.01)

    reading_with(use)


def test_pages_of_a_domain_that_could_not_be_read_wait_behind_others() -> None:
    """Two processes hang on one domain's pages; of those in line another domain's comes first."""

    async def use(reader: Reader) -> None:
        with pytest.raises(NotRead):
            await reader.read(job(Kind.SITEMAP, "http://a.evil.test/"), slow_map())
        order: list[str] = []

        async def read(url: str, body: bytes, kind: Kind = Kind.HTML) -> None:
            with contextlib.suppress(NotRead):
                await reader.read(job(kind, url), body)
            order.append(url)

        evil = [f"http://{name}.evil.test/" for name in "bcd"]
        tasks = [asyncio.ensure_future(read(url, slow_map(), Kind.SITEMAP)) for url in evil]
        await asyncio.sleep(0)
        tasks.append(asyncio.ensure_future(read("http://good.test/", b"<p>x")))
        await asyncio.gather(*tasks)
        assert order.index("http://good.test/") < order.index(evil[2])

    reading_with(use, seconds=0.5)


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moment without files (or processes) is waited for; a longer one is said to be no page's fault, and ends too."""
    monkeypatch.setattr(reader_module, "_START_AGAIN_SECONDS", (0.01, 0.01))

    async def use(reader: Reader) -> None:
        with no_more_files(), pytest.raises(FetchError, match="no process to read it could be started"):
            await reader.read(job(), PAGE)
        assert (await reader.read(job(), PAGE)).links == 12_345

    reading_with(use)
