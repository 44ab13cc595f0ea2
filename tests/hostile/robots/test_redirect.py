"""A robots.txt that is redirected is no leave to ask a third site anything: its own robots.txt and a count decide."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from crawlerproject.rules.robots.policy import MOST_ASKED
from tests.hostile.arena import Asked, answer, arena, page
from tests.hostile.ledger import pays
from tests.web.running import one_pace

RULES = answer("User-agent: *\nDisallow: /admin\nDisallow: /page\n", mime="text/plain")
NEVER = answer("User-agent: *\nDisallow: /\n", mime="text/plain")
SETTINGS = {"BACKOFF_START_SECONDS": "0.2", "BACKOFF_MAX_SECONDS": "0.3", "FRONTIER_MAX_REST_SECONDS": "1"}
FARM = 60  # hosts of one domain, each with a target of its own


def victim(asked: Asked) -> bytes | None:
    """A site with rules; whatever it is asked for is answered, and noted by its log."""
    return RULES if asked.path == "/robots.txt" else page(text="a page of the victim")


def _moved_robots(asked: Asked, to: bytes) -> bytes:
    return to if asked.path == "/robots.txt" else page(text="x")


def test_a_third_sites_rules_hold(tmp_path: Path) -> None:
    """What it forbids is not asked for, its own robots.txt once; the site that redirects is left alone for it."""
    with arena(tmp_path) as web:
        web.site("victim.test", victim)
        forbidden = answer(status="302 Found", Location=web.url("victim.test", "/admin/delete?id=7"))
        evil = web.site("evil.test", lambda asked: forbidden if asked.path == "/robots.txt" else page(text="evil"))
        moved = answer(status="301 Moved", Location=web.url("rules.test", "/robots-of-others.txt"))
        honest = web.site("honest.test", lambda asked: moved if asked.path == "/robots.txt" else page(text="honest"))
        web.site("rules.test", lambda asked: answer("", mime="text/plain"))

        web.crawl(evil, honest, web.innocent(pages=20), settings=SETTINGS)

        assert web.paths("victim.test") == []
        asked = len(web.of("victim.test", robots=True))
        pays("robots.txt moved to what a third site forbids", "the third site", asked, "requests", at_most=1)
        assert web.paths("evil.test") == []
        assert web.paths("honest.test") == ["/"]
        assert web.paths("rules.test") == ["/robots-of-others.txt"]
        web.assert_undisturbed(least=20)


def test_what_a_host_may_send_us_to_is_counted(tmp_path: Path) -> None:
    """A host that names another target each time has five, each of them once; two hosts do not wait for each other."""
    asked_of_evil: list[str] = []

    def evil(asked: Asked) -> bytes | None:
        if asked.path != "/robots.txt":
            return page(text="evil")
        asked_of_evil.append(asked.path)
        return answer(status="302 Found", Location=web.url("victim.test", f"/open?n={len(asked_of_evil)}"))

    def busy(asked: Asked) -> bytes | None:
        return answer("", mime="text/plain") if asked.path == "/robots.txt" else answer("", "500 Oops")

    with arena(tmp_path) as web:
        web.site("victim.test", busy)
        seeds = [web.site("evil.test", evil), web.innocent(pages=60)]
        for here, there in (("one.test", "other.test"), ("other.test", "one.test")):
            to = answer(status="302 Found", Location=web.url(there, "/rules"))
            seeds.append(web.site(here, partial(_moved_robots, to=to)))
        settings = {**SETTINGS, "HOST_MAX_FAILURES": "100"}

        web.crawl(*seeds, settings=settings, until=lambda: len(asked_of_evil) >= 8)

        asked = len(web.paths("victim.test"))
        pays("robots.txt moved to ever new addresses", "the third site", asked, "requests", at_most=5)
        assert len(set(web.paths("victim.test"))) == len(web.paths("victim.test"))
        assert web.paths("one.test") == web.paths("other.test") == []


def test_a_farm_of_hosts_has_one_budget(tmp_path: Path) -> None:
    """Sixty hosts of one domain send us to sixty addresses of a victim that answers them all."""
    hosts = [f"h{number}.evil.co.uk" for number in range(FARM)]
    pace = one_pace(0.01)
    with arena(tmp_path) as web:
        web.site("victim.co.uk", lambda asked: answer("", mime="text/plain"))
        targets = {
            host: answer(status="302 Found", Location=web.url("victim.co.uk", f"/buy?of={host}")) for host in hosts
        }

        def evil(asked: Asked) -> bytes | None:
            return targets[asked.host] if asked.path == "/robots.txt" else page(text="x")

        seeds = [web.site(host, evil) for host in hosts]

        def refused_ones_ask_again() -> bool:
            tries = Counter(visit.host for visit in web.visits if visit.path == "/robots.txt")
            again = sum(count > 1 for host, count in tries.items() if host in targets)
            return again >= FARM - MOST_ASKED and len(web.paths("victim.co.uk")) >= MOST_ASKED

        web.crawl(*seeds, settings={**SETTINGS, **pace, "HOST_MAX_FAILURES": "100"}, until=refused_ones_ask_again)

        asked = len(web.paths("victim.co.uk"))
        assert asked >= MOST_ASKED
        pays("robots.txt of sixty hosts moved to one site", "the third site", asked, "requests", at_most=MOST_ASKED)
        assert len({host for host in hosts if web.paths(host)}) <= MOST_ASKED
