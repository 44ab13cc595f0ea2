"""What a running crawl says of itself: rates of now, and the never-crawl lists that it has read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.utils.test import get_crawler

from crawlerproject.extensions import status_file as status
from crawlerproject.extensions.status_file import StatusFile
from crawlerproject.inspection.crawl_progress import Progress


def status_file() -> StatusFile:
    """Without a crawl; Scrapy makes its tick where a loop runs."""

    async def made() -> StatusFile:
        return StatusFile(get_crawler())

    return asyncio.run(made())


def standing(pages: int, paused: str = "") -> Progress:
    """A crawl that has so many pages."""
    return Progress(pages, pages * 1000, 0, 1, 0, 0, 0, 10, None, None, paused)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the extension sees, as its only member."""
    now = [100.0]
    monkeypatch.setattr(
        status, "time", SimpleNamespace(monotonic=lambda: now[0], process_time=lambda: 0.0, thread_time=lambda: now[1])
    )
    now.append(0.0)
    return now


def test_a_paused_crawl_has_no_rate(clock: list[float]) -> None:
    """Not that of the minute before; and when it goes on, that of the time since."""
    extension = status_file()
    rates = []
    for seconds, pages, paused in (
        (0, 0, ""),
        (10, 100, ""),
        (11, 100, "no room"),
        (12, 100, "no room"),
        (14, 120, ""),
    ):
        clock[0] = 100.0 + seconds
        rates.append(extension._rates(standing(pages, paused))["pages_per_second"])

    assert rates == [0.0, 10.0, 0.0, 0.0, 10.0]


def test_a_list_that_was_taken_up_is_said_at_once(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """However dear a look at all hosts is: who waits for it must not wait for the next look."""
    versions: dict[str, Any] = {"/never.txt": 1}
    looks = [0]
    lists = SimpleNamespace(current=lambda now: looks.__setitem__(0, looks[0] + 1), versions=versions)
    session = SimpleNamespace(filters=SimpleNamespace(never_crawl=lists))
    crawl = SimpleNamespace(session=session, run=SimpleNamespace(now=lambda: 0.0))
    services = SimpleNamespace(get=lambda kind: SimpleNamespace(crawl=crawl))
    monkeypatch.setattr("crawlerproject.extensions.crawl_task.services_of", lambda _: services)
    extension = status_file()

    def dear(scheduler: Any) -> dict[str, Any]:
        clock[1] += 1.0  # a second of the processor: the next look is a hundred seconds off
        return {"nevercrawl_lists": dict(versions)}

    written: list[dict[str, Any]] = []
    monkeypatch.setattr(extension, "status", dear)

    def write(_: Any, said: dict[str, Any]) -> None:
        written.append(said)
        extension.last = said

    monkeypatch.setattr(extension, "_write", write)
    for second in range(4):
        clock[0] = 100.0 + second
        if second == 2:
            versions["/never.txt"] = 2
        extension.tick()

    assert looks == [4]
    assert [said["nevercrawl_lists"]["/never.txt"] for said in written] == [1, 2]
