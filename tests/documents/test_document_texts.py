"""The process that reads documents: text, title and links of good PDFs; of hostile ones, nothing but their loss."""

from __future__ import annotations

import os
import random
import time
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crawlerproject.documents.document_texts import CRASHED, TOO_SLOW, UNREAD, DocumentTexts
from crawlerproject.documents.kinds import MAX_CHARACTERS, MAX_LINKS, PDF
from crawlerproject.documents.pdf import MAX_PAGES
from crawlerproject.rules.page.extract import LinkText
from tests.commands.running import archive_of, scrapy, write
from tests.documents.pdfs import pdf, shown, stream, whole
from tests.warc_samples import exchange
from tests.web.waiting import busyness

URL = "http://host.test/papers/one.pdf"
GOOD = pdf(
    [stream(shown("What is said on the first page.")), stream(shown("And on the second."), packed=True)], "Title"
)


@cache
def bomb() -> bytes:
    """700 MB of blanks, packed twice into nine kilobytes."""
    packer = zlib.compressobj(1)
    once = b"".join([packer.compress(b" " * (1 << 20)) for _ in range(700)]) + packer.flush()
    twice = zlib.compress(once, 9)
    head = b"<< /Filter [/FlateDecode /FlateDecode] /Length %d >>" % len(twice)
    return pdf([b"%b\nstream\n%b\nendstream" % (head, twice)])


@pytest.fixture
def pdfs() -> Iterator[DocumentTexts]:
    """The reader, ended on leaving."""
    reader = DocumentTexts()
    yield reader
    reader.close()


def test_title_text_and_links(pdfs: DocumentTexts) -> None:
    """Lines in order over all pages; links that can be clicked with their words, then those that stand in the text."""
    body = pdf(
        [stream(shown("See our (other) site\nor http://written.test/x for more")), stream(shown("Page two"), True)],
        "Ein schöner Titel",
        [("http://linked.test/a#part", (72, 715, 140, 735)), ("/rel?x=1", (0, 0, 1, 1)), ("mailto:x@y", (0, 0, 1, 1))],
    )  # fmt: skip

    page = pdfs.read(PDF, body, URL)

    assert page is not None
    assert page.title == "Ein schöner Titel"
    assert page.text == "See our (other) site\nor http://written.test/x for more\nPage two"
    assert page.links[0].text.startswith("See our")
    assert [link._replace(text="") for link in page.links] == [
        LinkText("http://linked.test/a", "", "", 0),
        LinkText("http://host.test/rel?x=1", "", "", 1),
        LinkText("http://written.test/x", "", "", 2),
    ]
    assert pdfs.notes() == []


