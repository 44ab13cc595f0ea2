"""Pages that need too much: bounded for the crawl and for the hosts that are named, by the servers' logs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from crawlerproject.parse.links import MAX_REDIRECTS
from crawlerproject.rules.row_kinds import MAX_EMBED_HOPS
from crawlerproject.rules.traps.template_yield import FIRST_PAGES
from tests.hostile.arena import Arena, Asked, Crawled, Make, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import one_pace

PACE_SECONDS = 0.005
MOST = 30
IMAGES = 50_000
EVIL_PAGES = 10
ARTICLES = 12
SETTINGS = {
    "REQUISITES": "page",
    "REQUISITES_MAX_PER_PAGE": str(MOST),
    **one_pace(PACE_SECONDS),
}
PNG = b"\x89PNG one picture for all"


def shown(*sources: str, links: tuple[str, ...] = (), text: str = "") -> bytes:
    """A page with images."""
    images = "".join(f'<img src="{source}">' for source in sources)
    listed = "".join(f'<a href="{link}">{link}</a>' for link in links)
    return answer(f'<!doctype html><link rel="icon" href="data:,"><body>{text}{images}{listed}')


def many(asked: Asked) -> bytes | None:
    """One page with very many images."""
    if asked.path == "/":
        return shown(*(f"/{number}.png" for number in range(IMAGES)))
    return answer(PNG + asked.path.encode(), mime="image/png") if asked.path.endswith(".png") else None


def loop(asked: Asked) -> bytes | None:
    """Sheets that import themselves, each other, and one more each time."""
    if asked.path == "/":
        return answer('<link rel="stylesheet" href="/a.css"><link rel="stylesheet" href="/endless.css?n=0">')
    path, _, query = asked.path.partition("?n=")
    if path == "/endless.css":
        return answer(f'@import "endless.css?n={int(query) + 1}"; /* {query} */', mime="text/css")
    other = {"/a.css": '@import "a.css"; @import "b.css"', "/b.css": "@import url(a.css)"}
    return answer(other[path], mime="text/css") if path in other else None


def evil(web: Arena, asked: Asked) -> bytes | None:
    """Pages that each show more of one picture of the victim's, under addresses of their own."""
    number = asked.path.removeprefix("/page/")
    at = 0 if asked.path == "/" else int(number) if number.isdigit() else EVIL_PAGES
    if at >= EVIL_PAGES:
        return None
    images = [web.url("victim.test", f"/picture.png?n={at * MOST + image}") for image in range(MOST)]
    return shown(*images, links=(f"/page/{at + 1}",), text=f"the page {'abcdefghij'[at] * 20}")


def victim(asked: Asked) -> bytes | None:
    """Pages that show a picture of their own each."""
    path = asked.path.partition("?")[0]
    if path == "/picture.png":
        return answer(PNG, mime="image/png")
    if path.startswith("/own/"):
        return answer(PNG + path.encode(), mime="image/png")
    number = int(path.removeprefix("/article/")) if path != "/" else 0
    text = " ".join(f"{'abcdefghij'[number % 10] * (number // 10 + 3)}{place}" for place in range(40))
    links = (f"/article/{number + 1}",) if number < ARTICLES - 1 else ()
    return shown(f"/own/{number}.png", links=links, text=text)


def broken(asked: Asked) -> bytes | None:
    """Images that are not there, on pages that are; and one that is a page each time, with a text of its own."""
    number = asked.path.removeprefix("/page/")
    at = 0 if asked.path == "/" else int(number) if number.isdigit() else -1
    if not 0 <= at < 8:
        return None
    images = [f"/missing/{at * 25 + image}.png" for image in range(25)]
    text = " ".join(f"{'abcdefgh'[at]}{word}" for word in range(60))
    return shown(*images, links=(f"/page/{at + 1}",), text=text)


def moved(asked: Asked) -> bytes | None:
    """An image that is always somewhere else."""
    if asked.path == "/":
        return shown("/image?n=0")
    number = int(asked.path.partition("=")[2])
    return answer(status="302 Found", Location=f"/image?n={number + 1}")


def both(asked: Asked) -> bytes | None:
    """What is shown as an image, and later named as a page: one is a page, the other a picture."""
    pages = {
        "/": shown("/page.html", "/picture", links=("/next",), text="the first page of the site"),
        "/next": page("/page.html", "/picture", text="the next page, which names what the first one shows"),
        "/page.html": page("/behind", text="a page after all, and what it links to is followed"),
        "/behind": page(text="the page behind the page that was taken for an image"),
    }
    return answer(PNG, mime="image/png") if asked.path == "/picture" else pages.get(asked.path)


