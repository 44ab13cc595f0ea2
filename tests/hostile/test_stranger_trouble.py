"""What strangers have us ask of a site closes its door for strangers, and costs the site nothing, by its own log."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.commands.crawled import scrapy
from tests.hostile.arena import Crawled, arena
from tests.hostile.ledger import pays
from tests.hostile.stranger_attacks import ATTACKED, CONTROLS, LATE, LEAST_SHARE, MORE_PORTS, REAL_HOSTS, Attacks


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Attacks, Crawled]]:
    """One crawl of all victims and their controls, stopped when the controls have had all."""
    with arena(tmp_path_factory.mktemp("trouble"), more_ports=MORE_PORTS) as web:
        attacks, places = Attacks(web), (len(REAL_HOSTS), MORE_PORTS)
        seeds = attacks.seeds()
        yield (
            attacks,
            web.crawl(*seeds, settings=ATTACKED, until=lambda: attacks.done() and attacks.real_places() == places),
        )


@pytest.mark.parametrize("name", CONTROLS)
def test_a_victim_gets_what_its_control_gets(name: str, crawled: tuple[Attacks, Crawled]) -> None:
    """Links to its troubled URLs, a robots.txt that leads there, dead links beside its front page."""
    attacks, _ = crawled
    how, _, trouble = name.removesuffix(".com").partition("-")
    attack = f"a stranger's {how} to URLs that answer: {trouble}" if trouble else "400 dead links beside the front page"
    pays(attack, "the site asked", 100 * attacks.shares()[name], "% of its control", at_least=100 * LEAST_SHARE)


def test_the_trouble_was_met_and_closed_the_door(crawled: tuple[Attacks, Crawled]) -> None:
    """Each late victim was asked for what strangers want, a few times: then the door was closed."""
    web = crawled[0].web
    for name in CONTROLS:
        kind = name.removesuffix(".com").partition("-")[2]
        troubled = [path for path in web.paths(name) if kind and path.startswith(f"/{kind}/")]
        if CONTROLS[name] == LATE:
            pays("strangers' links to trouble", "the site asked", len(troubled), "requests", at_most=4)
            assert troubled


def test_what_is_dead_takes_no_place(crawled: tuple[Attacks, Crawled]) -> None:
    """Every real host of the domain and every real port of the name is asked, named last by another stranger."""
    hosts, ports = crawled[0].real_places()
    pays("dead names of a domain, named first", "the domain", hosts, "of 8 real hosts asked", at_least=len(REAL_HOSTS))
    pays("dead ports of a name, named first", "the name", ports, "of 2 real ports asked", at_least=MORE_PORTS)


def test_the_closed_door_is_explained(crawled: tuple[Attacks, Crawled]) -> None:
    """By ``scrapy why`` of a URL that waits and of its host, and ``scrapy hosts``; and the promise was kept."""
    web, crawl = crawled[0].web, crawled[1]
    waiting = next(
        url
        for number in range(60)
        if (url := web.url("links-hanging.com", f"/hanging/{number}"))
        and f"/hanging/{number}" not in web.paths("links-hanging.com")
    )
    why = json.loads(scrapy("why", "--json", waiting, folder=crawl.folder).stdout)
    assert (why["state"] in ("waiting", "retry"), why["reason"]) == (True, "stranger-door")
    host = json.loads(scrapy("why", "--json", f"links-hanging.com:{web.port}", folder=crawl.folder).stdout)
    assert (host["state"], host["door_reason"]) == ("resting", "first-byte-timeout")
    assert host["door_closed_until"]
    listed = scrapy("hosts", "--json", "--state", "resting", folder=crawl.folder).stdout
    assert "links-hanging.com" in listed
    audit = scrapy("audit", str(crawl.folder))
    assert "0 violations" in audit.stdout
