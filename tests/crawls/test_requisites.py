"""A crawl with REQUISITES=page: each page can be looked at afterwards, and the crawl has no page more for it.

And with DOCUMENT_LINKS: what PDFs link to is crawled.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import scrapy
from tests.documents.pdfs import pdf, shown, stream
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.web import zygote
from tests.web.running import one_pace

PACE_SECONDS = 0.02
SETTINGS = {
    "REQUISITES": "page",
    "DOCUMENT_LINKS": "True",
    **one_pace(PACE_SECONDS),
}
FONT = b"wOF2" + bytes(range(200))
CDN, FRAME = "cdn.test", "frame.test"
SITE = "site.test"

FRONT = """<!doctype html><title>Front</title>
<link rel="stylesheet" href="/css/style.css"><link rel="icon" href="/icon.png"><script src="/app.js"></script>
<body background="/background.gif">
<img src="/small.png" srcset="/small.png 1x, /large.png 2x">
<img data-src="/late.jpg" src="data:image/gif;base64,R0lGOD">
<picture><source srcset="/wide.webp 800w, /narrow.webp 400w"></picture>
<img src="/moved.png"><img src="/missing.png"><img src="/forbidden/secret.png"><img src="ftp://site.test/x.png">
<img src="/gallery"><iframe src="{frame}"></iframe><img src="{cdn}"><div style="background:url('/inline.png')"></div>
<video poster="/poster.jpg"></video><a href="/second">second</a><a href="/gallery">gallery</a>"""
SECOND = """<!doctype html><title>Second</title><link rel="stylesheet" href="/css/style.css"><body>
<p>Another page with the same sheet, and an image that is there as often as it is shown.</p>
<img src="/small.png"><img src="/copy.png">
<a href="/paper.pdf">paper</a><a href="/mine.pdf">mine</a><a href="/broken.pdf">broken</a>"""
FRAMED = """<!doctype html><body><img src="/in-frame.png"><a href="/not-followed">a link of the frame</a>"""


class Crawled(NamedTuple):
    """What is left of the crawl."""

    web: Arena
    folder: Path
    lines: list[dict[str, Any]]  # of the request log

    def line(self, path: str) -> dict[str, Any]:
        """The one line about a path of the site."""
        (found,) = (line for line in self.lines if line["url"] == self.web.url(SITE, path))
        return found


def site(web: Arena) -> str:
    """The site's front page."""
    sheets = {
        "/css/style.css": '@import "more.css"; body { background: url(../paper.png) }',
        "/css/more.css": '@import url(style.css); @font-face { font-family: F; src: url("../font.woff2") }',
    }
    frame, cdn = web.url(FRAME, "/frame.html"), web.url(CDN, "/logo.png")

    def make(asked: Asked) -> bytes | None:
        path = asked.path
        if path == "/robots.txt":
            return answer("User-agent: *\nDisallow: /forbidden/\n", mime="text/plain")
        if path == "/":
            return answer(FRONT.format(frame=frame, cdn=cdn))
        if path == "/second":
            return answer(SECOND)
        if path == "/gallery":
            return page(text="a gallery of many pictures, each of them shown on a page of its own")
        if path.endswith(".pdf"):
            robots = {"X_Robots_Tag": "nofollow"} if path == "/mine.pdf" else {}
            body = b"%PDF-1.4 no more" if path == "/broken.pdf" else _paper(web.url(SITE, f"/of{path}.html"))
            return answer(body, mime="application/pdf", **robots)
        if path == "/of/paper.pdf.html":
            return page(text="what a paper speaks of, at some length and in words of its own")
        if path in sheets:
            return answer(sheets[path], mime="text/css")
        if path == "/moved.png":
            return answer(status="302 Found", Location="/there.png")
        if path == "/missing.png":
            return None
        return answer(FONT if path == "/font.woff2" else _picture(path), mime="image/png")

    return web.site(SITE, make)


def _paper(link: str) -> bytes:
    """A PDF with one link."""
    return pdf([stream(shown("A paper"))], "Paper", [(link, (0, 0, 9, 9))])


def _picture(path: str) -> bytes:
    """Bytes of its own for each path but the copy's."""
    return b"\x89PNG" + path.replace("copy", "small").encode()


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """One crawl of one host."""
    with arena(tmp_path_factory.mktemp("requisites")) as web:
        seed = site(web)
        web.site(CDN, lambda asked: answer(_picture(asked.path)) if asked.path == "/logo.png" else None)
        web.site(FRAME, lambda asked: answer(FRAMED) if asked.path == "/frame.html" else _picture_of(asked))
        folder = web.crawl(seed, settings=SETTINGS, scope="host").folder
        yield Crawled(web, folder, list(read_log(folder / "log")))


def _picture_of(asked: Asked) -> bytes | None:
    return answer(_picture(asked.path), mime="image/png") if asked.path.endswith(".png") else None


