"""Sixty ports of one machine, and ports that are not the web's: one pace for the name, no connection to the others."""

from __future__ import annotations

import os
import socket
from itertools import pairwise
from pathlib import Path

from tests.commands.crawled import scrapy
from tests.hostile.arena import PACE_SECONDS, Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays

MANY = "many.test"
# This process's own: several may run this test at once on one machine.
_ADDRESS = f"127.67.{os.getpid() >> 8 & 0xFF}.{os.getpid() & 0xFF or 1}"
# Of the Fetch standard, and ours: above 1023, so that this test may listen there.
FORBIDDEN = (6697, 10080, 6379, 11211)
_TIMERS_SECONDS = 0.002
LINKED_PORTS = 60
# Half of SCOPE_MAX_PORTS_PER_HOST is for other domains. The seed has one of these, and of the three that are left one
# domain may take two: as many as it leaves.
MAX_PORTS = 3


def many(asked: Asked) -> bytes | None:
    """A machine with a page at each port."""
    return None if asked.path == "/robots.txt" else page(text=f"{asked.path} of {asked.head!r}")


def lure(web: Arena) -> str:
    """A page of links to every port of the machine, to forbidden ones, and to redirects that lead there."""
    linked = [f"http://{MANY}:{web.port + number}/{number}" for number in range(LINKED_PORTS)]
    forbidden = [f"http://{MANY}:{port}/link" for port in FORBIDDEN]
    moved = [f"/to/{port}" for port in FORBIDDEN]

    def make(asked: Asked) -> bytes | None:
        if asked.path.startswith("/to/"):
            port = asked.path.removeprefix("/to/")
            return answer(status="302 Found", Location=f"http://{MANY}:{port}/redirect")
        return page(*linked, *forbidden, *moved, text="ports") if asked.path == "/" else None

    return web.site("lure.test", make)


def robots_elsewhere(asked: Asked) -> bytes | None:
    """A site whose robots.txt is said to be at a forbidden port."""
    if asked.path == "/robots.txt":
        return answer(status="302 Found", Location=f"http://{MANY}:{FORBIDDEN[1]}/robots.txt")
    return page(text="never shown")


def listeners() -> list[socket.socket]:
    """Sockets at the forbidden ports of the machine."""
    found = []
    for port in FORBIDDEN:
        listening = socket.create_server((_ADDRESS, port))
        listening.setblocking(False)
        found.append(listening)
    return found


def connected(listening: socket.socket) -> bool:
    """Whether a connection was made there."""
    try:
        listening.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def test_ports_of_one_machine_share_its_pace(tmp_path: Path) -> None:
    """By the servers' log: no two requests closer than the pace whatever their port, three ports, no other."""
    with arena(tmp_path, more_ports=LINKED_PORTS) as web:
        seeds = web.innocent(), lure(web), web.site(MANY, many, _ADDRESS), web.site("moved.test", robots_elsewhere)
        forbidden = listeners()

        crawled = web.crawl(
            *seeds[:3],
            until=lambda: len(web.of(MANY)) >= MAX_PORTS + 1 and len(web.of("innocent.test")) >= 25,
        )

        visits = web.of(MANY, robots=True)
        assert len({visit.port for visit in visits}) == MAX_PORTS
        gaps = [after.start - before.end for before, after in pairwise(visits)]
        least = PACE_SECONDS - _TIMERS_SECONDS
        pays("sixty ports of one machine", "the machine", min(gaps), "s between requests", at_least=least)
        assert not any(map(connected, forbidden))
        web.assert_undisturbed(least=25, during="sixty ports of one machine")
        assert scrapy("audit", str(crawled.folder)).returncode == 0

        web.crawl(seeds[0], seeds[3], f"http://{MANY}:{FORBIDDEN[0]}/seed", name="moved", until=lambda: _moved(web))

        assert not any(map(connected, forbidden))
        assert web.paths("moved.test") == []
        assert f"line 3: bad-port: 'http://{MANY}:{FORBIDDEN[0]}/seed'" in (tmp_path / "moved.log").read_text()
        for listening in forbidden:
            listening.close()


def _moved(web: Arena) -> bool:
    asked = web.of("moved.test", robots=True)
    return bool(asked) and len([v for v in web.of("innocent.test") if v.start > asked[0].end]) >= 10
