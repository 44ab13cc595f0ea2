"""Workers of one machine write to each other over real sockets, in one process and in several."""

from __future__ import annotations

import asyncio
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from crawlerproject.errors import FrontierDamaged, OperatorError, StorageError
from crawlerproject.fleet.messaging import message_delivery
from crawlerproject.frontier.other_workers import Links, RobotsGiven, RobotsWanted, unpack_message
from crawlerproject.runtime.unix_sockets import connected, listening
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import shared_out
from crawlerproject.stores.protocols import Changes
from tests.fleet.messaging.workers import Worker, hosts_of, idle, plan_of, until
from tests.stores.memory_store import MemoryStore

PLAN = plan_of("worker-1", "worker-2", "worker-3")


@pytest.fixture
def crawl(tmp_path: Path) -> CrawlDir:
    """A crawl's folder, at a path that is too long for a socket's address."""
    return CrawlDir(tmp_path / ("long" * 40))


def started(crawl: CrawlDir, *names: str) -> list[Worker]:
    """These workers, new."""
    return [Worker(crawl, name, PLAN) for name in names]


def all_urls(per_host: int = 30) -> list[str]:
    """Of some hosts of each worker."""
    hosts = [host for name in PLAN.workers for host in hosts_of(PLAN, name, 5)]
    return [f"http://{host}/{number}" for host in hosts for number in range(per_host)]


def held_by(name: str, urls: list[str]) -> list[str]:
    """Those of the URLs whose hosts this worker decides about."""
    return [url for url in urls if PLAN.holder(url.split("/")[2]) == name]


async def stop(*workers: Worker) -> None:
    """All of them."""
    for worker in workers:
        await worker.box.stop()


def test_links_arrive_everywhere_and_leave_nothing_behind(crawl: CrawlDir) -> None:
    """Each at its worker alone; afterwards no store has a message, no worker expects one, no socket is left."""

    async def play() -> None:
        workers, urls = started(crawl, *PLAN.workers), all_urls()
        for worker in workers:
            await worker.box.start()
            worker.find(*urls, via=f"http://{worker.name}.example/")
        await until(workers, lambda: idle(workers))

        for worker in workers:
            own = held_by(worker.name, urls)
            assert worker.bench.frontier.hosts.waiting_urls == len(own) == 150
            assert worker.knows(urls) == [url in own for url in urls]
            assert stat.S_IMODE((crawl / worker.name / "mail.sock").stat().st_mode) == 0o600
            await worker.box.stop()
            await worker.box.stop()
            assert not (crawl / worker.name / "mail.sock").exists()

    asyncio.run(play())


def test_other_messages_arrive_with_what_is_in_them(crawl: CrawlDir) -> None:
    """A robots.txt that is wanted and one that is given, of any size; each has its effect once."""

    async def play() -> None:
        one, two = started(crawl, "worker-1", "worker-2")
        ours, theirs = hosts_of(PLAN, "worker-1", 1)[0], hosts_of(PLAN, "worker-2", 2)
        two.find(f"http://{theirs[0]}/", f"http://{theirs[1]}/")
        await one.box.start()
        await two.box.start()
        body = b"User-agent: *\nDisallow: /x\n" + b"#" * 2_000_000
        one.box.hosts.send(theirs[0], RobotsGiven(f"http://{theirs[0]}", 200, body, "fetched"))
        one.box.hosts.send(theirs[1], RobotsWanted(f"http://{ours}", f"http://{theirs[1]}/r", "R", f"http://{ours}/r"))
        await until([one, two], lambda: idle([one, two]))

        rules = two.bench.frontier.state.robots.rules(f"http://{theirs[0]}")
        assert [rules.allowed(f"http://{theirs[0]}/{path}") for path in "xy"] == [
            False,
            True,
        ]
        asked = [row.url for row in two.store.head(theirs[1], 9)]
        assert asked == [f"http://{theirs[1]}/", f"http://{theirs[1]}/r"]  # a stranger's robots.txt comes last
        await stop(one, two)

    asyncio.run(play())


def test_a_receiver_that_comes_late_or_dies_gets_everything(crawl: CrawlDir) -> None:
    """What it had taken and not committed comes again; a socket that a dead one left is in nobody's way."""

    async def play() -> None:
        (one,), urls = started(crawl, "worker-1"), all_urls()
        wanted = held_by("worker-2", urls)
        (crawl / "worker-2").mkdir(parents=True)
        await one.box.start()
        for number in range(0, len(urls), 50):
            one.find(*urls[number : number + 50])
            await one.commit()
        assert one.box.unread() == ["worker-2", "worker-3"]

        store = MemoryStore()
        for _ in range(3):
            two = Worker(crawl, "worker-2", PLAN, store)
            await two.box.start()
            async with asyncio.timeout(60):
                while not two.box._incoming.unread:
                    await asyncio.sleep(0.001)
            two.box.close()
            (crawl / "worker-2" / "mail.sock").touch()
        two = Worker(crawl, "worker-2", PLAN, store)
        await two.box.start()
        await until([one, two], lambda: one.box.unread() == ["worker-3"])

        assert two.knows(urls) == [url in wanted for url in urls]
        assert two.bench.frontier.hosts.waiting_urls == len(wanted)
        await stop(one, two)

    asyncio.run(play())


