"""A domain whose every name resolves: its hosts are bounded, whatever its pages name; others are not kept waiting."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.crawled import scrapy
from tests.hostile.arena import Arena, Asked, arena, page
from tests.hostile.ledger import pays

NAMES = 400
MAX_HOSTS = 20
SETTINGS = {"SCOPE_MAX_HOSTS_PER_DOMAIN": str(MAX_HOSTS)}


def farm(web: Arena) -> str:
    """Every page of every name links to all names of the farm, and says the same."""
    links = [f"http://h{number}.farm.test:{web.port}/" for number in range(NAMES)]

    def make(asked: Asked) -> bytes | None:
        return None if asked.path == "/robots.txt" else page(*links, text="welcome to the farm")

    for number in range(NAMES):
        web.site(f"h{number}.farm.test", make)
    return web.site("www.farm.test", make)


def names_asked(web: Arena) -> set[str]:
    """The farm's hosts that were asked for anything."""
    return {visit.host for visit in web.visits if visit.host.endswith("farm.test")}


def test_a_farm_of_names_is_bounded_over_restarts_too(tmp_path: Path) -> None:
    """Twenty names are asked of four hundred; the rest is refused, counted, explained, and listed with its domain."""
    with arena(tmp_path) as web:
        seeds = web.innocent(), farm(web)

        crawled = web.crawl(
            *seeds,
            settings=SETTINGS,
            until=lambda: len(names_asked(web)) >= MAX_HOSTS and len(web.of("innocent.test")) > 15,
        )
        web.assert_undisturbed(least=15)
        web.crawl(*seeds, settings=SETTINGS, until=lambda: len(web.of("innocent.test")) > 30)

        asked = len(names_asked(web))
        assert asked >= MAX_HOSTS
        # Pages that say what another host said earn none.
        pays("a farm of 400 names", "the crawl", asked, "hosts asked", at_most=MAX_HOSTS)
        refused = next(
            f"http://h{n}.farm.test:{web.port}/" for n in range(NAMES) if f"h{n}.farm.test" not in names_asked(web)
        )
        (listed,) = [json.loads(line) for line in scrapy("traps", "--json", folder=crawled.folder).stdout.splitlines()
                     if "*.farm.test" in line]  # fmt: skip
        assert listed["refused"] >= NAMES - MAX_HOSTS
        why = json.loads(scrapy("why", "--json", refused, folder=crawled.folder).stdout)
        assert (why["state"], why["reason"]) == ("refused", "too-many-hosts")
        assert "farm.test has 20 hosts" in why["rule"]
