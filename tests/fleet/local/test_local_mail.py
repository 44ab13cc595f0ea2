"""Workers of one machine write to each other by way of their supervisor: once, in order, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from crawlerproject.errors import FrontierDamaged, StorageError
from crawlerproject.fleet.local import fleet_tables, local_mail
from crawlerproject.fleet.local.fleet_tables import InboxTable
from crawlerproject.fleet.local.supervisor_link import Ask
from crawlerproject.frontier.other_workers import Links, RobotsGiven, RobotsWanted, unpack_message
from crawlerproject.frontier.passage import DiscoveredUrl, seed_found
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores import outboxes
from crawlerproject.stores.crawl_folders import shared_out
from crawlerproject.stores.protocols import Box, Changes
from tests.fleet.local.mail_workers import Worker, hosts_of, idle, links, plan_of, supervised, until
from tests.stores.memory_store import MemoryStore

PLAN = plan_of("worker-1", "worker-2", "worker-3")
OURS, THEIRS = hosts_of(PLAN, "worker-1", 1)[0], hosts_of(PLAN, "worker-2", 1)[0]


@pytest.fixture
def inboxes() -> InboxTable:
    """The supervisor's."""
    return InboxTable()


def started(inboxes: InboxTable, *names: str) -> list[Worker]:
    """These workers, new."""
    return [Worker(name, PLAN, supervised(inboxes)) for name in names]


def all_urls(per_host: int = 30) -> list[str]:
    """Of some hosts of each worker."""
    hosts = [host for name in PLAN.workers for host in hosts_of(PLAN, name, 5)]
    return [f"http://{host}/{number}" for host in hosts for number in range(per_host)]


def held_by(name: str, urls: list[str]) -> list[str]:
    """Those of the URLs whose hosts this worker decides about."""
    return [url for url in urls if PLAN.holder(url.split("/")[2]) == name]


def posted_bytes(inboxes: InboxTable, name: str) -> int:
    """Of what waits for a worker."""
    return sum(len(packed) for partition in PLAN.held(name) for _, _, packed in inboxes._rows.get(partition, []))


def test_links_arrive_everywhere_and_leave_nothing_behind(inboxes: InboxTable) -> None:
    """Each at its worker alone; afterwards neither a store nor an inbox has a message."""

    async def play() -> None:
        workers, urls = started(inboxes, *PLAN.workers), all_urls()
        for worker in workers:
            worker.find(*urls, via=f"http://{worker.name}.example/")
        await until(workers, lambda: idle(workers))
        for worker in workers:
            own = held_by(worker.name, urls)
            assert worker.bench.frontier.hosts.waiting_urls == len(own) == 150
            assert worker.knows(urls) == [url in own for url in urls]
        assert inboxes._rows == {}

    asyncio.run(play())


def test_other_messages_arrive_with_what_is_in_them(inboxes: InboxTable) -> None:
    """A robots.txt that is wanted and one that is given, of any size; each has its effect once."""

    async def play() -> None:
        one, two = started(inboxes, "worker-1", "worker-2")
        theirs = hosts_of(PLAN, "worker-2", 2)
        two.find(f"http://{theirs[0]}/", f"http://{theirs[1]}/")
        body = b"User-agent: *\nDisallow: /x\n" + b"#" * 2_000_000
        one.hosts.send(theirs[0], RobotsGiven(f"http://{theirs[0]}", 200, body, "fetched"))
        one.hosts.send(theirs[1], RobotsWanted(f"http://{OURS}", f"http://{theirs[1]}/r", "R", f"http://{OURS}/r"))
        await until([one, two], lambda: idle([one, two]))

        rules = two.bench.frontier.state.robots.rules(f"http://{theirs[0]}")
        assert [rules.allowed(f"http://{theirs[0]}/{path}") for path in "xy"] == [False, True]
        asked = [row.url for row in two.store.head(theirs[1], 9)]
        assert asked == [f"http://{theirs[1]}/", f"http://{theirs[1]}/r"]  # a stranger's robots.txt comes last

    asyncio.run(play())