def test_a_sender_that_dies_goes_on_from_its_store(crawl: CrawlDir) -> None:
    """What it had committed arrives, once, however much of it had arrived before."""

    async def play() -> None:
        (two,), urls = started(crawl, "worker-2"), held_by("worker-2", all_urls())
        await two.box.start()
        store = MemoryStore()
        for number in range(0, len(urls), 30):
            one = Worker(crawl, "worker-1", PLAN, store)
            await one.box.start()
            one.find(*urls[number : number + 30])
            for _ in range(number % 4):
                await one.commit()
                await two.commit()
            await one.commit()
            one.box.close()
        one = Worker(crawl, "worker-1", PLAN, store)
        await one.box.start()
        await until([one, two], lambda: idle([one, two]))

        assert all(two.knows(urls))
        assert two.bench.frontier.hosts.waiting_urls == len(urls)
        await stop(one, two)

    asyncio.run(play())


def test_one_that_is_stopped_costs_its_senders_no_memory(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """It listens and reads nothing, or reads and never commits: commits go on, and no more than a window is sent."""
    monkeypatch.setattr(message_delivery, "WINDOW_BYTES", 20_000)
    monkeypatch.setattr(message_delivery, "SLICE_BYTES", 4_000)

    async def play() -> None:
        one, three = (Worker(crawl, name, PLAN) for name in ("worker-1", "worker-3"))
        (crawl / "worker-2").mkdir()
        with listening(crawl / "worker-2" / "mail.sock"):
            await one.box.start()
            await three.box.start()
            one.find(f"http://{hosts_of(PLAN, 'worker-3', 1)[0]}/")
            await until([one, three], lambda: idle([one, three]))  # they are connected
            for round_ in range(40):
                for name in ("worker-2", "worker-3"):
                    host = hosts_of(PLAN, name, 1)[0]
                    one.find(*(f"http://{host}/{round_}/{number}" for number in range(100)))
                await one.commit()
            async with asyncio.timeout(60):
                while three.box._incoming.bytes < 10_000:
                    await asyncio.sleep(0.001)
        assert one.store.messages.applied.last == 81
        sent = [one.box._receivers[name].outgoing._sent_bytes for name in ("worker-2", "worker-3")]
        assert sent[0] == 0
        assert 10_000 < sent[1] < 40_000
        assert 0 < three.box._incoming.bytes < 40_000
        await until([one, three], lambda: one.box.unread() == ["worker-2"])
        assert three.bench.frontier.hosts.waiting_urls == 4001
        await stop(one, three)

    asyncio.run(play())


def test_no_more_is_taken_than_memory_may_hold(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames stay in the senders' hands until there is room again, and all arrive."""
    monkeypatch.setattr(message_delivery, "MOST_BYTES", 10_000)
    monkeypatch.setattr(message_delivery, "SLICE_BYTES", 4_000)

    async def play() -> None:
        workers, host = started(crawl, *PLAN.workers), hosts_of(PLAN, "worker-2", 1)[0]
        for worker in workers:
            await worker.box.start()
        for number in range(1000):
            for worker in (workers[0], workers[2]):
                worker.find(f"http://{host}/{worker.name}/{number}")
                if number % 10 == 0:
                    await worker.commit()
            assert workers[1].box._incoming.bytes < 10_000 + 2 * 8_000
        await until(workers, lambda: idle(workers))
        assert workers[1].bench.frontier.hosts.waiting_urls == 2000
        await stop(*workers)

    asyncio.run(play())


STRANGERS = [
    b"GET / HTTP/1.1\r\n\r\n",
    message_delivery.HEAD.pack(2**32 - 1, 0),
    message_delivery.HEAD.pack(5, 9) + b"12345",
    message_delivery.acks_frame([]),
    message_delivery._frame(message_delivery.FrameKind.HELLO, b"[]"),
    message_delivery.hello_frame(message_delivery.Hello("worker-9", "worker-1")),
    message_delivery.hello_frame(message_delivery.Hello("worker-2", "worker-3")),
    message_delivery.hello_frame(message_delivery.Hello("worker-2", "worker-1", message_delivery.FORMAT + 1)),
    message_delivery.hello_frame(message_delivery.Hello("worker-2", "worker-1"))
    + message_delivery._frame(message_delivery.FrameKind.POSTS, b"short"),
]


def test_what_does_not_speak_as_a_worker_is_cut_off(crawl: CrawlDir, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever comes over the socket, the connection ends, in a line of the log, and the others go on."""

    async def play() -> None:
        one, two = started(crawl, "worker-1", "worker-2")
        await one.box.start()
        await asyncio.sleep(0)
        for said in STRANGERS:
            reader, writer = await asyncio.open_unix_connection(sock=connected(crawl / "worker-1" / "mail.sock", 0.0))
            writer.write(said)
            with suppress(ConnectionError):
                async with asyncio.timeout(60):
                    await reader.read()
            writer.close()
        await two.box.start()
        host = hosts_of(PLAN, "worker-1", 1)[0]
        two.find(f"http://{host}/")
        await until([one, two], lambda: idle([one, two]))
        assert one.knows([f"http://{host}/"]) == [True]
        await stop(one, two)

    asyncio.run(play())
    assert len([record for record in caplog.records if "begins anew" in record.message]) == len(STRANGERS)


def test_what_cannot_be_read_now_is_sent_later(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The own frontier is closed for want of room, or the receiver's."""

    async def play() -> None:
        one, two = started(crawl, "worker-1", "worker-2")
        url = f"http://{hosts_of(PLAN, 'worker-2', 1)[0]}/"
        tries = dict.fromkeys(("of", "read_up_to"), 0)

        def full(name: str) -> Any:
            def call(*_: object) -> None:
                tries[name] += 1
                raise StorageError("closed")

            return call

        await two.box.start()
        await one.box.start()
        one.find(url)
        for worker, name in ((one, "of"), (two, "read_up_to")):

            def tried_twice(name: str = name) -> bool:
                return tries[name] > 1

            with monkeypatch.context() as patch:
                patch.setattr(worker.store.messages, name, full(name))
                await until([one, two], tried_twice)
            assert two.knows([url]) == [False]
        await until([one, two], lambda: idle([one, two]))
        assert two.knows([url]) == [True]
        await stop(one, two)

    asyncio.run(play())


def test_a_damaged_frontier_reaches_the_crawl(crawl: CrawlDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sending has ended for it: the next commit says so."""

    async def play() -> None:
        one, two = started(crawl, "worker-1", "worker-2")
        await two.box.start()
        await one.box.start()
        monkeypatch.setattr(one.store.messages, "of", _damaged)
        one.find(f"http://{hosts_of(PLAN, 'worker-2', 1)[0]}/")
        with pytest.raises(FrontierDamaged, match="damaged"):
            await until([one], lambda: False)
        await stop(one, two)

    asyncio.run(play())


def _damaged(*_: object) -> None:
    raise FrontierDamaged("damaged")


def test_without_a_place_for_the_socket_it_says_so(crawl: CrawlDir) -> None:
    """An operator's error."""

    async def play() -> None:
        one = Worker(crawl, "worker-1", PLAN)
        (crawl / "worker-1").rmdir()
        with pytest.raises(OperatorError, match=r"mail\.sock cannot be made"):
            await one.box.start()
        await one.box.stop()

    asyncio.run(play())


def test_what_was_left_for_hosts_that_are_ours_now_comes_first(crawl: CrawlDir) -> None:
    """Under a new plan the own store has messages for own hosts: read before the socket is there, each once."""

    async def play() -> None:
        before, urls = Worker(crawl, "worker-1", PLAN), all_urls(per_host=120)
        before.find(*urls)
        await before.commit()
        store, mail = before.store, before.store.messages
        ((box, (number, packed)), *_) = [(box, mail.of(box, 0, 2**62, 1)[0]) for box in mail.boxes()]
        store.apply(Changes(read=[(box, number)]))  # moved here with its partition
        done = {item.address.url for item in cast("Links", unpack_message(packed)).found}

        one = Worker(crawl, "worker-1", shared_out(PLAN, ["worker-1", "worker-3"]), store)
        held = [url for url in urls if one.box.hosts.mine(url.split("/")[2])]
        assert one.box.exchange.left
        assert not one.box.quiet
        await one.box.start()
        while one.box.exchange.left:
            assert not (crawl / "worker-1" / "mail.sock").exists()
            await one.commit()

        assert (crawl / "worker-1" / "mail.sock").exists()
        assert one.knows(held) == [url not in done for url in held]
        assert {one.box._holder(box.partition) for box in mail.boxes()} == {"worker-3"}
        assert one.box.unread() == ["worker-3"]
        await stop(one)

    asyncio.run(play())
