"""Ordinary sites that look like traps, broken ones and those that are away for a while: what a crawl gets of each.

None of them means harm. Judged by the servers' log: how many of a site's pages were shown, and what that cost it.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.hostile.arena import NO_RULES, NOT_FOUND, Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web.running import one_pace

PACE_SECONDS = 0.005
AWAY_SECONDS = 2.0
ITEMS = 60
# As many as a trap never gets: the first budget of a template is 40.
SETTINGS = {**one_pace(PACE_SECONDS), "BACKOFF_START_SECONDS": "0.5", "BACKOFF_MAX_SECONDS": "1"}
_LETTERS = "abcdefghij"
_ASP_ID = re.compile(r"/\(X\(1\)S\(\w{24}\)\)")


def words(number: int, count: int = 60) -> str:
    """A text of its own for each number, without digits."""
    said = "".join(_LETTERS[int(digit)] for digit in str(number))
    return " ".join(f"{said}x{_LETTERS[place % 10] * (place // 10 + 1)}" for place in range(count))


MENU = " ".join(f"menu{a}{b}{c}" for a in _LETTERS for b in _LETTERS for c in _LETTERS)  # 8 KB


@dataclass
class Site:
    """One site: it lists its items on its front page; ``shown`` are those that a visitor got to see."""

    web: Arena
    asked: int = 0
    away_until: float = 0.0
    shown: set[int] = field(default_factory=set)

    def front(self) -> bytes:
        """Links to all items."""
        return page(*(f"/item/{number}" for number in range(1, ITEMS + 1)), text="the front page")

    def show(self, path: str, *links: str, text: str = "") -> bytes | None:
        """The front page or an item; None for anything else."""
        if path == "/":
            return self.front()
        found = re.fullmatch(r"/item/(\d+)/?", path)
        if found is None or not 1 <= int(found[1]) <= ITEMS:
            return None
        self.shown.add(int(found[1]))
        return page("/", *links, text=text or words(int(found[1])))


def moved(location: str, status: str = "302 Found") -> bytes:
    """A redirect."""
    return answer(status=status, Location=location)


def plain(site: Site, asked: Asked) -> bytes | None:
    """Nothing is the matter."""
    return site.show(asked.path)


def slashes(site: Site, asked: Asked) -> bytes | None:
    """Every link lacks its slash."""
    whole = asked.path.endswith("/")
    return site.show(asked.path) if whole else moved(f"{asked.path}/", "301 Moved Permanently")


def twice(site: Site, asked: Asked) -> bytes | None:
    """Every link lacks a slash and a language, as over http and without www: two redirects one after the other."""
    path, _, query = asked.path.partition("?")
    if path != "/" and not path.endswith("/"):
        return moved(f"{path}/", "301 Moved Permanently")
    return site.show(path) if query or path == "/" else moved(f"{path}?lang=en")


def variants(site: Site, asked: Asked) -> bytes | None:
    """A test of two variants: each visitor is sent to one by chance."""
    path, _, variant = asked.path.partition("?")
    return site.show(path) if variant else moved(f"{path}?variant={random.choice('AB')}")


def php(site: Site, asked: Asked) -> bytes | None:
    """A session id for each visitor without a cookie, by a redirect to the same page."""
    path, _, query = asked.path.partition("?")
    return site.show(path) if query else moved(f"{path}?PHPSESSID={random.getrandbits(128):032x}")


def campaign(site: Site, asked: Asked) -> bytes | None:
    """Every page is sent on to itself, with where the visitor came from."""
    path, _, query = asked.path.partition("?")
    return site.show(path) if query else moved(f"{path}?utm_source=direct&utm_medium=none")


def asp(site: Site, asked: Asked) -> bytes | None:
    """ASP.NET without cookies: it tries one, then puts the session into the path."""
    if _ASP_ID.match(asked.path):
        return site.show(_ASP_ID.sub("", asked.path).partition("?")[0])
    if "AspxAutoDetectCookieSupport" not in asked.path:
        return moved(f"{asked.path}?AspxAutoDetectCookieSupport=1")
    return moved(f"/(X(1)S({''.join(random.choices('abcdefghijklmnopqrstuvwxyz012345', k=24))})){asked.path}")


def forum(site: Site, asked: Asked) -> bytes | None:
    """Every page names the others with a session of its own."""
    path = asked.path.partition("?")[0]
    session = f"{random.getrandbits(128):032x}"
    return site.show(path, *(f"/item/{number}?s={session}" for number in range(1, 9)))


def shop(site: Site, asked: Asked) -> bytes | None:
    """Menus of a thousand words around twenty of the product's own."""
    number = asked.path.rpartition("/")[2]
    return site.show(asked.path, text=f"{words(int(number or 0), 20)} {MENU}")


