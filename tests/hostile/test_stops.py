"""A spider under the add-on is stopped while its host rests for ten minutes: it ends at once, and nothing is lost."""

from __future__ import annotations

import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import PROJECT
from tests.web.waiting import busyness, wait_until

ATTACK = "a spider is stopped while its host rests"
SPIDER = Path(__file__).parents[1] / "crawls" / "plain_spider.py"
PATHS = [f"/{number}" for number in range(6)]
# What the host asks for, and what a stop may take: nothing is on its way then.
REST_SECONDS, MOST_SECONDS = 600, 3.0
# Instants of a stop, in seconds after the host's first request: before its 429, as it comes, in its rest.
FEW, MANY = 4, 50
LATEST_SECONDS = 1.2


def rested(web: Arena, name: str) -> tuple[str, list[bool]]:
    """A host that asks for a rest at its third page, as long as the list's only value is True."""
    asks = [True]

    def make(asked: Asked) -> bytes | None:
        if asked.path == PATHS[2] and asks[0]:
            return answer("later", "429 Too Many Requests", Retry_After=str(REST_SECONDS))
        return page(text=f"{name}{asked.path}") if asked.path in PATHS else None

    return web.site(name, make), asks


def begun(web: Arena, name: str, more: dict[str, Any]) -> zygote.Process:
    """A plain spider of all pages, with a JOBDIR of its own."""
    given = SETTINGS | {
        "ADDONS": '{"crawlerproject.addon.PoliteCrawl": 100}', "CRAWLER_CONTACT": "tests@example.org",
        "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        "JOBDIR": str(web.folder / name), **more,
    }  # fmt: skip
    options = [part for setting, value in given.items() for part in ("-s", f"{setting}={value}")]
    urls = ",".join(web.url(name, path) for path in PATHS)
    command = [sys.executable, "-m", "scrapy", "runspider", str(SPIDER), "-a", f"urls={urls}", *options]
    with (web.folder / f"{name}.log").open("ab") as log:  # in a folder that is no project of ours
        return zygote.Process(command, log, cwd=web.folder, env=zygote.direct(PYTHONPATH=str(PROJECT)))


def stop(web: Arena, name: str, how: str, after_seconds: float) -> None:
    """Stop a spider so long after its first request, and let it end what is left with its host in good spirits."""
    _, asks = rested(web, name)
    more = {"CLOSESPIDER_TIMEOUT": 1} if how == "CLOSESPIDER_TIMEOUT" else {}
    process, log = begun(web, name, more), web.folder / f"{name}.log"
    wait_until(lambda: web.of(name, robots=True), "asked", seconds=30.0, process=process, log=log)
    if more:
        wait_until(lambda: "Closing spider" in log.read_text(), "closing", seconds=30.0, process=process, log=log)
    else:
        time.sleep(after_seconds)  # the instant is what is tried, and whatever it meets must do
        process.send_signal(getattr(signal, how))
    stopped = time.time()
    process.wait(60.0)
    took = time.time() - stopped
    pays(
        ATTACK,
        "its operator",
        took,
        "s to the end",
        at_most=MOST_SECONDS * busyness(),
    )
    late = [visit for visit in web.of(name, robots=True) if visit.start > stopped + 0.25 * busyness()]
    pays(ATTACK, "the host", len(late), "requests after it", at_most=0)

    asks[0] = False
    assert begun(web, name, {}).wait(60.0) == 0
    answered = Counter(visit.path for visit in web.of(name))
    assert set(answered) == set(PATHS), log.read_text()[-3000:]
    assert {path: count for path, count in answered.items() if count > 1 + (path == PATHS[2])} == {}


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "CLOSESPIDER_TIMEOUT"])
def test_each_way_of_stopping(tmp_path: Path, how: str) -> None:
    """The rest has begun."""
    with arena(tmp_path) as web:
        stop(web, "resting.test", how, LATEST_SECONDS)


@pytest.mark.parametrize(
    "count", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.long_attack)]
)
def test_at_any_instant(tmp_path: Path, count: int) -> None:
    """Before the host asks for its rest, while it does, and after: each page is asked for once, by either start."""
    with arena(tmp_path) as web:
        for number in range(count):
            stop(web, f"resting{number}.test", "SIGTERM", LATEST_SECONDS * number / count)
