"""What crawls are led to: sites on loopback that answer as a crawl's trouble says, and a name server."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import dns.flags
import dns.message
import dns.rrset

from tests.web.ports import free_port

SITES = 4
"""Loopback addresses at which they answer; of an ordinary crawl each has one site."""
HANG, CUT = 0, -1
"""Instead of a status: no answer until the trouble is over; the connection's end."""
_LINKS_AT_FIRST, _LINKS = 800, 3  # a crawl whose pages are refused goes on by the first page's
_TEXT_BYTES = 300  # a hundred words
_LOOK_SECONDS = 0.2


class Answers(NamedTuple):
    """The status of robots.txt and of pages, or one of the words above."""

    robots: int = 404
    page: int = 200


FINE = Answers()


class Web:
    """All sites of all crawls. The first word of a host's name is its crawl's."""

    def __init__(self) -> None:
        self.port = free_port()
        self.troubled: dict[str, Answers] = {}  # crawl -> how its sites answer now

    def of(self, host: str) -> Answers:
        """How a host answers now."""
        return self.troubled.get(host.partition("-")[0], FINE)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_GET(self) -> None:
        host = self.headers["Host"]
        answers = self.web.of(host)
        status = answers.robots if self.path == "/robots.txt" else answers.page
        while status == HANG:
            time.sleep(_LOOK_SECONDS)
            status = self.web.of(host).page
        if status == CUT:
            self.close_connection = True
            return
        links = _LINKS_AT_FIRST if self.path == "/" else _LINKS
        said = hashlib.shake_256(f"{host}{self.path}".encode()).hexdigest(_TEXT_BYTES)
        text = " ".join(said[at : at + 6] for at in range(0, len(said), 6))  # of its own: the same again were a trap
        body = text + "".join(f'<p><a href="/{time.monotonic_ns()}{n}">a page</a>' for n in range(links))
        with contextlib.suppress(ConnectionError):  # who waited has gone
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the request logs have it."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Crawls are killed in the middle of an answer."""


@contextlib.contextmanager
def serving() -> Iterator[Web]:
    """Every site answers."""
    web, servers = Web(), []
    handler = type("Handler", (_Handler,), {"web": web})
    for number in range(SITES):
        servers.append(_Server((address(number), web.port), handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
    yield web
    for server in servers:
        server.shutdown()


def address(number: int) -> str:
    """Of the site with that number, of whatever crawl."""
    return f"127.0.0.{number % SITES + 2}"


def names(crawl: str, sites: int) -> list[str]:
    """Of a crawl's sites, by number."""
    return [f"{crawl}-{number}.test" for number in range(sites)]


@contextlib.contextmanager
def name_server(web: Web) -> Iterator[str]:
    """A DNS server: ``address:port``. It is silent about every other name of a crawl in trouble."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        door.bind(("127.0.0.1", 0))
        threading.Thread(target=_tell, args=(door, web), daemon=True).start()
        yield "{}:{}".format(*door.getsockname())


def _tell(door: socket.socket, web: Web) -> None:
    with contextlib.suppress(OSError):  # the block is over
        while True:
            data, sender = door.recvfrom(4096)
            question = dns.message.from_wire(data)
            name = question.question[0].name.to_text(omit_final_dot=True)
            number = int(name.partition("-")[2].removesuffix(".test"))
            if number % 2 and name.partition("-")[0] in web.troubled:
                continue
            answer = dns.message.make_response(question)
            answer.flags |= dns.flags.RA
            answer.answer.append(dns.rrset.from_text(f"{name}.", 60, "IN", "A", address(number)))
            door.sendto(answer.to_wire(), sender)
