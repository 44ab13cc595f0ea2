"""Bodies of documents to an OpenSearch, by its bulk interface: each once, whatever it refuses for now.

A request may be answered 200 while some of its documents were refused: with 429 those that found its queue full, which
are sent again, alone; with 409 those of which it has a later capture, which is as it should be; with anything else
those that it will never take, which are counted and named. A journal names each body once nothing of it waits; one that
was sent and not named is sent again and changes nothing, since documents have their ids and versions.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from urllib.parse import unquote, urlsplit

import orjson

from crawlerproject.errors import OperatorError

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
        """With these mappings, unless it is there."""
        status, answer = self._asked("PUT", "", index, {"Content-Type": "application/json"})
        if status not in _DONE and not (status == _REFUSED and _EXISTS.encode() in answer):
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
        said = "it does not answer"
        for tries in range(_TRIES):
            try:
                self._connection.request(method, f"/{self._index}{path}", body, self._fields | fields)
                response: HTTPResponse = self._connection.getresponse()
                answer = response.read()
            except (OSError, HTTPException) as error:  # also a connection that the other side has closed meanwhile
                self._connection.close()
                said = f"it does not answer ({getattr(error, 'strerror', None) or type(error).__name__})"
            else:
                if response.status not in _BUSY:
                    return response.status, answer
                said = f"it answers {response.status}"
            self._wait(_pause(tries))
        raise OperatorError(f"{self.target} was asked {_TRIES} times and {said}; run the command again, it goes on.")

    def _unwilling(self, status: int, answer: bytes) -> OperatorError:
        said = answer[:300].decode("utf-8", "replace")
        return OperatorError(f"{self.target} answers {status}: {said}")


def _pause(tries: int) -> float:
    return min(_MOST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0**tries)