def lost_links(site: Site, asked: Asked) -> bytes | None:
    """What is missing leads to the front page, and every page names three that are."""
    number = int(asked.path.rpartition("/")[2] or 0)
    dead = [f"/item/{1000 + 3 * number + more}" for more in range(3)]
    return site.show(asked.path, *dead) or moved("/")


def broken_cache(site: Site, asked: Asked) -> bytes | None:
    """A cache that answers the first request for each page with 304, whatever was asked."""
    site.asked += 1
    first = site.web.paths(asked.host).count(asked.path) == 0
    return b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n" if first else site.show(asked.path)


def away(site: Site, asked: Asked, status: str) -> bytes | None:
    """In the middle of the crawl all is answered with an error, robots.txt too."""
    site.asked += 1
    if site.asked == ITEMS // 2:
        site.away_until = time.time() + AWAY_SECONDS
    return answer("<h1>Away</h1>", status) if time.time() < site.away_until else site.show(asked.path)


def members(site: Site, asked: Asked) -> bytes | None:
    """Beside its items it has a page for members under each, which leads to a login elsewhere."""
    if asked.path.startswith("/account/"):
        return moved(site.web.url("login.example", f"/sign-in?next={asked.path}"))
    return site.show(asked.path, f"/account{asked.path}")


def anything(site: Site, asked: Asked) -> bytes:
    """Whatever the address, the same page, which names others: an application that is one page."""
    return page(
        *(f"/{random.choice('abc')}/{random.randrange(10**6)}" for _ in range(5)), text="welcome to our program"
    )


SITES: dict[str, tuple[Callable[[Site, Asked], bytes | None], str]] = {
    "plain.test": (plain, "nothing at all"),
    "slashes.test": (slashes, "links that all redirect to a slash"),
    "twice.test": (twice, "links that all redirect twice"),
    "variants.test": (variants, "a test of two variants by redirects"),
    "php.test": (php, "a redirect to the same page with a session id"),
    "campaign.test": (campaign, "a redirect to the same page with a campaign"),
    "asp.test": (asp, "ASP.NET's sessions in paths"),
    "forum.test": (forum, "a new session id in every link"),
    "shop.test": (shop, "a thousand words of menus around twenty"),
    "lost.test": (lost_links, "missing pages that lead to the front page"),
    "cache.test": (broken_cache, "a cache that answers 304 unasked"),
    "maintained.test": (partial(away, status="503 Service Unavailable"), "maintenance with 503"),
    "origin.test": (partial(away, status="522 Connection Timed Out"), "a content network without its origin"),
    "members.test": (members, "pages behind a login elsewhere"),
    "my_shop.test": (plain, "a name with an underscore"),
}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, dict[str, Site]]]:
    """One crawl of them all."""
    with arena(tmp_path_factory.mktemp("ordinary")) as web:
        sites = {name: Site(web) for name in SITES}

        def answered(asked: Asked, name: str) -> bytes | None:
            return None if _is_robots(asked) else SITES[name][0](sites[name], asked)

        seeds = [web.site(name, partial(answered, name=name)) for name in SITES]
        seeds += [web.site("anything.test", lambda asked: anything(sites["plain.test"], asked))]
        seeds += [web.raw_site("stale.test", partial(_hanging_up, site=Site(web)))]
        web.site("login.example", lambda asked: None if _is_robots(asked) else page(text="Sign in with your account"))
        web.crawl(*seeds, web.innocent(pages=60), settings=SETTINGS, seconds=120)
        yield web, sites


