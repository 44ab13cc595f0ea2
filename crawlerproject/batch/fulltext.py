"""Processed pages into a full-text index (tantivy), and answers from it.

A file of pages is a unit: its pages are in the index with one commit, and a journal names it afterwards. A file
that was committed but not yet named is loaded again and replaces its own pages, so that nothing is there twice.
A later capture of a URL takes the place of an earlier one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import tantivy

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.withdrawal import Withdrawn

JOURNAL = "loaded.txt"
# Tantivy's own: what names the files that count, and the locks.
_META, _LOCK_SUFFIX = "meta.json", ".lock"
_HEAP_BYTES = 128 * 1024 * 1024  # of the writer, shared by its threads
_BATCH_ROWS = 500
_SNIPPET_CHARACTERS = 240
_TITLE_BOOST = 2.0
_NOTHING = Withdrawn()
_COLUMNS = ["url", "fetch_time", "title", "text", "language"]


class Hit(NamedTuple):
    """One answer."""

    url: str
    title: str
    snippet: str  # plain text, matches between * and *
    score: float
    language: str
    fetched: str  # ISO 8601


def load(pages: Path, index_folder: Path, done: Callable[[int], None]) -> int:
    """Load every file of ``pages`` that the journal does not name; how many pages. ``done`` takes bytes read."""
    files = sorted(pages.glob("*.parquet"))
    journal = index_folder / JOURNAL
    named = set(journal.read_text().splitlines()) if journal.exists() else set()
    index_folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(_schema(), path=str(index_folder), reuse=True)
    loaded = 0
    writer = index.writer(_HEAP_BYTES, 1)
    for file in files:
        if file.name not in named:
            batches = pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=_COLUMNS)
            for row in (row for batch in batches for row in batch.to_pylist()):
                fetched = row.pop("fetch_time").isoformat()
                texts = {name: value or "" for name, value in row.items()}
                writer.delete_documents_by_term("url", row["url"])
                writer.add_document(tantivy.Document(fetched=fetched, **texts))
                loaded += 1
            writer.commit()
            with journal.open("a") as lines:
                lines.write(f"{file.name}\n")
        done(file.stat().st_size)
    writer.wait_merging_threads()
    return loaded


def search(index_folder: Path, words: str, limit: int, withdrawn: Withdrawn = _NOTHING) -> list[Hit]:
    """The best answers to a query in tantivy's language (words, "phrases", +must, -not, title:word), but for those
    that were ``withdrawn``.
    """
    if not (index_folder / _META).exists():
        raise OperatorError(f"There is no index in {index_folder}; make one with scrapy load.")
    with _readable(index_folder) as folder:
        try:
            index = tantivy.Index.open(str(folder))
        except ValueError as error:
            raise OperatorError(
                f"The index in {index_folder} cannot be read ({error}); remove it, and make it again with scrapy load."
            ) from error
        return _best(index, words, limit, withdrawn)


@contextmanager
def _readable(index_folder: Path) -> Iterator[Path]:
    """The folder; where it may not be written another way in, since tantivy opens its lock for writing to read, too."""
    if os.access(index_folder, os.W_OK):
        yield index_folder
        return
    with TemporaryDirectory(prefix="search-") as here:
        for file in index_folder.iterdir():
            if file.suffix != _LOCK_SUFFIX:
                (Path(here) / file.name).symlink_to(file.absolute())
        yield Path(here)


def _best(index: Any, words: str, limit: int, withdrawn: Withdrawn) -> list[Hit]:
    try:
        query = index.parse_query(words, ["title", "text"], field_boosts={"title": _TITLE_BOOST})
    except ValueError as error:
        raise OperatorError(f"The query {words!r} cannot be understood: {error}.") from error
    searcher = index.searcher()
    snippets = tantivy.SnippetGenerator.create(searcher, query, index.schema, "text")
    snippets.set_max_num_chars(_SNIPPET_CHARACTERS)
    hits = []
    for score, document in _shown(searcher, query, limit, withdrawn):
        snippet = snippets.snippet_from_doc(document)
        first = {name: document.get_first(name) for name in ("url", "title", "language", "fetched")}
        marked = _marked(snippet) or str(document.get_first("text") or "")[:_SNIPPET_CHARACTERS]
        hits.append(
            Hit(str(first["url"]), str(first["title"] or ""), " ".join(marked.split()), float(score),
                str(first["language"] or ""), str(first["fetched"] or ""))
        )  # fmt: skip
    return hits


def _shown(searcher: Any, query: Any, limit: int, withdrawn: Withdrawn) -> list[tuple[float, Any]]:
    """The documents of the best answers; more are asked for while some of them were withdrawn."""
    asked = limit
    while True:
        found = [(score, searcher.doc(address)) for score, address in searcher.search(query, asked).hits]
        shown = [each for each in found if not withdrawn.covers(str(each[1].get_first("url")))]
        if len(shown) >= limit or len(found) < asked:
            return shown[:limit]
        asked *= 2


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("text", stored=True)
    builder.add_text_field("language", stored=True, tokenizer_name="raw")
    builder.add_text_field("fetched", stored=True, tokenizer_name="raw")
    return builder.build()


def _marked(snippet: Any) -> str:
    text: bytes = snippet.fragment().encode()  # spans count bytes
    for span in sorted(snippet.highlighted(), key=lambda each: each.start, reverse=True):
        text = b"%b*%b*%b" % (text[: span.start], text[span.start : span.end], text[span.end :])
    return text.decode("utf-8", "replace")
