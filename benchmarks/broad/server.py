"""``python -m benchmarks.broad.server FOLDER HOSTS LINKS FOREIGN NEW``: a web of pages that all differ, without an end.

Each host has an address of its own (127.1.0.0 and on), robots.txt, and pages of 8 to 16 KB made of sentences of the
Debian handbook, chosen by their address: the same address has the same page at each start. LINKS a page, of which
FOREIGN lead to other hosts' front pages and the share NEW of the others to pages that no other page names. One page in
ten is another one with three sentences changed. It writes ``hosts``, ``seeds.txt`` and at the end ``server.jsonl``.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import signal
import sys
import time
from html import escape
from pathlib import Path
from typing import NamedTuple, cast
from zlib import crc32

import uvloop

_MANUAL = Path("/usr/share/doc/debian-handbook/html/en-US")
_SENTENCE = re.compile(r"[A-Z][^.<>]{60,400}\.")
_TAGS = re.compile(r"<[^>]*>")
_LEAST_BYTES, _MOST_BYTES = 8_192, 16_384
_SIMILAR = 10  # one page in so many
_CHANGED = 3  # of its sentences
_ROBOTS = b"User-agent: *\nDisallow: /private/\n"


class Shape(NamedTuple):
    """Of the web."""

    hosts: int
    links: int  # a page
    foreign: int  # of these
    new: float  # share of the others


def address(number: int) -> str:
    """Of a host."""
    return f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def name(number: int) -> str:
    """Of a host: each is a registered domain of its own."""
    return f"site{number}.test"


def sentences() -> list[str]:
    """Of the manual, each once."""
    found: dict[str, None] = {}
    for path in sorted(_MANUAL.glob("*.html")):
        text = " ".join(_TAGS.sub(" ", path.read_text(errors="replace")).split())
        found.update(dict.fromkeys(_SENTENCE.findall(text)))
    return [escape(sentence) for sentence in found]


class Pages:
    """Makes each page as it is asked for."""

    def __init__(self, shape: Shape, port: int) -> None:
        self._shape, self._port = shape, port
        self._sentences = sentences()
        self._own = shape.links - shape.foreign

    def page(self, host: str, path: str) -> bytes:
        """Its bytes; ``path`` is ``/`` or ``/N``."""
        number = int(path[1:] or 0)
        chance = random.Random(crc32(f"{host}{path}".encode()))
        like = random.Random(crc32(f"{host}/like".encode())) if number and number % _SIMILAR == 0 else chance
        wanted = like.randrange(_LEAST_BYTES, _MOST_BYTES) - 100 * self._shape.links
        text, size = list[str](), 0
        while size < wanted:
            text.append(like.choice(self._sentences))
            size += len(text[-1])
        for _ in range(_CHANGED if like is not chance else 0):
            text[chance.randrange(len(text))] = chance.choice(self._sentences)
        links = [f"/{self._linked(number, place, chance)}" for place in range(self._own)]
        others = (chance.randrange(self._shape.hosts) for _ in range(self._shape.foreign))
        links += [f"http://{name(other)}:{self._port}/" for other in others]
        step, anchors = max(1, len(text) // len(links)), [sentence[:40] for sentence in text]
        title = f"{host} {number}: {anchors[0]}"
        for place, link in enumerate(links):
            anchor = anchors[place % len(anchors)]
            text.insert(min(len(text), place * (step + 1)), f'</p><p><a href="{link}">{anchor}</a>')
        return f"<!DOCTYPE html><html><head><title>{title}</title></head><body><p>{' '.join(text)}</p>".encode()

    def _linked(self, number: int, place: int, chance: random.Random) -> int:
        if chance.random() < self._shape.new:
            return number * self._own + place + 1
        return chance.randrange(number + 1)


class Connection(asyncio.Protocol):
    """Requests one after the other."""

    def __init__(self, pages: Pages, visits: list[tuple[float, float, str, str, str]]) -> None:
        self._pages, self._visits = pages, visits
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is registered as none
        self._ip = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        """Answer each whole request."""
        self._received += data
        while b"\r\n\r\n" in self._received:
            start = time.time()
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            path = first.split(" ")[1]
            asked = next(line for line in lines if line.lower().startswith("host:"))
            host = asked.partition(":")[2].strip().partition(":")[0]
            if path == "/robots.txt":
                kind, body = "text/plain", _ROBOTS
            else:
                kind, body = "text/html; charset=utf-8", self._pages.page(host, path)
            fields = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            self._transport.write(fields.encode() + body)
            self._visits.append((start, time.time(), host, self._ip, path))


async def _serve(folder: Path, shape: Shape) -> None:
    visits: list[tuple[float, float, str, str, str]] = []
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    pages: list[Pages] = []
    server = await loop.create_server(lambda: Connection(pages[0], visits), "0.0.0.0", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    pages.append(Pages(shape, port))
    (folder / "hosts").write_text("".join(f"{address(n)}\t{name(n)}\n" for n in range(shape.hosts)))
    (folder / "seeds.txt").write_text("".join(f"http://{name(n)}:{port}/\n" for n in range(shape.hosts)))
    (folder / "ready").touch()
    await ended.wait()
    with (folder / "server.jsonl").open("w") as log:
        for start, end, host, ip, path in visits:
            row = {"start": start, "end": end, "host": host, "ip": ip, "path": path, "status": 200}
            log.write(f"{json.dumps(row)}\n")


if __name__ == "__main__":
    _folder, _hosts, _links, _foreign, _new = sys.argv[1:]
    uvloop.run(_serve(Path(_folder), Shape(int(_hosts), int(_links), int(_foreign), float(_new))))
