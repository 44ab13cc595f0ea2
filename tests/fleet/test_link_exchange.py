"""Whose a host is, what is sent to its worker, what is spared since it was sent lately, and what comes, once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.link_exchange import LINKS_A_MESSAGE, FleetExchange, FleetHosts, RecentlySentLinks
from crawlerproject.fleet.redis.leased_partitions import LeasedPartitions
from crawlerproject.frontier.other_workers import Changed, Links, Message, pack_message, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_SEED
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import Box, Changes, Inbox, Posted
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore


class Hosts(FleetHosts):
    """A host's partition is its last digit; that of 1 is this worker's."""

    def __init__(self) -> None:
        super().__init__(lambda host: int(host.partition(".")[0][-1]))

    def posted(self) -> list[tuple[int, bytes]]:
        """What a commit sends, with the partitions that it is for."""
        changes = Changes()
        self.add_messages(changes)
        return changes.messages

    def mine(self, host: str) -> bool:
        """One partition's."""
        return self.partition(host) == 1


def test_links_go_in_full_messages_and_the_rest_with_the_commit() -> None:
    """Each to the holder of its host."""
    hosts, found = Hosts(), [link(f"http://site{1 + number % 2}.test/{number}") for number in range(300)]
    own, others = hosts.parted(found)
    assert (len(own), len(others)) == (150, 150)

    hosts.send_links([*others, link("http://site3.test/")])
    assert hosts.writing

    sizes = {(to, len(said.found)) for to, each in hosts.posted() if isinstance(said := unpack_message(each), Links)}
    assert sizes == {(2, LINKS_A_MESSAGE), (2, 50), (3, 1)}
    assert (hosts.writing, hosts.sole) == (False, False)


def test_word_of_own_changed_pages_stays() -> None:
    """That of others is sent, by partition."""
    hosts, pages = Hosts(), [(parse(f"http://site{number}.test/"), 5.0) for number in (1, 2, 3, 2)]

    assert hosts.send_changed(pages) == pages[:1]
    said = [(to, unpack_message(each)) for to, each in hosts.posted()]
    assert said == [(2, Changed([pages[1], pages[3]])), (3, Changed([pages[2]]))]


def link(url: str, via: str = "http://a.example/1", flags: int = FLAG_EXTERNAL) -> DiscoveredUrl:
    """A link."""
    return DiscoveredUrl(parse(url), 1, "L", via, 10, flags)


def test_what_was_sent_is_spared() -> None:
    """From other pages of the same domain too."""
    lately, one = RecentlySentLinks(), link("http://b.example/1")
    assert lately.unsent([one], 0.0) == [one]
    assert lately.unsent([one], 0.0) == [one]  # not sent yet
    lately.sent([one], 0.0)
    again = [link("http://b.example/1", via="http://a.example/2"), link("http://b.example/2")]
    assert lately.unsent(again, 0.0) == again[1:]


def test_what_its_worker_may_judge_otherwise_is_sent() -> None:
    """Another domain has a budget of its own; a seed passes where a link does not."""
    lately = RecentlySentLinks()
    lately.sent([link("http://b.example/1")], 0.0)
    others = [link("http://b.example/1", via="http://c.example/"), link("http://b.example/1", flags=FLAG_SEED)]
    assert lately.unsent(others, 0.0) == others


def test_it_forgets_by_number() -> None:
    """Two generations: what was sent before these is unknown."""
    lately, found = RecentlySentLinks(most=2), [link(f"http://b.example/{number}") for number in range(7)]
    for item in found:
        lately.sent([item], 0.0)
    assert lately.unsent(found, 0.0) == found[:3]


def test_it_forgets_by_time() -> None:
    """After two of its times at most: what a worker refused may be allowed by then."""
    lately, one, two = RecentlySentLinks(seconds=100.0), link("http://b.example/1"), link("http://b.example/2")
    lately.sent([one], 1000.0)
    assert lately.unsent([one], 1099.0) == []
    assert lately.unsent([one], 1101.0) == []
    lately.sent([two], 1150.0)
    assert lately.unsent([one, two], 1205.0) == [one]
    assert lately.unsent([one, two], 1310.0) == [one, two]


OURS, THEIRS = 1, 2
OUTBOX = b"another outbox.."


class Store(MemoryStore):
    """A worker's, with inboxes in its hand."""

    def __init__(self) -> None:
        super().__init__()
        self.inboxes: dict[int, list[Posted]] = {}
        self.answered: list[tuple[int, Inbox]] = []

    async def unread(self, partitions: Sequence[int]) -> dict[int, Inbox]:
        """All of each inbox."""
        return {number: Inbox(0, list(self.inboxes[number])) for number in partitions if self.inboxes.get(number)}

    def read(self, partition: int, inbox: Inbox) -> None:
        """What has taken effect."""
        self.answered.append((partition, inbox))

    def write(self, *messages: Message, first: int = 1, after: int = 0) -> None:
        """Another worker has written these; ``after``: the number of the one before them."""
        for number, message in enumerate(messages, first):
            self.inboxes.setdefault(OURS, []).append(Posted(OUTBOX, number, pack_message(message), after))
            after = number


def exchange() -> tuple[FleetExchange, Bench, Store]:
    """That of a worker that holds one partition, its frontier and its store."""
    store = Store()
    held = LeasedPartitions(lambda host: OURS if host.startswith("ours") else THEIRS, 1.0)
    held.take(OURS, 1e12, 0.0)
    bench = Bench(store, ownership=held)
    return FleetExchange(held, store.messages, store.unread, store.read), bench, store


def held_by(mail: FleetExchange) -> LeasedPartitions:
    """Its partitions."""
    assert isinstance(mail._hosts, LeasedPartitions)
    return mail._hosts


def found(*urls: str) -> list[DiscoveredUrl]:
    """Links of a page."""
    return [DiscoveredUrl(parse(url), 1, "L", "http://ours.test/", 10) for url in urls]


def announced(*urls: str) -> list[tuple[Address, float]]:
    """Pages that changed at a moment."""
    return [(parse(url), 5.0) for url in urls]


def read(mail: FleetExchange, bench: Bench) -> None:
    """Before a commit."""
    asyncio.run(mail.read(bench.frontier, lambda: bench.now))


def written(mail: FleetExchange) -> list[tuple[int, Message]]:
    """What goes with the next commit."""
    changes = Changes()
    mail._hosts.add_messages(changes)
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
    held_by(mail).leaving.add(OURS)
    read(mail, bench)
    mail.settle()
    assert store.answered == []
    held_by(mail).leaving.clear()
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
