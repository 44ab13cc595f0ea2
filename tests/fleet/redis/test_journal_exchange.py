"""What workers find for each other: sent with its cause, read once, not lost to an error in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.link_exchange import LINKS_A_MESSAGE
from crawlerproject.fleet.redis import journal_exchange
from crawlerproject.fleet.redis.journal_exchange import JournalExchange, LeasedPartitions
from crawlerproject.frontier.other_workers import Changed, Links, Message, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import Box, Changes
from crawlerproject.stores.redis.journals import Inbox, Posted
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

OURS, THEIRS = 1, 2
OUTBOX = b"another outbox.."


class Store(MemoryStore):
    """A worker's, with inboxes in its hand."""

    def __init__(self) -> None:
        super().__init__()
        self.inboxes: dict[int, list[Posted]] = {}
        self.answered: list[tuple[int, Inbox]] = []

    def unread(self, partitions: list[int], most: int) -> dict[int, Inbox]:
        """The first of each inbox."""
        return {number: Inbox(0, self.inboxes[number][:most]) for number in partitions if self.inboxes.get(number)}

    def read(self, partition: int, inbox: Inbox) -> None:
        """What has taken effect."""
        self.answered.append((partition, inbox))

    def write(self, *messages: Message, first: int = 1, after: int = 0) -> None:
        """Another worker has written these; ``after``: the number of the one before them."""
        for number, message in enumerate(messages, first):
            self.inboxes.setdefault(OURS, []).append(Posted(OUTBOX, number, pack_message(message), after))
            after = number


def exchange() -> tuple[JournalExchange, Bench, Store]:
    """That of a worker that holds one partition, its frontier and its store."""
    store = Store()
    held = LeasedPartitions(lambda host: OURS if host.startswith("ours") else THEIRS, 1.0)
    held.take(OURS, 1e12, 0.0)
    bench = Bench(store, ownership=held)
    return JournalExchange(cast("Any", store), held), bench, store


def found(*urls: str) -> list[DiscoveredUrl]:
    """Links of a page."""
    return [DiscoveredUrl(parse(url), 1, "L", "http://ours.test/", 10) for url in urls]


def announced(*urls: str) -> list[tuple[Address, float]]:
    """Pages that changed at a moment."""
    return [(parse(url), 5.0) for url in urls]


def read(mail: JournalExchange, bench: Bench) -> None:
    """Before a commit."""
    asyncio.run(mail.read(bench.frontier, lambda: bench.now))


def written(mail: JournalExchange) -> list[tuple[int, Message]]:
    """What goes with the next commit."""
    changes = Changes()
    mail._held.add_messages(changes)
    return [(partition, unpack_message(packed)) for partition, packed in changes.messages]


def test_own_urls_are_queued_and_others_go_with_the_next_commit() -> None:
    """By partition, each URL once, so many a message; none is sent before its cause is stored."""
    mail, bench, _ = exchange()
    assert mail.take(found("http://ours.test/1", "http://theirs.test/1", "http://theirs.test/1"), bench.frontier, 1.0)
    more = [f"http://theirs.test/more/{number}" for number in range(LINKS_A_MESSAGE)]
    mail.take(found(*more), bench.frontier, bench.now)
    assert not mail.empty
    messages = written(mail)
    assert bench.frontier.hosts.waiting_urls == 1
    assert [partition for partition, _ in messages] == [THEIRS] * 2
    links = [len(message.found) for _, message in messages if isinstance(message, Links)]
    assert links == [LINKS_A_MESSAGE, 1]
    assert mail.empty
    assert written(mail) == []


def test_a_message_is_answered_with_the_commit_that_holds_what_came_of_it() -> None:
    """Read once; until then it is not read again."""
    mail, bench, store = exchange()
    store.write(Links(found("http://ours.test/1")), Links(found("http://ours.test/2")))
    for _ in range(2):
        read(mail, bench)
    assert (bench.frontier.hosts.waiting_urls, store.answered, mail.empty) == (2, [], False)
    bench.commit()
    mail.settle()
    assert [(partition, len(inbox.messages)) for partition, inbox in store.answered] == [(OURS, 2)]
    assert store.messages.read_up_to(Box(OURS, OUTBOX)) == 2
    assert mail.empty
    mail.settle()
    assert len(store.answered) == 1


def test_what_follows_a_lost_message_waits_until_all_is_posted_again() -> None:
    """A server that took over lacks the second: taken as read, the third would hide it for good."""
    mail, bench, store = exchange()
    store.write(Links(found("http://ours.test/1")))
    store.write(Links(found("http://ours.test/3")), first=3, after=2)
    read(mail, bench)
    bench.commit()
    mail.settle()
    [(_, inbox)] = store.answered
    assert ([each.number for each in inbox.messages], inbox.removed) == ([1], 1)  # both leave the inbox
    assert store.messages.read_up_to(Box(OURS, OUTBOX)) == 1

    store.inboxes.clear()
    store.write(Links(found("http://ours.test/2")), Links(found("http://ours.test/3")), first=2)
    read(mail, bench)
    bench.commit()
    assert store.messages.read_up_to(Box(OURS, OUTBOX)) == 3
    assert bench.frontier.hosts.waiting_urls == 3


def counted(bench: Bench) -> list[Any]:
    """The pages that other workers say have changed, each time they do."""
    said: list[Any] = []
    bench.frontier.changed = lambda pages, now: said.extend(pages) or 0  # type: ignore[method-assign, func-returns-value]
    return said


