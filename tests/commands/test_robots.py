"""``scrapy robots``: from the crawl's copy, from a file, from standard input; and where there is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.commands.crawled import started as scrapy
from tests.web.running import PROJECT

BODY = b"User-agent: *\nDisallow: /private/\n\nUser-agent: CarefulBot\nDisallow: /caf%3F\n"


def test_the_crawls_copy(tmp_path: Path) -> None:
    """The verdicts, where the copy is from, and the file with its lines; the one that decides is marked."""
    store = RocksStore(CrawlDir(tmp_path).frontier)
    store.apply(Changes(robots=[("http://a.test", RobotsRecord(200, BODY, 1e9, 2e9, "fetched").pack())]))
    store.close()

    done = scrapy("robots", "http://a.test/private/x", folder=tmp_path)

    assert done.stdout.splitlines() == [
        "http://a.test/private/x",
        "  as PoliteCrawler: forbidden: Disallow: /private/ (line 2); Protego forbids it too",
        "  robots.txt: the crawl's copy of 2001-09-09 01:46:40 UTC, status 200",
        "     1 User-agent: *",
        ">    2 Disallow: /private/",
        "     3 ",
        "     4 User-agent: CarefulBot",
        "     5 Disallow: /caf%3F",
    ], done.stderr
    none = scrapy("robots", "https://a.test/x", folder=tmp_path)
    assert none.returncode == 2
    assert "scrapy fetch https://a.test/robots.txt | scrapy robots https://a.test/x --file -" in none.stderr


def test_a_file_and_another_name(tmp_path: Path) -> None:
    """Without a crawl; where the two readers differ one sentence says so."""
    (tmp_path / "robots.txt").write_bytes(BODY)
    arguments = ("robots", "http://a.test/caf?", "--agent", "CarefulBot", "--file")

    said = scrapy(*arguments, str(tmp_path / "robots.txt"), folder=tmp_path / "nothing").stdout
    piped = subprocess.run(
        [sys.executable, "-m", "crawlerproject", *arguments, "-", "--json"], input=BODY, capture_output=True,
        cwd=PROJECT, check=True,
    ).stdout  # fmt: skip

    assert "allowed: no rule matches; Protego forbids it all the same\n  The two differ. A crawl goes by" in said
    facts = json.loads(piped)
    assert (facts["agent"], facts["robots_allowed"], facts["protego_allowed"], facts["differ"]) == (
        "CarefulBot", True, False, True,
    )  # fmt: skip
    assert facts["lines"] == BODY.decode().splitlines()


def test_what_is_no_address(tmp_path: Path) -> None:
    """One sentence, as ever."""
    done = scrapy("robots", "a.test", folder=tmp_path)

    assert (done.returncode, "Give an absolute URL" in done.stderr) == (2, True)
