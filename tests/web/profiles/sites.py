"""The small profile: some two dozen hosts, each with one habit of the real web."""

from __future__ import annotations

import random
from collections.abc import Iterable

from tests.web.answers import WORDS, answer, chunked, encoded, page_html, redirect, refusal, text, until_close
from tests.web.graph import Answer, Fate, Page, Site, World
from tests.web.profiles.ugly import HOPELESS, READABLE

_SEED = 20120  # of the random cross links; any number, but always the same
_PLAIN_SITES = 4
_PLAIN_PAGES = 14
_SLOW_SECONDS = 0.8  # time to first byte of the slow site: above the 0.25 s floor of the fastest preset
_BIG_BYTES = 300_000  # beyond FETCH_MAX_BYTES when a test lowers it to 100,000
_ALLOW = b"User-agent: *\nDisallow:\n"


def small_world(port: int) -> World:
    """All sites, linked from ``portal.test``."""
    world = World(port)
    fronts: list[str] = []
    for build in (_plain, _redirects, _rules, _robots_answers, _copies, _slow, _trap, _script, _formats, _etiquette,
                  _ugly, _busy, _neighbours):  # fmt: skip
        fronts += build(world)
    _excluded(world)
    nowhere = [f"http://dead.test:{_closed_port(port)}/", world.url("nowhere.invalid"), f"https://secure.test:{port}/",
               world.url("excluded.test"), world.url("sub.excluded.test", "/deep"), "http://10.0.0.1/private",
               "http://169.254.169.254/latest/meta-data/", "ftp://plain1.test/file", "mailto:someone@plain1.test",
               "javascript:void(0)", "http://[broken/", world.url("plain1.test", "/") + "#fragment"]  # fmt: skip
    world.shunned.update(link for link in nowhere if "#" not in link)
    for name in ("dead.test", "secure.test"):  # nothing listens there; speaks no TLS though asked to
        world.site(name).reachable = False
    _html(world, world.site("portal.test"), "/", [*fronts, *nowhere], follow=fronts)
    robots_of(world.sites["portal.test"])
    world.seeds = [world.url("portal.test"), world.url("plain1.test"), world.url("ugly.test"), world.url("trap.test")]
    return world


def _closed_port(port: int) -> int:
    return 2 if port != 2 else 3  # compressnet: a service that no machine runs any more, and no bad port


def robots_of(site: Site, body: bytes = _ALLOW) -> None:
    """Give a site its robots.txt; without ``body`` one that allows everything."""
    site.pages["/robots.txt"] = Page(answer(body, kind="text/plain"))


def _html(
    world: World, site: Site, path: str, links: Iterable[str], *, follow: Iterable[str] | None = None,
    body: str | None = None, head: str = "", wait_seconds: float = 0.0, headers: Iterable[str] = (),
) -> str:  # fmt: skip
    """Add a page that shows ``links`` (paths or URLs) and of which ``follow`` (default: all) are to be followed."""
    shown = list(links)
    content = page_html(f"{site.host}{path}", shown, body=body, head=head)
    targets = shown if follow is None else list(follow)
    whole = tuple(world.url(site.host, link) if link.startswith("/") else link for link in targets)
    site.pages[path] = Page(answer(content, wait_seconds=wait_seconds, headers=headers), whole)
    return world.url(site.host, path)


def _plain(world: World) -> list[str]:
    """Ordinary sites: a tree of pages with cross links, within a site and to the others."""
    chance = random.Random(_SEED)
    names = [f"plain{number}.test" for number in range(1, _PLAIN_SITES + 1)]
    paths = ["/"] + [f"/{WORDS[number]}/{number}.html" for number in range(1, _PLAIN_PAGES)]
    for name in names:
        site = world.site(name)
        robots_of(site)
        for number, path in enumerate(paths):
            children = [paths[child] for child in (2 * number + 1, 2 * number + 2) if child < len(paths)]
            across = [world.url(chance.choice(names), chance.choice(paths)) for _ in range(2)]
            _html(world, site, path, [*children, chance.choice(paths), *across])
        _html(world, site, "/", [paths[1], paths[2], "/missing.html", "/gone.html"])
        site.pages["/gone.html"] = Page(answer(b"gone", status=410, kind="text/plain"))
    return [world.url(name) for name in names]


