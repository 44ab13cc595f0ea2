"""robots.txt that is answered, but never with rules: no page is asked for, and its host is left alone in the end."""

from __future__ import annotations

import pytest

from tests.commands.running import scrapy
from tests.hostile.arena import SETTINGS, Arena, Crawled, answer, arena, page

UNASKED = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
NEVER = {
    "limited.test": answer("later", "429 Too Many Requests"),
    "asking.test": answer("later", "429 Too Many Requests", Retry_After="1"),
    "busy.test": answer("later", "503 Service Unavailable", Retry_After="1"),
    "odd.test": answer("no", "999 Request denied"),
    "cached.test": UNASKED,
}
"""What robots.txt is answered with, always."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Crawled, Arena]:
    """One crawl of them all, which ends by itself."""
    with arena(tmp_path_factory.mktemp("robots")) as web:

        def site(name: str) -> str:
            return web.site(name, lambda asked: NEVER[name] if asked.path == "/robots.txt" else page(text=name))

        return web.crawl(*map(site, NEVER), web.innocent(pages=3), seconds=30), web


@pytest.mark.parametrize("name", NEVER)
def test_the_host_is_left_alone(crawled: tuple[Crawled, Arena], name: str) -> None:
    """After HOST_MAX_FAILURES answers that say nothing and one probe, without a page."""
    crawl, web = crawled
    assert web.of(name) == []
    assert len(web.of(name, robots=True)) == int(SETTINGS["HOST_MAX_FAILURES"]) + 1
    assert "host-parked" in scrapy("why", web.url(name), "-s", f"CRAWL_DIR={crawl.folder}").stdout
