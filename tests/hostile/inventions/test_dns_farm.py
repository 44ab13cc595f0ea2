"""A wildcard in the DNS: every name under one domain is a host at one address, and every page invents hundreds more.

Issue of the second look, 6: such a farm made 468,449 hosts in memory and 419,496 questions to DNS in 97 s.
"""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path

from crawlerproject.frontier.hosts.domain_turns import STANDING
from tests.hostile.arena import Arena, Asked, Visit, arena, most_late_seconds, page
from tests.hostile.ledger import pays
from tests.hostile.name_server import name_server

FARM, FARM_ADDRESS, FARM_PAUSE_SECONDS = "wildcard-farm.com", "127.77.0.1", 0.1
LATE, LATE_ADDRESS = "late.innocent-site.com", "127.78.0.1"
LINKS = 200
FARM_PAGES = 30
IN_MEMORY = 200


def address_of(name: str) -> str:
    """One for whatever is below the farm, one for the innocent host that it links to."""
    return FARM_ADDRESS if name.endswith(FARM) else LATE_ADDRESS


def _of_farm(web: Arena, *, robots: bool) -> list[Visit]:
    return [visit for visit in web.visits if visit.ip == FARM_ADDRESS and (robots or visit.path != "/robots.txt")]


def test_a_farm_costs_what_its_address_serves(tmp_path: Path) -> None:
    """Look-ups, memory and others' turns: none of them grows with the names that a farm invents."""
    numbers, in_memory, named_at = count(), list[int](), list[float]()
    status = tmp_path / "crawl" / "status.json"

    def farm(asked: Asked) -> bytes | None:
        if asked.path == "/robots.txt":
            return None
        links = [f"http://h{next(numbers)}.{FARM}:{web.port}/" for _ in range(LINKS)]
        if len(_of_farm(web, robots=False)) >= FARM_PAGES // 2:
            links.append(f"http://{LATE}:{web.port}/")
            named_at.append(time.time())
        return page(*links, text=f"{asked.host} sells names")

    def seen() -> bool:
        if status.exists():
            now = json.loads(status.read_text())["progress"]
            in_memory.append(sum(now[f"hosts_{state}"] for state in ("in_flight", "ready", "waiting", "resting")))
        return len(_of_farm(web, robots=False)) >= FARM_PAGES and len(web.of(LATE)) >= 1

    with name_server(address_of) as (server, address), arena(tmp_path) as web:
        web.site(f"*.{FARM}", farm, FARM_ADDRESS)
        web.site(f"*.{LATE.partition('.')[2]}", lambda asked: None, LATE_ADDRESS)
        web.crawl(
            f"http://www.{FARM}:{web.port}/",
            web.innocent(),
            settings={
                "FETCH_DNS_SERVERS": address,
                "FRONTIER_MAX_HOSTS_IN_MEMORY": str(IN_MEMORY),
                "SCOPE_MAX_HOSTS_PER_DOMAIN": "1000000",  # as if every name had an owner of its own
                "PACE_IP_SECONDS": str(FARM_PAUSE_SECONDS),
            },
            until=seen,
        )

        requests = len(_of_farm(web, robots=True))
        questions = sum(name.endswith(FARM) for name in server.asked)
        assert next(numbers) > 20 * requests, "the farm invented too little for this test to mean anything"
        most = requests + STANDING
        pays("a wildcard that invents names", "the name server", questions, "questions", at_most=most)
        assert max(in_memory) <= IN_MEMORY * 1.1 + LINKS
        web.assert_undisturbed(least=20, during="a wildcard that invents names")
        first = min(visit.start for visit in web.of(LATE, robots=True))
        assert first - named_at[0] < most_late_seconds(), "a host of another domain waited behind the farm's"


def test_names_of_many_domains_are_looked_up_at_the_rate_that_is_set(tmp_path: Path) -> None:
    """A second's worth at once, then no more than that a second; each site is fetched, the innocent one undisturbed."""
    rate, sites = 10, 30
    with name_server(address_of) as (server, address), arena(tmp_path) as web:
        web.site("*.com", lambda asked: page(text="small") if asked.path == "/" else None, LATE_ADDRESS)
        names = [f"site-{number}.com" for number in range(sites)]
        web.crawl(
            web.innocent(),
            *(f"http://{name}:{web.port}/" for name in names),
            settings={"FETCH_DNS_SERVERS": address, "FETCH_DNS_MAX_PER_SECOND": str(rate)},
            until=lambda: all(web.of(name) for name in names) and len(web.of("innocent.test")) >= 10,
        )

        assert server.asked.keys() == set(names)
        clocks = sorted(server.asked.values())
        assert max(sum(start <= moment < start + 1.0 for moment in clocks) for start in clocks) <= 2 * rate + 1
        assert clocks[-1] - clocks[0] >= (sites - rate) / rate - 0.2
        web.assert_undisturbed()
