"""The traps profile: hosts that never end, each in its own way, beside hosts that are only large."""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import sha1
from itertools import count

from tests.web.answers import WORDS, answer, page_html, text
from tests.web.graph import Answer, Page, Site, World

ARTICLES = 300  # of one template, all different
NEWS = 30  # beside the calendar
STEADY_PAGES = 120
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_SHOP = ("about", "basket", "contact", "help", "offers", "terms")  # the real pages behind the session ids
_DRIPS, _DRIP_SECONDS = 200, 0.1  # a tarpit's answer takes 20 s
_ROBOTS = Page(answer(b"User-agent: *\nDisallow:\n", kind="text/plain"))


def traps_world(port: int) -> World:
    """Every host's front page is a seed."""
    world = World(port)
    for name, build in _HOSTS.items():
        site = world.site(name)
        site.pages["/robots.txt"] = _ROBOTS
        build(site)
        world.seeds.append(world.url(name))
    return world


def _calendar(site: Site) -> None:
    """Months without end, each with its days; and thirty real pages."""
    news = [f"/news/{number}-{'-'.join(random.Random(number).choices(WORDS, k=3))}" for number in range(NEWS)]
    for path in news:
        site.pages[path] = Page(answer(page_html(path)))
    site.pages["/"] = Page(answer(page_html("calendar", ["/calendar/2026/1", *news])))

    def endless(path: str) -> Answer | None:
        parts = path.strip("/").split("/")
        if parts[0] != "calendar" or not all(part.isdigit() for part in parts[1:]) or len(parts) < 3:
            return None
        year, month = int(parts[1]), int(parts[2])
        if len(parts) == 4:
            return answer(page_html(f"{parts[3]} {_MONTHS[month - 1]} {year}", body="<p>No events on this day.</p>"))
        after = f"/calendar/{year + month // 12}/{month % 12 + 1}"
        days = [f"/calendar/{year}/{month}/{day}" for day in range(1, 29)]
        body = f"<p>Nothing in {_MONTHS[month - 1]} {year}.</p>"
        return answer(page_html(f"{_MONTHS[month - 1]} {year}", [after, *days], body=body))

    site.endless = endless


def _nest(site: Site) -> None:
    """A relative link that leads one folder deeper, for ever."""
    site.pages["/"] = Page(answer(page_html("nest", ["/nest/"])))
    site.endless = lambda path: answer(page_html(path, ["nest/"])) if path.startswith("/nest/") else None


def _maze(site: Site) -> None:
    """Folders named by chance below folders named by chance, all with the same words on them."""

    def endless(path: str) -> Answer:
        chance = random.Random(path)
        links = ["/".join(chance.choices(WORDS, k=2)) + "/" for _ in range(6)]
        return answer(page_html("maze", links, body="<p>You are in a maze of little passages, all alike.</p>"))

    site.endless = endless


def _session(link: str) -> Callable[[Site], None]:
    """Every page links to all others with a session id of its own; ``link`` says where the id goes."""

    def build(site: Site) -> None:
        minted = count()

        def endless(path: str) -> Answer:
            name = next((name for name in _SHOP if name in path), "front")
            ids = [sha1(b"%d" % next(minted), usedforsecurity=False).hexdigest()[:20] for _ in _SHOP]
            return answer(page_html(name, [link.format(id=i, name=n) for i, n in zip(ids, _SHOP, strict=True)]))

        site.endless = endless

    return build


def _tarpit(site: Site) -> None:
    """Links to ever new pages come first, then the rest of the page, a drop at a time."""

    def endless(path: str) -> Answer:
        chance = random.Random(path)
        links = [f"/{chance.choice(WORDS)}/{chance.randrange(10**6)}" for _ in range(20)]
        body = page_html(path, links, body=f"<p>{text(path)}</p>")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
        return Answer(
            200, (head + body, *[b"<!-- drop drop drop drop -->"] * _DRIPS), gap_seconds=_DRIP_SECONDS, close=True
        )

    site.endless = endless


def _host_path(site: Site) -> None:
    """Links that lost their "http://": the host's name becomes a folder, again and again."""

    def endless(path: str) -> Answer:
        return answer(page_html(path, [f"{site.host}/one/", "www.partner.example/two/"]))

    site.endless = endless


def _articles(site: Site) -> None:
    """Three hundred numbered articles, each with a text of its own."""
    paths = [f"/article/{number}" for number in range(1, ARTICLES + 1)]
    for path in paths:
        site.pages[path] = Page(answer(page_html(path)))
    site.pages["/"] = Page(answer(page_html("articles", paths)))


def _steady(site: Site) -> None:
    """An ordinary site: a chain of pages."""
    for number in range(STEADY_PAGES):
        path = f"/page/{number}" if number else "/"
        links = [f"/page/{number + 1}"] if number + 1 < STEADY_PAGES else []
        site.pages[path] = Page(answer(page_html(f"{site.host} {WORDS[number % len(WORDS)]} {path}", links)))


_HOSTS: dict[str, Callable[[Site], None]] = {
    "calendar.test": _calendar,
    "nest.test": _nest,
    "maze.test": _maze,
    "path-session.test": _session("/s/{id}/{name}"),
    "query-session.test": _session("/{name}?visit={id}"),
    "tarpit.test": _tarpit,
    "host-path.test": _host_path,
    "articles.test": _articles,
    "steady.test": _steady,
}
