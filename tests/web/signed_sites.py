"""Sites that keep what they were asked, to the letter, and an operator's own: what verifiers judge signatures by.

``pages.test`` has a page, what it needs, one that a script builds, one that is busy at first and a redirect to
``other.test``. ``asks.test`` refuses what is not signed as it wants it, ``fresh.test`` what has not its nonce.
``excepted.test`` is for IDENTITY_EXCEPT, ``secure.test`` speaks TLS.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import NamedTuple

from crawlerproject.rules.identity.key_ring import DIRECTORY_PATH
from tests.commands.running import scrapy
from tests.fetch.servers import make_ca, server_tls

ADDRESS = "127.78.0.1"
SECURE = "secure.test"
SITES = ("pages.test", "other.test", "asks.test", "fresh.test", "excepted.test", SECURE)
WANTED = 'sig1=("@authority" "signature-agent");created;expires;tag="web-bot-auth"'
"""What older verifiers, which do not read single members of Signature-Agent, can ask for."""
NONCE = "a-nonce-for-once"

_Headers = tuple[tuple[str, str], ...]
_Answer = tuple[int, str, _Headers, bytes]


class Asked(NamedTuple):
    """One request as it came."""

    url: str
    method: str
    headers: list[tuple[str, str]]
    status: int

    @property
    def site(self) -> str:
        """The name that was asked."""
        return self.url.split("/")[2].partition(":")[0]

    @property
    def path(self) -> str:
        """What was asked for there."""
        return "/" + self.url.split("/", 3)[3]

    @property
    def text(self) -> str:
        """Its head."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f"{self.method} {self.path} HTTP/1.1\r\n{lines}\r\n"


class Served(ThreadingHTTPServer):
    """A server of ``answer``, which is given the request's URL, its headers and the server."""

    daemon_threads = True

    def __init__(self, address: str, answer: Callable[[str, dict[str, str], Served], _Answer]) -> None:
        self.asked: list[Asked] = []
        self.scheme = "http"
        self.answer = answer
        super().__init__((address, 0), _Handler)

    def server_bind(self) -> None:
        """Without asking the DNS for a name, as HTTPServer would."""
        TCPServer.server_bind(self)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that was closed has gone from its connections."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Served

    def do_GET(self) -> None:
        """Answer, and keep the request."""
        port = self.server.server_address[1]
        path = self.path.partition("://")[2].partition("/")[2] if "://" in self.path else self.path[1:]
        url = f"{self.server.scheme}://{self.headers['Host'].partition(':')[0]}:{port}/{path}"
        given = {name.lower(): value for name, value in self.headers.items()}
        status, mime, more, body = self.server.answer(url, given, self.server)
        self.server.asked.append(Asked(url, self.command, list(self.headers.items()), status))
        self.send_response(status)
        for name, value in (("Content-Type", mime), ("Content-Length", str(len(body))), *more):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The output is no place for it."""


class SignedSites(NamedTuple):
    """The sites and the operator's directory, at work."""

    folder: Path
    web: Served
    secure: Served  # what it is asked stands in ``web.asked``
    directory: Served
    ca_file: str

    def url(self, site: str, path: str = "/") -> str:
        """An address here."""
        server = self.secure if site == SECURE else self.web
        return f"{server.scheme}://{site}:{server.server_address[1]}{path}"

    @property
    def hosts(self) -> Path:
        """The hosts file."""
        return self.folder / "hosts"

    @property
    def key_file(self) -> Path:
        """Made by ``scrapy identity init``, with the directory that is served."""
        return self.folder / "identity.json"

    @property
    def seeds(self) -> str:
        """The front pages."""
        return ",".join(self.url(site) for site in SITES if site != "other.test")

    def settings(self) -> dict[str, str]:
        """Of a crawl that signs, and ends soon."""
        return {
            "IDENTITY_KEY_FILE": str(self.key_file),
            "IDENTITY_EXCEPT": "excepted.test",
            "FETCH_CA_FILE": self.ca_file,
            "FETCH_HOSTS_FILE": str(self.hosts),
            "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8"]',
            "CRAWLER_NAME": "TestBed",
            "CRAWLER_CONTACT": "bot@example.org",
            "NEVERCRAWL_FILE": "",
            **dict.fromkeys(("PACE_MIN_SECONDS", "PACE_MAX_SECONDS", "PACE_START_SECONDS"), "0.1"),
            "PACE_IP_SECONDS": "0",
            "PACE_PER_IP": "False",
            "BACKOFF_START_SECONDS": "1",
            "REQUISITES": "page",
            "RENDER": "never",
        }


