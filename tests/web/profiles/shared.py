"""The shared profile: few addresses with several hosts each, whose pages are known from each other: for fleets."""

from __future__ import annotations

from tests.web.answers import answer, page_html, text
from tests.web.graph import Page, World

_HOSTS_AN_ADDRESS = 3
_FIRST_IP = 0x020000  # 127.2.0.0
_FANOUT = 2
_ELSEWHERE = 3  # one page in so many is linked from another host alone
_NEXT = 5  # hosts from it to that one
_ROBOTS = Page(answer(b"User-agent: *\nDisallow: /private/\n", kind="text/plain"))
_TEXT = text("shared", 60)
_LETTERS = str.maketrans("0123456789", "abcdefghij")


def shared_world(port: int, hosts: int, pages: int) -> World:
    """``hosts`` hosts of ``pages`` pages each; every host's front page is a seed."""
    world = World(port)
    names = [f"s{number:04d}.test" for number in range(hosts)]
    links: dict[tuple[int, int], list[str]] = {}
    for host in range(hosts):
        for number in range(1, pages):
            at = host if number % _ELSEWHERE else (host + _NEXT) % hosts
            links.setdefault((at, (number - 1) // _FANOUT), []).append(world.url(names[host], f"/p/{number}"))
    for host, name in enumerate(names):
        at = _FIRST_IP + host // _HOSTS_AN_ADDRESS + 1
        site = world.site(name, f"127.{at >> 16}.{at >> 8 & 255}.{at & 255}")
        site.pages["/robots.txt"] = _ROBOTS
        for number in range(pages):
            own = links.get((host, number), [])
            # Words of its own between all others: pages that are nearly alike would be taken for a trap.
            words = _TEXT.replace(" ", f" {name[:5]}{number} ".translate(_LETTERS))
            made = answer(page_html(f"{name} {number}", own, body=f"<p>{words}</p>"))
            site.pages[f"/p/{number}" if number else "/"] = Page(made, tuple(own))
        world.seeds.append(world.url(name))
    return world
