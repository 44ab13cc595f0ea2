"""robots.txt as a weapon: rules that cost, files that drip or break off, pauses that never end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.running import scrapy
from tests.hostile.arena import Arena, Asked, Crawled, Talk, answer, arena, page
from tests.hostile.ledger import pays
from tests.robots_files import worst_file

LINKS = 3_000
COSTLY = ("stars", "a thousand stars, again and again", "one star, an end each", "short and plain", "near misses")
ABSURD = {
    "float.test": "1.79e308",
    "infinite.test": "inf",
    "overflow.test": "1e400",
    "digits.test": "9" * 400,
    "months.test": "99999999",
}


#: CPU of one turn of the event loop; 0.02 to 0.05 measured.
MOST_WORK_SECONDS = 0.3


def longest_work_seconds(crawl: Crawled) -> float:
    """The longest that one turn of the loop computed, a busy machine not counted."""
    found = re.search(r"'loop/longest_work_seconds': ([0-9.e-]+)", crawl.log)
    assert found is not None
    return float(found[1])


def costly(web: Arena, number: int) -> str:
    """A site with a costly robots.txt and a page of thousands of links to judge by it."""
    robots = answer(worst_file(COSTLY[number]), mime="text/plain")
    links = [f"/{'a' * 40}/{at}x{at}.html?{'aaab' * 10}aaba={at}" for at in range(LINKS)]
    front = page(*links)
    return web.site(
        f"costly{number}.test",
        lambda asked: robots if asked.path == "/robots.txt" else front if asked.path == "/" else page(text=asked.path),
    )


def test_the_dearest_rules_against_thousands_of_links(tmp_path: Path) -> None:
    """No robots.txt within 500 KiB, and no page of links judged by it, holds up others."""
    with arena(tmp_path) as web:
        sites = [costly(web, number) for number in range(len(COSTLY))]
        names = [f"costly{number}.test" for number in range(len(COSTLY))]
        crawl = web.crawl(
            web.innocent(),
            *sites,
            until=lambda: (
                all(web.of(name, robots=True) for name in names)
                and len(web.of("costly0.test")) > 2
                and len(web.of("innocent.test")) > 40
            ),
        )
        web.assert_undisturbed(least=40, during="robots.txt with dear rules")
    held = longest_work_seconds(crawl)
    pays("robots.txt with dear rules", "the crawl", held, "s of one turn", at_most=MOST_WORK_SECONDS)


# --- files that do not come whole, and pauses that never end --------------------------------------


async def drip(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """An answer that never ends; what it says first allows everything."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        for octet in b"User-agent: nobody\nDisallow: /\n" + b"#" * 10_000:
            writer.write(bytes([octet]))
            await writer.drain()
            await asyncio.sleep(0.05)


