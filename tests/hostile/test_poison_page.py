"""A page that ends the process that reads it: known afterwards, set aside after the second time; nothing is lost."""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path

from tests.hostile.arena import SETTINGS, Arena, Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.hostile.poisoned import MARKER
from tests.web import zygote
from tests.web.running import crawl_command, finish, start

MODULES = {"SPIDER_MODULES": "tests.hostile.poisoned"}


def run_once(web: Arena, seeds: list[str], number: int) -> tuple[int, str]:
    """One start of the crawl, to whatever end: its status and what it logged."""
    listed, log = web.folder / "seeds.txt", web.folder / f"run{number}.log"
    listed.write_text("\n".join(seeds) + "\n")
    command = crawl_command(listed, web.folder / "crawl", web.folder / "hosts", {**SETTINGS, **MODULES})
    began = time.monotonic()
    with log.open("wb") as output:
        spent = finish(start(command, output), began)
    return spent.status, log.read_text()


def command(web: Arena, *arguments: str) -> str:
    """What a command says of the crawl."""
    listed = [sys.executable, "-m", "scrapy", *arguments, "-s", f"CRAWL_DIR={web.folder / 'crawl'}"]
    return zygote.run(listed, check=True).stdout


def test_a_page_that_kills_twice_is_set_aside_and_the_rest_is_crawled(tmp_path: Path) -> None:
    """Two starts die over it; the third names it, crawls everything else and ends well; recover --poison queues it."""
    cured = False

    def evil(asked: Asked) -> bytes | None:
        if asked.path == "/":
            return page("/poison", "/other", text="front")
        if asked.path == "/poison":
            return answer("<p>well" if cured else b"<p>" + MARKER)
        return page(text="other") if asked.path == "/other" else None

    with arena(tmp_path) as web:
        seeds = [web.site("evil.test", evil), web.innocent(pages=12)]
        poison = web.url("evil.test", "/poison")

        for number in (1, 2):
            status, log = run_once(web, seeds, number)
            assert status == -signal.SIGKILL
            assert ("The last process died while it read" in log) == (number == 2)
        status, log = run_once(web, seeds, 3)
        assert status == 0
        assert f"died 2 times while it read '{poison}'" in log
        deaths = web.paths("evil.test").count("/poison")
        pays("a page that kills its reader", "the crawl", deaths, "processes", at_most=2)
        assert "/other" in web.paths("evil.test")
        assert len(set(web.paths("innocent.test"))) == 12
        why = json.loads(command(web, "why", poison, "--json"))
        assert (why["state"], why["reason"]) == ("refused", "poison")
        assert json.loads(command(web, "status", "--json"))["poison"] == 1

        status, log = run_once(web, seeds, 4)  # never again by itself
        assert status == 0
        assert web.paths("evil.test").count("/poison") == 2

        assert command(web, "recover", "--poison").startswith("1 page ")
        cured = True
        status, log = run_once(web, seeds, 5)
        assert status == 0
        assert web.paths("evil.test").count("/poison") == 3
        assert json.loads(command(web, "why", poison, "--json"))["state"] == "done"


def test_a_suspect_that_is_read_to_its_end_is_acquitted(tmp_path: Path) -> None:
    """One end may be anything: the next reading, in another process, goes well and clears the page."""
    killing = True

    def make(asked: Asked) -> bytes | None:
        return answer(b"<p>" + MARKER if killing else b"<p>well") if asked.path == "/" else None

    with arena(tmp_path) as web:
        seeds = [web.site("once.test", make)]

        assert run_once(web, seeds, 1)[0] == -signal.SIGKILL
        killing = False
        assert run_once(web, seeds, 2)[0] == 0

        assert json.loads((web.folder / "crawl" / "poison.json").read_text())["pages"] == []
        assert web.paths("once.test") == ["/", "/"]
