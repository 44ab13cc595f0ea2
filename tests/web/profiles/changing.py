"""The profile of pages that change at known rates, and of addresses that only sitemaps and feeds name.

The server's clock is the machine's plus the days that the file ``clock`` in its folder holds, so that a test moves
both the web and the crawler by the same days.
"""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime
from pathlib import Path

from tests.web.answers import answer, page_html, text
from tests.web.graph import Answer, Page, Site, World

DAY = 86400.0
#: Path and days between two versions; the last never changes.
PERIODS = {"/daily": 1.0, "/weekly": 7.0, "/monthly": 30.0, "/fixed": 0.0}
FRESH_DAYS = 20.0
#: Path -> day from which late.test has a page there, and what it says before. The last two are forbidden until then.
LATE = {"/busy": (1, 500), "/born": (10, 404), "/shut": (1, 403), "/hidden": (1, 403)}
_IF_NONE_MATCH = re.compile(rb"\r\nif-none-match:[ \t]*([^\r\n]*)", re.IGNORECASE)
_IF_MODIFIED = re.compile(rb"\r\nif-modified-since:[ \t]*([^\r\n]*)", re.IGNORECASE)
_SITEMAP = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_ENTRIES = 3  # of each list

Now = Callable[[], float]


def clock(folder: Path) -> Now:
    """The server's clock, epoch seconds."""

    def now() -> float:
        try:
            return time.time() + float((folder / "clock").read_text()) * DAY
        except (OSError, ValueError):
            return time.time()

    return now


def changing_world(port: int, now: Now) -> World:
    """Hosts that differ in what their validators are worth, and hosts whose pages no page links to."""
    world = World(port)
    for name, kind in (("honest", _honest), ("restless", _restless), ("liar", _liar), ("bare", _bare)):
        site = world.site(f"{name}.test")
        site.pages["/robots.txt"] = Page(answer(b"User-agent: *\nAllow: /\n", kind="text/plain"))
        site.dynamic = kind(f"{name}.test", now)
        world.seeds.append(world.url(site.host))
    _mapped(world, now)
    _fed(world, now)
    _styled(world, now)
    _late(world, now)
    return world


def version_since(path: str, now: float) -> tuple[int, float]:
    """A page's version, and since when it is that."""
    period = PERIODS.get(path, 0.0) * DAY
    if not period:
        return 0, 1_500_000_000.0
    version = int(now / period)
    return version, version * period


def _page(host: str, path: str, now: float) -> tuple[bytes, str, float] | None:
    """Body, ETag and last change; the front page links to the others and never changes."""
    if path == "/":
        return page_html(host, sorted(PERIODS)), '"front"', 1_500_000_000.0
    if path not in PERIODS:
        return None
    version, since = version_since(path, now)
    body = page_html(f"{path} {version}", ["/"], body=f"<p>{text(f'{host}{path}{version}', 240)}</p>")
    return body, f'"{path[1:]}-{version}"', since


def _unchanged(head: bytes, etag: str, since: float) -> bool:
    """RFC 9110 13.2.2: If-None-Match goes before If-Modified-Since."""
    if found := _IF_NONE_MATCH.search(head):
        return etag.encode() in found[1]
    if found := _IF_MODIFIED.search(head):
        return parsedate_to_datetime(found[1].decode()).timestamp() >= int(since)
    return False


def _answer(
    body: bytes, etag: str, since: float, head: bytes, *, unchanged: bool, kind: str = "text/html; charset=utf-8"
) -> Answer:
    headers = [f"ETag: {etag}", f"Last-Modified: {formatdate(since, usegmt=True)}"]
    if unchanged:
        lines = ["HTTP/1.1 304 Not Modified", *headers]
        return Answer(304, ("\r\n".join(lines).encode() + b"\r\n\r\n",))
    return answer(body, headers=headers, kind=kind)


def _honest(host: str, now: Now) -> Callable[[str, bytes], Answer | None]:
    """Validators that say what is so; one page is fresh for long."""

    def dynamic(path: str, head: bytes) -> Answer | None:
        found = _page(host, path, now())
        if found is None:
            return None
        body, etag, since = found
        if path == "/monthly":
            return answer(body, headers=[f"ETag: {etag}", f"Cache-Control: max-age={int(FRESH_DAYS * DAY)}"])
        return _answer(*found, head, unchanged=_unchanged(head, etag, since))

    return dynamic


