"""The exclusion profile: hosts that are put on the NeverCrawl list while they are crawled, and ways to them."""

from __future__ import annotations

from tests.web.answers import answer, page_html, redirect
from tests.web.graph import Page, Site, World

LATE = "late.test"  # excluded while the crawl runs, and so is all below it
BELOW = "sub.late.test"
LATE_PAGES = 300
HOP_PAGES = 80  # of redirects to LATE
STAYS_PAGES = 120
_ROBOTS = b"User-agent: *\nDisallow:\nContent-Signal: search=yes, ai-train=no\n"


def exclusion_world(port: int) -> World:
    """Every host's front page is a seed."""
    world = World(port)
    for name in (LATE, BELOW):
        _pages(world, name, [f"/{number}" for number in range(LATE_PAGES)])
    _pages(world, "stays.test", [f"/{number}" for number in range(STAYS_PAGES)])
    hop = _pages(world, "hop.test", [f"/{number}" for number in range(HOP_PAGES)])
    for number in range(HOP_PAGES):
        hop.pages[f"/{number}"] = Page(redirect(world.url(LATE, f"/by-redirect/{number}")))
    return world


def _pages(world: World, name: str, paths: list[str]) -> Site:
    site = world.site(name)
    site.pages["/robots.txt"] = Page(answer(_ROBOTS, kind="text/plain"))
    site.pages |= {path: Page(answer(page_html(f"{name} {path}"))) for path in paths}
    site.pages["/"] = Page(answer(page_html(name, paths)))
    world.seeds.append(world.url(name))
    return site
