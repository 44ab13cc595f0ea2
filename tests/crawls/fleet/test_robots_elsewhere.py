"""A host's robots.txt leads to another domain's, whose partition another worker of the fleet holds."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from crawlerproject.stores.redis.keys import fleet_keys
from tests.crawls.fleet.fleets import SETTINGS
from tests.crawls.fleet.local_fleets import one_of_each
from tests.crawls.operator.spoken_to import crawling, log_of
from tests.hostile.arena import Asked, answer, arena, page
from tests.stores.redis_servers import redis_server
from tests.web.judge import read_captures
from tests.web.waiting import busyness, wait_until

_PARTITIONS, _CRAWL, _GATE = 2, "elsewhere", "gate.test"
_PAGES = ["/", *(f"/{number}" for number in range(6))]


def test_its_rules_come_from_the_other_worker(tmp_path: Path) -> None:
    """Each is asked once for them; no page is asked before they are known, nor one that they forbid."""
    first, second = one_of_each(map("host{}.test".format, range(99)), _PARTITIONS)
    rules = answer("User-agent: *\nDisallow: /private\n", mime="text/plain")
    with redis_server(tmp_path / "redis") as redis, arena(tmp_path) as web:
        elsewhere = web.url(second, "/robots.txt")
        pages = dict.fromkeys(_PAGES, page(*_PAGES, "/private"))
        of_first = {**pages, "/robots.txt": answer(status="302 Found", Location=elsewhere)}
        of_second = {**pages, "/robots.txt": rules}
        web.site(first, lambda asked: of_first.get(asked.path))
        web.site(second, lambda asked: of_second.get(asked.path))

        def shared() -> bool:
            with redis.client() as client:
                return len({*client.hvals(fleet_keys(_CRAWL).owners)}) == _PARTITIONS

        def gate(asked: Asked) -> bytes | None:
            """Leads to the two once each of the workers has its partition."""
            if asked.path == "/robots.txt":
                return None
            wait_until(shared, seconds=30)
            return page(web.url(first), web.url(second))

        fleet = {
            **SETTINGS, "FLEET_PARTITIONS": str(_PARTITIONS), "FLEET_CRAWL": _CRAWL, "STATE_URL": redis.url,
            "FETCH_TIMEOUT_SECONDS": "40", "FLEET_LEASE_SECONDS": "60",
        }  # fmt: skip
        with ExitStack() as stack:
            seeds = f"seeds={web.site(_GATE, gate)}"
            processes = [
                stack.enter_context(crawling(web, "-a", seeds, settings={**fleet, "FLEET_WORKER": name}))
                for name in ("one", "two")
            ]
            for process in processes:
                assert process.wait(timeout=100 * busyness()) == 0, log_of(web)[-3000:]
        visits = [visit for visit in web.visits if visit.host != _GATE]
        captured = [read_captures(tmp_path / "crawl" / name / "warc") for name in ("one", "two")]

    asked = Counter((visit.host, visit.path) for visit in visits)
    assert {(host, path) for host, path in asked if path != "/robots.txt"} == {
        (host, path) for host in (first, second) for path in _PAGES
    }
    assert {count for (_, path), count in asked.items() if path != "/robots.txt"} == {1}
    known = next(visit.end for visit in visits if (visit.host, visit.path) == (second, "/robots.txt"))
    assert min(visit.start for visit in visits if visit.path != "/robots.txt") >= known
    assert asked[first, "/robots.txt"] == 1
    assert asked[second, "/robots.txt"] == 2  # for the other, and for its own pages
    for host, other in ((first, second), (second, first)):
        [own] = [each for each in captured if web.url(host) in each]
        assert web.url(other) not in own
