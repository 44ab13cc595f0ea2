"""The desk's door: HTTP for one operator, who has the token. GET shows; only POST, with a form of its own, orders.
The search page, which takes no orders, has the same one.

The token is the password of HTTP Basic (RFC 7617): a browser keeps it for this address and port alone, where a cookie
would go to every other server of the same machine, replayed pages included. Since a browser sends it along whatever
page made it ask, a POST needs more: a word that only the desk's own pages have, and the browser's word that one of them
sent it.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import logging
import os
import signal
import socket
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from types import FrameType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from crawlerproject.rules.url.urls import host_name

logger = logging.getLogger(__name__)

MOST_BODY_BYTES = 256 * 1024
"""Of a form (ours): some thousand seeds."""
MOST_CONNECTIONS = 32
"""At once (ours): a browser has six."""
_IDLE_SECONDS = 30.0
_MOST_FIELDS = 20
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORM = "application/x-www-form-urlencoded"
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # with none a browser sends no Origin with a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Asked(NamedTuple):
    """One request that was let in."""

    path: tuple[str, ...]  # its segments, decoded; the last is "" for a page
    query: Mapping[str, str]
    form: Mapping[str, str] | None = None  # of a POST


class Answer(NamedTuple):
    """What goes back: a body, or the first ``length`` bytes of an open ``file``, which is closed then."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = {}
    file: int | None = None  # its descriptor
    length: int = 0


def refusal(status: int, why: str) -> Answer:
    """One sentence."""
    return Answer(f"{why}\n".encode(), "text/plain; charset=utf-8", status)


class Door(ThreadingHTTPServer):
    """Listens; ``answer`` is asked from many threads."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: str, port: int, token: str, answer: Callable[[Asked], Answer]) -> None:
        """OSError when it cannot listen there. Without a token all who reach it are let in."""
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._token = token.encode()
        self.form_word = hmac.new(self._token, b"a form of the desk", hashlib.sha256).hexdigest()
        self.answer = answer
        self.beyond_loopback = not ip_address(address).is_loopback
        shown = f"[{address}]" if ":" in address else address
        self._names = None if self.beyond_loopback else _OWN_NAMES | {shown}
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((address, port), _Handler)
        self.home = f"http://{shown}:{self.server_address[1]}/"

    def knows(self, credentials: str | None) -> bool:
        """Whether an Authorization header has the token; the time it takes does not tell how much of it is right."""
        kind, _, packed = (credentials or "").partition(" ")
        try:
            given = b64decode(packed, validate=True) if kind.lower() == "basic" else b""
        except (binascii.Error, ValueError):
            given = b""
        return hmac.compare_digest(given.partition(b":")[2], self._token)

    def is_named(self, host: str | None) -> bool:
        """Whether a Host header may be ours; a foreign name that was pointed here (DNS rebinding) is not."""
        return self._names is None or host_name((host or "").lower()) in self._names

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hung up is no error; ours are answered with 500 before they come here."""


@contextmanager
def until_signal(door: Door) -> Iterator[None]:
    """What the block serves ends with a signal."""

    def end(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        door.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: Door

    def do_GET(self) -> None:
        refused = self._refused()
        self._send(refused or self._answer(Asked(*self._where())))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        refused = self._refused() or self._not_ours()
        body = b"" if refused else self.rfile.read(int(self.headers["Content-Length"]))
        form = {} if refused else _fields(body.decode("utf-8", "replace"))
        if refused is None and not hmac.compare_digest(form.get("word", "").encode(), self.server.form_word.encode()):
            refused = refusal(403, "Orders come from the desk's own pages: load the page again.")
        if refused is not None:
            self.close_connection = True  # a body that was not read would be taken for the next request
        self._send(refused or self._answer(Asked(*self._where(), form)))

    def _refused(self) -> Answer | None:
        if not self.server.is_named(self.headers.get("Host")):
            return refusal(403, "Ask for this machine by its own address.")
        if not self.server.knows(self.headers.get("Authorization")):
            return refusal(401, "The desk asks for its token: any user name, and the token as the password.")._replace(
                headers={"WWW-Authenticate": 'Basic realm="desk", charset="UTF-8"'}
            )
        return None

    def _not_ours(self) -> Answer | None:
        """Why a POST does not come from the desk's own forms, as far as its head shows."""
        head = self.headers
        origin = head.get("Origin")
        if head.get("Sec-Fetch-Site", "same-origin") != "same-origin" or (
            origin is not None and origin != f"http://{head.get('Host', '')}"
        ):
            return refusal(403, "Orders come from the desk's own pages.")
        if head.get_content_type() != _FORM or head.get("Transfer-Encoding"):
            return refusal(415, "An order is a form.")
        length = head.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            return refusal(411, "An order has a length.")
        return refusal(413, "That is too much for one order.") if int(length) > MOST_BODY_BYTES else None

    def _where(self) -> tuple[tuple[str, ...], dict[str, str]]:
        parts = urlsplit(self.path)
        return tuple(map(unquote, parts.path.lstrip("/").split("/"))), _fields(parts.query)

    def _answer(self, asked: Asked) -> Answer:
        try:
            return self.server.answer(asked)
        except Exception as error:
            logger.exception("The desk failed at /%s", "/".join(asked.path))
            return refusal(500, f"The desk failed ({type(error).__name__}); its terminal says more.")

    def _send(self, answer: Answer) -> None:
        length = answer.length if answer.file is not None else len(answer.body)
        try:
            self.send_response(answer.status)
            for name, value in {**_HEADERS, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", answer.kind)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self._give(answer)
        except OSError:  # the browser has hung up
            self.close_connection = True
        finally:
            if answer.file is not None:
                os.close(answer.file)

    def _give(self, answer: Answer) -> None:
        if answer.file is None:
            self.wfile.write(answer.body)
        elif answer.length:
            with os.fdopen(os.dup(answer.file), "rb") as file:
                sent = self.connection.sendfile(file, count=answer.length)
            self.close_connection |= sent < answer.length  # it has shrunk: what is missing must be seen

    def version_string(self) -> str:
        return "desk"

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a page that renews itself would fill the terminal."""


def _fields(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return {}
