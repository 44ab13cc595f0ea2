"""Processed pages as documents for the search engines of others: NDJSON as their bulk interfaces take it.

A Parquet file of pages becomes a folder of gzip-compressed bodies, written beside and renamed: it is whole or not
there. Each body is one request: OpenSearch and Elasticsearch take 100 MB and do best with 5 to 15, Quickwit takes
10 MiB. Beside them lies what makes the index.

``BulkSender`` sends them to an OpenSearch. A request may be answered 200 while some of its documents were refused: with
429 those that found its queue full, which are sent again, alone; with 409 those of which it has a later capture, which
is as it should be; with anything else those that it will never take, which are counted and named. A journal names each
body once nothing of it waits; one that was sent and not named is sent again and changes nothing, since documents have
their ids and versions.
"""

from __future__ import annotations

import gzip
import shutil
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha1
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import orjson
import pyarrow.parquet as pq
from isal import igzip_lib

from crawlerproject.batch.file_workers import Done, each_answer
from crawlerproject.batch.process_warcs import PART
from crawlerproject.errors import OperatorError
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.atomic_files import write_whole

_BATCH_ROWS = 200
_BODY_BYTES = 8_000_000
"""Before compression; a document that is longer has a body of its own."""
TEXT_CHARACTERS = 1_000_000
"""What OpenSearch marks matches in by default (index.highlight.max_analyzed_offset); JSON of it stays below 10 MiB."""
_LEVEL = 3
"""isal's: 11 % more bytes than zlib's 6 on bodies of sentences, in a fourteenth of the time (measured)."""

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
    "consent": ("keyword", "raw"),
    "warc_filename": ("keyword", "raw"),
    "warc_record_offset": ("long", "u64"),
}
_COLUMNS = [name for name in FIELDS if name != "host"]
_SEARCHED = ["title", "text"]
# Lucene refuses a word of more than 32,766 bytes; a character has four at most.
_KEYWORD_CHARACTERS = 8_191
OPENSEARCH, QUICKWIT = "opensearch", "quickwit"
_TIMEOUT_SECONDS = 120.0  # of a bulk request: OpenSearch itself gives up on one after 60
_FIRST_WAIT_SECONDS, _MOST_WAIT_SECONDS = 1.0, 60.0
# Doubling from a second to a minute and then a minute each: ten minutes in all, longer than a node takes to come back.
_TRIES = 15
_BUSY = frozenset({429, 502, 503, 504})
_OLDER = 409
_DONE = frozenset({200, 201})
_REFUSED = 400
_EXISTS = "resource_already_exists_exception"
_TYPE = "application/x-ndjson"
Wait = Callable[[float], None]
"""Seconds until something is tried again."""


def document(row: dict[str, Any]) -> dict[str, Any]:
    """A page's, of its row; what is not known is left out. The time is RFC 3339 with milliseconds."""
    made = {name: row[name] for name in _COLUMNS if row.get(name) is not None}
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


FORMATS = {
    OPENSEARCH: Format(_opensearch_lines, "index.json", _opensearch_index),
    QUICKWIT: Format(_quickwit_lines, "index-config.json", _quickwit_index),
}


def export(pages: Path, out: Path, name: str, done: Done, workers: int = 1) -> int:
    """Every file of ``pages`` whose folder in ``out`` is not there yet, in the format of that name; how many documents.

    What a killed run left half done is removed first. ``done`` takes bytes read. Raises StorageError.
    """
    form = FORMATS[name]
    out.mkdir(parents=True, exist_ok=True)
    for part in out.glob(f"*{PART}*"):
        shutil.rmtree(part)
    write_whole(out / form.index_file, orjson.dumps(form.mappings(), option=orjson.OPT_INDENT_2) + b"\n")
    files = sorted(pages.glob("*.parquet"))
    return sum(each_answer([(file, partial(_exported, file, out, name)) for file in files], workers, done))


def _exported(file: Path, out: Path, name: str, done: Done) -> int:
    folder, count = out / file.stem, 0
    if not folder.exists():
        part = folder.with_name(f"{folder.name}{PART}{uuid4().hex}")
        part.mkdir()
        count = _bodies(file, part, FORMATS[name])
        part.rename(folder)
    done(file.stat().st_size)
    return count


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
    packed = igzip_lib.compress(b"".join(body), _LEVEL, igzip_lib.COMP_GZIP)
    (folder / f"{number:05}.ndjson.gz").write_bytes(packed)


def _documents(file: Path, form: Format) -> Iterator[bytes]:
    for batch in pq.ParquetFile(file).iter_batches(_BATCH_ROWS, columns=_COLUMNS):
        for row in batch.to_pylist():
            yield form.lines(document(row), int(row["fetch_time"].timestamp() * 1000))