def test_a_receiver_that_comes_late_or_dies_gets_everything(inboxes: InboxTable) -> None:
    """What it had fetched, or read and not said to have read, it is given again."""

    async def play() -> None:
        (one,), urls = started(inboxes, "worker-1"), all_urls()
        wanted = held_by("worker-2", urls)
        for number in range(0, len(urls), 50):
            one.find(*urls[number : number + 50])
            await one.commit()
        assert one.mail.unread() == ["worker-2", "worker-3"]

        store = MemoryStore()
        for commits in (0, 0, 1, 1):
            two = Worker("worker-2", PLAN, supervised(inboxes), store)
            assert await two.mail.fetch(two.hosts.staying())
            for _ in range(commits):
                two.exchange._fetched = {}
                await two.commit()
            two.mail.close()
        two = Worker("worker-2", PLAN, supervised(inboxes), store)
        await until([one, two], lambda: one.mail.unread() == ["worker-3"])
        assert two.knows(urls) == [url in wanted for url in urls]
        assert two.bench.frontier.hosts.waiting_urls == len(wanted)

    asyncio.run(play())


def test_a_sender_that_dies_goes_on_from_its_store(inboxes: InboxTable) -> None:
    """What it had committed arrives, once, however much of it had arrived before; so it is with another supervisor."""

    async def play() -> None:
        asks = [supervised(inboxes), supervised(InboxTable())]
        urls, stores = held_by("worker-2", all_urls()), {name: MemoryStore() for name in ("worker-1", "worker-2")}

        def both(ask: Ask) -> Iterator[Worker]:
            return (Worker(name, PLAN, ask, store) for name, store in stores.items())

        for number in range(0, len(urls), 30):
            one, two = both(asks[number > 75])
            one.store.messages.begin()  # type: ignore[attr-defined]  # as a start does
            one.find(*urls[number : number + 30])
            for _ in range(number // 30 % 3):
                await one.commit()
                await two.commit()
            await one.commit()
            one.mail.close()
        one, two = both(asks[1])
        await until([one, two], lambda: idle([one, two]))
        assert all(two.knows(urls))
        assert len(two.store.head(THEIRS, 10**6)) == 30

    asyncio.run(play())


def test_one_that_reads_nothing_costs_others_no_memory(inboxes: InboxTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a window is posted for it; what is for others passes it."""
    monkeypatch.setattr(local_mail, "WINDOW_BYTES", 20_000)
    monkeypatch.setattr(outboxes, "_SLICE_BYTES", 4_000)

    async def play() -> None:
        one, three = started(inboxes, "worker-1", "worker-3")
        for round_ in range(40):
            for name in ("worker-2", "worker-3"):
                host = hosts_of(PLAN, name, 1)[0]
                one.find(*(f"http://{host}/{round_}/{number}" for number in range(100)))
            await one.commit()
        assert one.store.messages.applied.last == 80
        for name in ("worker-2", "worker-3"):
            assert 10_000 < posted_bytes(inboxes, name) * 3 // 4 < 40_000
        await until([one, three], lambda: one.mail.unread() == ["worker-2"])
        assert three.bench.frontier.hosts.waiting_urls == 4000

    asyncio.run(play())


def test_so_much_is_fetched_before_a_commit(inboxes: InboxTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest before the next ones; no partition is passed over for long."""
    monkeypatch.setattr(fleet_tables, "INBOX_BYTES", 3_000)

    async def play() -> None:
        one, two = started(inboxes, "worker-1", "worker-2")
        hosts = hosts_of(PLAN, "worker-2", 20)
        for number in range(30):
            one.find(*(f"http://{host}/{number}/{each}" for host in hosts for each in range(10)))
        await one.commit()
        await two.commit()
        first = two.bench.frontier.hosts.waiting_urls
        assert 0 < first < 600
        await until([one, two], lambda: idle([one, two]))
        assert two.bench.frontier.hosts.waiting_urls == 6000

    asyncio.run(play())


def test_nothing_waits_for_a_supervisor_that_is_stopped(inboxes: InboxTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits go on; what is answered later is taken in then."""
    monkeypatch.setattr(local_mail, "_PATIENCE_SECONDS", 0.001)
    stopped, answer = asyncio.Event(), supervised(inboxes)

    async def ask(name: str, *question: Any) -> Any:
        await stopped.wait()
        return await answer(name, *question)

    async def play() -> None:
        one, two = (Worker(name, PLAN, ask) for name in ("worker-1", "worker-2"))
        one.find(f"http://{THEIRS}/")
        for worker in (one, two) * 3:
            await worker.commit()
        assert one.mail.unread() == ["worker-2"]
        stopped.set()
        await until([one, two], lambda: idle([one, two]))
        assert two.knows([f"http://{THEIRS}/"]) == [True]

    asyncio.run(play())


def test_what_cannot_be_read_now_is_posted_later(inboxes: InboxTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The own frontier is closed for want of room; a damaged one ends the crawl."""

    async def play() -> None:
        one, two = started(inboxes, "worker-1", "worker-2")
        url = f"http://{THEIRS}/"
        one.find(url)
        for error in (StorageError("closed"), FrontierDamaged("damaged")):

            def refuse(*_: object, error: Exception = error) -> None:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(one.store.messages, "of", refuse)
                with pytest.raises(type(error)):
                    await one.commit()
        await until([one, two], lambda: idle([one, two]))
        assert two.knows([url]) == [True]

    asyncio.run(play())


def test_what_was_left_for_hosts_that_are_ours_now_is_read(inboxes: InboxTable) -> None:
    """Under a new plan the own store has messages for own hosts: each takes effect once, as others' do."""

    async def play() -> None:
        (before,), urls = started(inboxes, "worker-1"), all_urls(per_host=120)
        before.find(*urls)
        before.bench.commit()
        store, mail = before.store, before.store.messages
        ((box, (number, packed)), *_) = [(box, mail.of(box, 0, 2**62, 1)[0]) for box in mail.boxes()]
        store.apply(Changes(read=[(box, number)]))  # moved here with its partition
        done = {item.address.url for item in cast("Links", unpack_message(packed)).found}

        one = Worker("worker-1", shared_out(PLAN, ["worker-1", "worker-3"]), supervised(inboxes), store)
        held = [url for url in urls if one.hosts.mine(url.split("/")[2])]
        assert one.mail.unread() == ["worker-1", "worker-3"]
        await until([one], lambda: one.mail.unread() == ["worker-3"])
        assert one.knows(held) == [url not in done for url in held]
        await one.commit()
        assert {one.mail._receiver(box) for box in mail.boxes()} == {"worker-3"}

    asyncio.run(play())


def test_while_a_backup_is_made_no_row_of_a_message_goes(inboxes: InboxTable) -> None:
    """One that was read stays until that is over: the reader's frontier in the backup may not have it yet."""

    async def play() -> None:
        one, two = started(inboxes, "worker-1", "worker-2")
        one.find(f"http://{THEIRS}/")
        one.exchange.keeps_delivered = True
        await one.commit()
        await until([one, two], lambda: not one.mail.unread())
        await one.commit()
        assert one.store.messages.boxes() == [Box(one.hosts.partition(THEIRS), one.store.messages.outbox)]
        one.exchange.keeps_delivered = False
        await one.commit()
        assert not one.store.messages.boxes()

    asyncio.run(play())


def test_seeds_of_others_are_not_sent(inboxes: InboxTable) -> None:
    """Every worker is given them; what a seed leads to is sent."""
    (one,) = started(inboxes, "worker-1")
    seeds = [seed_found(parse(f"http://{host}/")) for host in (OURS, THEIRS)]
    redirected = DiscoveredUrl(parse(f"http://{THEIRS}/home"), 0, "R", f"http://{OURS}/", 1, FLAG_SEED)

    assert one.exchange.take([*seeds, redirected], one.bench.frontier, one.bench.now) == 1
    one.hosts.add_messages(changes := Changes())
    assert [unpack_message(packed) for _, packed in changes.messages] == [Links([redirected])]


def test_each_change_is_told_as_something_that_moved(inboxes: InboxTable) -> None:
    """What was written counts with its commit: until then it is not empty."""
    (one,) = started(inboxes, "worker-1")
    found = links(f"http://{OURS}/1", f"http://{THEIRS}/1", f"http://{THEIRS}/x.zip", f"http://{THEIRS}/1")
    assert one.exchange.take(found, one.bench.frontier, one.bench.now) == 1
    assert (one.exchange.sent, one.exchange.moved, one.exchange.empty) == (1, False, False)
    one.bench.commit()
    one.exchange.settle()
    assert (one.exchange.moved, one.exchange.empty, one.store.messages.applied.last) == (True, True, 1)
