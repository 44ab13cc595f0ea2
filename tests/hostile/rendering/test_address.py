"""Rendered pages whose files lie under many names at one address, beside plain pages at the same address."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import scrapy
from tests.hostile.arena import Arena, Asked, Crawled, Visit, answer, arena
from tests.hostile.ledger import pays
from tests.web.profiles.apps import shell

SHARED = "127.67.0.9"
IP_SECONDS = 0.15
APPS = ["one.apps.test", "two.apps.test"]
FILES = 2  # that a page wants of each of five hosts
# What a server sees of a pause may be shorter than what was kept: its last write returns after we have read it.
SEEN_SECONDS = 0.03


def application(name: str) -> bytes:
    """A page of scripts alone: files of its own, of the other application's host and of three others, all at once."""
    hosts = [*APPS, *(f"cdn{number}.test" for number in range(3))]
    wanted = [f"http://{host}:PORT/{name}-{number}.json" for number in range(FILES) for host in hosts]
    code = f"for (const url of {wanted!r}) fetch(url, {{mode: 'no-cors'}}).catch(() => 0)"
    return shell(f"<script>{code}</script>")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Arena, Crawled]]:
    """One crawl for all tests here."""
    with arena(tmp_path_factory.mktemp("address")) as web:

        def app(asked: Asked) -> bytes | None:
            if asked.path == "/":
                return answer(application(asked.host.partition(".")[0]).replace(b"PORT", b"%d" % web.port))
            return answer("{}", mime="application/json") if asked.path.endswith(".json") else None

        seeds = [web.site(name, app, SHARED) for name in APPS]
        for number in range(3):
            web.site(f"cdn{number}.test", app, SHARED)
        seeds += [web.innocent(name="plain.test", address=SHARED), web.innocent(pages=1000)]
        settings = {"RENDER": "auto", "RENDER_MAX_IN_FLIGHT": "2", "PACE_IP_SECONDS": str(IP_SECONDS)}
        yield web, web.crawl(*seeds, settings=settings, until=lambda: enough(web))


def enough(web: Arena) -> bool:
    """The pages have all that they want."""
    return len(files(web)) == len(APPS) * 5 * FILES


def files(web: Arena) -> list[Visit]:
    """What scripts asked for, in order."""
    return sorted(visit for visit in web.visits if visit.path.endswith(".json"))


def test_an_address_sees_one_request_at_a_time(crawled: tuple[Arena, Crawled]) -> None:
    """Whatever the name, the page, or whether a browser asks: never two at once, and the address's pause between."""
    web, _ = crawled
    visits = sorted(visit for visit in web.visits if visit.ip == SHARED)

    assert enough(web)
    assert len({visit.host for visit in files(web)}) == 5
    too_soon = [
        (before.host + before.path, after.host + after.path, after.start - before.end)
        for before, after in pairwise(visits)
        if after.start - before.end < IP_SECONDS - SEEN_SECONDS
    ]
    assert too_soon == []
    least, gap = IP_SECONDS - SEEN_SECONDS, min(after.start - before.end for before, after in pairwise(visits))
    pays("pages in the browser with files of one address", "the address", gap, "s between requests", at_least=least)


def test_plain_pages_there_go_on_meanwhile(crawled: tuple[Arena, Crawled]) -> None:
    """A page in the browser holds neither its host nor the address; the innocent host elsewhere notices nothing."""
    web, _ = crawled
    first, last = files(web)[0], files(web)[-1]
    between = [visit for visit in web.of("plain.test") if first.start < visit.start < last.start]

    assert len(between) >= 3
    web.assert_undisturbed(least=20, during="pages in the browser with files of one address")


def test_the_audit_recomputes_it_and_the_guard_saw_nothing(crawled: tuple[Arena, Crawled]) -> None:
    """`scrapy audit` judges sub-requests like any line: each has its promised pause, and none was broken."""
    _, crawl = crawled
    lines = [row for row in read_log(crawl.folder / "log") if row["hop"] == "E" and row["status"]]

    assert lines != []
    assert [row["url"] for row in lines if row["delay_seconds"] is None] == []
    done = scrapy("audit", str(crawl.folder))
    assert done.returncode == 0, done.stdout[-2000:]
    assert "at most 1 at a host, 1 at an IP address" in done.stdout
    assert "0 violations" in done.stdout
    assert "pace/guard_refused" not in crawl.log


def test_both_pages_were_shown(crawled: tuple[Arena, Crawled]) -> None:
    """Nothing they wanted was refused for its pace: there was time for it."""
    _, crawl = crawled
    rows = list(read_log(crawl.folder / "log"))

    assert [row["reason"] for row in rows if row["rendered"]] == ["rendered", "rendered"]
    assert [row["url"] for row in rows if row["reason"] == "render-pace"] == []
