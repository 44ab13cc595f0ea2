"""Bodies whose content coding was never asked for, or is another than the header says: archived, not read as text."""

from __future__ import annotations

import gzip

import brotli
import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.running import scrapy
from tests.hostile.arena import Arena, Crawled, answer, arena, page

HTML = page("/found", text="words " * 300).partition(b"\r\n\r\n")[2]
OTHER = HTML.replace(b"words", b"lines")  # the same octets would be a revisit


def zstd(body: bytes) -> bytes:
    """A frame of one raw block (RFC 8878 3.1): what it holds can be seen as it is."""
    size = (len(body) - 256).to_bytes(2, "little")
    return b"\x28\xb5\x2f\xfd\x60" + size + (len(body) << 3 | 1).to_bytes(3, "little") + body


UNREAD = {
    "zstd.test": answer(zstd(HTML), Content_Encoding="zstd"),
    "mixed.test": answer(gzip.compress(zstd(HTML)), Content_Encoding="zstd, gzip"),
    "mistaken.test": answer(brotli.compress(HTML), Content_Encoding="gzip"),
    "unsaid.test": answer(gzip.compress(HTML)),
}
READ = {
    "charset.test": answer(HTML, Content_Encoding="UTF-8"),
    "plain.test": answer(OTHER, Content_Encoding="gzip"),
    "brotli.test": answer(brotli.compress(OTHER), Content_Encoding="br"),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawled, Arena]:
    """One crawl of them all."""
    with arena(tmp_path_factory.mktemp("codings")) as web:
        answers = UNREAD | READ

        def site(name: str) -> str:
            return web.site(name, lambda asked: answers[name] if asked.path == "/" else None)

        return web.crawl(*map(site, answers)), web


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_decoded_is_not_read(crawled: tuple[Crawled, Arena], name: str) -> None:
    """No link is followed, and the log says why."""
    crawl, web = crawled
    assert web.paths(name) == ["/"]
    (row,) = [row for row in read_log(crawl.folder / "log") if row["url"] == web.url(name)]
    assert (row["reason"], row["status"]) == ("fetched", 200)
    assert "Content-Encoding" in row["error"]
    assert "could not be undone" in row["error"]


@pytest.mark.parametrize("name", READ)
def test_what_is_text_is_read(crawled: tuple[Crawled, Arena], name: str) -> None:
    """Whatever its header says."""
    _, web = crawled
    assert web.paths(name) == ["/", "/found"]


def test_all_is_archived_as_it_was_received(crawled: tuple[Crawled, Arena]) -> None:
    """Header and octets; no text is made of what was not read."""
    crawl, web = crawled
    answers, kept = UNREAD | READ, {}
    for path in (crawl.folder / "warc").glob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, no_record_parse=True):
                if record.rec_type == "response":
                    kept[record.rec_headers.get_header("WARC-Target-URI")] = record.content_stream().read()
    for name, made in answers.items():
        assert kept[web.url(name)] == made

    done = scrapy("process", "-s", f"CRAWL_DIR={crawl.folder}")
    assert done.returncode == 0, done.stderr
    rows = [row for path in (crawl.folder / "processed").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    texts = {row["url"]: row["text"] or "" for row in rows if "words" in row}
    said = {
        name: next((word for word in ("words", "lines") if word in texts.get(web.url(name), "")), "")
        for name in answers
    }
    assert {name: word for name, word in said.items() if word} == {
        "charset.test": "words",
        "plain.test": "lines",
        "brotli.test": "lines",
    }
