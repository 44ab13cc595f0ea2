"""A real S3 server (moto's, of ``.venv-tools``) on a free port, and what stands between it and those who ask it.

The proxy passes on what it gets, but for what a test has it do to a request: refuse, cut, change or hold it.
"""

from __future__ import annotations

import atexit
import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from tests.web.ports import free_port
from tests.web.waiting import wait_until

PROJECT = Path(__file__).resolve().parents[3]
SERVER = PROJECT / ".venv-tools" / "bin" / "moto_server"
BUCKET = "archive"
SECRET = "hunter2hunter2"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}


class Asked(NamedTuple):
    """A request on its way to the server."""

    method: str
    path: str  # with its query
    body: bytes


class Answer(NamedTuple):
    """What comes back instead, or what the server said."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Cut(Exception):
    """The connection ends here."""


class Fault:
    """Does nothing; a test's own changes what passes. ``before`` may answer at once, or give another body to send."""

    def before(self, asked: Asked) -> Answer | Asked:
        """What is done with a request."""
        return asked

    def after(self, asked: Asked, answer: Answer) -> Answer:
        """What is done with its answer."""
        return answer


def error(status: int, code: str, message: str = "as the test says") -> Answer:
    """An error as S3 writes it."""
    text = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Answer(status, text.encode(), (("Content-Type", "application/xml"),))


class S3Server:
    """The server; ``files`` asks it past every proxy."""

    def __init__(self, port: int) -> None:
        import s3fs

        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.files: Any = s3fs.S3FileSystem(
            key=KEYS["AWS_ACCESS_KEY_ID"], secret=SECRET, endpoint_url=self.url, use_listings_cache=False,
            skip_instance_cache=True, client_kwargs={"region_name": "us-east-1"},
        )  # fmt: skip

    def under(self, prefix: str) -> dict[str, bytes]:
        """Every file below a prefix of the bucket, by its name there."""
        root = f"{BUCKET}/{prefix}/"
        return {name.removeprefix(root): self.files.cat_file(name) for name in self.files.find(root)}

    def unfinished(self, prefix: str) -> list[str]:
        """The files of which only parts lie there."""
        page = self.files.call_s3("list_multipart_uploads", Bucket=BUCKET, Prefix=prefix)
        return [upload["Key"] for upload in page.get("Uploads", ())]


# The server ends with the process that has started it, however that ends.
_PROGRAM = """
import os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()
from moto.server import main
main(["-p", sys.argv[1]])
"""


@cache
def s3_server() -> S3Server:
    """A server with one bucket, for all tests of this process: each has a prefix of its own."""
    port = free_port()
    environment = {**os.environ, "S3_UPLOAD_PART_MIN_SIZE": "1", "S3_IGNORE_SUBDOMAIN_BUCKETNAME": "1"}
    process = subprocess.Popen(
        [SERVER.with_name("python"), "-c", _PROGRAM, str(port)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(process.kill)
    wait_until(lambda: answers(port), "a server of S3", process=process)
    server = S3Server(port)
    server.files.call_s3("create_bucket", Bucket=BUCKET)
    return server


class Proxy:
    """Between those who ask and the server; ``fault`` may be changed at any time."""

    def __init__(self, behind: int, port: int) -> None:
        self.fault = Fault()
        self.asked: list[Asked] = []
        self.url = f"http://127.0.0.1:{port}"
        self.port = port
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, unquote(self.path), body)
                proxy.asked.append(asked)
                try:
                    answer = proxy.passed(behind, asked, self.path, dict(self.headers.items()))
                except Cut:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response_only(answer.status)
                for name, value in answer.headers:
                    self.send_header(name, value)
                if not any(name.lower() == "content-length" for name, _ in answer.headers):
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = _Quiet(("127.0.0.1", port), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()

    def passed(self, behind: int, asked: Asked, path: str, headers: dict[str, str]) -> Answer:
        """The answer to a request, as the fault has it; ``path`` is its own as it came, which may be signed."""
        wanted = self.fault.before(asked)
        if isinstance(wanted, Answer):
            return wanted
        connection = http.client.HTTPConnection("127.0.0.1", behind, timeout=60)
        try:
            kept = {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED}
            target = path if wanted.path == asked.path else quote(wanted.path, safe="/?&=%")
            connection.request(wanted.method, target, wanted.body or None, {**kept, "Connection": "close"})
            found = connection.getresponse()
            body = found.read()
            given = [(name, value) for name, value in found.getheaders() if name.lower() not in _HOP_BY_HOP]
            if asked.method == "HEAD":  # says how long the file is
                given += [("Content-Length", found.headers.get("Content-Length", "0"))]
            return self.fault.after(asked, Answer(found.status, body, tuple(given)))
        finally:
            connection.close()

    def close(self) -> None:
        """Nothing listens any more."""
        self._server.shutdown()
        self._server.server_close()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of those who went in the middle of an answer, as what is killed does."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


# A test that changes ETags is not to be found out by them.
_NOT_PASSED = ("content-length", "expect", "if-match")
_HOP_BY_HOP = ("connection", "content-length", "transfer-encoding")


@contextmanager
def proxied(behind: int) -> Iterator[Proxy]:
    """A proxy before the server of that port."""
    proxy = Proxy(behind, free_port())
    try:
        yield proxy
    finally:
        proxy.close()


def answers(port: int) -> bool:
    """Whether something listens there."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


class Once(Fault):
    """Does ``what`` to the first request that is ``chosen``, or to so many of them."""

    def __init__(
        self, chosen: Callable[[Asked], bool], what: Callable[[Asked], Answer | Asked], times: int = 1
    ) -> None:
        self._chosen, self._what = chosen, what
        self.left = times

    def before(self, asked: Asked) -> Answer | Asked:
        if self.left and self._chosen(asked):
            self.left -= 1
            return self._what(asked)
        return asked
