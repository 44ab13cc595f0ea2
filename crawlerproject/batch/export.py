"""Processed pages as documents for the search engines of others: NDJSON as their bulk interfaces take it.

A Parquet file of pages becomes a folder of gzip-compressed bodies, written beside and renamed: it is whole or not
there. Each body is one request: OpenSearch and Elasticsearch take 100 MB and do best with 5 to 15, Quickwit takes
10 MiB. Beside them lies what makes the index.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
import pyarrow.parquet as pq

from crawlerproject.batch.process import PART
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.atomic_files import write_whole

_BATCH_ROWS = 200
_BODY_BYTES = 8_000_000
"""Before compression; a document that is longer has a body of its own."""
TEXT_CHARACTERS = 1_000_000
"""What OpenSearch marks matches in by default (index.highlight.max_analyzed_offset); JSON of it stays below 10 MiB."""
_GZIP_LEVEL = 6

# Column -> (type in OpenSearch, type in Quickwit). "raw" is one word as it stands: to filter and count by.
FIELDS = {
    "url": ("keyword", "raw"),
    "host": ("keyword", "raw"),
    "fetch_time": ("date", "datetime"),
    "status": ("short", "u64"),
    "mime": ("keyword", "raw"),
    "title": ("text", "text"),
    "text": ("text", "text"),
    "language": ("keyword", "raw"),
    "words": ("integer", "u64"),
    "canonical": ("keyword", "raw"),
    "digest": ("keyword", "raw"),
    "warc_filename": ("keyword", "raw"),
    "warc_record_offset": ("long", "u64"),
}
_COLUMNS = [name for name in FIELDS if name != "host"]
_SEARCHED = ["title", "text"]
# Lucene refuses a word of more than 32,766 bytes; a character has four at most.
_KEYWORD_CHARACTERS = 8_191


def document(row: dict[str, Any]) -> dict[str, Any]:
    """A page's, of its row; what is not known is left out. The time is RFC 3339 with milliseconds."""
    made = {name: row[name] for name in _COLUMNS if row[name] is not None}
    made["host"] = host_key(row["url"])
    made["fetch_time"] = row["fetch_time"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    made["text"] = (row["text"] or "")[:TEXT_CHARACTERS]
    return {name: made[name] for name in FIELDS if name in made}


def _opensearch_lines(made: dict[str, Any], fetched_ms: int) -> bytes:
    # The time of the capture is the version: of several captures the latest stays, in whichever order they arrive, and
    # what arrives twice changes nothing. Ids are shorter than the 512 bytes that an address may exceed.
    action = {"_id": sha1(made["url"].encode()).hexdigest(), "version": fetched_ms, "version_type": "external_gte"}
    return orjson.dumps({"index": action}) + b"\n" + orjson.dumps(made) + b"\n"


def _quickwit_lines(made: dict[str, Any], fetched_ms: int) -> bytes:
    return orjson.dumps(made) + b"\n"


def _opensearch_index() -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {name: {"type": kind} for name, (kind, _) in FIELDS.items()}
    for kind in kinds.values():
        if kind["type"] == "keyword":
            kind["ignore_above"] = _KEYWORD_CHARACTERS
    return {"mappings": {"dynamic": "strict", "properties": kinds}}


def _quickwit_index() -> dict[str, Any]:
    fields = []
    for name, (_, kind) in FIELDS.items():
        if kind == "raw":
            fields.append({"name": name, "type": "text", "tokenizer": "raw", "fast": True})
        elif kind == "text":
            fields.append({"name": name, "type": "text", "tokenizer": "default", "record": "position"})
        elif kind == "datetime":
            given = {"input_formats": ["rfc3339"], "fast": True, "fast_precision": "milliseconds"}
            fields.append({"name": name, "type": "datetime", **given})
        else:
            fields.append({"name": name, "type": kind, "fast": True})
    return {
        "version": "0.8",
        "index_id": "pages",
        "doc_mapping": {"mode": "strict", "field_mappings": fields, "timestamp_field": "fetch_time"},
        "search_settings": {"default_search_fields": _SEARCHED},
    }


class Format(NamedTuple):
    """How an engine wants a document, and its index."""

    lines: Callable[[dict[str, Any], int], bytes]  # of a document and the time of its capture, milliseconds
    index_file: str  # the name of what makes the index
    mappings: Callable[[], dict[str, Any]]  # what is in it


OPENSEARCH, QUICKWIT = "opensearch", "quickwit"
FORMATS = {
    OPENSEARCH: Format(_opensearch_lines, "index.json", _opensearch_index),
    QUICKWIT: Format(_quickwit_lines, "index-config.json", _quickwit_index),
}


def export(pages: Path, out: Path, form: Format, done: Callable[[int], None]) -> int:
    """Every file of ``pages`` whose folder in ``out`` is not there yet; how many documents. ``done`` takes bytes read.

    What a killed run left half done is gone first.
    """
    out.mkdir(parents=True, exist_ok=True)
    for part in out.glob(f"*{PART}*"):
        shutil.rmtree(part)
    write_whole(out / form.index_file, orjson.dumps(form.mappings(), option=orjson.OPT_INDENT_2) + b"\n")
    exported = 0
    for file in sorted(pages.glob("*.parquet")):
        folder = out / file.stem
        if not folder.exists():
            part = folder.with_name(f"{folder.name}{PART}{uuid4().hex}")
            part.mkdir()
            exported += _bodies(file, part, form)
            part.rename(folder)
        done(file.stat().st_size)
    return exported


def bodies(out: Path) -> list[Path]:
    """All bodies that are there, in the order of the captures."""
    return sorted(out.glob("*/*.ndjson.gz"))


def _bodies(file: Path, folder: Path, form: Format) -> int:
    count, number, body, size = 0, 0, list[bytes](), 0
    for lines in _documents(file, form):
        if body and size + len(lines) > _BODY_BYTES:
            _write_body(folder, number, body)
            number, body, size = number + 1, [], 0
        body.append(lines)
        size += len(lines)
        count += 1
    if body:
        _write_body(folder, number, body)
    return count


def _write_body(folder: Path, number: int, body: list[bytes]) -> None:
    # No time in the head: the same pages give the same bytes.
    (folder / f"{number:05}.ndjson.gz").write_bytes(gzip.compress(b"".join(body), _GZIP_LEVEL, mtime=0))


def _documents(file: Path, form: Format) -> Iterator[bytes]:
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=_COLUMNS):
        for row in batch.to_pylist():
            yield form.lines(document(row), int(row["fetch_time"].timestamp() * 1000))
