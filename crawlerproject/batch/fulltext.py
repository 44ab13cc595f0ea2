"""Processed pages into a full-text index (tantivy), and answers from it.

A file of pages is a unit: its pages are in the index with one commit, and a journal names it afterwards. A file
that was committed but not yet named is loaded again and replaces its own pages, so that nothing is there twice.
A later capture of a URL takes the place of an earlier one, in whichever order they come. Where ``process --main`` has
found the article, that is what is searched. An answer's place is its text's score (BM25), weighed by the ranks that
``scrapy rank`` has made.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import tantivy

from crawlerproject.errors import OperatorError
from crawlerproject.rules.answer_order import MOST_OF_A_HOST, Candidate, Weights, choose, weighed
from crawlerproject.rules.archive.withdrawal import Withdrawn
from crawlerproject.rules.url.urls import host_key, host_name

JOURNAL = "loaded.txt"
# Tantivy's own: what names the files that count, and the locks.
_META, _LOCK_SUFFIX = "meta.json", ".lock"
_HEAP_BYTES = 128 * 1024 * 1024  # of the writer, shared by its threads
_BATCH_ROWS = 500
_SNIPPET_CHARACTERS = 240
_TITLE_BOOST = 0.5  # a title is short, so that BM25 weighs it high already (benchmarks/search_ranking.py)
_NOTHING = Withdrawn()
_COLUMNS = ["url", "fetch_time", "title", "text", "text_main", "language", "consent"]
_COMPARED = 8_000  # characters of a text, for near duplicates among answers: some 0.2 ms each
_CANDIDATES = 100  # at least, that are ordered by rank; of many answers twice as many as are shown
# A line of a menu is shorter, a sentence seldom is (ours).
_SENTENCE_WORDS = 6
# What else is no word of a query: fields, what is left out, numbers and what is too short to tell words apart.
_WORD = re.compile(r"(?<![-\w])[^\W\d_]{4,40}(?![\w:])")
_HOST = re.compile(r"[\w.:\[\]-]{1,255}")
_MOST_CORRECTED = 3  # words of a query
_MOST_TERMS = 20_000  # with the same first letter, the most frequent ones
_LEAST_ALIKE = 0.75  # of difflib: one wrong letter in four


class Hit(NamedTuple):
    """One answer."""

    url: str
    title: str
    snippet: str  # plain text, matches between * and *
    score: float
    language: str
    fetched: str  # ISO 8601
    host: str
    alike: int  # further pages of nearly the same text
    more: int  # further answers of this host, named at its last one
    consent: str = ""  # the verdict on its use; "" in an index of an older version


class Search(NamedTuple):
    """What is looked for: a query in tantivy's language (words, "phrases", +must, -not, title:word), and where."""

    words: str
    limit: int = 10
    host: str = ""
    language: str = ""  # ISO 639-1
    weights: Weights = Weights()


class Answers(NamedTuple):
    """The best ones, and the query that they answer: what was asked for, or with words corrected that no page has."""

    hits: list[Hit]
    words: str


class Loading:
    """The index of some pages, open to take more: one process may have it so, and others search meanwhile."""

    def __init__(self, pages: Path, index_folder: Path) -> None:
        """Raises ValueError, as all that tantivy does: mostly for lack of room."""
        self._pages, self._journal = pages, index_folder / JOURNAL
        index_folder.mkdir(parents=True, exist_ok=True)
        try:
            self._index, self._left_out = tantivy.Index(_schema(), path=str(index_folder), reuse=True), set[str]()
        except ValueError:  # an older version's, without the verdicts, is continued as it is
            if not (index_folder / _META).exists():
                raise
            self._index, self._left_out = tantivy.Index.open(str(index_folder)), {"consent"}
        self._writer = self._index.writer(_HEAP_BYTES, 1)

    def waiting(self) -> list[Path]:
        """The files of pages that the journal does not name."""
        named = set(self._journal.read_text().splitlines()) if self._journal.exists() else set()
        return [file for file in sorted(self._pages.glob("*.parquet")) if file.name not in named]

    def take(self, file: Path) -> int:
        """Load a file: how many pages, without those that the index has of a later moment. ValueError."""
        self._index.reload()
        searcher, loaded, met = self._index.searcher(), 0, set[str]()
        batches = pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=_COLUMNS)
        for row in (row for batch in batches for row in batch.to_pylist()):
            fetched = row.pop("fetch_time").isoformat()
            url, before = row["url"], self._fetched(searcher, row["url"])
            if before > fetched:
                continue
            article = row.pop("text_main", None)  # files of older versions have none
            texts = {name: value or "" for name, value in row.items() if name not in self._left_out}
            texts |= {"text": article} if article else {}
            if before or url in met:  # of a new URL it would cost a tenth of all (measured)
                self._writer.delete_documents_by_term("url", url)
            met.add(url)
            self._writer.add_document(tantivy.Document(fetched=fetched, **texts))
            loaded += 1
        self._writer.commit()
        with self._journal.open("a") as lines:
            lines.write(f"\n{file.name}\n")  # the line before may be torn
        return loaded

    def close(self) -> None:
        """What is not committed is not there."""
        self._writer.wait_merging_threads()

    def _fetched(self, searcher: Any, url: str) -> str:
        """When the capture was fetched that the index has of a URL; "" when it has none."""
        if not searcher.doc_freq("url", url):
            return ""
        hits = searcher.search(tantivy.Query.term_query(self._index.schema, "url", url), 1).hits
        return _first(searcher.doc(hits[0][1]), "fetched") if hits else ""


