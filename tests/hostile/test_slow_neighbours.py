"""Sites that take their time: others at their address, and others that want places in flight, have their turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.hostile.arena import Arena, Asked, Talk, Visit, answer, arena, most_late_seconds, page
from tests.hostile.ledger import pays
from tests.web.waiting import busyness

PACE_SECONDS = 0.2
SHARED_ADDRESS = "127.66.9.9"
SLOW_SECONDS, SLOW_HOSTS = 1.5, 8
NEIGHBOUR, TWIN = "innocent.test", "twin.test"
TWINS_PAGES = 85
PLACES, HANGING, HANG_SECONDS = 16, 40, 4.0
MOST = PLACES * 3 // 4 + 2  # of all that hang; two more while they are new
SETTINGS = {
    "PACE_MIN_SECONDS": f"{PACE_SECONDS:g}",
    "PACE_MAX_SECONDS": f"{PACE_SECONDS:g}",
    "PACE_START_SECONDS": f"{PACE_SECONDS:g}",
    "SCOPE_MAX_DEPTH": "100000",
}


def slow(seconds: float) -> Talk:
    """Pages that come late, and link to the next ones; robots.txt comes at once."""

    async def talk(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/robots.txt":
            writer.write(answer("", mime="text/plain"))
            return
        await asyncio.sleep(seconds)
        number = int(asked.path.strip("/") or 0)
        writer.write(page(*(f"/{number + step}" for step in (1, 2, 3)), text=f"{asked.host} page {number} " * 20))

    return talk


@pytest.mark.long_attack  # a share of what a twin gets, which other tests at work beside it would distort
def test_a_slow_neighbour_at_one_address_leaves_it_to_the_others(tmp_path: Path) -> None:
    """Eight slow hosts of one domain, an innocent site beside them, and its twin at an address of its own."""
    with arena(tmp_path) as web:
        seeds = [web.raw_site(f"h{n}.slow.test", slow(SLOW_SECONDS), SHARED_ADDRESS) for n in range(SLOW_HOSTS)]
        seeds += [web.innocent(name=NEIGHBOUR, address=SHARED_ADDRESS), web.innocent(name=TWIN)]

        web.crawl(*seeds, settings=SETTINGS, until=lambda: len(web.of(TWIN)) >= TWINS_PAGES)

        attack = "eight slow hosts at its address"
        share = 100 * len(web.of(NEIGHBOUR)) / len(web.of(TWIN))
        pays(attack, "an innocent site", share, "% of its twin's pages", at_least=90 - 20 * (busyness() - 1))
        assert [visit for visit in web.visits if visit.host.endswith("slow.test") and visit.path != "/robots.txt"]
        assert _most_at_once(web, lambda visit: visit.ip == SHARED_ADDRESS) == 1


@pytest.mark.parametrize("named", ["by themselves", "by a stranger"])
def test_one_domain_does_not_have_all_places_in_flight(tmp_path: Path, named: str) -> None:
    """Hosts that hang, each at an address of its own: half of the places are left to others."""
    with arena(tmp_path) as web:
        of_one = named == "by themselves"
        hosts = [f"h{n}.hang.test" if of_one else f"hang{n}.test" for n in range(HANGING)]
        urls = [web.raw_site(host, hanging) for host in hosts]
        evil = web.site("evil.test", lambda asked: None if asked.path == "/robots.txt" else page(*urls, text="look"))
        seeds = [*(urls if of_one else [evil]), web.innocent()]
        began: list[float] = []

        def seen() -> bool:
            began.extend(visit.start for visit in web.of(NEIGHBOUR)[:1] if not began)
            return len(web.of(NEIGHBOUR)) >= 3 * HANG_SECONDS / PACE_SECONDS * 0.5 and len(_hung(web)) > PLACES

        web.crawl(*seeds, settings={**SETTINGS, "FRONTIER_MAX_IN_FLIGHT": str(PLACES)}, until=seen)

        attack = f"{HANGING} hosts that hang, named {named}"
        gap = web.longest_gap()
        pays(attack, "an innocent site", gap, "s between two pages", at_most=PACE_SECONDS + most_late_seconds())
        pays(attack, "the crawl", _most_at_once(web, lambda visit: "hang" in visit.host), "of 16 places", at_most=MOST)


async def hanging(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Whatever is asked, robots.txt too, takes its time."""
    await asyncio.sleep(HANG_SECONDS)
    writer.write(answer("", mime="text/plain"))


def _hung(web: Arena) -> list[Visit]:
    return [visit for visit in web.visits if "hang" in visit.host]


def _most_at_once(web: Arena, which: object) -> int:
    """How many requests of a kind were under way at the same time."""
    assert callable(which)
    visits = [visit for visit in web.visits if which(visit)]
    edges = sorted([(visit.start, 1) for visit in visits] + [(visit.end, -1) for visit in visits])
    most = now = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most
