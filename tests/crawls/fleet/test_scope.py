"""The scope of a fleet is that of one process."""

from __future__ import annotations

from pathlib import Path

from tests.crawls.fleet.local_fleets import one_of_each
from tests.crawls.operator.spoken_to import crawling, log_of
from tests.hostile.arena import answer, arena, page

_PARTITIONS = 2


def test_every_worker_knows_where_a_seed_has_moved_to(tmp_path: Path) -> None:
    """A link to the seed's new host counts on a page of any worker."""
    first, second = one_of_each(map("host{}.test".format, range(99)), _PARTITIONS)
    with arena(tmp_path) as web:
        home, deep = web.url(second), web.url(second, "/deep")
        of_first = {"/": answer(status="301 Moved", Location=home), "/later": page(deep)}
        of_second = {"/": page(web.url(first, "/later")), "/deep": page()}
        web.site(first, lambda asked: of_first.get(asked.path))
        web.site(second, lambda asked: of_second.get(asked.path))
        given = ["-a", f"seeds={web.url(first)}", "-a", "scope=host", "--workers", "2"]
        settings = {"FLEET_PARTITIONS": str(_PARTITIONS), "COMMIT_SECONDS": "0.5", "FETCH_TIMEOUT_SECONDS": "3"}
        with crawling(web, *given, settings=settings, command="fleet") as process:
            assert process.wait(timeout=200) == 0, log_of(web)[-3000:]
        paths = [(visit.host, visit.path) for visit in web.visits if visit.path != "/robots.txt"]

    assert paths == [(first, "/"), (second, "/"), (first, "/later"), (second, "/deep")]