def test_what_comes_twice_takes_effect_once() -> None:
    """In one inbox, or in a later one."""
    mail, bench, store = exchange()
    said, word = counted(bench), Changed(announced("http://ours.test/1"))
    store.write(word)
    store.write(word)
    read(mail, bench)
    bench.commit()
    mail.settle()
    read(mail, bench)
    assert said == word.pages


def test_an_inbox_that_was_not_read_to_its_end_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk had no room in the middle, and no commit was made."""
    mail, bench, store = exchange()
    said = counted(bench)
    store.write(Changed(announced("http://ours.test/1")), Links(found("http://ours.test/2")))
    store.write(Changed(announced("http://ours.test/3")), first=3)
    with monkeypatch.context() as patch:
        patch.setattr(bench.frontier, "add", lambda *_: (_ for _ in ()).throw(StorageError("full")))
        with pytest.raises(StorageError):
            read(mail, bench)
    changes = bench.frontier.state.take_changes()
    bench.frontier.state.take_back(changes)
    read(mail, bench)
    bench.commit()
    mail.settle()
    assert said == announced("http://ours.test/1", "http://ours.test/3")
    assert bench.frontier.hosts.waiting_urls == 1
    assert store.messages.read_up_to(Box(OURS, OUTBOX)) == 3


def test_messages_of_a_partition_that_leaves_are_its_next_workers() -> None:
    """They stay in the inbox."""
    mail, bench, store = exchange()
    store.write(Links(found("http://ours.test/1")))
    mail._held.leaving.add(OURS)
    read(mail, bench)
    mail.settle()
    assert store.answered == []
    mail._held.leaving.clear()
    read(mail, bench)
    mail.forget(OURS)
    mail.settle()
    assert store.answered == []


def test_changed_pages_are_told_to_those_who_hold_them() -> None:
    """Own ones are believed or not."""
    mail, bench, _ = exchange()
    said = counted(bench)
    mail.changed(announced("http://ours.test/1", "http://theirs.test/1"), bench.frontier, bench.now)
    assert said == announced("http://ours.test/1")
    assert written(mail) == [(THEIRS, Changed(announced("http://theirs.test/1")))]


def test_an_address_that_this_version_refuses_is_left_out() -> None:
    """Of what another version wrote."""
    mail, bench, store = exchange()
    said = counted(bench)
    store.inboxes[OURS] = [Posted(OUTBOX, 1, b'["changed",[["ftp://ours.test/",5.0]]]')]
    read(mail, bench)
    assert said == []


ANSWER_SECONDS = 10.0
LEASE_SECONDS = 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Seconds since boot, in the test's hand."""
    now = [1000.0]
    monkeypatch.setattr(journal_exchange, "since_boot", lambda: now[0])
    return lambda seconds: now.__setitem__(0, seconds)


def held(*partitions: int) -> LeasedPartitions:
    """Some of ten partitions; a host's is its last digit."""
    ours = LeasedPartitions(lambda host: int(host[-1]), ANSWER_SECONDS)
    for partition in partitions:
        ours.take(partition, 1000.0 + LEASE_SECONDS, 0.0)
    return ours


def test_a_host_is_asked_only_while_its_answer_comes_within_the_lease(clock: Callable[[float], None]) -> None:
    """Ten seconds for an answer: the last ones of a lease begin nothing, and a renewal goes on."""
    ours = held(1)
    assert ours.may_ask("host1")
    assert not ours.may_ask("host2")

    clock(1000.0 + LEASE_SECONDS - ANSWER_SECONDS + 0.1)
    assert not ours.may_ask("host1")
    assert ours.mine("host1")
    ours.renewed(1050.0 + LEASE_SECONDS)
    assert ours.may_ask("host1")
    assert ours.ask_until("host1") == 1050.0 + LEASE_SECONDS


def test_a_partition_that_leaves_is_decided_about_no_more(clock: Callable[[float], None]) -> None:
    """It is held until it is dropped, so that what is unfinished can be stored."""
    ours = held(1, 2)
    ours.leaving.add(1)

    assert (ours.mine("host1"), ours.may_ask("host1"), 1 in ours, ours.all()) == (False, False, True, [1, 2])
    assert ours.staying() == [2]
    ours.drop(1)
    assert (1 in ours, ours.leaving, ours.all()) == (False, set(), [2])
    assert ours.ask_until("host1") == 0.0


def test_what_a_former_holder_may_have_asked_is_known_by_host() -> None:
    """Epoch seconds; 0 where it left in good order, and of hosts of others."""
    ours = held(2)
    ours.take(1, 2000.0, 1_800_000_000.0)

    assert [ours.unsure_until(f"host{number}") for number in (1, 2, 3)] == [1_800_000_000.0, 0.0, 0.0]


def test_a_message_goes_to_the_hosts_partition() -> None:
    """And is remembered as work, so that no worker takes the crawl for finished."""
    ours, changes = held(), Changes()
    assert not ours.writing
    ours.send("host7", Links([]))
    assert (ours.sent, ours.writing) == (True, True)
    ours.add_messages(changes)
    assert changes.messages == [(7, pack_message(Links([])))]
    assert not ours.writing


def test_a_frontier_without_a_partition_owns_no_host() -> None:
    """As at the start of a worker: it is not the only process of its crawl."""
    nothing = held()

    bench = Bench(MemoryStore(), ownership=nothing)

    assert bench.frontier.hosts.ownership is nothing
    assert not bench.frontier.hosts.ownership.mine("host1")
