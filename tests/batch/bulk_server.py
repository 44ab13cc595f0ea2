"""The bulk interface of OpenSearch over real HTTP, as its reference has it, and stricter: what it may refuse it does.

https://docs.opensearch.org/latest/api-reference/document-apis/bulk/: pairs of lines, an action and its document, every
one ended by a newline; ids of 512 bytes at most; results in the order of the actions, each with its own status.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_MAX_BODY_BYTES = 10 * 1024 * 1024
_ACTION = {"_id", "version", "version_type"}
_KINDS: dict[str, Callable[[Any], bool]] = {
    "keyword": lambda value: isinstance(value, str),
    "text": lambda value: isinstance(value, str),
    "date": lambda value: bool(datetime.fromisoformat(value).tzinfo),
    "short": lambda value: type(value) is int and abs(value) < 2**15,
    "integer": lambda value: type(value) is int and abs(value) < 2**31,
    "long": lambda value: type(value) is int and abs(value) < 2**63,
}
BUSY = {"type": "rejected_execution_exception", "reason": "rejected execution of coordinating operation"}


class Index:
    """What was taken, and what comes in the way. ``whole`` and ``one`` answer for a request, or for a document."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[int, dict[str, Any]]] = {}
        self.kinds: dict[str, str] = {}
        self.requests: list[tuple[str, int]] = []  # method and path, and how it was answered
        self.whole: Callable[[], int] = lambda: 0  # a status instead of an answer; negative: the connection is cut
        self.one: Callable[[str], int] = lambda url: 0
        self.password = ""

    def create(self, body: bytes) -> tuple[int, Any]:
        """PUT /INDEX, or /INDEX/_mapping with fields that may be there."""
        if self.kinds and "mappings" in json.loads(body):
            return 400, {"error": {"type": "resource_already_exists_exception"}, "status": 400}
        given = json.loads(body)
        mappings = given.get("mappings", given)
        assert mappings.keys() == {"dynamic", "properties"}
        self.kinds = {name: kind["type"] for name, kind in mappings["properties"].items()}
        return 200, {"acknowledged": True}

    def bulk(self, body: bytes) -> tuple[int, Any]:
        """POST /INDEX/_bulk."""
        if len(body) > _MAX_BODY_BYTES:
            return 413, {}
        if not body.endswith(b"\n"):
            return 400, {"error": {"reason": "The bulk request must be terminated by a newline [\\n]"}}
        lines = body[:-1].split(b"\n")
        if len(lines) % 2:
            return 400, {"error": {"reason": "Malformed action/metadata line"}}
        items = []
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            ((name, facts),) = json.loads(action).items()
            if name != "index" or facts.keys() != _ACTION or len(facts["_id"].encode()) > 512:
                return 400, {"error": {"reason": f"Malformed action/metadata line {action!r}"}}
            items.append({"index": {"_id": facts["_id"], **self._take(facts, json.loads(document))}})
        return 200, {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}

    def _take(self, facts: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
        if status := self.one(document["url"]):
            return {"status": status, "error": BUSY if status == 429 else {"type": "mapper_parsing_exception"}}
        for name, value in document.items():
            if not _KINDS[self.kinds[name]](value):
                return {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": name}}
        assert facts["version_type"] == "external_gte"
        held = self.documents.get(facts["_id"], (0, {}))[0]
        if facts["version"] < held:
            return {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "older"}}
        self.documents[facts["_id"]] = facts["version"], document
        return {"status": 200 if held else 201}


@contextmanager
def served(index: Index) -> Iterator[str]:
    """The index's address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            self._answer(index.create, "application/json")

        def do_POST(self) -> None:
            self._answer(index.bulk, "application/x-ndjson")

        def _answer(self, made: Callable[[bytes], tuple[int, Any]], kind: str) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            status: int = index.whole()
            if index.password and index.password not in str(self.headers["Authorization"]):
                status, answer = 401, {"error": "Unauthorized"}
            elif not status:
                assert self.headers["Content-Type"] == kind
                assert self.path in (["/pages", "/pages/_mapping"] if self.command == "PUT" else ["/pages/_bulk"])
                status, answer = made(body)
            else:
                answer = {}
            index.requests.append((f"{self.command} {self.path}", status))
            if status < 0:
                self.close_connection = True
                return
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/pages"
        finally:
            server.shutdown()
            thread.join()
