"""Two hosts with the same texts: the later one is found out, by one process as by workers with a host each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlerproject.rules.page.text_fingerprint import text_fingerprint
from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.fleet.local_fleets import one_of_each
from tests.crawls.operator.spoken_to import asked, crawling, log_of
from tests.hostile.arena import Arena, Asked, arena, page
from tests.stores.redis_servers import redis_server

_PAGES = 4  # of each host that repeat the other's, and one with the same bytes
_MOST = 2 * (_PAGES + 1)
_PARTITIONS = 2
_SETTINGS = {
    "FLEET_PARTITIONS": str(_PARTITIONS),
    "FLEET_LEASE_SECONDS": "6",
    "COMMIT_SECONDS": "0.5",
    "FETCH_TIMEOUT_SECONDS": "3",
}
#: More bits than this between the texts of two hosts are no near duplicate (NEAR_DUPLICATE_BITS_ACROSS_HOSTS).
_BITS = 3
_NAMES = ("/", *(f"/{number}" for number in range(1, _PAGES)))


def words(host: str, at: int) -> str:
    """The text of a page, but for one word the same on both hosts."""
    return " ".join(f"{'abcdefghij'[at]}word{place * 7919 % 977}" for place in range(400)) + f" said {host}"


def mirrors(web: Arena, first: str, second: str) -> None:
    """Each page names the next, the last of the first host the front page of the second, whose pages go on for longer
    than the crawl may; every page names the one with the same bytes.
    """

    def make(asked: Asked) -> bytes | None:
        if asked.path == "/same":
            return page(text=words("both", _PAGES))
        at = 0 if asked.path == "/" else int(asked.path[1:]) if asked.path[1:].isdigit() else _MOST
        following = web.url(second) if asked.host == first and at + 1 == _PAGES else f"/{at + 1}"
        return page(following, "/same", text=words(asked.host, at)) if at < _MOST else None

    for name in (first, second):
        web.site(name, make)


def run(web: Arena, seed: str, *arguments: str, command: str = "crawl web", **settings: str) -> None:
    """To the end, in good order."""
    given = ("-a", f"seeds={web.url(seed)}", "-a", f"max_pages={_MOST}", *arguments)
    with crawling(web, *given, settings=_SETTINGS | settings, command=command) as process:
        assert process.wait(timeout=200) == 0, log_of(web)[-3000:]


def alone(web: Arena, first: str, _: str) -> None:
    """One process."""
    run(web, first, "-a", "scope=any")


def in_redis(web: Arena, *hosts: str) -> None:
    """One worker crawls the first host and leaves, then another the second."""
    with redis_server(web.folder / "redis") as server:
        for host in hosts:
            run(web, host, "-a", "scope=host", STATE_URL=server.url, FLEET_WORKER=f"of-{host}")


def without_a_server(web: Arena, first: str, _: str) -> None:
    """Two workers at once, each with a host."""
    run(web, first, "-a", "scope=any", "--workers", "2", command="fleet")


class Kind(NamedTuple):
    """Of a crawl."""

    run: Callable[[Arena, str, str], None]
    logs: str  # of its workers, below its folder
    same_bytes: str  # how a page with another's bytes is marked: payloads are not shared where there is no server


KINDS = {
    "alone": Kind(alone, "log", "exact"),
    "redis": Kind(in_redis, "*/log", "exact"),
    "local": Kind(without_a_server, "*/log", "near"),
}


class Mirrored(NamedTuple):
    """A finished crawl."""

    web: Arena
    kind: Kind
    hosts: tuple[str, ...]

    @property
    def logs(self) -> list[Path]:
        """Of its one process, or of its workers."""
        return sorted((self.web.folder / "crawl").glob(self.kind.logs))

    def pages(self, log: Path) -> dict[str, dict[str, Any]]:
        """By URL."""
        return {str(row["url"]): row for row in read_log(log) if row["status"] == 200 and row["hop"] != "P"}


@pytest.fixture(scope="module", params=KINDS)
def mirrored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirrored]:
    """The crawl that all tests here look at."""
    kind, hosts = KINDS[request.param], one_of_each(map("host{}.test".format, range(99)), _PARTITIONS)
    with arena(tmp_path_factory.mktemp("mirrored")) as web:
        mirrors(web, *hosts)
        kind.run(web, *hosts)
        yield Mirrored(web, kind, hosts)


def test_a_mirror_is_found_out(mirrored: Mirrored) -> None:
    """Each page of the second host names that of the first, whichever process crawled it."""
    web, (first, second) = mirrored.web, mirrored.hosts
    rows = {url: row for log in mirrored.logs for url, row in mirrored.pages(log).items()}

    for at, path in enumerate(_NAMES):
        one, two = rows[web.url(first, path)], rows[web.url(second, path)]
        assert (one["duplicate"], two["duplicate"]) == (None, "near"), path
        assert two["duplicate_of"] == one["url"]
        made = [text_fingerprint(words(host, at).encode()) or 0 for host in mirrored.hosts]
        assert (made[0] ^ made[1]).bit_count() <= _BITS
    one, two = rows[web.url(first, "/same")], rows[web.url(second, "/same")]
    assert (one["duplicate"], two["duplicate"]) == (None, mirrored.kind.same_bytes)
    assert two["duplicate_of"] == one["url"]


def test_workers_had_a_host_each(mirrored: Mirrored) -> None:
    """What was found out was found out between them."""
    crawled = [{str(row["host"]).partition(":")[0] for row in mirrored.pages(log).values()} for log in mirrored.logs]

    assert sorted(map(sorted, crawled)) == sorted(
        [sorted(mirrored.hosts)] if mirrored.kind.run is alone else [[host] for host in mirrored.hosts]
    )


def test_the_sum_of_pages_is_the_crawls(mirrored: Mirrored) -> None:
    """Its ``max_pages`` are those of all workers together, never one more."""
    assert asked(mirrored.web, *mirrored.hosts) == _MOST
    assert f"has had its max_pages={_MOST}" in said(mirrored)


def test_every_text_was_compared(mirrored: Mirrored) -> None:
    """And nothing went wrong."""
    assert "duplicates/un" not in said(mirrored)
    assert "Traceback" not in said(mirrored)


def said(mirrored: Mirrored) -> str:
    """What all processes have said."""
    own = (path.read_text() for path in (mirrored.web.folder / "crawl").rglob("*.log"))
    return "".join(own) + log_of(mirrored.web)
