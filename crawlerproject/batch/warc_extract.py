"""The records of one WARC as rows: of pages and of links in Parquet, of WET and WAT on request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.batch.languages import language_of, language_of_header
from crawlerproject.batch.wet_wat import WatWriter, WetWriter
from crawlerproject.documents.kinds import kind_of
from crawlerproject.documents.texts import DocumentTexts
from crawlerproject.fetch.decoding import decode
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.page.extract import PageText, read_page
from crawlerproject.rules.page.main_text import main_text
from crawlerproject.rules.page.page import is_html
from crawlerproject.rules.page.words import count_words

_MAX_TEXT_BYTES = 20 * 1024 * 1024  # of a body once decoded: four times what a crawl keeps by default
_ROWS = 2000  # rows of one row group: some 20 MB of text

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
        ("metadata", pa.map_(pa.string(), pa.string())),  # the capture's metadata record
        ("warc_filename", pa.string()),
        ("warc_record_offset", pa.int64()),
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is made of each WARC besides pages and links."""

    wet: bool = False
    wat: bool = False
    main: bool = False  # the article beside the whole text


class Writers:
    """Takes records, writes rows; a page's row waits for its metadata record, which follows it."""

    def __init__(self, parts: list[Path], wanted: Wanted, warc_name: str, documents: DocumentTexts) -> None:
        pages, links, *more = parts
        self._pages = _Rows(pages, PAGE_SCHEMA)
        self._links = _Rows(links, _LINK_SCHEMA)
        self._wet = WetWriter(more.pop(0), warc_name) if wanted.wet else None
        self._wat = WatWriter(more.pop(0), warc_name) if wanted.wat else None
        self._name = warc_name
        self._main = wanted.main
        self._documents = documents
        self._row: dict[str, Any] | None = None
        self._row_id = ""

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_row()
        for writer in (self._pages, self._links, self._wet, self._wat):
            if writer is not None:
                writer.close()

    def take(self, member: Member) -> None:
        """One record of the WARC, in order."""
        if self._wat is not None and member.kind in ("warcinfo", "request", "response", "revisit", "metadata"):
            self._wat.add(member, self._read_html(Head(member.block), member) if member.kind == "response" else None)
        if member.kind == "response":
            self._end_row()
            self._response(member)
        elif member.kind == "metadata" and self._row is not None and member.field("warc-concurrent-to") == self._row_id:
            lines = (line.partition(": ") for line in member.block.decode("utf-8", "replace").splitlines())
            self._row["metadata"] = sorted({name: value for name, _, value in lines if value}.items())

    def _response(self, member: Member) -> None:
        head = Head(member.block)
        page = html = self._read_html(head, member)
        if page is None:
            page = self._read_document(head, member)
        if page is None:
            return
        text = page.text
        main = main_text(body_of(head, member), head.content_type or None) if self._main and html is not None else None
        self._row_id = member.field("warc-record-id")
        self._row = {
            "url": member.field("warc-target-uri"),
            "fetch_time": datetime.fromisoformat(member.field("warc-date")),
            "status": head.status,
            "mime": head.mime,
            "title": page.title,
            "text": text,
            "language": language_of(text) or language_of_header(head.content_language or page.language),
            "words": count_words(text),
            "canonical": page.canonical or None,
            "digest": member.field("warc-payload-digest").removeprefix("sha1:"),
            "content_language": head.content_language or None,
            "structured": page.structured or None,
            "text_main": None if main is None else main.text,
            "boilerplate": None if main is None else main.boilerplate,
            "metadata": [],
            "warc_filename": self._name,
            "warc_record_offset": member.offset,
        }
        for link in page.links:
            self._links.add({"source": self._row["url"], **link._asdict()})
        if self._wet is not None and text:
            self._wet.add(member, page.title, text, self._row["language"])

    def _read_html(self, head: Head, member: Member) -> PageText | None:
        body = body_of(head, member)
        if not is_html(head.content_type, body):
            return None
        url = member.field("warc-target-uri")
        return read_page(body, url=url, content_type=head.content_type or None, structured=True)

    def _read_document(self, head: Head, member: Member) -> PageText | None:
        body = body_of(head, member)
        kind = kind_of(head.mime, body)
        return None if kind is None else self._documents.read(kind, body, member.field("warc-target-uri"))

    def _end_row(self) -> None:
        if self._row is not None:
            self._pages.add(self._row)
            self._row = None


class Head:
    """What is needed of an HTTP head."""

    def __init__(self, block: bytes) -> None:
        start, _, rest = block.partition(b"\r\n\r\n")[0].decode("latin-1").partition("\r\n")
        words = start.split()
        self.start = start
        self.status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        self.fields = [
            (name.strip(), value.strip())
            for name, colon, value in (f.partition(":") for f in rest.split("\r\n"))
            if colon
        ]
        known = {name.lower(): value for name, value in self.fields}
        self.content_type = known.get("content-type", "")
        self.encoding = known.get("content-encoding", "")
        self.content_language = known.get("content-language", "")
        self.mime = self.content_type.partition(";")[0].strip().lower()


def body_of(head: Head, member: Member) -> bytes:
    """What a response that went well holds, its content coding undone; else nothing."""
    if head.status != 200:
        return b""
    return decode(member.payload, head.encoding.encode("latin-1"), _MAX_TEXT_BYTES).body


class _Rows:
    """A Parquet file, a row group at a time."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._schema = schema
        self._waiting: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        self._waiting.append(row)
        if len(self._waiting) == _ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_pylist(self._waiting, self._schema))
            self._waiting = []

    def close(self) -> None:
        self._flush()
        self._writer.close()