def _redirects(world: World) -> list[str]:
    """Every redirect status, within and across hosts, a chain, two loops, a relative and an empty target."""
    site = world.site("redirects.test")
    robots_of(site)
    other = world.url("plain2.test", "/landing.html")
    _html(world, world.sites["plain2.test"], "/landing.html", [])
    hops = {
        "/permanent": ("/end/permanent", 301), "/found": ("/end/found", 302), "/other": ("/end/other", 303),
        "/temporary": ("/end/temporary", 307), "/resume": ("/end/resume", 308), "/across": (other, 301),
        "/loop/a": ("/loop/b", 302), "/loop/b": ("/loop/a", 302), "/self": ("/self", 302),
        "/chain/1": ("/chain/2", 301), "/chain/2": ("/chain/3", 302), "/chain/3": ("/chain/4", 307),
        "/chain/4": ("/end/chain", 308), "/excluded": (world.url("excluded.test", "/by-redirect"), 302),
    }  # fmt: skip
    for path, (target, status) in hops.items():
        link = target if target.startswith("http") else world.url(site.host, target)
        site.pages[path] = Page(redirect(target, status), (link,))
        if target.startswith("/end/"):
            _html(world, site, target, [])
    site.pages["/relative/hop"] = Page(redirect("../end/relative#part"), (world.url(site.host, "/end/relative"),))
    _html(world, site, "/end/relative", [])
    site.pages["/no-target"] = Page(answer(b"lost", status=302, kind="text/plain"))
    starts = [path for path in hops if path not in ("/loop/b", "/chain/2", "/chain/3", "/chain/4")]
    return [_html(world, site, "/", [*starts, "/relative/hop", "/no-target"])]


def _rules(world: World) -> list[str]:
    """A robots.txt that forbids some of what the pages link to, with one longer Allow; and one with a delay."""
    site = world.site("rules.test")
    robots_of(site, b"\xef\xbb\xbfUser-agent: *\nDisallow: /private/\nDisallow: /*.cgi\nAllow: /private/open\n"
                  b"User-agent: SomeoneElse\nDisallow: /\n")  # fmt: skip
    open_paths = ["/private/open/1", "/private/open/2", "/public/1", "/public/2"]
    secret = ["/private/1", "/private/2?x=1", "/tool.cgi"]
    for path in [*open_paths, *secret]:
        _html(world, site, path, [])
    world.shunned.update(world.url(site.host, path) for path in secret)
    delayed = world.site("delay.test")
    delayed.floor_seconds = 2.0
    robots_of(delayed, b"User-agent: *\nCrawl-delay: 2\n")
    for number in range(1, 4):
        _html(world, delayed, f"/{number}", [])
    return [_html(world, site, "/", [*open_paths, *secret]), _html(world, delayed, "/", ["/1", "/2", "/3"])]


def _robots_answers(world: World) -> list[str]:
    """Hosts whose robots.txt is missing, moved (within the host, to another), down for a moment, down for good."""
    moved_rules = b"User-agent: *\nDisallow: /hidden\n"
    fronts = []
    for name in ("norobots.test", "moved.test", "away.test", "recovering.test", "down.test"):
        site = world.site(name)
        for path in ("/open", "/hidden"):
            _html(world, site, path, [])
        fronts.append(_html(world, site, "/", ["/open", "/hidden"]))
    sites = world.sites
    rules = Page(answer(moved_rules, kind="text/plain"))
    sites["moved.test"].pages |= {"/robots.txt": Page(redirect("/rules/robots.txt", 301)), "/rules/robots.txt": rules}
    sites["away.test"].pages["/robots.txt"] = Page(redirect(world.url("plain3.test", "/away-robots.txt"), 302))
    sites["plain3.test"].pages["/away-robots.txt"] = rules._replace(fate=Fate.MAY)
    world.extra += [world.url("moved.test", "/rules/robots.txt"), world.url("plain3.test", "/away-robots.txt")]
    world.extra += [world.url("script.test", path) for path in ("/app.js", "/app/one", "/app/two", "/app/three")]
    sites["recovering.test"].pages["/robots.txt"] = rules._replace(first=(refusal(503, "1", 1.0),))
    sites["down.test"].pages["/robots.txt"] = Page(answer(b"broken", status=500, kind="text/plain"))
    sites["down.test"].reachable = False
    for name in ("moved.test", "away.test", "recovering.test"):
        sites[name].disallow = ("/hidden",)
    return fronts


