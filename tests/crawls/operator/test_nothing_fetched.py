"""A crawl that fetches nothing says so; a seed whose page is known from elsewhere is fetched all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawlerproject.rules.archive.index_rows import surt_key
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import read_log
from tests.commands.running import scrapy
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.web.running import crawl_command, measured

_NOTHING = 69


def crawled(web: Arena, *seeds: str, **settings: str) -> tuple[int, str]:
    """Exit status and log of a crawl of these seeds."""
    listed, log = web.folder / "seeds.txt", web.folder / "crawl.log"
    listed.write_text("\n".join(seeds) + "\n")
    given = {
        "PACE_PRESET": "mirror",
        "RENDER": "never",
        "NEVERCRAWL_FILE": "",
        "RETRY_AFTER_MAX_SECONDS": "1",
    } | settings
    spent = measured(crawl_command(listed, web.folder / "crawl", web.folder / "hosts", given), log)
    return spent.status, log.read_text()


def line(url: str) -> str:
    """A capture in an index of others."""
    fields = {"url": url, "mime": "text/html", "status": "200", "digest": "A" * 32, "length": "900", "offset": "0"}
    return f"{surt_key(url)} 20260901000000 {json.dumps(fields | {'filename': 'other.warc.gz'})}\n"


def closed(asked: Asked) -> bytes | None:
    """A site that forbids everything, or has nothing."""
    if asked.path == "/robots.txt" and asked.host == "shut.test":
        return answer("User-agent: *\nDisallow: /", mime="text/plain")
    return None


@pytest.mark.parametrize("path", ["shut.test/", "empty.test/none", "empty.test/archive.zip"])
def test_no_good_answer_has_a_status_and_an_event(tmp_path: Path, path: str) -> None:
    """Forbidden, not found, refused by its extension; the same command again has nothing left and ends with 0."""
    with arena(tmp_path) as web:
        for name in ("shut.test", "empty.test"):
            web.site(name, closed)
        host, _, rest = path.partition("/")
        events = tmp_path / "events"
        first, said = crawled(web, web.url(host, f"/{rest}"), HOOK_COMMAND=f"tee -a {events}")
        last = json.loads(events.read_text().replace("}{", "}\n{").splitlines()[-1])
        again, _ = crawled(web, web.url(host, f"/{rest}"))

    assert (first, again) == (_NOTHING, 0), said
    assert said.count("Nothing was fetched: no seed had a good answer") == 1
    assert (last["event"], last["reason"]) == ("ended", "nothing_fetched")


def test_a_seed_that_an_imported_index_names_is_fetched(tmp_path: Path) -> None:
    """The index says that the page was seen elsewhere; the operator names it, so it is asked for."""
    with arena(tmp_path) as web:
        seed = web.site("a.test", lambda asked: page(text="a page of words") if asked.path in ("/", "/known") else None)
        index = tmp_path / "index.cdxj"
        index.write_text("".join(line(web.url("a.test", path)) for path in ("/", "/known")))
        done = scrapy("commoncrawl", str(index), "-s", f"CRAWL_DIR={web.folder / 'crawl'}")
        assert "2 pages are newly known" in done.stdout, done

        status, said = crawled(web, seed)
        again, _ = crawled(web, seed)

    assert (status, again) == (0, 0), said
    assert web.paths("a.test") == ["/"]
    logged = [attempt["url"] for attempt in read_log(CrawlDir(web.folder / "crawl").log)]
    assert logged == [web.url("a.test", "/robots.txt"), seed]
