"""Pages as documents: bodies that an OpenSearch takes over HTTP, whatever comes in the way, and Quickwit's lines."""

from __future__ import annotations

import gzip
import json
import socket
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crawlerproject.batch import bulk_export as bulk
from crawlerproject.batch.bulk_export import (
    FIELDS,
    OPENSEARCH,
    QUICKWIT,
    TEXT_CHARACTERS,
    BulkSender,
    bodies,
    export,
)
from crawlerproject.batch.warc_extract import PAGE_SCHEMA
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.batch.bulk_server import Index, served
from tests.commands.running import scrapy

FETCHED = datetime(2026, 9, 1, 12, 0, 0, 123456, UTC)
PAGES = 30  # of each of two files; the second has later captures of the first's last ten
AGAIN = 10


def row(page: int, hours: int, text: str = "") -> dict[str, Any]:
    """Of a page."""
    return {
        "url": f"http://a.test/{page}?ü", "fetch_time": FETCHED + timedelta(hours=hours), "status": 200,
        "mime": "text/html", "title": f"Page {page}", "text": text or f"Line one\nof page {page}, \u2028 \"quoted\"",
        "language": None if page % 3 else "en", "words": 5, "canonical": None, "digest": "A" * 32,
        "metadata": [{"key": "via", "value": "http://a.test/"}],
        "warc_filename": f"{hours}.warc.gz", "warc_record_offset": 1 << 40,
    }  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """A file as ``scrapy process`` makes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, PAGE_SCHEMA), path)


@pytest.fixture
def crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CrawlDir:
    """Two files of pages; bodies of some ten documents."""
    monkeypatch.setattr("crawlerproject.batch.bulk_export._BODY_BYTES", 5_000)
    crawl = CrawlDir(tmp_path / "crawl")
    write(crawl.processed / "pages" / "one.parquet", [row(page, 0) for page in range(PAGES)])
    second = range(PAGES - AGAIN, 2 * PAGES - AGAIN)
    write(crawl.processed / "pages" / "two.parquet", [row(page, 1) for page in second])
    return crawl


def exported(crawl: CrawlDir, name: str = OPENSEARCH) -> int:
    """All of it, into the crawl's folder."""
    return export(crawl.processed / "pages", crawl.exports / name, name, lambda read: None)


