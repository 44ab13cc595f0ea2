"""Gives a program on this machine the bytes of files that lie at another place: over HTTP, on loopback, by ranges.

Under an address that cannot be guessed, since every program on this machine may ask. Nothing but the files that were
named can be had.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from crawlerproject.errors import StorageError
from crawlerproject.stores.uploads.distant import DistantPath

_ADDRESS = "127.0.0.1"
_TOKEN_BYTES = 16
_RANGE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})?")
# Read at a time from the other side, and passed on.
_SPAN_BYTES = 8 << 20


class RangeServer(ThreadingHTTPServer):
    """The files, by name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((_ADDRESS, 0), _Handler)
        self._home = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}"
        self._files: dict[str, DistantPath] = {}
        self._sizes: dict[str, int] = {}

    def address(self, path: DistantPath) -> str:
        """Where a file can be had from now on."""
        self._files[path.name] = path
        return f"http://{_ADDRESS}:{self.server_port}{self._home}/{path.name}"

    def file(self, asked: str) -> DistantPath | None:
        """What stands under the path of an address."""
        home, _, name = asked.rpartition("/")
        return self._files.get(name) if secrets.compare_digest(home.encode(), self._home.encode()) else None

    def size(self, path: DistantPath) -> int:
        """Bytes of a file; what was closed does not change. Raises FileNotFoundError, TargetError."""
        if path.name not in self._sizes:
            self._sizes[path.name] = path.stat().st_size
        return self._sizes[path.name]


@contextmanager
def ranges_served() -> Iterator[RangeServer]:
    """A server, until the block ends."""
    server = RangeServer()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """One range, or all of a file."""
        files = self.server
        assert isinstance(files, RangeServer)
        path = files.file(self.path)
        asked = _RANGE.fullmatch(self.headers.get("Range", "bytes=0-"))
        if path is None or asked is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            size = files.size(path)
            start, end = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
            first = path.span(start, min(end, start + _SPAN_BYTES)) if start < end else b""
        except FileNotFoundError:
            self.send_error(HTTPStatus.NOT_FOUND)
        except (StorageError, OSError):
            self.send_error(HTTPStatus.BAD_GATEWAY)
        else:
            self._give(path, first, (start, end), size)

    def _give(self, path: DistantPath, first: bytes, span: tuple[int, int], size: int) -> None:
        start, end = span
        if start >= end:
            self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            while first:
                self.wfile.write(first)
                start += len(first)
                first = path.span(start, min(end, start + _SPAN_BYTES)) if start < end else b""
        except (StorageError, OSError):  # it has what came so far, and sees that it is not all
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the address is a secret."""
