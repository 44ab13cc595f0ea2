"""What enters a running crawl, and what happens where the store takes nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crawlerproject.crawl.intake import Intake, WebSub
from crawlerproject.errors import StorageError
from crawlerproject.frontier.learned.subscriptions import Subscriptions
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds.feeds import read_feed
from crawlerproject.rules.feeds.websub import HubReply
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, PageRecord
from tests.crawl.sessions import HOST, Bench, run_of


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
    monkeypatch.setattr(into.role, "keeps_hosts", False)

    def take(found: Iterable[DiscoveredUrl], frontier: object, now: float) -> int:
        out.extend(found)
        return 0

    monkeypatch.setattr(into.role.exchange, "take", take)
    monkeypatch.setattr(into.role.exchange, "changed", lambda pages, frontier, now: 0)

    assert into.intake.add(found("one", "two")) == 0
    assert len(out) == 2
    assert into.intake.changed([(parse(f"{HOST}/one"), into.now)]) == 0


FEED = read_feed(b'<feed><link rel="hub" href="http://hub.test/"/></feed>')
LEASE: Any = SimpleNamespace(row="the row")


class NotedSubscriptions(Subscriptions):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.error: StorageError | None = None

    def _note(self, *what: Any) -> bool:
        if self.error is not None:
            raise self.error
        self.told.append(what)
        return True

    def feed_read(self, row: Any, links: Any, feed: Any, now: float) -> bool:
        """A feed names a hub."""
        return self._note("read", row, now)

    def moved(self, row: Any, target: Any, hops: str, now: float) -> None:
        """A hub redirects."""
        self._note("moved", row, target.url)

    def renew(self, now: float) -> int:
        """Leases nearly over."""
        return int(self._note("renew"))

    def verify(self, token: str, asked: Any, now: float) -> HubReply:
        """A hub's question."""
        self._note("verify", token)
        return HubReply(200, "c")

    def expects(self, token: str) -> bool:
        """Whether the token is one of ours."""
        return token == "ours"

    def push(self, *given: Any) -> tuple[HubReply, list[Any], list[Any]]:
        """A push."""
        self._note("push")
        return HubReply(200), ["found"], ["changed"]


class NotedIntake:
    """Notes what comes in, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.room = True
        self.error: StorageError | None = None

    def changed(self, pages: Any) -> int:
        """Pages that changed."""
        if self.error is not None:
            raise self.error
        self.told += pages
        return 1

    def queue(self, found: Any) -> int | None:
        """New ones."""
        if not self.room:
            return None
        self.told += found
        return 1

    def wake(self) -> None:
        """There may be work."""
        self.told.append("wake")


class Made:
    """WebSub and what is around it."""

    def __init__(self, *, reachable: bool = True) -> None:
        self.subscriptions, self.intake, self.run = NotedSubscriptions(), NotedIntake(), run_of(lambda: 1000.0)
        subscriptions: Any = self.subscriptions if reachable else None
        intake: Any = self.intake
        self.websub = WebSub(subscriptions, intake, self.run)


@pytest.fixture
def made() -> Made:
    """Of a crawl that hubs can reach."""
    return Made()


def test_a_feed_that_names_a_hub(made: Made) -> None:
    """Its hub is asked; a hub that moved is asked at its new place."""
    assert made.websub.feed_met(LEASE, [], FEED) is True
    made.websub.hub_moved(LEASE, parse("http://other.test/"), "LR")

    assert made.subscriptions.told == [("read", "the row", 1000.0), ("moved", "the row", "http://other.test/")]


def test_without_room_the_crawl_pauses(made: Made) -> None:
    """It is asked for when the feed is read again."""
    made.subscriptions.error = StorageError("no room")
    assert made.websub.feed_met(LEASE, [], FEED) is False
    made.websub.hub_moved(LEASE, parse("http://other.test/"), "LR")

    assert made.run.paused == "no room"


def test_a_push_changes_what_is_known_before_it_queues_what_is_new(made: Made) -> None:
    """What is new is not known to have changed."""
    assert made.websub.pushed("ours", b"", "", "", []).status == 200
    assert made.intake.told == ["changed", "found", "wake"]


def test_a_push_that_finds_no_room_is_not_confirmed(made: Made) -> None:
    """The hub asks again, and its page is queued then."""
    made.intake.room = False
    assert made.websub.pushed("ours", b"", "", "", []).status == 503
    made.intake.room, made.intake.error = True, StorageError("no room")
    assert made.websub.pushed("ours", b"", "", "", []).status == 503

    assert made.run.paused == "no room"
    assert "wake" not in made.intake.told


def test_a_new_session_awaits_pushes_as_the_one_before(made: Made) -> None:
    """A worker whose partitions others have taken joins again: its listener is up all the while."""
    made.websub.await_pushes()
    intake: Any = made.intake
    listening: Any = made.subscriptions

    assert WebSub(listening, intake, made.run).awaited
    assert not WebSub(None, intake, made.run).awaited


def test_a_hubs_question_wakes_feeds_that_waited_for_it(made: Made) -> None:
    """It has proved to be one."""
    assert made.websub.verify("ours", {}).body == "c"
    assert made.intake.told == ["wake"]


@pytest.mark.parametrize("why", ["paused", "closed"])
def test_a_crawl_that_pauses_or_ends_takes_nothing_in(made: Made, why: str) -> None:
    """The hub asks again; leases are renewed afterwards."""
    made.run.paused, made.run.closed = ("why" if why == "paused" else ""), why == "closed"
    assert made.websub.verify("ours", {}).status == 503
    assert made.websub.pushed("ours", b"", "", "", []).status == 503
    if why == "paused":
        made.websub.renew()

    assert made.subscriptions.told == []


def test_leases_are_renewed_and_the_crawl_woken(made: Made) -> None:
    """Their requests are queued."""
    made.websub.renew()

    assert made.intake.told == ["wake"]


def test_a_crawl_that_hubs_cannot_reach() -> None:
    """Nothing happens, and a push is refused before its body is read."""
    websub = Made(reachable=False).websub
    websub.renew()
    websub.hub_moved(LEASE, parse("http://other.test/"), "LR")

    assert not websub.reachable
    assert not websub.expects("ours")
    assert websub.feed_met(LEASE, [], FEED) is False
    assert websub.pushed("ours", b"", "", "", []).status == 503


def test_a_crawl_goes_on_while_hubs_may_push(made: Made) -> None:
    """Once somebody listens."""
    assert not made.websub.awaited
    made.websub.await_pushes()

    assert made.websub.awaited
    assert made.websub.expects("ours")
    assert not made.websub.expects("others")