def test_all_that_the_pages_need_is_asked_for_once(crawled: Crawled) -> None:
    """Sheets, what they import, fonts, images of every attribute, of any host; nothing that is forbidden or foreign."""
    pages = {"/", "/second", "/gallery", "/paper.pdf", "/mine.pdf", "/broken.pdf", "/of/paper.pdf.html"}
    needed = {
        "/css/style.css", "/css/more.css", "/font.woff2", "/paper.png", "/icon.png", "/app.js", "/background.gif",
        "/small.png", "/large.png", "/late.jpg", "/wide.webp", "/narrow.webp", "/moved.png", "/there.png",
        "/missing.png", "/inline.png", "/poster.jpg", "/copy.png", "/favicon.ico",
    }  # fmt: skip

    assert Counter(crawled.web.paths(SITE)) == Counter(pages | needed)
    assert crawled.web.paths(CDN) == ["/logo.png"]
    assert sorted(crawled.web.paths(FRAME)) == ["/frame.html", "/in-frame.png"]


def test_a_page_is_whole_before_the_next_one(crawled: Crawled) -> None:
    """Requisites come among the pages: what the front page needs before the pages that it links to."""
    asked = crawled.web.paths(SITE)

    assert asked.index("/css/style.css") < asked.index("/second")
    assert asked.index("/font.woff2") < asked.index("/second")


def test_every_pause_is_kept(crawled: Crawled) -> None:
    """By the servers' log: one request at a time, a pause after each."""
    for host in (SITE, CDN, FRAME):
        visits = crawled.web.of(host, robots=True)
        assert visits[0].path == "/robots.txt"
        assert all(after.start - before.end >= PACE_SECONDS for before, after in pairwise(visits))


def test_they_are_marked_where_requests_are_listed(crawled: Crawled) -> None:
    """Hop E and the page or sheet that asked, in the log and in the metadata records."""
    assert (crawled.line("/css/style.css")["hop"], crawled.line("/css/style.css")["via"]) == (
        "E",
        crawled.web.url(SITE),
    )
    assert crawled.line("/css/more.css")["via"] == crawled.web.url(SITE, "/css/style.css")
    assert crawled.line("/font.woff2")["hop"] == "EEE"
    assert crawled.line("/there.png")["hop"] == "ER"
    assert crawled.line("/copy.png")["hop"] == "LE"
    assert crawled.line("/gallery")["hop"] == "L"
    noted = {record.url: record.text for record in _metadata(crawled.folder)}
    assert "hopsFromSeed: EE\r\n" in noted[crawled.web.url(SITE, "/css/more.css")]


class _Record(NamedTuple):
    url: str
    text: str


def _metadata(folder: Path) -> Iterator[_Record]:
    for path in (folder / "warc").iterdir():
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "metadata":
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    yield _Record(url, record.content_stream().read().decode())


def test_the_same_bytes_are_archived_once(crawled: Crawled) -> None:
    """An image under a second address is a revisit of the first."""
    kinds = Counter[tuple[str, str]]()
    for path in (crawled.folder / "warc").iterdir():
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                kinds[record.rec_type, record.rec_headers.get_header("WARC-Target-URI") or ""] += 1

    copies = [crawled.web.url(SITE, path) for path in ("/small.png", "/copy.png")]
    assert sorted(kind for kind, url in kinds if url in copies and kind in ("response", "revisit")) == [
        "response",
        "revisit",
    ]


def test_they_count_as_no_pages(crawled: Crawled) -> None:
    """Four pages and three documents, whatever they need."""
    status = json.loads((crawled.folder / "status.json").read_text())

    assert status["totals"]["pages"] == 7


def test_links_of_documents_are_followed(crawled: Crawled) -> None:
    """As those of a page; not where the document says nofollow. One that is broken says so in the log."""
    found = crawled.line("/of/paper.pdf.html")

    assert (found["hop"], found["via"]) == ("LLL", crawled.web.url(SITE, "/paper.pdf"))
    assert crawled.line("/broken.pdf")["error"] == "its links could not be read: broken"
    assert not crawled.line("/mine.pdf")["error"]


def test_a_frontier_that_is_made_again_knows_them(crawled: Crawled, tmp_path: Path) -> None:
    """None of them waits to be asked for once more."""
    copy = tmp_path / "crawl"
    shutil.copytree(crawled.folder, copy, ignore=shutil.ignore_patterns("frontier*"))
    made = scrapy("recover", str(copy))

    assert "; 0 URLs of 0 hosts wait" in made.stdout, made.stdout + made.stderr


def test_the_crawl_agrees_with_itself(crawled: Crawled) -> None:
    """Archive, indexes and frontier; and ``why`` knows of a requisite."""
    command = [sys.executable, "-m", "scrapy"]
    folder = ["-s", f"CRAWL_DIR={crawled.folder}"]
    verified = zygote.run([*command, "verify", str(crawled.folder)], check=False)
    why = zygote.run([*command, "why", crawled.web.url(SITE, "/font.woff2"), *folder], check=False)

    assert "all is well" in verified.stdout, verified.stdout
    assert "fetched" in why.stdout, why.stdout