def _cut() -> bytes:
    return GOOD[: len(GOOD) // 2]


def _noise() -> bytes:
    return b"%PDF-1.7\n" + random.Random(1).randbytes(100_000)


def _loop() -> bytes:
    """A page tree that contains itself."""
    return whole([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>"])


def _deep() -> bytes:
    """Arrays within arrays."""
    return whole([b"<< /Type /Catalog /Pages 2 0 R >>", b"[" * 200_000 + b"]" * 200_000])


def _laughs() -> bytes:
    """Forms that draw forms ten times each, seven deep."""
    forms = []
    for level in range(7):
        named = b"/X %d 0 R" % (6 + level)
        forms.append(
            b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << %b >> >> " % named
            + stream(b"/X Do " * 10)[3:]
        )
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>"
    )
    last = b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] " + stream(b"BT (ha) Tj ET")[3:]
    tree = b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    return whole([b"<< /Type /Catalog /Pages 2 0 R >>", tree, page, stream(b"/X Do " * 10), *forms, last])


def _locked() -> bytes:
    encrypt = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P -4 >> /ID [<00><00>]" % (
        b"41" * 32,
        b"42" * 32,
    )
    return whole([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Count 0 /Kids [] >>"], encrypt)


def _nothing() -> bytes:
    return b"%PDF-"


HOSTILE = [_cut, _noise, _loop, _deep, _laughs, _locked, _nothing]


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__.strip("_"))
def test_a_hostile_document_costs_itself(pdfs: DocumentTexts, make: Callable[[], bytes]) -> None:
    """Read or not, soon; the next one is read as if nothing had been."""
    began = time.monotonic()
    page = pdfs.read(PDF, make(), URL)

    assert time.monotonic() - began < 25 * busyness()
    assert (page is None) == (pdfs.failed.total() == 1)
    after = pdfs.read(PDF, GOOD, URL)
    assert after is not None
    assert after.text == "What is said on the first page.\nAnd on the second."


def test_a_title_with_half_a_character_costs_the_title_only(pdfs: DocumentTexts) -> None:
    """A lone surrogate of UTF-16, which cannot be decoded."""
    page = pdfs.read(PDF, GOOD.replace(b"<FEFF0054", b"<FEFFD800"), URL)

    assert page is not None
    assert (page.title, page.text.partition("\n")[0]) == ("", "What is said on the first page.")


def test_a_process_that_dies_between_two_documents_costs_one(pdfs: DocumentTexts) -> None:
    """Killed while it waits: the next document is lost, the one after it is read, and nothing stays open."""
    assert pdfs.read(PDF, GOOD, URL) is not None
    opened = os.listdir("/proc/self/fd")
    process = pdfs._process
    assert process is not None
    process.kill()
    process.wait()

    assert pdfs.read(PDF, GOOD, URL) is None
    assert dict(pdfs.failed) == {CRASHED: 1}
    assert pdfs.read(PDF, GOOD, URL) is not None
    assert len(os.listdir("/proc/self/fd")) == len(opened)


def test_a_bomb_meets_the_bound_of_memory() -> None:
    """Its process dies of it, ours does not grow; after three the rest of that site is not even tried."""
    pdfs = DocumentTexts(seconds=300)  # a busy machine may need longer than the process gives itself, which then dies
    assert len(bomb()) < 10_000
    before = _resident_bytes()
    for number in range(3):
        assert pdfs.read(PDF, bomb(), f"http://www{number}.evil.example.com/{number}") is None
    grown = _resident_bytes() - before

    began = time.monotonic()
    unread = [pdfs.read(PDF, bomb(), f"http://www{number}.evil.example.com/x") for number in range(50)]

    assert unread == [None] * 50
    assert time.monotonic() - began < 1 * busyness()
    assert grown < 50 << 20
    assert pdfs.failed == {CRASHED: 3, UNREAD: 50}
    assert pdfs.read(PDF, GOOD, URL) is not None
    assert (
        pdfs.notes()[0] == "3 documents were left out (crashed the reader), the first is http://www0.evil.example.com/0"
    )
    pdfs.close()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_takes_too_long_is_ended() -> None:
    """The deadline is one of the wall clock, and leaves no process behind."""
    reader = DocumentTexts(seconds=0.3)
    slow = pdf([stream(shown("word " * 2000), packed=True)] * MAX_PAGES)
    try:
        assert reader.read(PDF, slow, URL) is None
        assert reader.failed == {TOO_SLOW: 1}
        assert reader._process is None
    finally:
        reader.close()


def test_what_is_read_of_one_is_bounded(pdfs: DocumentTexts) -> None:
    """Pages, characters and links."""
    pages = pdf([stream(shown(f"page {number}")) for number in range(MAX_PAGES + 50)])
    messages = pdf([stream(shown("\n".join(["a" * 1000] * 30)), packed=True)] * 60)
    links = pdf(
        [stream(shown("x"))], "t" * 5000, [(f"http://a.test/{number}", (0, 0, 1, 1)) for number in range(12_000)]
    )

    read = [found for body in (pages, messages, links) if (found := pdfs.read(PDF, body, URL))]

    assert len(read) == 3, pdfs.failed
    assert len(read[0].text.split("\n")) == MAX_PAGES
    assert 0.9 * MAX_CHARACTERS < len(read[1].text) <= MAX_CHARACTERS
    assert len(read[2].links) == MAX_LINKS
    assert len(read[2].title) == 1000


def test_the_reader_has_nothing_of_ours(pdfs: DocumentTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment (it holds passwords), no file to write, no more memory than it was given."""
    monkeypatch.setenv("http_proxy", "http://me:hunter2@proxy.test")
    assert pdfs.read(PDF, GOOD, URL) is not None

    assert pdfs._process is not None
    home = Path(f"/proc/{pdfs._process.pid}")
    limits = {line[:24].strip(): line[24:].split()[0] for line in (home / "limits").read_text().splitlines()[1:]}

    assert b"hunter2" not in (home / "environ").read_bytes()
    assert (limits["Max file size"], limits["Max core file size"]) == ("0", "0")
    assert int(limits["Max address space"]) == 1 << 30
    assert int(limits["Max open files"]) <= 32


def test_process_reads_them_beside_pages(tmp_path: Path) -> None:
    """A row each with title, text, language and links, what cannot be read is said, exit status 0."""
    folder = tmp_path / "crawl"
    words = "The crawler reads the text of this document and finds out in which language it was written by its author."
    good = pdf([stream(shown(words))], "A paper", [("http://b.test/next", (72, 715, 140, 735))])
    made = archive_of(folder)
    write(made, "http://a.test/")
    for name, body in (("good.pdf", good), ("broken.pdf", b"%PDF-1.4 no more"), ("bomb.pdf", bomb())):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: %d\r\n\r\n" % len(body)
        write(made, f"http://a.test/{name}", exchange(body, head))
    made.close()

    done = scrapy("process", str(folder), "--wet", "--wat", "--workers", "1")

    assert done.returncode == 0, done.stderr
    assert "1 document was left out (broken), the first is http://a.test/broken.pdf" in done.stderr
    why = TOO_SLOW if TOO_SLOW in done.stderr else CRASHED  # on a busy machine the clock may come before the memory
    assert f"1 document was left out ({why}), the first is http://a.test/bomb.pdf" in done.stderr
    (pages,) = (folder / "processed" / "pages").iterdir()
    rows = {row["url"]: row for row in pq.read_table(pages).to_pylist()}
    assert set(rows) == {"http://a.test/", "http://a.test/good.pdf"}
    row = rows["http://a.test/good.pdf"]
    assert (row["title"], row["text"], row["language"], row["mime"]) == ("A paper", words, "en", "application/pdf")
    (links,) = (folder / "processed" / "links").iterdir()
    assert ("http://a.test/good.pdf", "http://b.test/next") in [
        (row["source"], row["target"]) for row in pq.read_table(links).to_pylist()
    ]
