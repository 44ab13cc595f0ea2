"""What an operator says from outside while a crawl runs."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from crawlerproject.crawl.running_crawl import say_paused
from crawlerproject.errors import StorageError
from crawlerproject.extensions.orders import obey, take_in
from crawlerproject.stores.operator_files.control import Pauses
from tests.crawl.sessions import HOST, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session of one host."""
    return Bench(tmp_path)


def take(bench: Bench, text: str) -> Path:
    """A list of seeds is there, and taken in."""
    spooled = bench.folder / "add-1.txt"
    spooled.write_text(text)
    asyncio.run(take_in(bench.session, spooled, bench.run.now))
    return spooled


def test_added_seeds_are_the_crawls_own(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Queued, remembered by later starts, their hosts in scope; the list is gone."""
    caplog.set_level(logging.INFO)
    spooled = take(bench, "http://new.test/\nhttp://new.test/other\n")

    assert not spooled.exists()
    assert bench.frontier.hosts.waiting_urls == 2
    assert bench.session.filters.scope.governs("new.test") or bench.session.filters.scope.mode == "any"
    assert any("2 of them new" in message for message in caplog.messages)
    take(bench, "http://new.test/\n")
    assert any("0 of them new" in message for message in caplog.messages)
    assert bench.frontier.hosts.waiting_urls == 2


def test_a_seed_that_a_gate_refuses_is_named(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """With its reason; the others are queued."""
    take(bench, "http://127.0.0.1/\nhttp://new.test/\n")

    assert any(message.startswith("The added seed http://127.0.0.1/ is refused") for message in caplog.messages)
    assert bench.frontier.hosts.waiting_urls == 1


def test_a_list_that_cannot_be_meant_is_set_aside(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Written by hand: the command checks what it writes."""
    spooled = take(bench, "http://new.test/ scope=nonsense\n")

    assert not spooled.exists()
    assert spooled.with_suffix(".refused").exists()
    assert bench.frontier.hosts.waiting_urls == 0


def test_without_room_the_list_stays(bench: Bench) -> None:
    """None of it is lost: it is read again."""
    bench.store.full = "no room"
    with pytest.raises(StorageError):
        take(bench, "http://new.test/\n")
    assert (bench.folder / "add-1.txt").exists()

    bench.store.full = ""
    take(bench, "http://new.test/\n")
    assert bench.frontier.hosts.waiting_urls == 1


def test_a_host_is_paused_and_goes_on(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Its URLs stay queued meanwhile."""
    bench.add(f"{HOST}/one")
    obey(bench.frontier, bench.run, Pauses(hosts={"a.test": "since noon"}))
    assert bench.frontier.leasing.next(bench.now) is None
    assert bench.frontier.wake_at() is None

    obey(bench.frontier, bench.run, Pauses())
    assert bench.page_lease().row.url == f"{HOST}/one"
    assert caplog.messages == ["Paused by the operator: a.test", "The operator lets go on: a.test"]


def test_the_crawl_is_paused_and_goes_on(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """Said once each."""
    for said in ("since noon", "since noon", ""):
        obey(bench.frontier, bench.run, Pauses(said))

    assert bench.run.halted == ""
    assert [message.partition(":")[0] for message in caplog.messages] == ["The crawl pauses", "The crawl goes on"]


def test_a_pause_that_cannot_be_done_is_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds stays as it was."""

    def away(*given: object) -> None:
        raise StorageError("away")

    monkeypatch.setattr(bench.frontier, "pause_hosts", away)
    with pytest.raises(StorageError):
        obey(bench.frontier, bench.run, Pauses("since noon"))

    assert bench.run.pauses == Pauses()


def test_a_start_says_what_it_finds_paused(caplog: pytest.LogCaptureFixture) -> None:
    """And how it goes on; of many hosts the first."""
    say_paused(Pauses("since noon", {f"h{number:02}.test": "now" for number in range(13)}))

    assert caplog.messages[0] == "The crawl is paused, since noon: scrapy resume lets it go on."
    assert caplog.messages[1].endswith("h09.test and 3 more; scrapy resume HOST lets one go on.")