def _copies(world: World) -> list[str]:
    """Exact duplicates, near duplicates, and spellings of one address."""
    site = world.site("copies.test")
    robots_of(site)
    same = page_html("the same everywhere", body=f"<p>{text('same', 300)}</p>")
    exact = [f"/exact/{number}" for number in range(5)]
    site.pages |= {path: Page(answer(same)) for path in exact}
    near = [f"/near/{number}" for number in range(5)]
    for number, path in enumerate(near):
        link = f"/after-near/{number}"
        _html(world, site, path, [link], body=f"<p>{text('near', 300)} Printed on day {number}.</p>")
        _html(world, site, link, [])
    named = [f"/named/{number}" for number in range(5)]
    canonical = f'<link rel="canonical" href="{named[0]}">'
    for number, path in enumerate(named):
        body = f"<p>{text('named' if number < 4 else 'another', 300)} Printed on day {number}.</p>"
        _html(world, site, path, [], body=body, head=canonical, follow=named[:1])
    mirrored = [f"/mirrored/{number}" for number in range(4)]
    for path in mirrored:  # of a site that is never fetched
        original = f'<link rel="canonical" href="{world.url("excluded.test", path)}">'
        _html(world, site, path, [], body=f"<p>{text(path, 300)}</p>", head=original, follow=[])
    _html(world, site, "/last", ["/after-last"])
    _html(world, site, "/after-last", [])
    spellings = ["/list?a=1&b=2", "/list?b=2&a=1", "/list?a=1&b=2&utm_source=letter", "/list?a=1&b=2&fbclid=xyz"]
    for path in spellings:
        site.pages[path] = Page(answer(page_html("one list")))
    world.aliases.append(frozenset(world.url(site.host, path) for path in spellings))
    return [
        _html(
            world, site, "/", [*exact, *near, *named, *mirrored, *spellings, "/last", "/exact/0#part", "/exact/1#part"]
        )
    ]


def _slow(world: World) -> list[str]:
    """A site whose every answer takes its time."""
    site = world.site("slow.test")
    robots_of(site)
    paths = [f"/{number}" for number in range(1, 5)]
    for path in paths:
        _html(world, site, path, [], wait_seconds=_SLOW_SECONDS)
    return [_html(world, site, "/", paths, wait_seconds=_SLOW_SECONDS)]


def _trap(world: World) -> list[str]:
    """A calendar that never ends, and a path that nests itself."""
    site = world.site("trap.test")
    robots_of(site)

    def endless(path: str) -> Answer | None:
        if path.startswith("/calendar/") and path[10:].isdigit():
            return answer(page_html(path, [f"/calendar/{int(path[10:]) + 1}"]))
        if path.startswith("/nest/"):
            return answer(page_html(path, [f"{path}nest/"]))
        return None

    site.endless = endless
    return [_html(world, site, "/", ["/calendar/1", "/nest/"])]


def _script(world: World) -> list[str]:
    """A page that a script builds: without a browser it is an empty root element."""
    site = world.site("script.test")
    robots_of(site)
    root = '<div id="root"></div><noscript>You need to enable JavaScript.</noscript><script src="/app.js"></script>'
    shell = f"<!DOCTYPE html><html><head><title>app</title></head><body>{root}</body></html>"
    code = ("document.getElementById('root').innerHTML = '<h1>Built</h1><p>' + 'word '.repeat(300) + '</p>' + "
            "['one','two','three'].map(n => '<a href=\"/app/' + n + '\">' + n + '</a>').join(' ');")  # fmt: skip
    site.pages["/app"] = Page(answer(shell.encode()))
    site.pages["/app.js"] = Page(answer(code.encode(), kind="text/javascript"), fate=Fate.MAY)
    for name in ("one", "two", "three"):
        _html(world, site, f"/app/{name}", [])
        site.pages[f"/app/{name}"] = site.pages[f"/app/{name}"]._replace(fate=Fate.MAY)
    return [_html(world, site, "/", ["/app"])]


