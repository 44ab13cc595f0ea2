"""Attempts taken into a new frontier one by one: what each leaves there, whatever is known of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.config.arguments import Arguments
from crawlerproject.crawl.start.resumption import Resumed
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.recovery.attempt_replay import Replay
from crawlerproject.recovery.attempts import Attempt, PlacedStore
from crawlerproject.rules.archive.warc_records import Context, Original, Render
from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.rules.url.scope import Patterns
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, captures_in
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import QueuedPage
from tests.commands.running import archive_of
from tests.crawl.sessions import settings_of
from tests.warc_samples import STARTED_AT, exchange

SEED = "http://a.test/"
PAGE = b"<title>Page</title><p>words of a page</p><a href='/one'>1</a><a href='http://b.test/two'>2</a>"


class Crawl:
    """A crawl whose frontier is made again, an attempt at a time."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = CrawlDir(folder)
        self._moments = count(1)
        self.archive = archive_of(folder, lambda: STARTED_AT)
        self.store = PlacedStore(self.folder.frontier_unfinished)
        resumed = Resumed("any", [], Patterns((), (), ()), Arguments(), continued=True, new_seeds=0)
        self.replay = Replay(settings_of(**settings), self.folder, self.store, resumed)
        self.replay.begin(STARTED_AT, [parse(SEED)])

    def captured(
        self, url: str, body: bytes = PAGE, *, hops: str = "L", via: str = SEED, head: bytes | None = None, **more: Any
    ) -> Attempt:
        """An attempt that the archive alone knows of."""
        later = next(self._moments)
        answer = exchange(body, head, started_at=STARTED_AT + later, ended_at=STARTED_AT + later + 0.5)
        self.archive.write(answer, Context(url, via, hops), **more)
        return Attempt(None, self.archived()[-1])

    def rendered(self, url: str, html: bytes, plain: ArchivedCapture, hops: str = "L") -> Attempt:
        """What a browser made of a page, with its line in the log."""
        later = STARTED_AT + next(self._moments)
        self.archive.write_render(Render(url, plain.answer_id, html, later, later + 0.5, [("browser", "Chromium 1")]))
        return Attempt(self.line(url, hop=hops, rendered=True, status=200), self.archived()[-1])

    def archived(self) -> list[ArchivedCapture]:
        """All captures so far."""
        self.archive.flush()
        return [each for path in self.folder.open_warcs() for each in captures_in(path, number=1)]

    def line(self, url: str, **fields: Any) -> dict[str, Any]:
        """A line of the request log."""
        at = "2026-09-21T14:00:00+00:00"
        return {"url": url, "time": at, "end": at, "depth": 1, "hop": "L", "via": SEED, "status": None, **fields}

    def take(self, *attempts: Attempt) -> None:
        """Take them in, and store what that came to."""

        async def all_of_them() -> None:
            for attempt in attempts:
                await self.replay.take(attempt)

        asyncio.run(all_of_them())
        self.replay.commit()

    def waiting(self) -> dict[str, QueuedPage]:
        """Rows in the queues, by URL."""
        hosts = list(self.store.hosts_with_work())
        return {row.url: row for host in hosts for row in self.store.queue(host)}

    def known(self, url: str) -> tuple[str, int] | None:
        """Reason and status of a page whose fate is decided."""
        record = self.store.page(parse(url).key)
        return None if record is None else (record.reason, record.status)

    def close(self) -> None:
        """Let everything go."""
        self.replay.reader.close()
        self.archive.abandon()
        self.store.close()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Crawl]:
    """A new one with one seed."""
    made = Crawl(tmp_path / "crawl")
    yield made
    made.close()


def test_a_page_that_waited(crawl: Crawl) -> None:
    """The seed is fetched: it is known, what it links to waits, each with its place in the crawl."""
    crawl.take(crawl.captured(SEED, hops="", via=""))

    assert crawl.known(SEED) == (Reason.FETCHED, 200)
    waiting = crawl.waiting()
    assert sorted(waiting) == ["http://a.test/one", "http://b.test/two"]
    assert (waiting["http://a.test/one"].hops, waiting["http://a.test/one"].via) == ("L", SEED)
    assert crawl.replay.counts == {"captures": 1}


