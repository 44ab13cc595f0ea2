"""Hostile servers beside an innocent one, in a thread of the test, and a real crawl among them.

Every site has a name and a loopback address of its own; all listen on one port. What the tests judge by is the
servers' own log: when each request came and when its answer had left.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tests.hostile.ledger import pays
from tests.web.ports import free_port
from tests.web.running import HASTE, PROJECT, Spent, crawl_command, finish, one_pace, start
from tests.web.threads import listening
from tests.web.waiting import busyness, wait_until

#: The pause that the crawls here promise to every host, unless a test says otherwise.
PACE_SECONDS = 0.1
#: By how much the innocent host's longest gap may exceed its pace (ours).
MOST_LATE_SECONDS = 2.0
SETTINGS = {
    **HASTE,
    "PACE_PRESET": "mirror",
    **one_pace(PACE_SECONDS),
    "PACE_IP_SECONDS": "0",
    "NEVERCRAWL_FILE": "",
}
_HEAD_SECONDS = 30.0
_TLS_HANDSHAKE = b"\x16"  # RFC 8446 5.1
_INNOCENT = "innocent.test"


def most_late_seconds() -> float:
    """What a crawl that is held up by nothing may be late by.

    The attacks that this tells apart held a crawl up for ten seconds to many minutes.
    """
    return MOST_LATE_SECONDS * busyness()


class Asked(NamedTuple):
    """One request as a site gets it."""

    host: str  # name, without port
    path: str  # with its query
    head: bytes  # request line and headers
    body: bytes
    ip: str  # the local address that was asked


class Visit(NamedTuple):
    """One request as the server saw it; times in epoch seconds."""

    start: float
    end: float  # after the last byte was handed to the network, or the connection broke
    host: str
    ip: str
    path: str
    method: str
    port: int


Talk = Callable[[Asked, asyncio.StreamWriter], Awaitable[float | None]]
"""Writes one answer; it may take its time, close the writer, or send what it likes. Returns when it was handed over."""
Make = Callable[[Asked], bytes | None]
"""Makes one answer's bytes; None is a 404."""


