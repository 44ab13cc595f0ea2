"""What a fleet archives is compared as a whole: a page of one worker repeats that of another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.rules.duplicates.simhash import text_fingerprint
from crawlerproject.stores.fleet_plan import alone, shared_out
from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.operator.spoken_to import asked, crawling
from tests.hostile.arena import Arena, Asked, answer, arena, page
from tests.stores.redis_servers import redis_server

_PAGES = 4
_HOSTS = ("one.test", "two.test")
_FLEET = {"FLEET_PARTITIONS": "2", "FLEET_LEASE_SECONDS": "6", "COMMIT_SECONDS": "0.5", "FETCH_TIMEOUT_SECONDS": "3"}


def words(host: str, at: int) -> str:
    """The text of a page, but for one word the same on both hosts."""
    return " ".join(f"{'abcdefghij'[at]}word{place * 7919 % 977}" for place in range(400)) + f" said {host}"


def mirrors(web: Arena) -> None:
    """Two hosts with the same texts, and one page of each with the same bytes."""

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/same":
            return page(text="the same bytes")
        at = 0 if asked.path == "/" else int(asked.path[1:]) if asked.path[1:].isdigit() else _PAGES
        return page(f"/{at + 1}", "/same", text=words(asked.host, at)) if at < _PAGES else None

    for name in _HOSTS:
        web.site(name, make)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """One worker crawls the first host and leaves, then another the second, which is thereby the later one."""
    folder = tmp_path_factory.mktemp("fleet")
    with redis_server(folder / "redis") as server, arena(folder) as web:
        mirrors(web)
        for host in _HOSTS:
            settings = {**_FLEET, "STATE_URL": server.url, "FLEET_WORKER": f"of-{host}"}
            with crawling(web, "-a", f"seeds={web.url(host)}", settings=settings) as process:
                assert process.wait(timeout=100) == 0, (folder / "log.txt").read_text()[-3000:]
        yield web


def rows_of(folder: Path, host: str) -> dict[str, dict[str, Any]]:
    """The log of the worker that crawled this host, by path."""
    rows = read_log(folder / "crawl" / f"of-{host}" / "log")
    return {"/" + str(row["url"]).split("/", 3)[3]: row for row in rows if row["status"] == 200}


def test_a_mirror_on_another_workers_host_is_found_out(crawled: Arena) -> None:
    """Each page of the second host names that of the first, as in a crawl of one process."""
    first, second = (rows_of(crawled.folder, host) for host in _HOSTS)
    for path in ("/", *(f"/{number}" for number in range(1, _PAGES))):
        assert (first[path]["duplicate"], second[path]["duplicate"]) == (None, "near"), path
        assert second[path]["duplicate_of"] == crawled.url(_HOSTS[0], path)
        at = int(path[1:] or 0)
        one, two = (text_fingerprint(words(host, at).encode()) or 0 for host in _HOSTS)
        assert (one ^ two).bit_count() <= 3
    assert (first["/same"]["duplicate"], second["/same"]["duplicate"]) == (None, "exact")
    assert second["/same"]["duplicate_of"] == crawled.url(_HOSTS[0], "/same")


def test_every_text_was_compared(crawled: Arena) -> None:
    """And nothing went wrong."""
    said = (crawled.folder / "log.txt").read_text()

    assert "duplicates/un" not in said
    assert "Traceback" not in said


_MOST = 2 * _PAGES


def follow_each_other(web: Arena, first: str, second: str) -> None:
    """Two hosts with the same texts; the last page of the first names the second one's front page."""

    def make(asked: Asked) -> bytes | None:
        at = 0 if asked.path == "/" else int(asked.path[1:]) if asked.path[1:].isdigit() else _PAGES
        following = f"/{at + 1}" if at + 1 < _PAGES or asked.host == second else web.url(second)
        return page(following, text=words(asked.host, at % _PAGES)) if at < 2 * _PAGES else None

    for name in (first, second):
        web.site(name, make)


def test_a_fleet_without_a_server_is_one_crawl(tmp_path: Path) -> None:
    """Two workers, each with one of two mirrors: the later one is found out, and the sum of pages is the crawl's."""
    plan = shared_out(alone(2), ("worker-1", "worker-2"))
    first, second = (
        next(name for name in map("host{}.test".format, range(99)) if plan.holder(name) == worker)
        for worker in plan.workers
    )
    with arena(tmp_path) as web:
        follow_each_other(web, first, second)
        given = ["-a", f"seeds={web.url(first)}", "-a", "scope=any", "-a", f"max_pages={_MOST}", "--workers", "2"]
        with crawling(web, *given, settings=_FLEET, command="fleet") as process:
            assert process.wait(timeout=200) == 0, (tmp_path / "log.txt").read_text()[-3000:]
        rows = [
            {"/" + str(row["url"]).split("/", 3)[3]: row for row in read_log(tmp_path / "crawl" / name / "log")}
            for name in plan.workers
        ]
        said = "".join(path.read_text() for path in tmp_path.rglob("*.log")) + (tmp_path / "log.txt").read_text()

        assert asked(web, first, second) == _MOST
        for path in ("/", *(f"/{number}" for number in range(1, _PAGES))):
            assert (rows[0][path]["duplicate"], rows[1][path]["duplicate"]) == (None, "near"), path
            assert rows[1][path]["duplicate_of"] == web.url(first, path)
    assert f"has had its max_pages={_MOST}" in said
    assert "duplicates/un" not in said
    assert "Traceback" not in said


def test_every_worker_knows_where_a_seed_has_moved_to(tmp_path: Path) -> None:
    """The scope is that of one process: a link to the seed's new host counts on a page of any worker."""
    plan = shared_out(alone(2), ("worker-1", "worker-2"))
    first, second = (
        next(name for name in map("host{}.test".format, range(99)) if plan.holder(name) == worker)
        for worker in plan.workers
    )
    with arena(tmp_path) as web:
        home, deep = web.url(second), web.url(second, "/deep")
        of_first = {"/": answer(status="301 Moved", Location=home), "/later": page(deep)}
        of_second = {"/": page(web.url(first, "/later")), "/deep": page()}
        web.site(first, lambda asked: of_first.get(asked.path))
        web.site(second, lambda asked: of_second.get(asked.path))
        given = ["-a", f"seeds={web.url(first)}", "-a", "scope=host", "--workers", "2"]
        with crawling(web, *given, settings=_FLEET, command="fleet") as process:
            assert process.wait(timeout=200) == 0, (tmp_path / "log.txt").read_text()[-3000:]
        paths = [(visit.host, visit.path) for visit in web.visits if visit.path != "/robots.txt"]

    assert paths == [(first, "/"), (second, "/"), (first, "/later"), (second, "/deep")]
