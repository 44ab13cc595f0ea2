"""A sitemap index that invents sitemaps is left alone soon; an honest one of a thousand is read whole."""

from __future__ import annotations

import sys
from pathlib import Path

from crawlerproject.rules.traps.template_yield import EARNED_LISTS, FIRST_LISTS, FIRST_PAGES
from tests.hostile.arena import Arena, Asked, Crawled, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import one_pace

PACE_SECONDS = 0.002
SETTINGS = {
    **one_pace(PACE_SECONDS),
}
HONEST = 200  # sitemaps with a new page each; a thousand of them are tests/frontier/test_lists.py's
INVENTED = 998
FETCHED = FIRST_LISTS + EARNED_LISTS  # its one text is new once
LETTERS = "abcdefghij"


def sitemap(kind: str, item: str, *urls: str) -> bytes:
    """A list of URLs."""
    listed = "".join(f"<{item}><loc>{url}</loc></{item}>" for url in urls)
    return answer(f'<{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{listed}</{kind}>', mime="text/xml")


def site(web: Arena, host: str, files: int, asked: Asked, *, honest: bool) -> bytes | None:
    """An index of so many sitemaps, one page in each; a dishonest one has the same nothing at every address."""
    if asked.path == "/robots.txt":
        return answer(f"Sitemap: {web.url(host, '/index.xml')}\n", mime="text/plain")
    if asked.path == "/index.xml":
        return sitemap("sitemapindex", "sitemap", *(web.url(host, f"/map{number}.xml") for number in range(files)))
    number = asked.path.removeprefix("/map").removesuffix(".xml")
    if asked.path.startswith("/map"):
        return sitemap("urlset", "url", web.url(host, f"/page/{number}"))
    if asked.path == "/":
        return page(text="front")
    number = asked.path.rpartition("/")[2]
    said = " ".join(LETTERS[int(digit)] * 5 for digit in f"{int(number):04}") if honest else "nothing"
    return page(text=f"{said} at {asked.path}")


def told(crawled: Crawled, *command: str) -> str:
    """What a looking command says of a crawl."""
    line = [sys.executable, "-m", "scrapy", *command, "-s", f"CRAWL_DIR={crawled.folder}"]
    return zygote.run(line, check=True).stdout


def test_sitemaps_live_on_the_pages_that_they_name(tmp_path: Path) -> None:
    """Of 998 invented ones few are fetched, and none after a restart; of the honest ones all, and all their pages."""
    with arena(tmp_path) as web:
        honest = web.site("honest.test", lambda asked: site(web, "honest.test", HONEST, asked, honest=True))
        evil = web.site("evil.test", lambda asked: site(web, "evil.test", INVENTED, asked, honest=False))
        seeds = honest, evil, web.innocent(pages=40)

        crawled = web.crawl(*seeds, settings=SETTINGS)
        # The robots.txt is read again, and names it all once more.
        again = web.crawl(*seeds, web.url("evil.test", "/page/1000"), settings={**SETTINGS, "ROBOTS_TTL_SECONDS": "0"})

        asked = web.paths("evil.test")
        files = len([path for path in asked if path.endswith(".xml")])
        assert files >= FETCHED
        pays("an index of 998 invented sitemaps", "the crawl", files, "files asked for", at_most=FETCHED)
        assert len([path for path in asked if path.startswith("/page/")]) <= FIRST_PAGES + 2
        of_honest = web.paths("honest.test")
        assert len([path for path in of_honest if path.startswith("/map")]) == HONEST
        assert len([path for path in of_honest if path.startswith("/page/")]) == HONEST
        web.assert_undisturbed(pace_seconds=PACE_SECONDS + 10, least=40)  # two crawls apart
        assert f"'refused/sitemap-budget': {INVENTED + 1 - FETCHED}" in crawled.log
        assert "'refused/sitemap-budget'" not in again.log
        assert f"evil.test sitemaps  sitemaps and feeds named 1 page with new text in {FETCHED} files" in told(
            again, "traps", f"evil.test:{web.port}"
        )
        refused = next(n for n in range(INVENTED) if f"/map{n}.xml" not in asked)
        assert "sitemap-budget" in told(again, "why", web.url("evil.test", f"/map{refused}.xml"))
