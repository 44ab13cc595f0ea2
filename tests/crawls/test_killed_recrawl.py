"""A recrawl that is killed while it chooses known pages: afterwards each that is due is visited once, and no other."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path

import pytest

from crawlerproject.rules.revisits.history import History
from crawlerproject.settings import EXTENSIONS
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.redis.journal_view import JournalView, crawl_in_redis
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.commands.crawled import scrapy
from tests.crawls.dying import A_CHANGE, AT, DyingWhileChoosing
from tests.crawls.fleet.fleets import SETTINGS as OF_FLEETS
from tests.crawls.operator.spoken_to import crawling, log_of
from tests.hostile.arena import Arena, arena
from tests.stores.redis_servers import redis_server
from tests.web.judge import read_captures

SITES = tuple(f"{name}.test" for name in ("ant", "bee", "cat", "dog", "eel", "fox"))
PAGES = 5  # of each
KNOWN = len(SITES) * PAGES
DAYS_LATER = 3  # all are due by then
_SECONDS = 60.0
_DYING = f"{DyingWhileChoosing.__module__}.{DyingWhileChoosing.__name__}"
_CHOSEN = "known pages are visited again"


def dies_at(page: int) -> dict[str, str]:
    """Settings of the process that does not live to choose this page."""
    return {"EXTENSIONS": json.dumps(EXTENSIONS | {_DYING: 1}), AT: str(page)}


def crawled(web: Arena, settings: dict[str, str]) -> None:
    """A first crawl of the sites."""
    seeds = ",".join(web.innocent(PAGES, name) for name in SITES)
    with crawling(web, "-a", f"seeds={seeds}", "-a", "scope=host", settings=settings) as process:
        assert process.wait(_SECONDS) == 0, log_of(web)


def visits(*folders: Path) -> Counter[str]:
    """How often each page was archived, the first visit apart; every one of them was known."""
    captures = read_captures(*(folder / "warc" for folder in folders)).items()
    found = {url: count.total() for url, count in captures if not url.endswith("/robots.txt")}
    assert len(found) == KNOWN
    return Counter({url: count - 1 for url, count in found.items() if count > 1})


def chosen(view: FrontierView | JournalView) -> int:
    """Pages that wait to be visited again, or were."""
    histories = [History.unpack(record.history) for _, record in view.pages()]
    return sum(history.queued_at > 0 or history.visits > 1 for history in histories)


def good(*folders: Path) -> None:
    """Archives, indexes and frontier agree, and all pauses were kept."""
    for folder in folders:
        for command in ("verify", "audit"):
            done = scrapy(command, str(folder))
            assert done.returncode == 0, done.stdout + done.stderr


def test_one_process_chooses_the_rest(tmp_path: Path) -> None:
    """What was queued before the kill is not chosen again, what was not is, and nothing was asked for in between."""
    with arena(tmp_path) as web:
        crawl, known = CrawlDir(tmp_path / "crawl"), ("-a", "mode=recrawl")
        crawled(web, {})
        asked = len(web.visits)
        machine = f"tests.web.later {DAYS_LATER}"
        with crawling(web, *known, settings=dies_at(3 * A_CHANGE), module=machine) as process:
            assert process.wait(_SECONDS) == -signal.SIGKILL
        with FrontierView(crawl.frontier) as view:
            assert chosen(view) == 2 * A_CHANGE
        assert len(web.visits) == asked
        with crawling(web, *known, module=machine) as process:
            assert process.wait(_SECONDS) == 0, log_of(web)

    assert f"{KNOWN - 2 * A_CHANGE} {_CHOSEN}" in log_of(web)
    assert set(visits(crawl).values()) == {1}
    assert visits(crawl).total() == KNOWN
    good(crawl)


@pytest.mark.parametrize("budget", [None, 20])
def test_another_worker_chooses_the_rest(tmp_path: Path, budget: int | None) -> None:
    """In one round, with the worker that was killed: as many visits as were due, or as the budget has, none twice."""
    given = ("-a", "mode=recrawl", *(("-a", f"budget={budget}") if budget else ()))
    with redis_server(tmp_path / "redis") as server, arena(tmp_path) as web:
        one, two = (OF_FLEETS | {"STATE_URL": server.url, "FLEET_WORKER": name} for name in ("one", "two"))
        crawled(web, one)
        again = {"module": f"tests.web.later store:{DAYS_LATER}"}
        one, two = (own | {"FLEET_RUN": "again"} for own in (one, two))
        with crawling(web, *given, settings=one | dies_at(4 * A_CHANGE), **again) as process:
            assert process.wait(_SECONDS) == -signal.SIGKILL
        assert _CHOSEN not in log_of(web)
        with crawl_in_redis(server.url, "web") as view:
            assert 0 < chosen(view) < 4 * A_CHANGE
        with (
            crawling(web, *given, settings=two, **again) as process,
            crawling(web, *given, settings=one, **again) as other,
        ):
            assert [each.wait(_SECONDS) for each in (process, other)] == [0, 0], log_of(web)
        folders = [path for name in ("one", "two") if (path := tmp_path / "crawl" / name).is_dir()]

    assert set(visits(*folders).values()) == {1}
    assert visits(*folders).total() == (budget or KNOWN)
    assert "Traceback" not in log_of(web)
    good(tmp_path / "crawl")
