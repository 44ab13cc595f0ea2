"""What ``scrapy process`` says of a page beside its text: language, structured data, and the article where asked."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.rules.archive.warc_records import Context
from tests.commands.running import archive_of, scrapy
from tests.documents.pdfs import pdf, shown, stream
from tests.warc_samples import exchange
from tests.web.running import PROJECT

ARTICLE = "Dies ist ein langer deutscher Satz über nichts, mit Kommas, und mit einem Ende. " * 20
PAGE = f"<!doctype html><title>t</title><meta property='og:type' content='article'><body><main><p>{ARTICLE}</p></main>"
PAGE += f"<footer>Impressum {'und mehr davon ' * 30}</footer>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl with pages that say their language, or not, a PDF, and hosts' files that are none of its pages."""
    folder = tmp_path_factory.mktemp("columns")
    made = archive_of(folder)
    kinds = {
        "long": (PAGE.encode(), "text/html", "en, fr"),
        "short": (b"<html lang=de><p>Salut", "text/html", "fr-CH"),
        "lang": (b"<html lang=fr-CA><p>Salut", "text/html", "en, fr"),
        "pdf": (pdf([stream(shown("Words of a page"))], "Title"), "application/pdf", ""),
    }
    for name, (body, kind, language) in kinds.items():
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Language: {language}\r\n\r\n".encode()
        made.write(exchange(body, head), Context(f"http://a.test/{name}"))
    for name, hops in (("robots.txt", "P"), ("tdmrep.json", "PR")):
        missing = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n"
        made.write(exchange(b"<p>There is no such file.", missing), Context(f"http://a.test/{name}", hops=hops))
    made.close()
    return folder


def rows(folder: Path, out: Path, wanted: ExtractOptions) -> dict[str, dict[str, Any]]:
    """The rows of its pages."""
    (warc,) = (folder / "warc").iterdir()
    assert process_warc(warc, out, wanted).problem == ""
    (pages,) = (out / "pages").iterdir()
    return {row["url"].rpartition("/")[2]: row for row in pq.read_table(pages).to_pylist()}


def test_the_language_is_the_texts_or_what_is_declared(folder: Path, tmp_path: Path) -> None:
    """The text decides where it is long enough; where it is not, a header or else a page that names one language."""
    found = rows(folder, tmp_path, ExtractOptions())

    said = {name: (row["language"], row["content_language"]) for name, row in found.items()}
    expected = {"long": ("de", "en, fr"), "short": ("fr", "fr-CH"), "lang": ("fr", "en, fr"), "pdf": (None, None)}
    assert said == expected
    assert json.loads(found["long"]["structured"]) == {"opengraph": {"og:type": ["article"]}}
    assert {row["structured"] for name, row in found.items() if name != "long"} == {None}
    assert {(row["text_main"], row["boilerplate"]) for row in found.values()} == {(None, None)}


def test_the_article_where_it_is_asked_for(folder: Path, tmp_path: Path) -> None:
    """The whole text stays beside it; a PDF has none."""
    pytest.importorskip("resiliparse")
    found = rows(folder, tmp_path, ExtractOptions(main=True))

    assert "Impressum" not in found["long"]["text_main"]
    assert ARTICLE.strip() in found["long"]["text_main"]
    assert 0.1 < found["long"]["boilerplate"] < 0.6
    assert (found["pdf"]["text_main"], found["pdf"]["text"]) == (None, "Words of a page")


def test_without_resiliparse_that_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, before anything is read."""
    monkeypatch.setattr("crawlerproject.commands.process.find_spec", lambda name: None)

    done = scrapy("process", str(folder), "--main")

    assert done.returncode == 2
    assert "--main needs Resiliparse, which is not installed: pip install resiliparse" in done.stderr


def test_what_a_page_repeats_has_columns_and_the_documented_queries_use_them(tmp_path: Path) -> None:
    """All of docs/near-duplicates.md, run as they stand there."""
    made = archive_of(tmp_path)
    first, second = "http://a.test/first", "http://a.test/second"
    notes = {
        first: [("simhash", "ff00000000000001")],
        second: [("simhash", "ff00000000000007"), ("duplicate", "near"), ("duplicate-of", first)],
        "http://a.test/short": [],
        "http://b.test/other": [("simhash", "ff00000000000001")],
    }
    for url, extra in notes.items():
        made.write(exchange(), Context(url, extra=extra))
    made.close()
    columns = rows(tmp_path, tmp_path / "processed", ExtractOptions())
    queries = re.findall(r"(?s)```sql\n(.*?)```", (PROJECT / "docs" / "near-duplicates.md").read_text())
    with contextlib.chdir(tmp_path), duckdb.connect() as engine:
        once, most, pairs = (engine.sql(query.rstrip("; \n")).to_arrow_table().to_pylist() for query in queries)

    found = {name: (row["simhash"], row["duplicate"], row["duplicate_of"]) for name, row in columns.items()}
    assert found["second"] == ("ff00000000000007", "near", first)
    assert found["short"] == (None, None, None)
    assert {row["url"] for row in once} == set(notes) - {second}
    assert most == [{"duplicate_of": first, "duplicate": "near", "pages": 1}]
    assert pairs == [{"url": first, "other": second, "distance": 2}]