async def broken(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """An answer that breaks off before the line that forbids."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 900\r\n\r\nUser-agent: *\n")
    await writer.drain()
    writer.close()


async def damaged(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """A compressed answer that is not what its header says."""
    body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x00\x01"
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()


def unfinished(web: Arena) -> dict[str, str]:
    """Sites whose robots.txt does not come whole, by name."""

    async def pages(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(page("/a", "/b", text=asked.host))
        await writer.drain()

    async def moved(asked: Asked, writer: asyncio.StreamWriter) -> None:
        location = web.url("drip.test", "/robots.txt").encode()
        writer.write(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location)
        await writer.drain()

    def talk(robots: Talk) -> Talk:
        async def answered(asked: Asked, writer: asyncio.StreamWriter) -> None:
            await (robots if asked.path == "/robots.txt" else pages)(asked, writer)

        return answered

    kinds = {"drip.test": drip, "broken.test": broken, "damaged.test": damaged, "moved.test": moved}
    return {name: web.raw_site(name, talk(robots)) for name, robots in kinds.items()}


def absurd(web: Arena) -> dict[str, str]:
    """Sites that ask for pauses beyond any crawl."""

    def site(name: str, delay: str) -> str:
        robots = answer(f"User-agent: *\nCrawl-delay: {delay}\n", mime="text/plain")
        return web.site(name, lambda asked: robots if asked.path == "/robots.txt" else page("/a", text=name))

    return {name: site(name, delay) for name, delay in ABSURD.items()}


def long(web: Arena) -> str:
    """A site whose robots.txt is longer than what is read: what stands before the bound holds."""
    robots = b"User-agent: *\nDisallow: /no\n" + b"# filler\n" * 70_000 + b"Disallow: /\n"
    return web.site(
        "long.test",
        lambda asked: (
            answer(robots, mime="text/plain") if asked.path == "/robots.txt" else page("/no", "/yes", text=asked.path)
        ),
    )


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawled, Arena]:
    """One crawl among all of them; both are looked at afterwards."""
    with arena(tmp_path_factory.mktemp("robots")) as web:
        sites = [*unfinished(web).values(), *absurd(web).values(), long(web)]
        crawl = web.crawl(
            web.innocent(),
            *sites,
            settings={"FETCH_TIMEOUT_SECONDS": "2", "PROGRESS_LOG_SECONDS": "1"},
            until=lambda: (
                len(web.of("drip.test", robots=True)) > 1
                and all(web.of(name, robots=True) for name in ("broken.test", "damaged.test", "moved.test", *ABSURD))
                and len(web.of("long.test")) >= 2
                and len(web.of("innocent.test")) > 40
            ),
        )
    return crawl, web


@pytest.mark.parametrize("name", ["drip.test", "broken.test", "damaged.test", "moved.test"])
def test_what_does_not_come_whole_allows_nothing(crawled: tuple[Crawled, Arena], name: str) -> None:
    """RFC 9309 2.3.1.4: as unreachable, and so no page is asked for; robots.txt is, again and again."""
    crawl, web = crawled
    assert web.of(name, robots=True)
    assert web.of(name) == []
    done = scrapy("why", web.url(name), "-s", f"CRAWL_DIR={crawl.folder}")
    assert done.returncode == 0
    assert "robots-unreachable" in done.stdout or "host-parked" in done.stdout


@pytest.mark.parametrize(("name", "reason"), [("drip.test", "time"), ("broken.test", "disconnect")])
def test_the_log_says_what_happened(crawled: tuple[Crawled, Arena], name: str, reason: str) -> None:
    """A robots.txt that was cut has its status, its truncation and a sentence."""
    crawl, _ = crawled
    rows = [row for row in read_log(crawl.folder / "log") if row["url"].startswith(f"http://{name}")]
    assert rows
    assert {(row["status"], row["truncated"], row["reason"]) for row in rows} == {(200, reason, "disconnected")}
    assert all("robots.txt cannot be used" in row["error"] for row in rows)


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_pause_is_to_be_left_alone(crawled: tuple[Crawled, Arena], name: str) -> None:
    """Only robots.txt is asked for; why and hosts say it in words."""
    crawl, web = crawled
    assert web.of(name, robots=True)
    assert web.of(name) == []
    done = scrapy("why", web.url(name), "-s", f"CRAWL_DIR={crawl.folder}")
    assert done.returncode == 0
    assert "left alone" in done.stdout
    done = scrapy("why", f"{name}:{web.port}", "-s", f"CRAWL_DIR={crawl.folder}", "--json")
    assert json.loads(done.stdout)["state"] == "left-alone"


def test_what_is_cut_by_its_length_is_read_as_far_as_it_goes(crawled: tuple[Crawled, Arena]) -> None:
    """The rule before the bound holds, the one behind it does not."""
    _, web = crawled
    assert "/yes" in web.paths("long.test")
    assert "/no" not in web.paths("long.test")


def test_commands_and_progress_bear_it(crawled: tuple[Crawled, Arena]) -> None:
    """status and hosts answer, the progress line was written, and others were not held up."""
    crawl, web = crawled
    for command in ("status", "hosts"):
        for options in ([], ["--json"]):
            done = scrapy(command, *options, "-s", f"CRAWL_DIR={crawl.folder}")
            assert done.returncode == 0, done.stderr
            if options:
                json.loads(done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert "left-alone" in scrapy("hosts", "-s", f"CRAWL_DIR={crawl.folder}").stdout
    assert " pages/s" in crawl.log
    assert "Traceback" not in crawl.log
    web.assert_undisturbed(least=40, during="robots.txt that drips, breaks off or asks for months")
