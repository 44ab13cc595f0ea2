"""Pages that a browser made: all later steps take what it made, once, whichever file it stands in."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch.fulltext import Search, search
from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.rules.archive.warc_records import Context, Render
from tests.batch.loaded import load
from tests.commands.running import archive_of
from tests.foreign_archives import SHAPES, Page
from tests.warc_samples import STARTED_AT, exchange

APPS = [f"http://app.test/{number}" for number in range(10)]
SHELL = b'<title>Shell</title><p>Loading words</p><a href="/of-shell">s</a><div id="root"></div><script src="/a.js">'
DOM = '<title>Built {0}</title><main><p>{1}</p><a href="/made-{0}">made</a></main>'
WORDS = "Worte, die erst das Skript in die Seite bringt, und davon nicht wenige. " * 3
PLAIN = "http://plain.test/"


def crawled(folder: Path, *, apart: bool = False) -> list[Path]:
    """Ten shells, an ordinary page, and what a browser made of the shells, in one WARC file; or ``apart`` in two."""
    moments = iter(STARTED_AT + 60 * minute for minute in range(1000))
    made = archive_of(folder, lambda: next(moments), max_bytes=1 if apart else 10**9)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Language: de\r\n\r\n"
    answers = [made.write(exchange(SHELL, head), Context(url, hops="L", sample=SHELL)) for url in APPS]
    made.write(exchange(b"<title>Plain</title><p>ordinary"), Context(PLAIN))
    made.warc.roll_if_full()
    for number, (url, answer) in enumerate(zip(APPS, answers, strict=True)):
        html = DOM.format(number, WORDS if number else "Kurz").encode()
        facts = [("browser", "Chromium 1"), ("simhash", f"{number:016x}")]
        times = STARTED_AT + 5, STARTED_AT + 6 + number
        made.write_render(Render(url, answer.record_id, html, *times, facts, screenshot=b"PNG"))
    made.close()
    return sorted((folder / "warc").iterdir())


def processed(warcs: list[Path], out: Path, wanted: ExtractOptions = ExtractOptions()) -> Path:  # noqa: B008 - frozen
    """Each of them."""
    assert [process_warc(warc, out, wanted).problem for warc in warcs] == [""] * len(warcs)
    return out


def rows(folder: Path) -> list[dict[str, Any]]:
    """Of all files, in their order."""
    return [row for path in sorted(folder.iterdir()) for row in pq.read_table(path).to_pylist()]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is made of a file that has all of it."""
    folder = tmp_path_factory.mktemp("rendered")
    return processed(crawled(folder / "crawl"), folder / "out", ExtractOptions(wet=True, wat=True))


def test_the_row_of_a_page_is_what_the_browser_made_of_it(out: Path) -> None:
    """One row a page: its text, title, links and metadata; the shell's are not there."""
    pages = {row["url"]: row for row in rows(out / "pages")}

    assert sorted(pages) == sorted([*APPS, PLAIN])
    assert len(rows(out / "pages")) == 11
    assert {row["rendered"] for url, row in pages.items() if url != PLAIN} == {True}
    assert (pages[PLAIN]["rendered"], pages[PLAIN]["title"]) == (False, "Plain")
    second = pages[APPS[1]]
    assert (second["title"], second["text"]) == ("Built 1", f"{WORDS.strip()}\nmade")
    assert (second["status"], second["mime"], second["language"]) == (200, "text/html", "de")
    assert second["words"] > 30
    assert {"key": "browser", "value": "Chromium 1"} in second["metadata"]
    assert pages[APPS[0]]["language"] == "de"  # too short a text: by the header of the answer
    links = rows(out / "links")
    assert {link["target"] for link in links} == {f"http://app.test/made-{number}" for number in range(10)}


def test_wet_and_wat_have_it_too(out: Path) -> None:
    """One text a page, and the facts of the render beside those of the answer."""
    texts = dict(records(out / "wet", "conversion"))
    facts = [orjson.loads(block) for _, block in records(out / "wat", "metadata")]

    assert sorted(texts) == sorted([*APPS, PLAIN])
    assert all(b"Loading words" not in text for text in texts.values())
    assert texts[APPS[3]].startswith(b"Built 3\nWorte")
    html = {
        (envelope["WARC-Header-Metadata"]["WARC-Type"], page["Head"]["Title"])
        for envelope in (fact["Envelope"] for fact in facts)
        if (page := envelope["Payload-Metadata"].get("HTTP-Response-Metadata", {}).get("HTML-Metadata"))
    }
    assert html == {("response", "Shell"), ("response", "Plain"), *(("conversion", f"Built {n}") for n in range(10))}


def records(folder: Path, kind: str) -> Iterator[tuple[str, bytes]]:
    """Address and block of each record of one kind."""
    (path,) = folder.iterdir()
    assert gzip.decompress(path.read_bytes())
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == kind:
                yield record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


def test_search_finds_what_only_a_script_wrote(out: Path, tmp_path: Path) -> None:
    """Nine pages of ten have these words; the shell's are not found."""
    load(out / "pages", tmp_path)

    assert {hit.url for hit in search(tmp_path, Search("Skript", 20)).hits} == set(APPS[1:])
    assert search(tmp_path, Search("Loading", 20)).hits == []


def test_in_a_later_file_it_is_the_later_row(tmp_path: Path) -> None:
    """A file that is done stays as it is: the newest row of an address counts, and the index for search has it."""
    out = processed(crawled(tmp_path / "crawl", apart=True), tmp_path / "out")
    pages = rows(out / "pages")

    newest = {row["url"]: row for row in sorted(pages, key=lambda row: row["fetch_time"])}
    assert (len(list((out / "pages").iterdir())), len(pages)) == (2, 21)
    assert [newest[url]["title"] for url in APPS] == [f"Built {number}" for number in range(10)]
    assert load(out / "pages", tmp_path / "search") == 21
    assert {hit.url for hit in search(tmp_path / "search", Search("Skript", 30)).hits} == set(APPS[1:])
    assert search(tmp_path / "search", Search("Loading", 30)).hits == []


@pytest.mark.parametrize(
    "odd",
    [
        (b"2026-03-01T10:00:00Z", b"20260301100000"), (b"2026-03-01T10:00:00Z", b""), (b" 200 ", b" 99999 "),
        (b" 200 ", b" 2\xb20 "), (b"http://odd.test/", b"http://[odd"), (b"http://odd.test/", b""),
        (b"charset=utf-8", b"charset=\xff"), (b"text/html", b"\xe4"),
    ],
)  # fmt: skip
def test_an_odd_record_of_another_program_costs_no_other(tmp_path: Path, odd: tuple[bytes, bytes]) -> None:
    """Dates, statuses, addresses and types that are none."""
    good, bad = (gzip.decompress(SHAPES["wget"].make([Page(f"http://{name}.test/", b"<p>x")])) for name in ("a", "odd"))
    spoilt = bad.replace(*odd)
    length = len(bad.partition(b"\r\n\r\n")[2]) - 4
    size = len(spoilt.partition(b"\r\n\r\n")[2]) - 4
    spoilt = spoilt.replace(b"Content-Length: %d\r\n" % length, b"Content-Length: %d\r\n" % size)
    path = tmp_path / "theirs.warc.gz"
    path.write_bytes(gzip.compress(spoilt) + gzip.compress(good))

    out = processed([path], tmp_path / "out", ExtractOptions(wet=True, wat=True))

    assert [row["text"] for row in rows(out / "pages") if row["url"] == "http://a.test/"] == ["x"]
