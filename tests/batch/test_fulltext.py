"""What the full-text index answers: filters, ranks, one of near duplicates, misspelt words, the article's sentences."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tantivy

from crawlerproject.batch.fulltext import Answers, Search, search
from crawlerproject.errors import OperatorError
from crawlerproject.rules.answer_order import Weights
from tests.batch.loaded import load

MENU = "292 Section\n267 Section\nReceive Send\n10 Book\n11803"
LONG = " ".join(f"Letter number {n} is sent and will be received by somebody." for n in range(40))
PAGES = {
    "http://a.test/menu": ("Post", f"{MENU}\nSomebody who wants to receive a letter needs *an* address first.", "en"),
    "http://a.test/long": ("Letters", LONG, "en"),
    "http://b.test:8080/copy": ("Letters", LONG + " Copied.", "en"),
    "http://a.test/brief": ("Brief", "Ein Letter ist ein Brief; wer ihn will, muss ihn receive nennen.", "de"),
    "http://c.test/main": ("Article", "Letter letter letter in a frame", "en"),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of a few pages, one of them with its article."""
    folder = tmp_path_factory.mktemp("fulltext")
    rows = [
        {
            "url": url, "fetch_time": datetime(2026, 11, 1, tzinfo=UTC), "title": title, "text": text,
            "text_main": "The article itself says only this." if url.endswith("/main") else None, "language": language,
        }
        for url, (title, text, language) in PAGES.items()
    ]  # fmt: skip
    (folder / "pages").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "pages" / "one.parquet")
    assert load(folder / "pages", folder / "search") == len(PAGES)
    return folder


def page(url: str, day: int, text: str) -> dict[str, object]:
    """A row without an article."""
    fetched = datetime(2026, 11, day, tzinfo=UTC)
    return {"url": url, "fetch_time": fetched, "title": "", "text": text, "text_main": None, "language": "en"}


def asked(index: Path, words: str, ranks: Path | None = None, **more: Any) -> Answers:
    """The answers to words."""
    return search(index / "search", Search(words, **more), ranks)


def urls(answers: Answers) -> list[str]:
    """Of all answers."""
    return [hit.url for hit in answers.hits]


def test_filters_by_host_and_language(index: Path) -> None:
    """A host without a port is that name on each; another finds nothing."""
    assert urls(asked(index, "letter", language="de")) == ["http://a.test/brief"]
    assert {hit.host for hit in asked(index, "letter", host="a.test").hits} == {"a.test"}
    assert urls(asked(index, "letters", host="b.test")) == ["http://b.test:8080/copy"]
    assert urls(asked(index, "letters", host="B.test:8080")) == ["http://b.test:8080/copy"]
    assert urls(asked(index, "letter", host="a.tes")) == []
    with pytest.raises(OperatorError, match="give a name"):
        asked(index, "letter", host=".*")


def test_near_duplicates_are_one_answer(index: Path) -> None:
    """The better one stands for both."""
    (hit,) = asked(index, '"letter number"').hits

    assert hit.alike == 1


def test_the_snippet_is_a_sentence_and_the_article_is_searched(index: Path) -> None:
    """Menus have the word as well; a page's own stars are not taken for marks."""
    (hit,) = asked(index, "receive", language="en").hits

    assert hit.snippet == "Somebody who wants to *receive* a letter needs ∗an∗ address first"
    assert "http://c.test/main" not in urls(asked(index, "frame"))
    assert urls(asked(index, "article itself")) == ["http://c.test/main"]


def test_a_word_that_no_page_has_is_taken_for_the_likest(index: Path) -> None:
    """Said with the answers; what is left out, a field's name and numbers stay as they are."""
    found = asked(index, "+recieve -lettr title:Post 11804")

    assert found.words == "+receive -lettr title:Post 11804"
    assert urls(found)[0] == "http://a.test/menu"
    assert asked(index, "letter xqzwvkjh").words == "letter xqzwvkjh"


def test_ranks_move_pages(index: Path, tmp_path: Path) -> None:
    """The page that the text alone puts last comes first by its rank, as far as the weights let it."""
    by_text = urls(asked(index, "letter"))
    ranks = tmp_path / "pages.parquet"
    row = {"url": by_text[-1], "less_important": 1.0, "host_harmonic": 3.0}
    pq.write_table(pa.Table.from_pylist([row]), ranks)

    assert urls(asked(index, "letter", ranks, weights=Weights(0.0, 0.0))) == by_text
    assert urls(asked(index, "letter", ranks, weights=Weights(50.0, 50.0)))[0] == by_text[-1]
    assert urls(asked(index, "xqzwvkjh", ranks)) == []


def test_the_later_capture_counts_in_whichever_order_they_come(tmp_path: Path) -> None:
    """And once, also where a file was loaded and the process killed before it was named."""
    url, pages, journal = "http://a.test/", tmp_path / "pages", tmp_path / "search" / "loaded.txt"
    pages.mkdir()
    for name, day in (("b", 3), ("c", 2), ("a", 1)):
        pq.write_table(pa.Table.from_pylist([page(url, day, f"Written {name}")]), pages / f"{name}.parquet")
        assert load(pages, tmp_path / "search") == (name == "b")
    journal.write_text("a.parquet\nc.parq")

    assert load(pages, tmp_path / "search") == 1
    assert [hit.fetched[:10] for hit in asked(tmp_path, "written").hits] == ["2026-11-03"]
    assert load(pages, tmp_path / "search") == 0


def test_an_index_of_an_older_version_is_continued_as_it_is(tmp_path: Path) -> None:
    """Without the verdicts on the use of pages; what is new in it is found as well."""
    builder = tantivy.SchemaBuilder()
    for name in ("url", "title", "text", "language", "fetched"):
        builder.add_text_field(
            name, stored=True, tokenizer_name="raw" if name in ("url", "language", "fetched") else "default"
        )
    (tmp_path / "search").mkdir()
    older = tantivy.Index(builder.build(), path=str(tmp_path / "search"))
    writer = older.writer(15_000_000, 1)
    writer.add_document(
        tantivy.Document(url="http://a.test/old", title="", text="old letter", language="en", fetched="")
    )
    writer.commit()
    writer.wait_merging_threads()
    (tmp_path / "pages").mkdir()
    row = page("http://a.test/new", 1, "new letter") | {"consent": "reserved"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "pages" / "one.parquet")

    assert load(tmp_path / "pages", tmp_path / "search") == 1

    hits = asked(tmp_path, "letter").hits
    assert sorted((hit.url, hit.consent) for hit in hits) == [("http://a.test/new", ""), ("http://a.test/old", "")]