def search(index_folder: Path, asked: Search, ranks: Path | None = None, withdrawn: Withdrawn = _NOTHING) -> Answers:
    """Without what was ``withdrawn``; ``ranks`` is the file of ranked pages, if there is one. OperatorError."""
    if not (index_folder / _META).exists():
        raise OperatorError(f"There is no index in {index_folder}; make one with scrapy load.")
    with _readable(index_folder) as folder:
        try:
            index = tantivy.Index.open(str(folder))
        except ValueError as error:
            raise OperatorError(
                f"The index in {index_folder} cannot be read ({error}); remove it, and make it again with scrapy load."
            ) from error
        return _best(index, asked, ranks, withdrawn)


@contextmanager
def _readable(index_folder: Path) -> Iterator[Path]:
    """The folder; where it may not be written another way in, since tantivy opens its lock for writing to read, too."""
    if os.access(index_folder, os.W_OK):
        yield index_folder
        return
    with TemporaryDirectory(prefix="search-", ignore_cleanup_errors=True) as here:
        for file in index_folder.iterdir():
            if file.suffix != _LOCK_SUFFIX:
                (Path(here) / file.name).symlink_to(file.absolute())
        yield Path(here)
    shutil.rmtree(here, ignore_errors=True)  # a thread of tantivy's may make its lock there while all is removed


def _best(index: Any, asked: Search, ranks: Path | None, withdrawn: Withdrawn) -> Answers:
    from crawlerproject.rules.page.text_fingerprint import text_fingerprint  # with numpy, which loading needs not

    searcher = index.searcher()
    words = _corrected(searcher, asked.words)
    try:
        query = index.parse_query(words, ["title", "text"], field_boosts={"title": _TITLE_BOOST})
    except ValueError as error:
        raise OperatorError(f"The query {asked.words!r} cannot be understood: {error}.") from error
    snippets = tantivy.SnippetGenerator.create(searcher, query, index.schema, "text")
    snippets.set_max_num_chars(_SNIPPET_CHARACTERS)
    found = _found(searcher, _narrowed(index.schema, query, asked), max(_CANDIDATES, 2 * asked.limit), withdrawn)
    ranked = _ranked([_first(document, "url") for _, document in found], ranks)
    best = sorted(
        ((weighed(score, *ranked.get(_first(document, "url"), (0.0, 0.0)), asked.weights), document)
         for score, document in found), key=lambda each: -each[0],
    )  # fmt: skip
    hosts = [host_key(_first(document, "url")) for _, document in best]
    candidates = (
        Candidate(host, text_fingerprint(_first(document, "text")[:_COMPARED].encode("utf-8", "replace")))
        for host, (_, document) in zip(hosts, best, strict=True)
    )
    hits = []
    for place, alike, more in choose(candidates, asked.limit, asked.limit if asked.host else MOST_OF_A_HOST):
        score, document = best[place]
        url, title, language, fetched = (_first(document, name) for name in ("url", "title", "language", "fetched"))
        snippet = _snippet(snippets, _first(document, "text"))
        hits.append(
            Hit(url, title, snippet, score, language, fetched, hosts[place], alike, more, _first(document, "consent"))
        )
    return Answers(hits, words)


