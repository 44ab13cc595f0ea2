"""Pages that name thousands of domains that do not exist: who named them waits, and no one else.

Before they were charged to that domain, a page of 40,000 such links cost 36 s of CPU and 23,000 questions in 45 s, and
an innocent host got 53 pages where it gets 380.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.commands.crawled import scrapy
from tests.hostile.arena import Arena, Asked, arena, page
from tests.hostile.ledger import pays
from tests.hostile.name_server import NameServer, name_server
from tests.web.waiting import busyness

EVIL, GOOD, SITES_ADDRESS = "evil.test", "good.test", "127.78.0.2"
PAGES, LINKS = 4, 3_000
BUDGET, AT_ONCE, A_SECOND = 10_000, 100, 8  # rules/traps/budgets.py
SECONDS = 6.0
ATTACK = "12,000 links to domains that do not exist"


def address_of(name: str) -> str:
    """Sites exist, and what evil.test invents does not."""
    return SITES_ADDRESS if name.startswith("site") else ""


def evil(asked: Asked) -> bytes | None:
    """Its pages link to each other and to domains that it invents."""
    if asked.path == "/robots.txt":
        return None
    own = asked.path.strip("/") or "0"
    return page(*map(str, range(PAGES)), *(f"http://invented{own}x{n}.com/" for n in range(LINKS)), text=f"page {own}")


def good(web: Arena, named: dict[str, float]) -> str:
    """Each page names a site that only the DNS knows."""

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/robots.txt":
            return None
        own = int(asked.path.strip("/") or 0)
        named.setdefault(f"site{own}.com", time.time())
        text = " ".join("abcdefghij"[int(digit)] * 3 + str(n) for n in range(40) for digit in str(own))
        return page(f"http://site{own}.com:{web.port}/", *(f"/{own + n}" for n in (1, 2, 3)), text=text)

    return web.site(GOOD, make)


def crawl(folder: Path, *, attacked: bool) -> tuple[Arena, NameServer, dict[str, float], float]:
    """Some seconds of a crawl."""
    named: dict[str, float] = {}
    until = 0.0
    with name_server(address_of) as (server, address), arena(folder) as web:
        web.site("*.com", lambda asked: page(text="small") if asked.path == "/" else None, SITES_ADDRESS)
        seeds = [good(web, named), *([web.site(EVIL, evil)] if attacked else [])]

        def seen() -> bool:
            nonlocal until
            if web.of(GOOD) and (len(web.of(EVIL)) >= PAGES or not attacked):
                until = until or time.time() + SECONDS
            return until > 0 and time.time() > until

        settings = {"FETCH_DNS_SERVERS": address, "SCOPE_MAX_DEPTH": "100000"}
        spent = web.crawl(*seeds, settings=settings, until=seen).spent
        return web, server, named, spent.cpu_seconds


@pytest.mark.long_attack  # a share of what a control gets, which other tests at work beside it would distort
def test_what_is_invented_costs_its_inventor_alone(tmp_path: Path) -> None:
    """Questions, hosts in memory and the turns of others do not grow with the names; each refusal has its reason."""
    control, *_ = crawl(tmp_path / "control", attacked=False)
    web, server, named, _ = crawl(tmp_path / "attacked", attacked=True)

    began = web.of(EVIL)[0].start
    seconds = web.of(GOOD)[-1].end - began
    questions = sum(name.startswith("invented") for name in server.asked)
    assert questions >= AT_ONCE
    pays(ATTACK, "the DNS", questions, "names asked for", at_most=AT_ONCE + 2 + A_SECOND * (seconds + 1))
    last = control.of(GOOD)[-1].start - control.of(GOOD)[0].start
    calm = len(control.of(GOOD)) / last
    under_attack = len([visit for visit in web.of(GOOD) if visit.start >= began]) / seconds
    share = 100 * under_attack / calm
    pays(ATTACK, "an innocent site", share, "% of its pages", at_least=90 - 20 * (busyness() - 1))
    waits = [web.of(name)[0].start - since for name, since in named.items() if web.of(name)]
    assert len(waits) >= len(named) - 30
    pays(ATTACK, "a site that is found meanwhile", max(waits), "s of waiting", at_most=3 * busyness())

    folder = tmp_path / "attacked" / "crawl"
    listed = [json.loads(line) for line in scrapy("traps", "--json", EVIL, folder=folder).stdout.splitlines()]
    (names,) = [row for row in listed if row["template"] == "names"]
    pays(ATTACK, "the crawl", PAGES * LINKS - names["refused"], "hosts queued", at_most=BUDGET)
    asked = ("--json", f"http://invented{PAGES}x1.com/", "--via", web.url(EVIL))
    why = json.loads(scrapy("why", *asked, folder=folder).stdout)
    assert (why["state"], why["reason"]) == ("refused", "too-many-names")
    assert "evil.test has named 10,000 hosts without an address" in why["rule"]