def _page(*parts: str) -> bytes:
    words = " ".join(f"word{number}" for number in range(80))
    return f"<!doctype html><title>A page</title><p>{words}</p>{''.join(parts)}".encode()


def _link(url: str) -> str:
    return f'<p><a href="{url}">{url}</a></p>'


_SCRIPT = b"""fetch('/data.json').then(got => got.json()).then(data => {
  for (const word of data.words) document.body.append(Object.assign(document.createElement('p'), {textContent: word}))
})"""
_PARTS: dict[str, _Answer] = {
    "/image.png": (200, "image/png", (), b"\x89PNG\r\n\x1a\n" + b"\0" * 20),
    "/shell": (200, "text/html", (), b"<!doctype html><title>An app</title><body><script src='/app.js'></script>"),
    "/app.js": (200, "text/javascript", (), _SCRIPT),
    "/data.json": (200, "application/json", (), b'{"words": ["%b"]}' % b" ".join(b"w%d" % n for n in range(200))),
}


def _answer(url: str, headers: dict[str, str], web: Served) -> _Answer:
    site, path = url.split("/")[2].partition(":")[0], "/" + url.split("/", 3)[3]
    signed = headers.get("signature-input", "")
    if site == "asks.test" and '"signature-agent")' not in signed:
        return 403, "text/plain", (("Accept-Signature", WANTED),), b"signed, please"
    if site == "fresh.test" and path == "/1" and f'nonce="{NONCE}"' not in signed:
        wanted = f'sig1=("@authority");nonce="{NONCE}";tag="web-bot-auth"'
        return 429, "text/plain", (("Accept-Signature", wanted), ("Retry-After", "1")), b"fresh, please"
    if path == "/robots.txt":
        return 200, "text/plain", (), b"User-agent: *\nAllow: /\n"
    if site == "pages.test":
        if path == "/busy" and sum(asked.url == url for asked in web.asked) % 2 == 0:
            return 503, "text/plain", (("Retry-After", "1"),), b""
        if path == "/moved":
            return 301, "text/html", (("Location", url.replace("pages.test", "other.test").replace("moved", "")),), b""
        if path in _PARTS:
            return _PARTS[path]
        links = ("/1", "/busy", "/moved", "/shell") if path == "/" else ()
        return 200, "text/html", (), _page("<img src='/image.png'>", *map(_link, links))
    return 200, "text/html", (), _page(*map(_link, ("/1", "/2?of=it") if path == "/" else ()))


@contextmanager
def _serving(server: Served) -> Iterator[Served]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def published(folder: Path) -> Callable[[str, dict[str, str], Served], _Answer]:
    """Answers with what ``scrapy identity`` has written there, as a host of static files does."""

    def answer(url: str, headers: dict[str, str], server: Served) -> _Answer:
        path, lines = "/" + url.split("/", 3)[3], (folder / "_headers").read_text().splitlines()
        if path != DIRECTORY_PATH or path not in lines:
            return 404, "text/plain", (), b""
        fields = dict(line.strip().split(": ", 1) for line in lines[lines.index(path) + 1 :] if line.startswith(" "))
        mime = fields.pop("Content-Type")
        return 200, mime, tuple(fields.items()), (folder / path[1:]).read_bytes()

    return answer


@contextmanager
def signed_sites(folder: Path) -> Iterator[SignedSites]:
    """The sites, and a key whose directory is at https://localhost:PORT."""
    folder.mkdir(parents=True, exist_ok=True)
    ca = make_ca(folder)
    (folder / "hosts").write_text("".join(f"{ADDRESS} {site}\n" for site in SITES))
    directory = Served("127.0.0.1", published(folder / "public"))
    secure = Served(ADDRESS, _answer)
    secure.scheme = "https"
    for server, name in ((directory, "localhost"), (secure, SECURE)):
        context: ssl.SSLContext = server_tls(folder, ca, name)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    with _serving(Served(ADDRESS, _answer)) as web, _serving(secure), _serving(directory):
        secure.asked = web.asked
        sites = SignedSites(folder, web, secure, directory, ca[2])
        origin = f"https://localhost:{directory.server_address[1]}"
        made = scrapy("identity", "init", origin, str(folder / "public"), "-s", f"IDENTITY_KEY_FILE={sites.key_file}")
        assert made.returncode == 0, made.stderr
        yield sites