def _restless(host: str, now: Now) -> Callable[[str, bytes], Answer | None]:
    """An ETag that is another at each answer; the date is right."""

    def dynamic(path: str, head: bytes) -> Answer | None:
        found = _page(host, path, now())
        if found is None:
            return None
        body, _, since = found
        etag = f'"{time.time_ns()}"'
        return _answer(body, etag, since, head, unchanged=_unchanged(head, etag, since))

    return dynamic


def _liar(host: str, now: Now) -> Callable[[str, bytes], Answer | None]:
    """The same validators for ever, whatever the body; asked conditionally, it says 304."""

    def dynamic(path: str, head: bytes) -> Answer | None:
        found = _page(host, path, now())
        if found is None:
            return None
        always = ('"always"', 1_500_000_000.0)
        return _answer(found[0], *always, head, unchanged=_unchanged(head, *always))

    return dynamic


def _bare(host: str, now: Now) -> Callable[[str, bytes], Answer | None]:
    """No validators at all."""

    def dynamic(path: str, head: bytes) -> Answer | None:
        found = _page(host, path, now())
        return None if found is None else answer(found[0])

    return dynamic


def _styled(world: World, now: Now) -> None:
    """A page that never changes; its sheet does each day, and names another picture then. One is a stranger's."""
    site, cdn = world.site("styled.test"), world.site("cdn.test")
    head = f'<link rel="stylesheet" href="/style.css"><link rel="icon" href="{world.url(cdn.host, "/logo.png")}">'
    front = page_html("styled", head=head)
    world.seeds.append(world.url(site.host))

    def dynamic(path: str, head: bytes) -> Answer | None:
        day = int(now() / DAY)
        if path == "/":
            version = (front, '"front"', 1_500_000_000.0)
            return _answer(*version, head, unchanged=_unchanged(head, *version[1:]))
        if path == "/style.css":
            return answer(f"body {{ background: url(paper-{day}.png) }}".encode(), kind="text/css")
        return answer(path.encode(), kind="image/png") if path.startswith("/paper-") else None

    def picture(path: str, head: bytes) -> Answer | None:
        made = (b"PNG", '"logo"', 1_500_000_000.0)
        if path != "/logo.png":
            return None
        return _answer(*made, head, unchanged=_unchanged(head, *made[1:]), kind="image/png")

    site.dynamic, cdn.dynamic = dynamic, picture


def _late(world: World, now: Now) -> None:
    """URLs that show no page on the first day."""
    site = world.site("late.test")
    world.seeds.extend((world.url(site.host), world.url(site.host, "/shut")))

    def dynamic(path: str, head: bytes) -> Answer | None:
        day = (now() - time.time()) / DAY
        if path == "/robots.txt":
            shut = "" if day >= LATE["/shut"][0] else "Disallow: /shut\nDisallow: /hidden\n"
            return answer(f"User-agent: *\nDisallow: /never\n{shut}".encode(), kind="text/plain")
        if path == "/":
            version = (page_html("late", ["/busy", "/born", "/hidden"]), '"front"', 1_500_000_000.0)
            return _answer(*version, head, unchanged=_unchanged(head, *version[1:]))
        since, before = LATE.get(path, (0, 404))
        return answer(page_html(path)) if day >= since else answer(page_html("none"), status=before)

    site.dynamic = dynamic


def _mapped(world: World, now: Now) -> None:
    """Pages that only sitemaps name, in every form; and what sitemaps must not get fetched."""
    site, other = world.site("mapped.test"), world.site("other.test")
    site.disallow = ("/private/",)
    names = ("index.xml", "plain.txt", "rss.xml", "bomb.xml", "missing.xml", "endless-0.xml")
    lines = "".join(f"Sitemap: {world.url(site.host, f'/maps/{name}')}\n" for name in names)
    site.pages["/robots.txt"] = Page(answer(f"User-agent: *\nDisallow: /private/\n{lines}".encode(), kind="text/plain"))
    # other.test's own robots.txt names a sitemap at mapped.test: that one may speak for it.
    cross = f"Sitemap: {world.url(site.host, '/maps/cross.xml')}\n"
    other.pages["/robots.txt"] = Page(answer(cross.encode(), kind="text/plain"))
    for host, path in ((site.host, "/"), (other.host, "/")):
        world.sites[host].pages[path] = Page(answer(page_html(host)))
        world.seeds.append(world.url(host))
    for kind in ("xml", "gz", "txt", "rss"):
        for number in range(_ENTRIES):
            site.pages[f"/only/{kind}{number}"] = Page(answer(page_html(f"only {kind} {number}")))
    other.pages["/crossed"] = Page(answer(page_html("crossed")))
    other.pages["/stolen"] = Page(answer(page_html("named by a stranger")))
    site.pages["/private/mapped"] = Page(answer(page_html("private")))

    def dynamic(path: str, head: bytes) -> Answer | None:
        made = _sitemap(world, site, path, now())
        return None if made is None else answer(made, kind="application/xml")

    site.dynamic = dynamic


