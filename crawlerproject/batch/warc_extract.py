"""The records of one WARC as rows: of pages, with their language, and of links in Parquet; WET and WAT on request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.batch.page_captures import PageCapture, is_prerequisite
from crawlerproject.batch.wet_wat import WatWriter, WetWriter
from crawlerproject.documents.document_texts import DocumentTexts
from crawlerproject.documents.kinds import kind_of
from crawlerproject.rules.archive.http_messages import digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import digest_of
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import is_render
from crawlerproject.rules.consent.verdict import NOTE, strictest
from crawlerproject.rules.page.extract import main_text
from crawlerproject.rules.page.languages import language_of
from crawlerproject.stores.archive.warc_reader import ArchivedCapture, CaptureReader

if TYPE_CHECKING:
    from crawlerproject.batch.process_warcs import ExtractOptions

# Of a row group, at least: some 5 MB of text, 3 MB of links.
_PAGE_ROWS, _LINK_ROWS = 500, 20_000
_IN_WAT = frozenset({"warcinfo", "request", "response", "revisit", "metadata"})

METADATA_LINE = pa.struct([pa.field("key", pa.string(), nullable=False), ("value", pa.string())])
"""Laid out as the entries of Arrow's maps are. No map: Hugging Face datasets (5.2) has none."""
_METADATA = pa.list_(METADATA_LINE)
PAGE_SCHEMA = pa.schema(
    [
        pa.field("url", pa.string(), nullable=False),
        pa.field("fetch_time", pa.timestamp("us", tz="UTC"), nullable=False),
        ("status", pa.int16()),
        ("mime", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("language", pa.string()),  # ISO 639-1; null where neither text nor header tells
        ("words", pa.int32()),
        ("canonical", pa.string()),
        ("digest", pa.string()),
        ("content_language", pa.string()),  # the header, as it came
        ("structured", pa.string()),  # JSON-LD, OpenGraph and microdata as JSON
        ("text_main", pa.string()),  # where it is asked for: the article
        ("boilerplate", pa.float32()),  # the share of the page's letters that it leaves out
        ("metadata", _METADATA),  # the capture's metadata record, as a map has it in versions up to 1.7
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int64()),
        ("rendered", pa.bool_()),  # of what a browser made of the page
        ("duplicate", pa.string()),  # exact, canonical or near; null of a page that repeated none when it was fetched
        ("duplicate_of", pa.string()),
        ("consent", pa.string()),  # allowed, reserved or unknown: what the site's words come to for the crawl's purpose
        ("simhash", pa.string()),  # 16 hexadecimal digits, as in the metadata record; null of a text too short for one
    ]
)
"""Of ``processed/pages``."""
_LINK_SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        ("text", pa.string()),
        ("rel", pa.string()),
        ("position", pa.int32()),
    ]
)


class _Place(NamedTuple):
    """Where an answer's rows are, should a browser have made its page in this file."""

    row: int
    links: range
    wet: range  # bytes
    content_language: str
    consent: str