def _first(document: Any, field: str) -> str:
    return str(document.get_first(field) or "")


def _narrowed(schema: Any, query: Any, asked: Search) -> Any:
    """The query with its filters, which add nothing to a score."""
    filters = []
    if asked.language:
        filters.append(tantivy.Query.term_query(schema, "language", asked.language.lower()))
    if asked.host:
        if not _HOST.fullmatch(host := asked.host.lower()):
            raise OperatorError(f"The host is {asked.host[:80]!r}; give a name, as example.org.")
        port = "(:[0-9]+)?" if host_name(host) == host else ""
        filters.append(tantivy.Query.regex_query(schema, "url", f"https?://{re.escape(host)}{port}/.*"))
    must = [query, *(tantivy.Query.const_score_query(each, 0.0) for each in filters)]
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, each) for each in must]) if filters else query


def _found(searcher: Any, query: Any, limit: int, withdrawn: Withdrawn) -> list[tuple[float, Any]]:
    """The documents of the best answers; more are asked for while some of them were withdrawn."""
    asked = limit
    while True:
        found = [(score, searcher.doc(address)) for score, address in searcher.search(query, asked).hits]
        shown = [each for each in found if not withdrawn.covers(_first(each[1], "url"))]
        if len(shown) >= limit or len(found) < asked:
            return shown[:limit]
        asked *= 2


def _ranked(urls: Sequence[str], ranks: Path | None) -> dict[str, tuple[float, float]]:
    """Of each page that is ranked: the share of pages, and its host's centrality as a share of the highest."""
    if not urls or ranks is None or not ranks.exists():
        return {}
    import pyarrow.compute as pc  # half of what Arrow takes to import

    columns = ["url", "less_important", "host_harmonic"]
    rows = pq.read_table(ranks, columns=columns, filters=pc.field("url").isin(list(urls))).to_pylist()
    most = max((row["host_harmonic"] for row in rows), default=0.0)
    return {row["url"]: (row["less_important"], row["host_harmonic"] / most if most else 0.0) for row in rows}


def _corrected(searcher: Any, words: str) -> str:
    """The query with the likest word in place of each that stands on no page."""
    unknown = [
        word for word in dict.fromkeys(_WORD.findall(words))
        if not any(searcher.doc_freq(field, word.lower()) for field in ("text", "title"))
    ]  # fmt: skip
    likest: dict[str, str] = {}
    for wrong in unknown[:_MOST_CORRECTED]:
        term = wrong.lower()
        known = dict(searcher.terms_with_prefix("text", term[0], limit=_MOST_TERMS))
        near = {word: pages for word, pages in known.items() if abs(len(word) - len(term)) <= 2}
        if alike := get_close_matches(term, near, cutoff=_LEAST_ALIKE):
            likeness = {word: SequenceMatcher(None, word, term).ratio() for word in alike}
            likest[wrong] = max(alike, key=lambda word: likeness[word] + math.log10(1 + near[word]) / 50)
    return _WORD.sub(lambda found: likest.get(found[0], found[0]), words)


def _snippet(snippets: Any, text: str) -> str:
    """Of the sentences, or where no word stands in one, of all; the beginning where none stands in the text."""
    sentences = "\n".join(line for line in text.split("\n") if line.count(" ") >= _SENTENCE_WORDS - 1)
    for part in (sentences, text):
        if marked := _marked(snippets.snippet_from_doc(tantivy.Document(text=part.replace("*", "∗")))):
            return " ".join(marked.split())
    return " ".join((sentences or text)[:_SNIPPET_CHARACTERS].split())


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("url", stored=True, tokenizer_name="raw")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("text", stored=True)
    builder.add_text_field("language", stored=True, tokenizer_name="raw")
    builder.add_text_field("fetched", stored=True, tokenizer_name="raw")
    builder.add_text_field("consent", stored=True, tokenizer_name="raw")
    return builder.build()


def _marked(snippet: Any) -> str:
    text: bytes = snippet.fragment().encode()  # spans count bytes
    for span in sorted(snippet.highlighted(), key=lambda each: each.start, reverse=True):
        text = b"%b*%b*%b" % (text[: span.start], text[span.start : span.end], text[span.end :])
    return text.decode("utf-8", "replace")