def _sitemap(world: World, site: Site, path: str, now: float) -> bytes | None:
    """The file at ``path``, as of now."""

    def only(kind: str) -> list[str]:
        return [world.url(site.host, f"/only/{kind}{number}") for number in range(_ENTRIES)]

    day = formatdate(now // DAY * DAY, usegmt=True)
    if path == "/maps/index.xml":
        maps = "".join(f"<sitemap><loc>{world.url(site.host, f'/maps/{name}')}</loc></sitemap>"
                       for name in ("pages.xml", "pages.xml.gz", "index.xml"))  # fmt: skip
        return f"<sitemapindex {_SITEMAP}>{maps}</sitemapindex>".encode()
    if path == "/maps/pages.xml":
        stolen = [world.url("other.test", "/stolen"), world.url(site.host, "/private/mapped")]
        rows = "".join(f"<url><loc>{url}</loc><lastmod>2017-07-14</lastmod></url>" for url in [*only("xml"), *stolen])
        return f"<urlset {_SITEMAP}>{rows}</urlset>".encode()
    if path == "/maps/pages.xml.gz":
        rows = "".join(f"<url><loc>{url}</loc></url>" for url in only("gz"))
        return gzip.compress(f"<urlset {_SITEMAP}>{rows}</urlset>".encode(), mtime=0)
    if path == "/maps/cross.xml":
        return f"<urlset {_SITEMAP}><url><loc>{world.url('other.test', '/crossed')}</loc></url></urlset>".encode()
    if path == "/maps/plain.txt":
        return "\n".join(only("txt")).encode()
    if path == "/maps/rss.xml":
        items = "".join(f"<item><link>{url}</link><pubDate>{day}</pubDate></item>" for url in only("rss"))
        return f"<rss><channel>{items}</channel></rss>".encode()
    if path == "/maps/bomb.xml":
        return b'<!DOCTYPE u [<!ENTITY a "lol"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
    if path.startswith("/maps/endless-") and path[14:-4].isdigit():
        following = world.url(site.host, f"/maps/endless-{int(path[14:-4]) + 1}.xml")
        return f"<sitemapindex {_SITEMAP}><sitemap><loc>{following}</loc></sitemap></sitemapindex>".encode()
    return None


def _fed(world: World, now: Now) -> None:
    """A front page whose feeds name entries that no page links to: one more each day."""
    site = world.site("fed.test")
    site.pages["/robots.txt"] = Page(answer(b"User-agent: *\nAllow: /\n", kind="text/plain"))
    head = "".join(f'<link rel="alternate" type="application/{kind}" href="/feed.{name}">'
                   for kind, name in (("rss+xml", "rss"), ("atom+xml", "atom"), ("feed+json", "json"),
                                      ("rss+xml", "html")))  # fmt: skip
    site.pages["/"] = Page(answer(page_html("fed", head=head)))
    world.seeds.append(world.url(site.host))

    def dynamic(path: str, head: bytes) -> Answer | None:
        if path.startswith("/entry/"):
            return answer(page_html(path))
        today = int(now() / DAY)
        urls = [world.url(site.host, f"/entry/{path.rpartition('.')[2]}/{day}") for day in (today - 1, today)]
        if path == "/feed.rss":
            items = "".join(f"<item><guid>{url}</guid></item>" for url in urls)
            return answer(f"<rss><channel>{items}</channel></rss>".encode(), kind="application/rss+xml")
        if path == "/feed.atom":
            items = "".join(f'<entry><link href="{url}"/></entry>' for url in urls)
            return answer(f"<feed>{items}</feed>".encode(), kind="application/atom+xml")
        if path == "/feed.json":
            items = ",".join(f'{{"url":"{url}"}}' for url in urls)
            made = f'{{"version":"https://jsonfeed.org/version/1.1","items":[{items}]}}'
            return answer(made.encode(), kind="application/feed+json")
        if path == "/feed.html":
            return answer(page_html("a page, whatever its type says"), kind="application/rss+xml")
        return None

    site.dynamic = dynamic