class Waits(list[float]):
    """What a sender would wait, in seconds; it does not."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def sent(crawl: CrawlDir, url: str, waits: Waits) -> bulk.Sent:
    """The bodies of a crawl, to an index."""
    sender = BulkSender(url, waits)
    try:
        sender.make_index((crawl.exports / OPENSEARCH / "index.json").read_bytes())
        sender.send_all(bodies(crawl.exports / OPENSEARCH), crawl.exports / "sent.txt", lambda read: None)
    finally:
        sender.close()
    return sender.sent


def is_whole(index: Index) -> bool:
    """Whether the latest capture of every page is there, and nothing else."""
    hours = {document["url"]: document["warc_filename"] for _, document in index.documents.values()}
    wanted = {f"http://a.test/{page}?ü": "0.warc.gz" for page in range(PAGES - AGAIN)}
    return hours == wanted | {
        f"http://a.test/{page}?ü": "1.warc.gz" for page in range(PAGES - AGAIN, 2 * PAGES - AGAIN)
    }


def test_a_body_is_a_request_of_its_size(crawl: CrawlDir) -> None:
    """Cut between documents; the same pages give the same bytes; what is exported is not exported again."""
    assert exported(crawl) == 2 * PAGES
    made = {path: path.read_bytes() for path in bodies(crawl.exports / OPENSEARCH)}
    assert len(made) > 4
    for data in made.values():
        assert len(gzip.decompress(data)) <= 5_000
    (crawl.exports / OPENSEARCH / "one.part123").mkdir()  # of a run that was killed
    assert exported(crawl) == 0
    assert sorted(path.name for path in (crawl.exports / OPENSEARCH).iterdir()) == ["index.json", "one", "two"]
    for path in made:
        path.unlink()
    (crawl.exports / OPENSEARCH / "one").rmdir()
    (crawl.exports / OPENSEARCH / "two").rmdir()
    assert exported(crawl) == 2 * PAGES
    assert {path: path.read_bytes() for path in made} == made


def test_a_file_of_an_earlier_version_is_exported(crawl: CrawlDir) -> None:
    """Where ``metadata`` is a map; the column is not read."""
    column = PAGE_SCHEMA.get_field_index("metadata")
    earlier = PAGE_SCHEMA.set(column, pa.field("metadata", pa.map_(pa.string(), pa.string())))
    rows = [row(3, 2) | {"metadata": [("via", "http://a.test/")]}]
    pq.write_table(pa.Table.from_pylist(rows, earlier), crawl.processed / "pages" / "three.parquet")
    assert exported(crawl) == 2 * PAGES + 1


def test_a_document_has_what_is_known(crawl: CrawlDir) -> None:
    """And is cut where OpenSearch would refuse to mark words."""
    write(crawl.processed / "pages" / "three.parquet", [row(3, 2, "\x00" * (TEXT_CHARACTERS + 9))])
    exported(crawl, QUICKWIT)
    first, *_ = gzip.decompress((crawl.exports / QUICKWIT / "one" / "00000.ndjson.gz").read_bytes()).splitlines()
    assert json.loads(first) == {
        "url": "http://a.test/0?ü", "host": "a.test", "fetch_time": "2026-09-01T12:00:00.123Z", "status": 200,
        "mime": "text/html", "title": "Page 0", "text": 'Line one\nof page 0, \u2028 "quoted"', "language": "en",
        "words": 5, "digest": "A" * 32, "warc_filename": "0.warc.gz", "warc_record_offset": 1 << 40,
    }  # fmt: skip
    (body,) = (crawl.exports / QUICKWIT / "three").iterdir()
    data = gzip.decompress(body.read_bytes())
    assert len(data) < 10 * 1024 * 1024  # what Quickwit takes at once
    assert len(json.loads(data)["text"]) == TEXT_CHARACTERS
    config = json.loads((crawl.exports / QUICKWIT / "index-config.json").read_text())
    assert [one["name"] for one in config["doc_mapping"]["field_mappings"]] == list(FIELDS)


def test_the_latest_capture_of_each_page_arrives(crawl: CrawlDir) -> None:
    """In whichever order; and again it changes nothing."""
    exported(crawl)
    index, waits = Index(), Waits()
    with served(index) as url:
        first = sent(crawl, url, waits)
        assert (first.taken, first.older, dict(first.refused)) == (2 * PAGES, 0, {})
        assert is_whole(index)
        before = len(index.requests)
        assert sent(crawl, url, waits).taken == 0  # the journal names all
        assert index.requests[before:] == [("PUT /pages", 400), ("PUT /pages/_mapping", 200)]
        (crawl.exports / "sent.txt").unlink()
        again = sent(crawl, url, waits)
        assert (again.taken, again.older) == (2 * PAGES - AGAIN, AGAIN)
        assert is_whole(index)
    assert waits == []


def test_what_finds_no_room_is_sent_again_alone(crawl: CrawlDir) -> None:
    """429 for a request, 429 for some of its documents, and connections that are cut: all arrive, each once."""
    exported(crawl)
    index, waits, numbers, asked = Index(), Waits(), count(), count()
    index.one = lambda url: 429 if next(numbers) % 3 == 0 else 0
    index.whole = lambda: {1: 429, 3: 503, 4: -1, 6: -1}.get(next(asked), 0)
    with served(index) as url:
        done = sent(crawl, url, waits)
    assert is_whole(index)
    assert (done.taken + done.older, dict(done.refused)) == (2 * PAGES, {})
    assert waits[:2] == [1.0, 1.0]
    assert max(waits) <= 60.0


def test_what_is_never_taken_is_named(crawl: CrawlDir) -> None:
    """The others arrive, and the command says so with status 1."""
    exported(crawl)
    index = Index()
    index.one = lambda url: 400 if "/7?" in url else 0
    with served(index) as url:
        done = scrapy("export", str(crawl), "--to", url)
    assert done.returncode == 1
    assert f"{2 * PAGES - 1} pages sent" in done.stdout
    assert "1 were refused (mapper_parsing_exception)" in done.stderr
    assert len(index.documents) == 2 * PAGES - AGAIN - 1


def test_a_killed_run_goes_on_where_it_was(crawl: CrawlDir) -> None:
    """The body that was sent and not named is sent again."""
    exported(crawl)
    index = Index()
    with served(index) as url:
        sender = BulkSender(url, Waits())
        sender.make_index((crawl.exports / OPENSEARCH / "index.json").read_bytes())
        journal, whole = crawl.exports / "sent.txt", bodies(crawl.exports / OPENSEARCH)
        sender.send_all(whole[:3], journal, lambda read: None)
        sender.send(gzip.decompress(whole[3].read_bytes()))
        sender.close()
        assert len(journal.read_text().splitlines()) == 3
        assert sent(crawl, url, Waits()).taken > 0
        assert is_whole(index)
    posts = [path for path, _ in index.requests if path.startswith("POST")]
    assert len(posts) == len(whole) + 1


def test_what_the_operator_can_mend_is_a_sentence(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index in the address, a wrong password, nothing that answers, no room for ever."""
    exported(crawl)
    for address in ("localhost:9200", "http://localhost:9200/", "http://localhost/a/b", "ftp://localhost/pages"):
        assert "give it as http://host:9200/pages" in scrapy("export", str(crawl), "--to", address).stderr
    index = Index()
    index.password = "c2VjcmV0"  # of "secret", as Basic has it
    with served(index) as url:
        refused = scrapy("export", str(crawl), "--to", url.replace("//", "//user:hunter2@"))
        assert refused.returncode == 2
        assert "answers 401" in refused.stderr
        assert "hunter2" not in refused.stderr + refused.stdout
        index.password = ""
        index.one = lambda asked: 429
        waits = Waits()
        with pytest.raises(OperatorError, match="has no room for more"):
            sent(crawl, url, waits)
        assert 600 < sum(waits) < 700
    monkeypatch.setattr(time, "sleep", Waits())
    with socket.socket() as deaf:  # it has the port and does not listen
        deaf.bind(("127.0.0.1", 0))
        silent = scrapy("export", str(crawl), "--to", f"http://127.0.0.1:{deaf.getsockname()[1]}/pages")
    assert silent.returncode == 2
    assert "was asked 15 times and it does not answer" in silent.stderr


def test_quickwit_takes_files(crawl: CrawlDir, tmp_path: Path) -> None:
    """Nothing is sent; and without pages there is nothing to export."""
    assert scrapy("export", str(crawl), "--format", "quickwit", "--to", "http://a.test/x").returncode == 2
    assert f"{2 * PAGES} pages exported" in scrapy("export", str(crawl), "--format", "quickwit").stdout
    assert "run scrapy process first" in scrapy("export", str(tmp_path)).stderr