class Writers:
    """Takes records, writes rows. What a browser made of a page takes the place of the answer's in this file."""

    def __init__(self, parts: list[Path], wanted: ExtractOptions, warc: Path, documents: DocumentTexts) -> None:
        pages, links, *more = parts
        self._pages = _Rows(pages, PAGE_SCHEMA, _PAGE_ROWS)
        self._links = _Rows(links, _LINK_SCHEMA, _LINK_ROWS)
        self._wet = WetWriter(more.pop(0), warc.name) if wanted.wet else None
        self._wat = WatWriter(more.pop(0), warc.name) if wanted.wat else None
        self._warc = warc
        self._main = wanted.main
        self._documents = documents
        self._captures = CaptureReader(warc)
        self._answers: dict[str, _Place] = {}  # by record id

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        self._capture(self._captures.rest())
        for writer in (self._pages, self._links, self._wet, self._wat):
            if writer is not None:
                writer.close()

    def take(self, member: Member) -> None:
        """One record of the WARC, in order."""
        if self._wat is not None and (member.kind in _IN_WAT or is_render(member)):
            page = None
            if member.kind == "response" or is_render(member):
                page = PageCapture(ArchivedCapture(member, self._warc)).read_html(structured=True)
            self._wat.add(member, page)
        self._capture(self._captures.take(member))

    def _capture(self, capture: ArchivedCapture | None) -> None:
        if capture is not None and capture.member.kind != "revisit" and not is_prerequisite(capture):
            self._page(capture, PageCapture(capture))

    def _page(self, archived: ArchivedCapture, capture: PageCapture) -> None:
        page = html = capture.read_html(structured=True)
        if page is None and (kind := kind_of(capture.mime, capture.body)) is not None:
            page = self._documents.read(kind, capture.body, capture.url)
        if page is None:
            return
        member, notes, text = archived.member, archived.notes, page.text
        plain = self._answers.pop(archived.answer_id, None) if archived.rendered else None
        content_language = plain.content_language if plain is not None else archived.headers.get("content-language", "")
        main = main_text(capture.body, capture.content_type or None) if self._main and html is not None else None
        language = language_of(text, content_language, page.language)
        # A browser's page is as reserved as the answer that it was made of.
        consent = strictest(notes.get(NOTE, ""), plain.consent if plain is not None else "")
        row, first_link = self._pages.count, self._links.count
        self._pages.add(
            capture.url,
            archived.fetched_at,
            archived.status,
            capture.mime,
            page.title,
            text,
            language,
            page.words,
            page.canonical or None,
            _digest(archived),
            content_language or None,
            page.structured or None,
            None if main is None else main.text,
            None if main is None else main.boilerplate,
            [(name, value) for name, value in sorted(notes.items()) if value],
            self._warc.name,
            member.offset,
            archived.rendered,
            notes.get("duplicate"),
            notes.get("duplicate-of"),
            consent,
            notes.get("simhash"),
        )
        if page.links:
            self._links.extend([capture.url] * len(page.links), *zip(*page.links, strict=True))
        wet = self._wet.add(member, page.title, text, language, consent) if self._wet and text else range(0)
        if plain is not None:
            self._pages.leave_out(range(plain.row, plain.row + 1))
            self._links.leave_out(plain.links)
            if self._wet is not None:
                self._wet.leave_out(plain.wet)
        elif not archived.rendered and html is not None:
            links = range(first_link, self._links.count)
            self._answers[archived.answer_id] = _Place(row, links, wet, content_language, consent)


def _digest(capture: ArchivedCapture) -> str:
    """Of a render that of the DOM, as in the request log; its record names none."""
    return digest_text(payload_digest(capture.member.block)) if capture.rendered else digest_of(capture.member)


class _Rows:
    """A Parquet file, a row group at a time."""

    def __init__(self, path: Path, schema: pa.Schema, group_rows: int) -> None:
        self._path, self._group_rows = path, group_rows
        self._schema = schema
        self._writer = self._opened(path)
        self._columns: list[list[Any]] = [[] for _ in schema]
        self._left_out: list[range] = []
        self.count = 0  # of rows so far

    def add(self, *values: Any) -> None:
        """A row: a value a column; of ``metadata`` pairs of a key and a value."""
        self.extend(*((value,) for value in values))

    def extend(self, *columns: Sequence[Any]) -> None:
        """Rows, given by column."""
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(values)
        self.count += len(columns[0])
        if len(self._columns[0]) >= self._group_rows:
            self._flush()

    def leave_out(self, rows: range) -> None:
        """Have the file without these in the end."""
        self._left_out.append(rows)

    def close(self) -> None:
        self._flush()
        self._writer.close()
        if any(self._left_out):
            self._without()

    def _flush(self) -> None:
        if self._columns[0]:
            arrays = [_array(values, field.type) for values, field in zip(self._columns, self._schema, strict=True)]
            self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))
            self._columns = [[] for _ in self._schema]

    def _without(self) -> None:
        kept = np.ones(self.count, np.bool_)
        for rows in self._left_out:
            kept[rows.start : rows.stop] = False
        shorter = self._path.with_name(f"{self._path.name}.shorter")
        start = 0
        with pq.ParquetFile(self._path) as whole, self._opened(shorter) as writer:
            for batch in whole.iter_batches(self._group_rows):
                writer.write_batch(batch.filter(pa.array(kept[start : start + len(batch)])))
                start += len(batch)
        shorter.replace(self._path)

    def _opened(self, path: Path) -> pq.ParquetWriter:
        return pq.ParquetWriter(path, self._schema, compression="zstd")


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column. Lines of metadata record by field: Arrow takes ten times as long for a struct a line (measured)."""
    if kind != _METADATA:
        return pa.array(values, kind)
    lines = [line for lines in values for line in lines]
    fields = [pa.array([line[place] for line in lines], pa.string()) for place in range(len(METADATA_LINE))]
    entries = pa.StructArray.from_arrays(fields, fields=list(METADATA_LINE))
    starts = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(starts), entries, type=kind)