def _but_robots(asked: Asked, make: Make) -> bytes | None:
    return None if asked.path == "/robots.txt" else make(asked)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl of them all."""
    with arena(tmp_path_factory.mktemp("requisites")) as web:
        sites: dict[str, Make] = {
            "many.test": many,
            "loop.test": loop,
            "evil.test": partial(evil, web),
            "victim.test": victim,
            "broken.test": broken,
            "moved.test": moved,
            "both.test": both,
        }
        seeds = [web.site(name, partial(_but_robots, make=make)) for name, make in sites.items()]
        yield web, web.crawl(*seeds, web.innocent(pages=40), settings=SETTINGS)


def test_a_page_with_very_many_images(crawled: tuple[Arena, Crawled]) -> None:
    """The first ones are asked for."""
    assert sorted(crawled[0].paths("many.test")) == sorted(["/", *(f"/{number}.png" for number in range(MOST))])


def test_imports_end(crawled: tuple[Arena, Crawled]) -> None:
    """Each sheet once; a chain of ever new ones after so many."""
    endless = [f"/endless.css?n={number}" for number in range(MAX_EMBED_HOPS)]

    assert sorted(crawled[0].paths("loop.test")) == sorted(["/", "/favicon.ico", "/a.css", "/b.css", *endless])


def test_a_picture_of_anothers_under_ever_new_addresses(crawled: tuple[Arena, Crawled]) -> None:
    """The victim is asked for a few dozen of three hundred; its own pages and pictures are all fetched."""
    paths = crawled[0].paths("victim.test")
    named = [path for path in paths if path.startswith("/picture.png")]

    assert len(named) >= FIRST_PAGES
    most = FIRST_PAGES + 10
    pays("one picture under ever new addresses", "the third site", len(named), "requests", at_most=most)
    assert {f"/own/{number}.png" for number in range(ARTICLES)} <= set(paths)
    assert "'refused/requisite-budget'" in crawled[1].log
    command = [sys.executable, "-m", "scrapy", "traps", "-s", f"CRAWL_DIR={crawled[1].folder}"]
    listed = zygote.run(command, check=True).stdout
    assert "victim.test @evil.test  of what pages need to be seen, evil.test named" in listed


def test_images_that_are_missing(crawled: tuple[Arena, Crawled]) -> None:
    """A host's own broken images end as well, and its pages do not end with them."""
    paths = crawled[0].paths("broken.test")

    assert FIRST_PAGES <= sum(path.startswith("/missing/") for path in paths) <= FIRST_PAGES + 10
    assert {f"/page/{number}" for number in range(1, 8)} <= set(paths)


def test_redirects_end(crawled: tuple[Arena, Crawled]) -> None:
    """As those of pages do."""
    assert crawled[0].paths("moved.test") == ["/", *(f"/image?n={number}" for number in range(MAX_REDIRECTS + 1))]


def test_a_page_that_is_shown_as_an_image_is_a_page(crawled: tuple[Arena, Crawled]) -> None:
    """It is fetched as one once it is named as one, and its links are followed; a picture is not fetched again."""
    paths = crawled[0].paths("both.test")

    assert paths.count("/page.html") == 2
    assert paths.count("/picture") == 1
    assert "/behind" in paths


def test_nothing_of_it_counts_as_a_page(crawled: tuple[Arena, Crawled]) -> None:
    """Pages alone do: those of the sites, and the links that are missing."""
    _, crawl = crawled
    pages = {"many.test": 1, "loop.test": 1, "evil.test": EVIL_PAGES + 1, "victim.test": ARTICLES, "broken.test": 9}
    pages |= {"moved.test": 1, "both.test": 4, "innocent.test": 40}

    assert json.loads((crawl.folder / "status.json").read_text())["totals"]["pages"] == sum(pages.values())


def test_the_innocent_host_is_undisturbed(crawled: tuple[Arena, Crawled]) -> None:
    """At its pace."""
    crawled[0].assert_undisturbed(pace_seconds=PACE_SECONDS, least=40, during="pictures and style sheets without end")


def test_of_the_same_domain_and_of_the_pages_that_a_host_may_have(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Other hosts of the domain, at any depth and by redirects too, no other domain; the host's last page is whole."""
    with arena(tmp_path_factory.mktemp("domain")) as web:

        def images(asked: Asked) -> bytes | None:
            if asked.path == "/robots.txt":
                return None
            if asked.path == "/style.css":
                return answer(
                    f"a {{ background: url({web.url('other.test', '/c.png')}), url(d.png) }}", mime="text/css"
                )
            if asked.path == "/moved.png":
                return answer(status="302 Found", Location=web.url("other.test", "/e.png"))
            return answer(PNG + asked.path.encode(), mime="image/png")

        sheet = f'<link rel="stylesheet" href="{web.url("img.site.test", "/style.css")}">'
        pictures = [web.url("img.site.test", "/a.png"), web.url("other.test", "/b.png")]
        pictures += [web.url("img.site.test", "/moved.png"), "/own.svg"]
        link = '<a href="/second">second</a>'
        front = answer(sheet + link + "".join(f'<img src="{source}">' for source in pictures))
        seed = web.site("www.site.test", lambda asked: front if asked.path == "/" else None)
        web.site("img.site.test", images)
        web.site("other.test", images)

        settings = {**SETTINGS, "REQUISITES": "same-domain"}
        web.crawl(f"{seed} max_pages=1", settings=settings, scope="host")

        assert sorted(web.paths("img.site.test")) == ["/a.png", "/d.png", "/moved.png", "/style.css"]
        assert web.of("other.test", robots=True) == []
        assert sorted(web.paths("www.site.test")) == ["/", "/favicon.ico", "/own.svg"]
