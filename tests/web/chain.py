"""A site at an address of its own, in a thread of the test: robots.txt, and pages each of which leads to the next."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.web.answers import page_html


class Chain(ThreadingHTTPServer):
    """``endless``: until it is not, each page leads to another; else the first alone does.

    ``contexts``: those of TLS, the one in use first; a client that refuses it has the next one used.
    """

    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], *, endless: bool, contexts: list[ssl.SSLContext] | None = None
    ) -> None:
        self.endless = endless
        self.contexts = contexts or []
        self.asked: list[str] = []
        super().__init__(address, _Visit)

    def get_request(self) -> tuple[Any, Any]:
        """A connection, whose handshake is its thread's."""
        connection, address = super().get_request()
        if not self.contexts:
            return connection, address
        secured = self.contexts[0].wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return secured, address

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """A client has refused the certificate, or has gone."""


class _Visit(BaseHTTPRequestHandler):
    server: Chain
    _asks = False

    def handle(self) -> None:
        """One connection; without a request its client did not like the certificate."""
        try:
            super().handle()
        finally:
            if not self._asks and len(self.server.contexts) > 1:
                self.server.contexts.pop(0)

    def do_GET(self) -> None:
        self._asks = True
        self.server.asked.append(self.path)
        if self.path == "/robots.txt":
            self._answer("text/plain", b"User-agent: *\nAllow: /\n")
            return
        number = int(self.path[1:] or 0)
        more = self.server.endless or number == 0
        title = f"page {number} of {self.server.server_port} {more}"
        self._answer("text/html", page_html(title, [f"/{number + 1}"] if more else []))

    def _answer(self, kind: str, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, format: str, *args: object) -> None:
        """The test's output is no place for it."""


@contextlib.contextmanager
def chain(address: tuple[str, int], *, endless: bool, contexts: list[ssl.SSLContext] | None = None) -> Iterator[Chain]:
    """The site for the length of a block."""
    site = Chain(address, endless=endless, contexts=contexts)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        site.server_close()
        thread.join()