@dataclass
class Sent:
    """What became of documents."""

    taken: int = 0
    older: int = 0  # of which the other side has a later capture
    refused: Counter[str] = field(default_factory=Counter)  # by type of error
    first: dict[str, str] = field(default_factory=dict)  # of each type: its reason in full


class BulkSender:
    """Sends to one index, over one connection. ``url``: ``http://[user:password@]host:9200/INDEX``.

    Raises OperatorError: no sense in the address, no answer within all tries, or an answer that tries cannot mend.
    """

    def __init__(self, url: str, wait: Wait) -> None:
        parts = urlsplit(url)
        self._index = parts.path.strip("/")
        if parts.scheme not in ("http", "https") or not parts.hostname or not self._index or "/" in self._index:
            raise OperatorError(f"{url} is no index; give it as http://host:9200/pages.")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_TIMEOUT_SECONDS)
        self.target = f"{parts.hostname}:{parts.port or self._connection.default_port}/{self._index}"
        self._wait = wait
        self._fields = {"Content-Type": _TYPE}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._fields["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        self.sent = Sent()

    def make_index(self, index: bytes) -> None:
        """With these mappings; to one that is there the fields are added that an earlier version did not have."""
        form = {"Content-Type": "application/json"}
        status, answer = self._asked("PUT", "", index, form)
        if status == _REFUSED and _EXISTS.encode() in answer:
            status, answer = self._asked("PUT", "/_mapping", orjson.dumps(orjson.loads(index)["mappings"]), form)
        if status not in _DONE:
            raise self._unwilling(status, answer)

    def send_all(self, bodies: Iterable[Path], journal: Path, done: Callable[[int], None]) -> None:
        """Each body that the journal does not name. ``done`` takes the bytes of each."""
        named = set(journal.read_text().splitlines()) if journal.exists() else set()
        with journal.open("a") as lines:
            for body in bodies:
                name = f"{body.parent.name}/{body.name}"
                if name not in named:
                    self.send(gzip.decompress(body.read_bytes()))
                    lines.write(f"{name}\n")
                    lines.flush()
                done(body.stat().st_size)

    def send(self, body: bytes) -> None:
        """All documents of a body, until none of them waits."""
        lines = body.splitlines(keepends=True)
        waiting = [action + document for action, document in zip(lines[::2], lines[1::2], strict=True)]
        tries = 0
        while waiting:
            if tries == _TRIES:
                raise OperatorError(f"{self.target} has no room for more; run the command again later, it goes on.")
            packed = gzip.compress(b"".join(waiting), 1)
            status, answer = self._asked("POST", "/_bulk", packed, {"Content-Encoding": "gzip"})
            if status not in _DONE:
                raise self._unwilling(status, answer)
            left = self._left(waiting, answer)
            tries = tries + 1 if len(left) == len(waiting) else 1
            if left:
                self._wait(_pause(tries - 1))
            waiting = left

    def close(self) -> None:
        """The connection."""
        self._connection.close()

    def _left(self, documents: list[bytes], answer: bytes) -> list[bytes]:
        """Those to be sent again; the others are counted."""
        items = orjson.loads(answer)["items"]
        left = []
        for document, item in zip(documents, items, strict=True):
            (result,) = item.values()
            status = result["status"]
            if status in _DONE:
                self.sent.taken += 1
            elif status == _OLDER:
                self.sent.older += 1
            elif status in _BUSY:
                left.append(document)
            else:
                kind = str(result["error"]["type"])
                self.sent.refused[kind] += 1
                self.sent.first.setdefault(kind, str(result["error"].get("reason", "")))
        return left

    def _asked(self, method: str, path: str, body: bytes, fields: dict[str, str]) -> tuple[int, bytes]:
        """Status and body of an answer that is not "later"."""
        problem = "it does not answer"
        for tries in range(_TRIES):
            try:
                self._connection.request(method, f"/{self._index}{path}", body, self._fields | fields)
                response: HTTPResponse = self._connection.getresponse()
                answer = response.read()
            except (OSError, HTTPException) as error:  # also a connection that the other side has closed meanwhile
                self._connection.close()
                problem = f"it does not answer ({getattr(error, 'strerror', None) or type(error).__name__})"
            else:
                if response.status not in _BUSY:
                    return response.status, answer
                problem = f"it answers {response.status}"
            self._wait(_pause(tries))
        raise OperatorError(f"{self.target} was asked {_TRIES} times and {problem}; run the command again, it goes on.")

    def _unwilling(self, status: int, answer: bytes) -> OperatorError:
        body = answer[:300].decode("utf-8", "replace")
        return OperatorError(f"{self.target} answers {status}: {body}")


def _pause(tries: int) -> float:
    return min(_MOST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**tries)