def test_a_page_that_nothing_has_named(crawl: Crawl) -> None:
    """The capture of what named it is gone: it gets a row as a link, as an external one, or as a seed by its path."""
    rows: list[DiscoveredUrl] = []
    queued = crawl.replay._queued
    crawl.replay._queued = lambda found, pages: rows.append(found) or queued(found, pages)  # type: ignore[method-assign, func-returns-value]
    own, external, redirected = "http://c.test/own", "http://c.test/external", "http://c.test/"

    crawl.take(
        crawl.captured(own, hops="LL", via="http://c.test/page"),
        crawl.captured(external, hops="LL", via="http://other.test/"),
        crawl.captured(redirected, hops="R", via=SEED),
    )

    assert [(row.address.url, row.kind.is_external, row.kind.is_seed) for row in rows] == [
        (own, False, False),
        (external, True, False),
        (redirected, False, True),
    ]
    assert all(crawl.known(url) == (Reason.FETCHED, 200) for url in (own, external, redirected))


def test_a_page_that_is_visited_again(crawl: Crawl) -> None:
    """A second capture of a known page is a revisit, and its record has both visits."""
    crawl.take(crawl.captured(SEED, hops="", via=""), crawl.captured(SEED, PAGE + b"more", hops="", via=""))

    record = crawl.store.page(parse(SEED).key)
    assert record is not None
    assert record.history
    assert crawl.replay.counts == {"captures": 2}
    assert SEED not in crawl.waiting()


def test_a_body_that_repeats_another(crawl: Crawl) -> None:
    """A revisit's links are those of the capture that it names; without that one the page waits as before."""
    first = crawl.captured(SEED, hops="", via="")
    crawl.take(first)
    (seen,) = crawl.archived()
    original = Original(seen.answer_id, SEED, seen.member.field("warc-date"))

    crawl.take(crawl.captured("http://a.test/one", original=original))
    again = crawl.captured("http://b.test/two", b"a body that is archived nowhere", original=original)
    crawl.take(again)

    assert crawl.known("http://a.test/one") == (Reason.FETCHED, 200)
    assert crawl.known("http://b.test/two") is None
    assert "http://b.test/two" in crawl.waiting()
    assert crawl.replay.counts["repeats a capture that is lost"] == 1


def test_an_answer_that_was_lost(crawl: Crawl) -> None:
    """The log tells of a capture that is gone: its page waits again, unless it waits, is known, or is no page."""
    crawl.take(crawl.captured(SEED, hops="", via=""))
    lost = [SEED, "http://a.test/one", "http://c.test/new", "http://c.test/robots.txt", "no URL"]
    hops = ["", "L", "LL", "P", "L"]
    crawl.take(
        *(Attempt(crawl.line(url, status=200, hop=hop), None) for url, hop in zip(lost, hops, strict=True)),
        Attempt(crawl.line("http://c.test/shown", status=200, rendered=True), None),
    )

    assert crawl.replay.counts["lost"] == 3
    assert sorted(crawl.waiting()) == ["http://a.test/one", "http://b.test/two", "http://c.test/new"]


def test_attempts_without_an_answer(crawl: Crawl) -> None:
    """A failure counts as one against its page, which waits; a reason of another version changes nothing."""
    crawl.take(
        Attempt(crawl.line(SEED, hop="", via="", depth=0, reason=Reason.CONNECT_TIMEOUT), None),
        Attempt(crawl.line("http://c.test/", reason="a word that is not known"), None),
    )

    waiting = crawl.waiting()
    assert (waiting[SEED].tries, waiting["http://c.test/"].tries) == (1, 0)
    assert crawl.replay.counts == {"failures": 1, "for a reason of another version": 1}


def test_what_no_frontier_has(crawl: Crawl) -> None:
    """A POST to a hub, a requisite of a crawl without requisites, an address that is none: nothing of them is kept."""
    before = crawl.waiting()
    crawl.take(
        Attempt(crawl.line("http://hub.test/", method="POST", status=202), None),
        Attempt(crawl.line("http://a.test/style.css", hop="LE", status=200), None),
        Attempt(crawl.line("http://[", reason=Reason.CONNECT_TIMEOUT), None),
    )

    assert crawl.waiting() == before
    assert crawl.replay.counts == {"for an address or a reason that is not known": 1}


def test_robots_txt(crawl: Crawl) -> None:
    """Its rules hold for what is named afterwards, and it is no page."""
    rules = b"User-agent: *\nDisallow: /one\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    crawl.take(
        crawl.captured("http://a.test/robots.txt", rules, hops="P", via=SEED, head=head),
        crawl.captured(SEED, hops="", via=""),
    )

    assert crawl.store.robots("http://a.test") is not None
    assert sorted(crawl.waiting()) == ["http://b.test/two"]