def answer(body: bytes | str = b"", status: str = "200 OK", mime: str = "text/html", **headers: str) -> bytes:
    """A whole HTTP/1.1 answer; ``headers`` with "_" for "-"."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {mime}", f"Content-Length: {len(content)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def page(*links: str, text: str = "") -> bytes:
    """A page of links and words."""
    listed = "".join(f'<p><a href="{link}">{link}</a></p>' for link in links)
    return answer(f"<!doctype html><title>{text[:60]}</title><body><p>{text}</p>{listed}")


NOT_FOUND = answer("<h1>Not found</h1>", "404 Not Found")
NO_RULES = answer("", mime="text/plain")


@dataclass(slots=True)
class Crawled:
    """A crawl that has ended."""

    folder: Path
    log: str
    spent: Spent


@dataclass(slots=True)
class Arena:
    """The sites, what they were asked, and crawls of them."""

    folder: Path
    port: int
    visits: list[Visit] = field(default_factory=list)
    _talks: dict[str, Talk] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)

    # --- sites ----------------------------------------------------------------------------------

    def site(self, name: str, make: Make, address: str = "") -> str:
        """A site whose answers ``make`` makes; its front page's URL. Without ``/robots.txt`` of its own: no rules."""

        async def talk(asked: Asked, writer: asyncio.StreamWriter) -> float:
            made = make(asked)
            if made is None:
                made = NO_RULES if asked.path == "/robots.txt" else NOT_FOUND
            handed_over = time.time()  # before, not after: a busy machine may let us wait in between
            writer.write(made)
            await writer.drain()
            return handed_over

        return self.raw_site(name, talk, address)

    def raw_site(self, name: str, talk: Talk, address: str = "") -> str:
        """A site that writes its bytes itself (the robots.txt as well); its front page's URL.

        One named ``*.domain`` is every host of the domain that is no other site; it is for the test's DNS to find.
        """
        self._talks[name] = talk
        self._addresses[name] = address or f"127.66.{len(self._addresses) // 250}.{len(self._addresses) % 250 + 1}"
        lines = [f"{address} {name}" for name, address in self._addresses.items() if name[0] != "*"]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        return self.url(name)

    def innocent(self, pages: int = 1_000_000, name: str = _INNOCENT, address: str = "") -> str:
        """A site of ordinary pages, each with a text of its own and links to the next five; its front page's URL."""

        def make(asked: Asked) -> bytes | None:
            number = asked.path.removeprefix("/page/")
            at = 0 if asked.path == "/" else int(number) if number.isdigit() else pages
            if at >= pages:
                return None
            said = "".join("abcdefghij"[int(digit)] for digit in str(at))  # a text that differs in digits is no other
            text = " ".join(f"{said}x{place}" for place in range(60))
            return page(*(f"/page/{near}" for near in range(at + 1, min(at + 6, pages))), text=text)

        return self.site(name, make, address)

    def url(self, name: str, path: str = "/") -> str:
        """A site's URL."""
        return f"http://{name}:{self.port}{path}"

    # --- the crawl ------------------------------------------------------------------------------

    def crawl(
        self,
        *seeds: str,
        settings: Mapping[str, str] | None = None,
        until: Callable[[], object] | None = None,
        name: str = "crawl",
        scope: str = "any",
        seconds: float = 60.0,
        **environs: str,
    ) -> Crawled:
        """Crawl to the end, or ``until`` something is seen; the same ``name`` again continues.

        ``environs`` are variables of its environment.

        Fails when it takes longer than ``seconds``, or when the exit status is not 0.
        """
        folder, log = self.folder / name, self.folder / f"{name}.log"
        listed = self.folder / f"{name}.seeds.txt"
        listed.write_text("\n".join(seeds) + "\n")
        command = crawl_command(listed, folder, self.folder / "hosts", {**SETTINGS, **(settings or {})}, scope)
        began = time.monotonic()
        with log.open("wb") as output:
            process = start(command, output, PROJECT, **environs)
            try:
                if until is not None:
                    wait_until(until, "seen", seconds=seconds, process=process, log=log)
                    process.terminate()
                wait_until(lambda: process.poll() is not None, "ended", seconds=seconds, log=log)
            except BaseException:
                process.kill()
                raise
            finally:
                spent = finish(process, began)
        text = log.read_text(errors="replace")
        assert spent.status == 0, text[-3000:]
        return Crawled(folder, text, spent)

    # --- what was seen --------------------------------------------------------------------------

    def of(self, host: str, *, robots: bool = False) -> list[Visit]:
        """The requests that a host got, in order of their start, robots.txt only on demand."""
        return sorted(v for v in self.visits if v.host == host and (robots or v.path != "/robots.txt"))

    def paths(self, host: str) -> list[str]:
        """What a host was asked for, robots.txt left out."""
        return [visit.path for visit in self.of(host)]

    def longest_gap(self, host: str = _INNOCENT) -> float:
        """Seconds, from the end of one answer to the next request."""
        return max((after.start - before.end for before, after in pairwise(self.of(host))), default=0.0)

    def assert_undisturbed(
        self, host: str = _INNOCENT, *, pace_seconds: float = PACE_SECONDS, least: int = 5, during: str = ""
    ) -> None:
        """The innocent host was asked, at its pace, and never waited much longer than that; an attack's row."""
        assert len(self.of(host)) >= least, f"{host} was asked {len(self.of(host))} times"
        most = pace_seconds + most_late_seconds()
        assert self.longest_gap(host) <= most
        if during:
            pays(during, "a site beside it", self.longest_gap(host), "s of waiting", at_most=most)

    # --- serving --------------------------------------------------------------------------------

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        ip, port = writer.get_extra_info("sockname")[:2]
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ValueError, IndexError):
            while not writer.is_closing():
                head = await asyncio.wait_for(_head(reader), _HEAD_SECONDS)
                began = time.time()
                method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
                fields = _fields(head)
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                host = fields.get("host", "").rpartition(":")[0] or fields.get("host", "")
                ended: float | None = None
                talk = self._talks.get(host) or self._talks.get("*." + host.partition(".")[2])
                try:
                    if talk is None:
                        writer.write(NOT_FOUND)
                    else:
                        ended = await talk(Asked(host, path, head, body, ip), writer)
                    await writer.drain()
                finally:
                    self.visits.append(Visit(began, ended or time.time(), host, ip, path, method, port))
        writer.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    """A request's head. ValueError for a TLS handshake: a browser asks so of hosts that it knows by HSTS, and waits."""
    first = await reader.readexactly(1)
    if first == _TLS_HANDSHAKE:
        raise ValueError("no TLS here")
    return first + await reader.readuntil(b"\r\n\r\n")


def _fields(head: bytes) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in head.decode("latin-1").split("\r\n")[1:] if ":" in line)
    return {name.strip().lower(): value.strip() for name, value in pairs}


@contextlib.contextmanager
def arena(
    folder: Path, *, more_ports: int = 0, tls: ssl.SSLContext | None = None, ipv6: bool = False
) -> Iterator[Arena]:
    """Listen on every loopback address in a thread of this process, until left.

    ``more_ports`` is how many further ports of the same sites are opened: those that follow the first. ``ipv6``: at ::1
    as well, which is for the test to write into the hosts file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    web = Arena(folder, free_port(ports=1 + more_ports))

    async def listen() -> None:
        for port in range(web.port, web.port + 1 + more_ports):
            for address in ("0.0.0.0", *(["::1"] if ipv6 else [])):
                await asyncio.start_server(web.serve, address, port, ssl=tls, limit=1 << 20, backlog=1024)

    with listening(listen):
        yield web
