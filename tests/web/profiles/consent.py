"""The consent profile: forty sites with every combination of words on use, and one that wants money."""

from __future__ import annotations

from itertools import product

from tests.web.answers import answer, page_html
from tests.web.graph import Page, World

ROBOTS = {
    "none": "",
    "no": "Content-Usage: train-ai=n",
    "yes": "Content-Usage: train-ai=y",
    "path": "Content-Usage: /part train-ai=n",
    "signal": "Content-Signal: search=yes, ai-train=no",
}
HEADERS = {"none": "", "no": "Content-Usage: train-ai=n", "tdm1": "TDM-Reservation: 1", "tdm0": "TDM-Reservation: 0"}
HEADS = {"none": "", "noai": '<meta name="robots" content="noai">'}
SITES = {
    f"{robots}-{header}-{page}.test": (robots, header, page) for robots, header, page in product(ROBOTS, HEADERS, HEADS)
}
"""By host: the words of robots.txt, answer and page."""
PATHS = ("/", "/free", "/part/one")
PAID = "paid.test"


def consent_world(port: int) -> World:
    """Every front page is a seed, and links to the other two of its site."""
    world = World(port)
    for name, (robots, header, page) in SITES.items():
        site = world.site(name)
        text = f"User-agent: *\nDisallow:\n{ROBOTS[robots]}\n".encode()
        site.pages["/robots.txt"] = Page(answer(text, kind="text/plain"))
        for path in PATHS:
            body = page_html(f"{name} {path}", PATHS if path == "/" else (), head=HEADS[page])
            site.pages[path] = Page(answer(body, headers=[HEADERS[header]] if HEADERS[header] else []))
        world.seeds.append(world.url(name))
    paid = world.site(PAID)
    paid.pages["/"] = Page(answer(page_html(PAID, PATHS), status=402, headers=["Crawler-Price: USD 0.01"]))
    world.seeds.append(world.url(PAID))
    return world
