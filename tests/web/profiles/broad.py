"""The broad profile: many hosts, each with pages without end, for measuring how well politeness is kept."""

from __future__ import annotations

from collections.abc import Callable

from tests.web.answers import answer, page_html, text
from tests.web.graph import Answer, Page, Site, World

_FIRST_IP = 0x010000  # 127.1.0.0: away from the small profile's addresses
_FANOUT = 2  # page n links to 2n+1 and 2n+2: a tree, so that the depth stays below 20 for a million pages
_ROBOTS = answer(b"User-agent: *\nDisallow: /private/\n", kind="text/plain")
_TEXT = text("broad", 60)  # the same on every page: making it fresh would cost more than serving it
_LETTERS = str.maketrans("0123456789", "abcdefghij")


def _endless(host: str, response_seconds: float) -> Callable[[str], Answer | None]:
    def page(path: str) -> Answer | None:
        name = path[3:] if path.startswith("/p/") else ""
        if path != "/" and not name.isdigit():
            return None
        number = int(name or 0)
        links = [f"/p/{number * _FANOUT + step}" for step in range(1, _FANOUT + 1)]
        # A word of its own between all others: pages that are nearly alike would be taken for a trap.
        words = _TEXT.replace(" ", f" {host[:6]}{number} ".translate(_LETTERS))
        made = page_html(f"{host} {number}", links, body=f"<p>{words}</p>")
        return answer(made, wait_seconds=response_seconds)

    return page


def broad_world(port: int, hosts: int, response_seconds: float, *, one_domain: bool = False) -> World:
    """``hosts`` hosts with an address each; every host's front page is a seed."""
    domain = "broad.test" if one_domain else "test"  # else a registered domain each, as in a broad crawl
    world = World(port)
    robots = Page(_ROBOTS._replace(wait_seconds=response_seconds))
    for number in range(hosts):
        name, at = f"h{number:05d}.{domain}", _FIRST_IP + number
        world.sites[name] = Site(
            name,
            f"127.{at >> 16}.{at >> 8 & 255}.{at & 255}",
            pages={"/robots.txt": robots},
            endless=_endless(name, response_seconds),
        )
        world.seeds.append(world.url(name))
    return world