def _is_robots(asked: Asked) -> bool:
    return asked.path == "/robots.txt"


async def _hanging_up(asked: Asked, writer: asyncio.StreamWriter, site: Site) -> None:
    """A server that hangs up after each answer without having said so, some time later."""
    made = NO_RULES if _is_robots(asked) else site.show(asked.path) or NOT_FOUND
    writer.write(made)
    await writer.drain()
    await asyncio.sleep(PACE_SECONDS)
    writer.close()


@pytest.mark.parametrize("name", SITES)
def test_an_ordinary_site_is_crawled_whole(name: str, crawled: tuple[Arena, dict[str, Site]]) -> None:
    """Nine in ten of its pages at least, as a site gets with which nothing is the matter."""
    shown = len(crawled[1][name].shown)
    pays(SITES[name][1], "the site", shown, f"of {ITEMS} pages", at_least=0.9 * ITEMS)


@pytest.mark.parametrize(
    ("name", "most"),
    [("forum.test", 1.1 * ITEMS), ("asp.test", 3.1 * ITEMS), ("lost.test", 4 * ITEMS), ("cache.test", 2.1 * ITEMS)],
)
def test_it_is_not_asked_for_more_than_it_has(name: str, most: float, crawled: tuple[Arena, dict[str, Site]]) -> None:
    """A page under ever new addresses is asked for once, one redirect or missing page once each."""
    pays(SITES[name][1], "its server", len(crawled[0].paths(name)), "requests", at_most=most)


def test_what_has_no_end_ends(crawled: tuple[Arena, dict[str, Site]]) -> None:
    """A host that answers every path; a login that many pages lead to."""
    web, _ = crawled
    pays("a host that answers every path", "the crawl", len(web.paths("anything.test")), "requests", at_most=260)
    pays("pages behind a login elsewhere", "the login", len(web.paths("login.example")), "requests", at_most=45)


def test_a_connection_that_is_gone_loses_no_page(crawled: tuple[Arena, dict[str, Site]]) -> None:
    """What was sent into its closing is asked for again."""
    found = Counter(crawled[0].paths("stale.test"))
    pays("a server that hangs up unsaid", "the site", len(found) - 1, f"of {ITEMS} pages", at_least=0.9 * ITEMS)


def test_the_innocent_host_is_undisturbed(crawled: tuple[Arena, dict[str, Site]]) -> None:
    """At its pace."""
    crawled[0].assert_undisturbed(pace_seconds=PACE_SECONDS, least=60, during="fifteen ordinary sites")


def test_the_login_of_a_seed_is_no_part_of_the_crawl(tmp_path: Path) -> None:
    """With ``scope=domain`` its site is not taken in; that of a seed that has moved is."""
    with arena(tmp_path) as web:
        own = Site(web)

        def closed(asked: Asked) -> bytes | None:
            here = web.url("closed.test").replace("/", "%2F").replace(":", "%3A")
            return None if _is_robots(asked) else moved(web.url("sso.example", f"/?next={here}"))

        def sso(asked: Asked) -> bytes | None:
            return None if _is_robots(asked) else own.show(asked.path.partition("?")[0])

        seeds = [web.site("closed.test", closed)]
        seeds += [web.site("old.test", lambda asked: None if _is_robots(asked) else moved(web.url("new.example")))]
        web.site("sso.example", sso)
        web.site("new.example", lambda asked: None if _is_robots(asked) else Site(web).show(asked.path))

        web.crawl(*seeds, settings=SETTINGS, scope="domain")

        assert len(web.paths("new.example")) == 1 + ITEMS
        asked = len(web.paths("sso.example"))
        pays("a seed behind a login elsewhere", "the login's site", asked, "requests", at_most=1)