def _formats(world: World) -> list[str]:
    """Content codings, framings, character sets, media types and sizes."""
    site = world.site("formats.test")
    robots_of(site)
    body = page_html("coded page", ["/found-inside"])
    inside = (world.url(site.host, "/found-inside"),)
    pages = {
        **{f"/{coding}": Page(encoded(body, coding), inside) for coding in ("gzip", "deflate", "raw-deflate", "br")},
        "/chunked": Page(chunked(body), inside),
        "/until-close": Page(until_close(body), inside),
        "/until-close-11": Page(until_close(body, "1.1"), inside),
        "/big": Page(answer(page_html("big", body="<p>" + text("big", _BIG_BYTES // 7) + "</p>"))),
        "/paper": Page(answer(b"%PDF-1.4\n%synthetic\n", kind="application/pdf")),
        "/picture": Page(answer(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", kind="image/gif")),
        "/empty": Page(answer(b"")),
        "/no-content": Page(answer(b"", status=204)),
        "/no-type": Page(Answer(200, (b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<p>no type</p",))),
        "/forbidden": Page(answer(b"no", status=403, kind="text/plain")),
        "/cyrillic": Page(_charset("кириллица", "windows-1251", header=True), (world.url(site.host, "/ru?q=%FF"),)),
        "/kana": Page(_charset("日本語", "shift_jis", header=False)),
        "/ru?q=%FF": Page(answer(page_html("query in the page's own encoding"))),
    }
    site.pages |= pages
    _html(world, site, "/found-inside", [])
    return [_html(world, site, "/", [path for path in pages if not path.startswith("/ru")])]


def _charset(word: str, charset: str, *, header: bool) -> Answer:
    """A page in a legacy encoding, declared in the header or in a meta element; я in the query is FF in 1251."""
    meta = "" if header else f'<meta charset="{charset}">'
    query = '<a href="/ru?q=я">я</a>' if charset == "windows-1251" else ""
    html = f"<html><head>{meta}<title>{word}</title></head><body><p>{word * 40}</p>{query}</body></html>"
    return answer(html.encode(charset), kind=f"text/html; charset={charset}" if header else "text/html")


def _etiquette(world: World) -> list[str]:
    """What pages ask of robots (nofollow, noindex), base href, odd link elements and useless extensions."""
    site = world.site("etiquette.test")
    robots_of(site)
    quiet = ["/quiet/meta", "/quiet/header", "/quiet/link", "/quiet/archive.zip", "/quiet/film.mp4"]
    for path in [*quiet, "/base/inside.html", "/from-frame", "/from-area", "/canonical", "/next", "/from-refresh",
                 "/after-noindex"]:  # fmt: skip
        _html(world, site, path, [])
    world.shunned.update(world.url(site.host, path) for path in quiet)
    _html(world, site, "/meta", [quiet[0]], follow=[], head='<meta name="ROBOTS" content="NoFollow">')
    _html(world, site, "/header", [quiet[1]], follow=[], headers=["X-Robots-Tag: nofollow"])
    _html(world, site, "/noindex", ["/after-noindex"], head='<meta name="robots" content="noindex">')
    _html(world, site, "/rel", [], body=f'<a rel="external NOFOLLOW" href="{quiet[2]}">no</a>')
    _html(world, site, "/based", [], follow=["/base/inside.html"], head='<base href="/base/">',
          body='<a href="inside.html">in</a>')  # fmt: skip
    frames = '<iframe src="/from-frame"></iframe><map><area href="/from-area"></map><a href="  /canonical\n">c</a>'
    odd = ('<link rel="canonical" href="/canonical"><link rel="next" href="/next">'
           '<meta http-equiv="refresh" content="0; url=/from-refresh">')  # fmt: skip
    _html(world, site, "/odd", [], body=frames, head=odd,
          follow=["/from-frame", "/from-area", "/canonical", "/next", "/from-refresh"])  # fmt: skip
    return [_html(world, site, "/", ["/meta", "/header", "/noindex", "/rel", "/based", "/odd", *quiet[3:]])]


def _ugly(world: World) -> list[str]:
    """Servers that break the rules: one whose answers can be read, one whose answers cannot."""
    site, broken = world.site("ugly.test"), world.site("broken.test")
    for host, table, fate in ((site, READABLE, Fate.MUST), (broken, HOPELESS, Fate.MAY)):
        robots_of(host)
        for name, made in table.items():
            host.pages[f"/{name}"] = Page(made, fate=fate)
    fronts = [_html(world, site, "/", [f"/{name}" for name in READABLE])]
    return [*fronts, _html(world, broken, "/", [f"/{name}" for name in HOPELESS])]


def _busy(world: World) -> list[str]:
    """A host that asks to be left alone for a moment, twice, and then answers."""
    site = world.site("busy.test")
    robots_of(site)
    _html(world, site, "/calm", [])
    _html(world, site, "/limited", [])
    _html(world, site, "/overloaded", [])
    limited, overloaded = site.pages["/limited"], site.pages["/overloaded"]
    site.pages["/limited"] = limited._replace(first=(refusal(429, "2", 2.0),))
    site.pages["/overloaded"] = overloaded._replace(first=(refusal(503, "1", 1.0),))
    return [_html(world, site, "/", ["/limited", "/overloaded", "/calm"])]


def _neighbours(world: World) -> list[str]:
    """Three host names at one address: their requests share one clock."""
    fronts, ip = [], ""
    for name in ("shared-a.test", "shared-b.test", "shared-c.test"):
        site = world.site(name, ip)
        ip = site.ip
        robots_of(site)
        for number in range(1, 4):
            _html(world, site, f"/{number}", [])
        fronts.append(_html(world, site, "/", ["/1", "/2", "/3"]))
    return fronts


def _excluded(world: World) -> None:
    """A host on the NeverCrawl list, which would answer if it were asked."""
    world.nevercrawl.add("excluded.test")
    for name in ("excluded.test", "sub.excluded.test"):
        site = world.site(name)
        robots_of(site)
        for path in ("/deep", "/by-redirect"):
            _html(world, site, path, [])
        _html(world, site, "/", ["/deep"])
