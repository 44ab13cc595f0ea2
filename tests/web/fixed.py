"""A few sites at an address and port of their own, always the same: crawl folders that are kept name them.

Every page is a page of words; the front page of each site leads to the others, by a chain of pages, a redirect, a page
that is not there and two with the same text.
"""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer

ADDRESS = "127.77.0.1"
PORT = 8747  # below the range from which systems give ports away
SITES = ("ant.test", "bee.test", "cat.test")
PAGES = 8  # in the chain of each site
HALF = 4  # pages of each chain that are answered before the crawl is stopped
#: All sites have one address: two workers ask them at the same time.
OF_FLEETS = {"PACE_PER_IP": "False"}
_PATIENCE_SECONDS = 120.0


def url(site: str, path: str = "/") -> str:
    """An address here."""
    return f"http://{site}:{PORT}{path}"


def archived_once() -> set[str]:
    """What a whole crawl has captures of, robots.txt apart."""
    paths = ["/", *(f"/{number}" for number in range(1, PAGES)), "/old", "/gone", "/same"]
    return {url(site, path) for site in SITES for path in paths}


class FixedWeb(ThreadingHTTPServer):
    """The sites. ``open_to``: the first number of a chain whose answer waits."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        """The hosts file is made in ``folder``. OSError while another process has the address."""
        self.open_to = PAGES
        self.asked: list[str] = []
        self.hosts = folder / "hosts"
        self.hosts.write_text("".join(f"{ADDRESS} {site}\n" for site in SITES))
        super().__init__((ADDRESS, PORT), _Handler)

    def server_bind(self) -> None:
        """Without asking the DNS for a name, as HTTPServer would."""
        TCPServer.server_bind(self)

    def handle_error(self, request: object, client_address: object) -> None:
        """A crawl that was killed has gone from its connections."""


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: FixedWeb

    def do_GET(self) -> None:
        site, path = self.headers["Host"].partition(":")[0], self.path
        status, mime, headers, body = _answer(site, path)
        while path[1:].isdigit() and int(path[1:]) >= self.server.open_to:
            time.sleep(0.02)
        self.server.asked.append(url(site, path))
        self.send_response(status)
        for name, value in (("Content-Type", mime), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """The test's output is no place for it."""


def _answer(site: str, path: str) -> tuple[int, str, list[tuple[str, str]], bytes]:
    """Status, type, more headers, body."""
    if path == "/robots.txt":
        return 200, "text/plain", [], b"User-agent: *\nDisallow: /private\n"
    if path == "/old":
        return 301, "text/html", [("Location", "/1")], b""
    number = int(path[1:] or 0) if path[1:].isdigit() or path == "/" else -1
    if path == "/same":
        number = 1
    if not 0 <= number < PAGES:
        return 404, "text/html", [], b"<h1>Not found</h1>"
    links = [f"/{number + 1}"] if number + 1 < PAGES else []
    if number == 0:
        links += ["/old", "/gone", "/same", "/private/1", *(url(other) for other in SITES)]
    words = " ".join(f"{site.partition('.')[0]}{number}x{place}" for place in range(60))
    listed = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links if path != "/same")
    return 200, "text/html", [("ETag", f'"{number}"')], f"<title>{site}</title><p>{words}</p>{listed}".encode()


@contextmanager
def fixed_web(folder: Path) -> Iterator[FixedWeb]:
    """The sites, once no other process has their address."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            web = FixedWeb(folder)
            break
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(0.1)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        web.open_to = PAGES
        web.shutdown()
        web.server_close()
        thread.join()


def settings(web: FixedWeb, crawl: Path, **more: str) -> list[str]:
    """Options of a crawl of it that ends soon, as every version since 1.0 knows them; and ``more``."""
    given = {
        "CRAWL_DIR": str(crawl), "FETCH_HOSTS_FILE": str(web.hosts), "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "CRAWLER_NAME": "TestBed", "CRAWLER_INFO_URL": "https://example.org/bot", "CRAWLER_CONTACT": "bot@example.org",
        "NEVERCRAWL_FILE": "", "PACE_PRESET": "mirror", "PACE_MIN_SECONDS": "0.05", "PACE_MAX_SECONDS": "0.05",
        "PACE_START_SECONDS": "0.05", "PACE_IP_SECONDS": "0", "RENDER": "never", "WARC_MAX_BYTES": "6000",
        "FETCH_TIMEOUT_SECONDS": "120", "COMMIT_SECONDS": "0.3",
        "LOG_KEEP_DAYS": "36500", **more,
    }  # fmt: skip
    return [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
