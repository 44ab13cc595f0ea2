"""Pages as large as they may be, in shapes that are dear to read, beside an innocent host at a fine pace."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.arena import Asked, answer, arena
from tests.hostile.ledger import pays
from tests.spending import slowness

MAX_BYTES = 5 * 1024 * 1024
#: Of the processor's time: what the machine's other work holds up is not the crawl's.
MOST_HELD_SECONDS = 0.1
HEAD = "<!doctype html><title>big</title><body>"


def grown(unit: Callable[[int], str], head: str = HEAD, size: int = MAX_BYTES) -> bytes:
    """A page of units up to its size."""
    parts, length, number = [head], len(head), 0
    while length < size:
        part = unit(number)
        parts.append(part)
        length += len(part)
        number += 1
    return "".join(parts).encode()[:size]


SHAPES: dict[str, Callable[[], bytes]] = {
    "/links": lambda: grown(lambda n: f'<a href="/nowhere/{n}">x</a> ', size=1_000_000),
    "/options": lambda: grown(lambda n: f"<option>{n}", HEAD + "<select>"),
    "/some-options": lambda: grown(lambda n: f"<option>{n}", HEAD + "<select>", 120_000),
    "/nested": lambda: HEAD.encode() + b"<div>" * 13_900 + b"x" * 500_000,
    "/small-nested": lambda: HEAD.encode() + b"<div>" * 13_900,
    "/formatting": lambda: grown(lambda n: f"<b id={n}>" if n < 700 else "<p>x", HEAD + "<p>", 12_000),
    "/attributes": lambda: grown(lambda n: "<p " + " ".join(f"a{place}" for place in range(900)) + ">"),
    "/hidden-attributes": lambda: HEAD.encode() + b"<p " + b" ".join(b'a%d=">"' % n for n in range(10_000)) + b">",
    "/attribute": lambda: HEAD.encode() + b'<a href="/' + b"x" * (MAX_BYTES - 1000) + b'">y</a>',
    "/text": lambda: grown(lambda n: f"word{n % 5000} "),
    "/chinese": lambda: "中文字".encode() * (MAX_BYTES // 9),
    "/tables": lambda: grown(lambda n: f"<table><tr><td>{n}</td></tr></table>"),
    "/zeros": lambda: HEAD.encode() + bytes(MAX_BYTES - 100),
    "/frames": lambda: grown(lambda n: f"<iframe src=/nowhere/{n % 2000}></iframe>"),
}


@pytest.fixture(scope="module")
def bodies() -> dict[str, bytes]:
    """Every shape, made once."""
    return {path: make() for path, make in SHAPES.items()}


def stat(log: str, name: str) -> float:
    """A number of the statistics at a crawl's end."""
    found = re.search(rf"'{re.escape(name)}': ([\d.]+)", log)
    return float(found[1]) if found else 0.0


def test_no_page_holds_the_loop(tmp_path: Path, bodies: dict[str, bytes]) -> None:
    """Each is archived; the innocent host is asked at its pace meanwhile, by its own log."""
    packed = {path: gzip.compress(bodies[path], 1) for path in ("/text", "/options", "/attributes")}

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/robots.txt":
            return answer("User-agent: *\nDisallow: /nowhere/\n", mime="text/plain")
        if asked.path == "/":
            return answer(
                "".join(f'<a href="{path}">x</a>' for path in (*bodies, *(f"{path}-packed" for path in packed)))
            )
        if asked.path.endswith("-packed") and (body := packed.get(asked.path.removesuffix("-packed"))):
            return answer(body, Content_Encoding="gzip")
        return answer(body) if (body := bodies.get(asked.path)) else None

    settings = {"READ_TIMEOUT_SECONDS": "5"}
    with arena(tmp_path) as web:
        seed = web.site("big.test", make)
        crawled = web.crawl(web.innocent(pages=40), seed, settings=settings, seconds=240)

        assert {*bodies, *(f"{path}-packed" for path in packed)} <= set(web.paths("big.test"))
        web.assert_undisturbed(least=40, during="pages of 5 MB in dear shapes")
    lines = [json.loads(line) for path in crawled.folder.glob("log/*.jsonl") for line in path.open()]
    large = [row for row in lines if row["bytes"] > 10_000 and row["host"].startswith("big.test")]
    assert {row["reason"] for row in large} == {"fetched"}
    assert all(row["warc"] for row in large)
    bombs = {row["url"].rpartition("/")[2] for row in large if row["error"] and row["error"].startswith("parser bomb")}
    assert bombs >= {"options", "options-packed", "hidden-attributes"}
    assert stat(crawled.log, "reading/parser_bomb") == len(bombs)
    assert stat(crawled.log, "reading/html") >= 10
    held, most = stat(crawled.log, "loop/longest_work_seconds"), MOST_HELD_SECONDS * slowness()
    pays("pages of 5 MB in dear shapes", "the crawl", held, "s of one turn", at_most=most)


def test_a_list_that_takes_too_long_is_archived_unread(tmp_path: Path) -> None:
    """A sitemap of 70 KB that grows to 49 MB; the crawl says what became of it and goes on."""
    slow = gzip.compress(b"<urlset>" + b"<a></a>" * 7_000_000)

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/robots.txt":
            return answer(f"Sitemap: {web.url('slow.test', '/map.xml')}\n", mime="text/plain")
        if asked.path == "/map.xml":
            return answer(slow, mime="application/gzip")
        return answer("<p>front") if asked.path == "/" else None

    with arena(tmp_path) as web:
        seeds = [web.site("slow.test", make), web.innocent(pages=20)]
        crawled = web.crawl(*seeds, settings={"READ_TIMEOUT_SECONDS": "1"}, seconds=120)

        web.assert_undisturbed(least=20, during="a sitemap that unpacks to 49 MB")
    lines = [json.loads(line) for path in crawled.folder.glob("log/*.jsonl") for line in path.open()]
    row = next(row for row in lines if row["url"].endswith("/map.xml"))
    assert (row["reason"], row["error"]) == ("fetched", "could not be read in 1 s")
    assert row["warc"]
    assert stat(crawled.log, "reading/failed") == 1
    assert stat(crawled.log, "loop/longest_work_seconds") <= MOST_HELD_SECONDS * slowness()
