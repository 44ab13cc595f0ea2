"""What enters a running crawl, and what happens where the store takes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from crawlerproject.crawl.intake import Intake
from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, PageRecord
from tests.crawl.sessions import HOST, Bench


class In(Bench):
    """A session and its intake."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.woken = 0
        self.intake = Intake(self.session, self.run, self._wake)

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
def into(tmp_path: Path) -> In:
    """Nothing queued."""
    return In(tmp_path)


def found(*paths: str) -> list[DiscoveredUrl]:
    """Links of a page."""
    return [DiscoveredUrl(parse(f"{HOST}/{path}"), 1, "L", HOST, 10) for path in paths]


def test_links_are_queued_once(into: In) -> None:
    """How many of them were new."""
    assert into.intake.add(found("one", "two", "one")) == 2
    assert into.intake.add(found("two", "three")) == 1
    assert into.frontier.hosts.waiting_urls == 3


def test_without_room_the_crawl_pauses_and_they_wait(into: In) -> None:
    """None is lost: they are queued when the pause is over."""
    into.store.full = "no room"
    assert into.intake.queue(found("one")) is None
    assert into.intake.add(found("two")) == 0
    assert into.intake.paused == "no room"

    into.store.full = ""
    into.session.write_again(into.now)
    assert into.frontier.hosts.waiting_urls == 2


def test_seeds_wake_the_crawl(into: In, caplog: pytest.LogCaptureFixture) -> None:
    """One that is refused is named with its reason; a crawl that has ended takes none."""
    with caplog.at_level(logging.WARNING):
        into.intake.add_seeds([parse(f"{HOST}/"), parse("http://127.0.0.1/")])
    assert into.frontier.hosts.waiting_urls == 1
    assert into.woken == 1
    assert any(message.startswith("Seed http://127.0.0.1/ is refused") for message in caplog.messages)

    into.run.closed = True
    into.intake.add_seeds([parse(f"{HOST}/late")])
    assert (into.frontier.hosts.waiting_urls, into.woken) == (1, 1)


def test_a_new_seed_whose_page_is_known_is_queued_once_more(into: In) -> None:
    """As a link that was followed, or from an index; one that an earlier start had is not, nor one that waits."""
    known, before, waits = (parse(f"{HOST}/{name}") for name in ("known", "before", "waits"))
    at = PageRecord("", Reason.FETCHED, 200, into.now)
    into.store.apply(Changes(pages=[(seed.key, at._replace(url=seed.url)) for seed in (known, before)]))
    into.intake.add(found("waits"))
    into.session = replace(into.session, resumed=replace(into.session.resumed, known=frozenset({before.key})))
    intake = Intake(into.session, into.run, into._wake)

    intake.add_seeds([known, before, waits])
    assert into.frontier.hosts.waiting_urls == 1
    intake.add_seeds([known, before, waits], known_too=True)
    assert into.frontier.hosts.waiting_urls == 2

    assert {row.url for row in into.store.head(known.host, 9)} == {waits.url, known.url}


def test_in_a_fleet_all_of_it_goes_out_first(into: In, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of it was new is not known here, and records of pages are other workers'."""
    out: list[DiscoveredUrl] = []
    monkeypatch.setattr(into.member, "own_frontier", False)

    def take(found: Iterable[DiscoveredUrl], frontier: object, now: float) -> int:
        out.extend(found)
        return 0

    monkeypatch.setattr(into.member, "take", take)
    monkeypatch.setattr(into.member, "changed", lambda pages, frontier, now: 0)

    assert into.intake.add(found("one", "two")) == 0
    assert len(out) == 2
    assert not into.intake.waits_for_store
    assert into.intake.changed([(parse(f"{HOST}/one"), into.now)]) == 0
