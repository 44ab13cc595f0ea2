"""Thirty published spiders with and without the add-on: the same items, requests, order, stats and exit status.

Both runs are of one foreign project against one site; what differs is in ``_DIFFERENT``, and in docs/addon.md.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.addon.all_at_once import SCRIPT
from tests.addon.published_spiders import NAMES, address
from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.web import zygote
from tests.web.running import PROJECT

SPIDERS = Path(__file__).with_name("published_spiders.py")
# Of a run's moment, or of the process.
_OF_THE_MOMENT = re.compile(
    r"(start|finish)_time|elapsed_time|memusage/|_per_minute|scheduler/|log_count/|resting|request_depth_max$"
)
# docs/addon.md, "Stats": refusals and given back requests are counted, too, and no bytes of robots.txt.
_DIFFERENT = re.compile(r"downloader/(request|response)_bytes|refused/|pace/")
# Nor is robots.txt among these.
_WITH_ROBOTS = (
    *("response_received_count", "downloader/request_count", "downloader/request_method_count/GET"),
    *("downloader/response_count", "downloader/response_status_count/200"),
)
# A traceback's last line.
_RAISED = re.compile(r"^Traceback .*\n(?:[ \t].*\n|\n)*(\S.*)", re.MULTILINE)
QUOTE = (
    '<div class="quote"><span class="text">q{0}</span><small class="author">a</small><a href="/author/{1}">about</a>'
)
QUOTE += '<a class="tag" href="/tag/life/">life</a></div>'
NEXT = '<li class="next"><a href="{}">Next</a></li>'
BOOK = '<article><h3><a href="/book/{0}">Book {0}</a></h3></article>'
FORM = '<form action="/login" method="post"><input name="csrf" value="7"><input name="username"></form>'
PAGES: dict[str, bytes] = {
    "/": page("/page/3/", "/author/ann", "/books/", "http://127.71.9.9/"),
    "/page/1/": answer(QUOTE.format(1, "ann") + QUOTE.format(2, "bob") + NEXT.format("/page/2/")),
    "/page/2/": answer(QUOTE.format(3, "ann") + NEXT.format("/page/3/")),
    "/page/3/": answer("<title>last</title>" + QUOTE.format(4, "cid")),
    "/tag/life/": answer("<title>life</title>"),
    "/books/": answer("".join(map(BOOK.format, (1, 2))) + NEXT.format("/books/2")),
    "/books/2": answer(BOOK.format(3)),
    "/search": answer('<input id="state" value="s"><select id="author"><option value="x"><option value="y"></select>'),
    "/js/": answer('<script>var data = [{"n": 1}, {"n": 2}];</script>'),
    "/tableful/": answer("<table><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>"),
    "/feed.csv": answer("1;one\n2;two\n", mime="text/csv"),
    "/feed.xml": answer('<r><item id="1"><name>n</name></item><item id="2"><name>m</name></item></r>', mime="text/xml"),
    "/missing": answer("no", "404 Not Found"),
    "/broken": answer("no", "500 Internal Server Error"),
    "/login": answer(FORM),
    "/home": answer("<a>Logout</a>"),
}


def made(asked: Asked, count: int) -> bytes:
    """What the site answers."""
    path, _, query = asked.path.partition("?")
    site = asked.head.split(b"Host: ")[1].split(b"\r\n")[0].decode()
    if path == "/robots.txt":
        return answer(f"User-agent: *\nDisallow: /no\nSitemap: http://{site}/sitemap.xml\n", mime="text/plain")
    if path == "/sitemap.xml":
        places = "".join(f"<url><loc>http://{site}/{at}</loc></url>" for at in ("book/1", "author/ann", "other"))
        return answer(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>', mime="text/xml")
    if path == "/login" and asked.body:
        good = {b"csrf=7", b"username=a", b"password=b"} == set(asked.body.split(b"&"))
        return answer(status="302 Found", Location="/home" if good else "/login")
    if path == "/api/quotes":
        number = int(query.removeprefix("page="))
        told = {"page": number, "has_next": number < 3, "quotes": [{"quote": number}]}
        return answer(json.dumps(told), mime="application/json")
    if path == "/cookie":
        return answer("set", Set_Cookie=f"jar={query}")
    if path == "/echo":
        return answer("\n".join(sorted(asked.head.decode().replace("\r", "").splitlines())), mime="text/plain")
    if path == "/filter":
        return answer(b"got " + asked.body, mime="text/plain")
    if path == "/empty":
        return answer("" if count == 1 else "full", mime="text/plain")
    if path.startswith(("/book/", "/author/")):
        name = path.rpartition("/")[2]
        return answer(f'<h1> book {name} </h1><h3>{name}</h3><p class="price">£{len(name)}</p>')
    return PAGES.get(asked.path, PAGES["/missing"])


class Ran(NamedTuple):
    """One run of all spiders."""

    status: int
    stats: dict[str, dict[str, Any]]
    asked: dict[str, list[str]]  # by spider, in order, each with its body
    items: dict[str, list[str]]
    log: str


def run_all(folder: Path, addon: dict[str, int]) -> Ran:
    """In a fresh project, with these add-ons."""
    home = folder / "other"
    env = zygote.direct(PYTHONPATH=str(PROJECT), SHOP_OUT=str(folder / "out"))
    (folder / "out").mkdir(parents=True)

    def python(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return zygote.run([sys.executable, *arguments], cwd=where, env=env, timeout=90)

    assert python(folder, "-m", "scrapy", "startproject", "other").returncode == 0
    with arena(folder / "web") as web:
        env["SHOP_PORT"] = str(web.port)
        log: dict[str, list[str]] = {name: [] for name in NAMES}
        for name in NAMES:
            _site(web, name, log[name])
        ours = {name: value for name, value in SETTINGS.items() if addon}
        given: dict[str, Any] = ours | {
            "ADDONS": addon, "CRAWLER_CONTACT": "tests@example.org", "USER_AGENT": "shopper (+https://shop.example/)",
            "FETCH_ALLOW_NETWORKS": ["127.0.0.0/8"], "NEVERCRAWL_FILE": "",
            # One at a time, in the scheduler's order, as the add-on has it of each host anyway: Scrapy takes as many as
            # there are places out of the scheduler, and lets them wait in their order for the host.
            "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS": 1, "TELNETCONSOLE_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
        }  # fmt: skip
        with (home / "other" / "settings.py").open("a") as file:
            file.writelines(f"\n{name} = {value!r}" for name, value in given.items())
        (home / "other" / "spiders" / "published.py").write_text(SPIDERS.read_text())
        (home / "run.py").write_text(SCRIPT)
        ended = python(home, "run.py", *NAMES)
        assert (home / "stats.json").exists(), ended.stderr[-3000:]
    stats = json.loads((home / "stats.json").read_text())
    port = f":{web.port}"
    texts = {name: (folder / "out" / f"{name}.jsonl").read_text().replace(port, "") for name in NAMES}
    items = {name: re.sub("full/[0-9a-f]+", "full/…", text).splitlines() for name, text in texts.items()}  # of the URL
    return Ran(ended.returncode, stats, log, items, ended.stderr)


def _site(web: Arena, name: str, log: list[str]) -> None:
    async def talk(asked: Asked, writer: asyncio.StreamWriter) -> None:
        line = f"{asked.path} {asked.body.decode()}".strip()
        log.append(line)
        writer.write(made(asked, log.count(line)))
        await writer.drain()

    web.raw_site(address(name), talk, address(name))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Ran]:
    """Scrapy alone, and with the add-on."""
    folder = tmp_path_factory.mktemp("published")
    runs = []
    for name, addons in (("alone", {}), ("addon", {"crawlerproject.addon.PoliteCrawl": 100})):
        (folder / name).mkdir()
        runs.append(run_all(folder / name, addons))
    return runs[0], runs[1]


def test_there_are_thirty() -> None:
    """Each under the name of what it is like."""
    assert len(set(NAMES)) == len(NAMES) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_the_same_with_and_without(both: tuple[Ran, Ran], name: str) -> None:
    """Items and requests in their order, and each stat that is not of the moment."""
    alone, addon = both

    assert addon.asked[name] == alone.asked[name]
    assert addon.items[name] == alone.items[name]
    assert alone.asked[name]
    known = re.compile(f"{_OF_THE_MOMENT.pattern}|{_DIFFERENT.pattern}")
    expected, counted = (
        {key: value for key, value in ran.stats[name].items() if not known.search(key)} for ran in (alone, addon)
    )
    for key in _WITH_ROBOTS:
        expected[key] -= expected["robotstxt/response_count"]
    assert counted == {key: value for key, value in expected.items() if value or key not in _WITH_ROBOTS}


def test_the_exit_status_is_the_same(both: tuple[Ran, Ran]) -> None:
    """And so is what was raised."""
    alone, addon = both

    assert (addon.status, alone.status) == (0, 0)
    raised, expected = (_RAISED.findall(ran.log) for ran in both)
    assert raised == expected, addon.log
