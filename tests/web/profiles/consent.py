"""The consent profile: forty sites with words on use in all places, each two of them together; one wants money.

What follows from the words is said here as well, for each purpose, without the code that is tested.
"""

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
TDMREP, LICENSE = "/.well-known/tdmrep.json", "/license.xml"
LICENSOR, ELSEWHERE = "licensor.test", "/of-others.xml"
"""Another host, which has the licence of several sites."""
_RSL = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>%s</license></content></rsl>'
DOCUMENTS = {
    "none": ("", ""),
    "tdm": (TDMREP, '[{"location": "/", "tdm-reservation": 1}]'),
    "tdmpart": (TDMREP, '[{"location": "/part", "tdm-reservation": 1}]'),
    "broken": (TDMREP, '[{"location": "/", "tdm-res'),
    "rsl": (LICENSE, _RSL % '<prohibits type="usage">ai-train</prohibits>'),
    "there": (ELSEWHERE, _RSL % '<prohibits type="usage">ai-train</prohibits>'),
    "paid": (LICENSE, _RSL % '<permits type="usage">all</permits><payment type="crawl"/>'),
}
_COMBINED = list(product(range(len(ROBOTS)), range(len(HEADERS)), range(len(HEADS))))
SITES = {
    "-".join(words) + ".test": words
    for words in (
        (tuple(ROBOTS)[r], tuple(HEADERS)[h], tuple(HEADS)[m], tuple(DOCUMENTS)[(r + h + 4 * m) % len(DOCUMENTS)])
        for r, h, m in _COMBINED
    )
}
"""By host: the words of robots.txt, answer, page and document beside robots.txt."""
PATHS = ("/", "/free", "/part/one")
PAGES = {(host, path) for host, path in product(SITES, PATHS)}
PAID, NAMED = "paid.test", "named.test"
"""One wants money; a page of the other names the other host's licence, which its robots.txt does not."""
OBEYING, MINING = frozenset({"ai-train", "ai-input"}), frozenset({"research", "ai-train", "ai-input"})


def before_asking(host: str, path: str, purpose: str) -> str:
    """The reason for which a page is not asked for where words are obeyed; "" when it is."""
    robots, _, _, document = SITES[host]
    in_part = path.startswith("/part")
    if purpose in MINING and (document in ("tdm", "broken") or (document == "tdmpart" and in_part)):
        return "reserved-tdmrep"
    if document == "paid":
        return "payment-required"
    if purpose == "ai-train" and document in ("rsl", "there"):
        return "reserved-license"
    trains = purpose == "ai-train" and (robots in ("no", "signal") or (robots == "path" and in_part))
    return "reserved-robots" if trains else ""


def by_answer(host: str, purpose: str) -> str:
    """The reason for which an answer is not kept where words are obeyed; "" when it is."""
    _, header, page, _ = SITES[host]
    if page == "noai" and purpose in OBEYING:
        return "reserved-page"
    reserved = (header == "tdm1" and purpose in MINING) or (header == "no" and purpose == "ai-train")
    return "reserved-header" if reserved else ""


def verdict(host: str, path: str, purpose: str, *, documents: bool) -> str:
    """What the words of a page that was asked for come to; ``documents``: those beside robots.txt are known."""
    robots, header, _, document = SITES[host]
    before = before_asking(host, path, purpose)
    if not documents:
        before = "reserved-robots" if robots in ("no", "signal") or (robots == "path" and path == PATHS[2]) else ""
        before = before if purpose == "ai-train" else ""
        document = "none"
    if before == "reserved-tdmrep" and header == "tdm0":  # that is nearer to the page
        before = ""
    if before or by_answer(host, purpose):
        return "reserved"
    allowed = (header == "tdm0" and purpose in MINING) or (robots == "yes" and purpose == "ai-train")
    allowed = allowed or (robots == "signal" and purpose == "search") or document in ("rsl", "there")
    return "allowed" if allowed else "unknown"


def consent_world(port: int) -> World:
    """Every front page is a seed, and links to the other two of its site."""
    world = World(port)
    for name, (robots, header, page, document) in SITES.items():
        site = world.site(name)
        place, content = DOCUMENTS[document]
        license_line = f"License: {LICENSE}\n" if place == LICENSE else ""
        if place == ELSEWHERE:
            license_line, place = f"License: {world.url(LICENSOR, ELSEWHERE)}\n", ""
        text = f"{license_line}User-agent: *\nDisallow:\n{ROBOTS[robots]}\n".encode()
        site.pages["/robots.txt"] = Page(answer(text, kind="text/plain"))
        if place:
            site.pages[place] = Page(answer(content.encode(), kind="application/json"))
        for path in PATHS:
            body = page_html(f"{name} {path}", PATHS if path == "/" else (), head=HEADS[page])
            site.pages[path] = Page(answer(body, headers=[HEADERS[header]] if HEADERS[header] else []))
        world.seeds.append(world.url(name))
    licensor = world.site(LICENSOR)
    licensor.pages["/robots.txt"] = Page(answer(b"User-agent: *\nContent-Usage: train-ai=n\n", kind="text/plain"))
    licensor.pages[ELSEWHERE] = Page(answer(DOCUMENTS["there"][1].encode(), kind="application/rsl+xml"))
    link = f'Link: <{world.url(LICENSOR, ELSEWHERE)}>; rel="license"; type="application/rsl+xml"'
    world.site(NAMED).pages["/"] = Page(answer(page_html(NAMED), headers=[link]))
    world.seeds.append(world.url(NAMED))
    paid = world.site(PAID)
    paid.pages["/"] = Page(answer(page_html(PAID, PATHS), status=402, headers=["Crawler-Price: USD 0.01"]))
    world.seeds.append(world.url(PAID))
    return world


LATER = ("header", "page", "robots", "tdm", "rsl", "none")


def later_world(port: int) -> World:
    """Sites named for the words that they have from the second time on that they are asked."""
    world = World(port)
    for name in LATER:
        site = world.site(f"{name}.test")
        front, plain = page_html(name), Page(answer(page_html(name)))
        said = {
            "header": answer(front, headers=[HEADERS["tdm1"]]),
            "page": answer(page_html(name, head=HEADS["noai"])),
        }
        site.pages["/"] = Page(said[name], first=(plain.answer,)) if name in said else plain
        free = answer(b"User-agent: *\nDisallow:\n", kind="text/plain")
        rules = {"robots": f"User-agent: *\n{ROBOTS['no']}\n", "rsl": f"License: {LICENSE}\n"}.get(name)
        site.pages["/robots.txt"] = Page(answer(rules.encode(), kind="text/plain") if rules else free, first=(free,))
        if name in ("tdm", "rsl"):
            place, content = DOCUMENTS[name]
            missing = (answer(b"none", status=404),) if name == "tdm" else ()
            site.pages[place] = Page(answer(content.encode(), kind="application/json"), first=missing)
        world.seeds.append(world.url(site.host))
    return world
