"""What systemd hears of a crawl: from when silence counts, that it is alive, from when it no longer counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import NotConfigured
from scrapy.signalmanager import SignalManager

from crawlerproject.extensions.service_watchdog import SILENT_SECONDS, ServiceWatchdog
from tests.web.waiting import eventually


class Crawler:
    """As far as an extension needs one."""

    def __init__(self, *, crawling: bool = True) -> None:
        self.crawling = crawling
        self.signals = SignalManager(self)


class Manager:
    """systemd's end of the socket."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(address)
        self.heard: list[str] = []

    def listen(self) -> list[str]:
        """All that has been said so far."""
        while True:
            try:
                self.heard.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return self.heard

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    """One that listens, as the environment says."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    listening = Manager(str(tmp_path / "notify"))
    yield listening
    listening.close()


def made(**state: bool) -> ServiceWatchdog:
    """As Scrapy makes it."""
    return ServiceWatchdog.from_crawler(Crawler(**state))  # type: ignore[arg-type]


SPIDER: Any = SimpleNamespace(recrawl=False)
RECRAWL: Any = SimpleNamespace(recrawl=True)


async def opened_and_closed(watchdog: ServiceWatchdog, manager: Manager, least: int, spider: Any = SPIDER) -> None:
    """A crawl of which so many words were heard; then a time in which an open one would have said more."""
    watchdog.spider_opened(spider)
    assert bool(manager.listen()) == bool(least and spider is SPIDER)
    await eventually(lambda: len(manager.listen()) >= least)
    watchdog.spider_closed()
    said = len(manager.listen())
    loop = asyncio.get_running_loop()
    later = loop.create_future()
    loop.call_later(0.05, later.set_result, None)  # after what is left of the watchdog's timer
    await later
    assert len(manager.listen()) == said


def test_silence_counts_while_the_crawl_is_open(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """At once, again and again, and not while it closes; the unit's own time goes before ours."""
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    asyncio.run(opened_and_closed(made(), manager, 4))
    first, *beats, last = manager.heard

    assert first == "WATCHDOG_USEC=40000"
    assert set(beats) == {"WATCHDOG=1"}
    assert last == "WATCHDOG_USEC=0"


def test_a_recrawl_chooses_first(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """That may hold the loop for minutes: systemd hears of the watchdog when it turns again."""
    monkeypatch.setenv("WATCHDOG_USEC", "40000")
    asyncio.run(opened_and_closed(made(), manager, 2, RECRAWL))

    assert manager.heard[:2] == ["WATCHDOG_USEC=40000", "WATCHDOG=1"]
    assert manager.heard[-1] == "WATCHDOG_USEC=0"


def test_without_a_time_of_the_units_it_is_ours(manager: Manager) -> None:
    """Which is longer than any hold of the loop."""
    asyncio.run(opened_and_closed(made(), manager, 2))

    assert manager.heard == [f"WATCHDOG_USEC={int(SILENT_SECONDS * 1_000_000)}", "WATCHDOG=1", "WATCHDOG_USEC=0"]


def test_a_manager_that_is_gone_stops_nothing(manager: Manager, tmp_path: Path) -> None:
    """Nothing is raised."""
    (tmp_path / "notify").unlink()
    asyncio.run(opened_and_closed(made(), manager, 0))

    assert manager.heard == []


def test_an_address_that_is_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux's abstract names, which systemd gives in a container."""
    name = f"polite-crawler-test-{id(monkeypatch)}"
    listening = Manager(f"\0{name}")
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    made().spider_closed()

    assert listening.listen() == ["WATCHDOG_USEC=0"]
    listening.close()


@pytest.mark.parametrize("crawling", [True, False])
def test_where_nothing_listens_there_is_none(crawling: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside systemd, and in a shell."""
    monkeypatch.setenv("NOTIFY_SOCKET", "" if crawling else "/run/nowhere")
    with pytest.raises(NotConfigured):
        made(crawling=crawling)
