"""The profile of feeds that name a WebSub hub. The file ``hub`` in the server's folder says where the hub is, the
file ``entries`` which paths the feed lists, so that a test publishes while a crawl runs.
"""

from __future__ import annotations

from pathlib import Path

from tests.web.answers import answer, page_html
from tests.web.graph import Answer, Page, World
from tests.web.hub import NAME as HUB

#: Another name of the hub's: nothing that is asked there may count against the hub itself.
CLOSED_HUB = "closed-hub.test"


def pushed_world(port: int, folder: Path) -> World:
    """``news.test`` whose hub may be asked, and hosts whose feeds name hubs that must not be."""
    world = World(port)
    for name in ("news.test", "closed.test", "thief.test", "moved.test"):
        site = world.site(name)
        site.pages["/robots.txt"] = Page(answer(b"User-agent: *\nAllow: /\n", kind="text/plain"))
        head = '<link rel="alternate" type="application/atom+xml" href="/feed.atom">'
        site.pages["/"] = Page(answer(page_html(name, head=head)))
        world.seeds.append(world.url(name))
    news, closed, thief = (world.sites[name] for name in ("news.test", "closed.test", "thief.test"))

    def hub(path: str = "/", name: str = HUB) -> str:
        return (folder / "hub").read_text().strip().replace(HUB, name) + path

    def of_news(path: str, head: bytes) -> Answer | None:
        if path.startswith("/entry/"):
            return answer(page_html(path))
        if path != "/feed.atom":
            return None
        paths = (folder / "entries").read_text().split()
        return feed(f'<link rel="hub" href="{hub()}"/><link rel="self" href="{world.url("news.test", path)}"/>', paths)

    def of_closed(path: str, head: bytes) -> Answer | None:
        """The hub is named by a header alone, and its robots.txt forbids that address."""
        if path != "/feed.atom":
            return None
        links = f'Link: <{hub("/closed/", CLOSED_HUB)}>; rel="hub", <{world.url("closed.test", path)}>; rel="self"'
        return answer(b"<feed></feed>", kind="application/atom+xml", headers=[links])

    def of_thief(path: str, head: bytes) -> Answer | None:
        """The topic is somebody else's."""
        stolen = world.url("news.test", "/feed.atom")
        return feed(f'<link rel="hub" href="{hub("/thief/", CLOSED_HUB)}"/><link rel="self" href="{stolen}"/>', [])

    def of_moved(path: str, head: bytes) -> Answer | None:
        """The hub that is named redirects to where it is."""
        own = world.url("moved.test", path)
        return feed(f'<link rel="hub" href="{hub("/moved/")}"/><link rel="self" href="{own}"/>', [])

    world.sites["moved.test"].dynamic = lambda path, head: of_moved(path, head) if path == "/feed.atom" else None
    news.dynamic, closed.dynamic, thief.dynamic = of_news, of_closed, lambda p, h: of_thief(p, h) if p != "/" else None
    return world


def feed(links: str, paths: list[str]) -> Answer:
    """An Atom feed."""
    entries = "".join(f'<entry><link href="{path}"/></entry>' for path in paths)
    made = f'<feed xmlns="http://www.w3.org/2005/Atom">{links}{entries}</feed>'
    return answer(made.encode(), kind="application/atom+xml")