def test_documents_beside_robots_txt(tmp_path: Path) -> None:
    """Of a crawl that obeys them: they are asked for on behalf of their origin, and are no pages."""
    crawl = Crawl(tmp_path / "crawl", PURPOSE="ai-train")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    file = b'[{"location": "/one", "tdm-reservation": 1}]'
    rsl = b'<rsl><content url="/two"><license><prohibits>ai-train</prohibits></license></content></rsl>'
    crawl.take(
        crawl.captured("http://a.test/robots.txt", b"License: /l.xml", hops="P", via="", head=head),
        crawl.captured("http://a.test/.well-known/tdmrep.json", file, hops="PP", via="", head=head),
        crawl.captured("http://a.test/l.xml", rsl, hops="PPP", via="", head=head),
        crawl.captured(SEED, hops="", via=""),
    )

    packed = crawl.store.robots("http://a.test")
    assert packed is not None
    rules = RobotsRecord.unpack(packed).rules("x")
    assert rules.terms is not None
    assert rules.terms.next is None
    assert [rules.terms_for(f"/{name}") for name in ("one", "two", "three")] == [
        [("ai-use-tdmrep", "tdm-reservation: 1")],
        [("ai-use-license", "prohibits: ai-train")],
        [],
    ]
    assert sorted(crawl.waiting()) == ["http://b.test/two"]
    crawl.close()


def shell_and_dom(crawl: Crawl) -> Sequence[Attempt]:
    """A page that its scripts make, and what the browser made of it."""
    shell = b'<title>s</title><div id="root"></div><script src="/app.js"></script>'
    plain = crawl.captured(SEED, shell, hops="", via="")
    assert plain.capture is not None
    dom = b"<title>Built</title><p>many words that a script has written</p><a href='/built'>b</a>"
    return plain, crawl.rendered(SEED, dom, plain.capture, hops="")


@pytest.mark.parametrize("render", ["auto", "never"])
def test_what_a_browser_made(tmp_path: Path, render: str) -> None:
    """Its links wait, also where this frontier would not have sent the page to the browser."""
    crawl = Crawl(tmp_path / "crawl", RENDER=render)
    try:
        crawl.take(*shell_and_dom(crawl))

        assert "http://a.test/built" in crawl.waiting()
        assert SEED not in crawl.waiting()
        assert crawl.known(SEED) is not None
    finally:
        crawl.close()


def test_a_page_that_cannot_be_read_again(crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reading it raises, the others are taken in, and it waits as before."""
    read = crawl.replay.answers._read

    async def broken(lease: Any, response: Any) -> Any:
        if response.url == SEED:
            raise ValueError("no page")
        return await read(lease, response)

    monkeypatch.setattr(crawl.replay.answers, "_read", broken)
    crawl.take(crawl.captured(SEED, hops="", via=""), crawl.captured("http://a.test/one"))

    assert crawl.replay.counts == {"could not be read again": 1, "captures": 1}
    assert SEED in crawl.waiting()
    assert crawl.known("http://a.test/one") == (Reason.FETCHED, 200)


def test_a_wall_is_what_the_log_says(crawl: Crawl) -> None:
    """An anti-bot page keeps that reason, whatever is read in it."""
    attempt = crawl.captured(SEED, hops="", via="")
    walled = Attempt(crawl.line(SEED, hop="", via="", depth=0, status=200, reason=Reason.CHALLENGE), attempt.capture)
    crawl.take(walled)

    assert crawl.known(SEED) == (Reason.CHALLENGE, 200)


def test_a_duplicate_is_what_the_log_says(crawl: Crawl) -> None:
    """The links of a page that repeated another stand behind: it counts as a repetition again."""
    attempt = crawl.captured(SEED, hops="", via="")
    line = crawl.line(SEED, hop="", via="", depth=0, status=200, duplicate="exact", duplicate_of="http://a.test/other")
    line["reason"] = Reason.FETCHED
    crawl.take(Attempt(line, attempt.capture))

    plain = DiscoveredUrl(parse("http://a.test/one"), 1, "L", SEED, 0)
    assert crawl.waiting()["http://a.test/one"].priority >= plain.behind().priority
