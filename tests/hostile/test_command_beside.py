"""`scrapy fetch` beside a running crawl, at the host that it crawls and at its address: one request at a time."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from tests.hostile.arena import NOT_FOUND, SETTINGS, Arena, Asked, Crawled, Visit, arena, page
from tests.hostile.ledger import pays
from tests.web import zygote
from tests.web.running import one_pace
from tests.web.waiting import wait_until

PACE_SECONDS = 0.25
ANSWER_SECONDS = 0.1  # so that two who do not wait for each other overlap
SHARED = "127.69.0.9"
PACE = {**SETTINGS, **one_pace(PACE_SECONDS), "PACE_IP_SECONDS": str(PACE_SECONDS)}
# What a server sees of a pause may be shorter than what was kept: its last write returns after we have read it.
SEEN_SECONDS = 0.03


@dataclass(slots=True)
class Beside:
    """A crawl that has ended, and the commands that ran beside it."""

    web: Arena
    crawl: Crawled | None = None
    hangs_since: float = 0.0  # epoch seconds, as all here
    killed_at: float = 0.0
    statuses: list[int] = field(default_factory=list)

    async def talk(self, asked: Asked, writer: asyncio.StreamWriter) -> float:
        """Numbered pages, some for the commands, and one that never comes."""
        if asked.path == "/hangs":
            self.hangs_since = time.time()
            await asyncio.sleep(5.0)
            writer.close()
            return time.time()
        await asyncio.sleep(ANSWER_SECONDS)
        name = asked.path.strip("/")
        number = int(name) if name.isdigit() else 0
        made = page(f"/{number + 1}", f"/{number + 2}", text="abcdefghij"[number % 10] * 9 + f" {number}")
        now = time.time()
        writer.write(NOT_FOUND if name == "robots.txt" else made)
        await writer.drain()
        return now

    def start(self, host: str, path: str) -> zygote.Process:
        """`scrapy fetch`, started."""
        networks = 'FETCH_ALLOW_NETWORKS=["127.0.0.0/8"]'
        given = {**PACE, "CRAWLER_CONTACT": "a@b.test", "FETCH_HOSTS_FILE": str(self.web.folder / "hosts")}
        settings = ["-s", networks, *(part for name, value in given.items() for part in ("-s", f"{name}={value}"))]
        line = [sys.executable, "-m", "scrapy", "fetch", *settings, self.web.url(host, path)]
        with (self.web.folder / "commands.log").open("ab") as log:
            return zygote.Process(line, log, env=zygote.direct())

    def run(self) -> bool:
        """Three at once, one after the crawl's next turn, and one that is killed; True when the crawl has gone on."""
        if not self.statuses:
            if len(self.web.of("busy.test")) < 3:
                return False
            three = [self.start("busy.test", "/a"), self.start("other.test", "/b"), self.start("busy.test", "/c")]
            self.statuses = [each.wait(60) for each in three]
            ended = time.time()
            wait_until(lambda: self.own_since(ended), "had its turn again")
            self.statuses.append(self.start("busy.test", "/d").wait(60))
            victim = self.start("busy.test", "/hangs")
            wait_until(lambda: self.hangs_since, "asked for what hangs")
            self.killed_at = time.time()
            victim.kill()
            victim.wait()
        return len(self.own_since(self.killed_at)) > 2

    def own_since(self, moment: float) -> list[Visit]:
        """The crawl's requests for pages after a moment."""
        return [v for v in self.web.of("busy.test") if v.start > moment and v.path.strip("/").isdigit()]

    def at_the_address(self) -> list[Visit]:
        """Requests in order, but for the one that hangs."""
        return sorted(visit for visit in self.web.visits if visit.ip == SHARED and visit.path != "/hangs")


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """One crawl for all tests here."""
    with arena(tmp_path_factory.mktemp("beside")) as web:
        found = Beside(web)
        web.raw_site("other.test", found.talk, SHARED)
        found.crawl = web.crawl(web.raw_site("busy.test", found.talk, SHARED), settings=PACE, until=found.run)
        yield found


def test_the_address_never_sees_two_at_once(beside: Beside) -> None:
    """Nor two without the pause between, whichever process sends them, and whichever of its names they go to."""
    visits = beside.at_the_address()
    pauses = [after.start - before.end for before, after in pairwise(visits)]

    assert beside.statuses == [0, 0, 0, 0]
    assert {visit.path for visit in visits} >= {"/a", "/b", "/c", "/d"}
    least = PACE_SECONDS - SEEN_SECONDS
    pays("a command beside a crawl", "the address", min(pauses), "s between requests", at_least=least)


def test_the_crawl_goes_on_between_them(beside: Beside) -> None:
    """Neither keeps the other out, and the guard had nothing to refuse."""
    web, crawl = beside.web, beside.crawl
    commands = [visit.start for visit in web.visits if visit.path in ("/a", "/b", "/c", "/d")]

    assert any(visit.start < max(commands) for visit in beside.own_since(min(commands)))
    assert crawl is not None
    assert crawl.log.count("Another process of this user asks beside this crawl") == 1
    assert "pace/guard_refused" not in crawl.log


def test_a_command_that_is_killed_holds_nothing(beside: Beside) -> None:
    """While it waits for its answer the crawl waits too; after its end, however it ends, for one pause."""
    during = [v for v in beside.at_the_address() if beside.hangs_since < v.start < beside.killed_at + PACE_SECONDS]
    after = [visit.start for visit in beside.at_the_address() if visit.start > beside.killed_at]

    assert during == []
    assert min(after) < beside.killed_at + 5.0  # the server itself gives up then
