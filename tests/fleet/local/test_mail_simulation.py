"""Sixteen workers, a supervisor, and crashes and power losses of any of them at any point in between.

Every message whose cause is durable takes effect exactly once, and no other does. The test plays the connections, the
disks, the commits and the crashes; what is posted, kept, read and removed is the crawl's own code.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from crawlerproject.errors import StorageError
from crawlerproject.fleet.local import fleet_tables, local_mail
from crawlerproject.fleet.local.fleet_tables import InboxTable
from crawlerproject.fleet.local.local_mail import LocalExchange, LocalHosts, LocalMail
from crawlerproject.frontier.other_workers import Links, Message, RobotsWanted
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores import outboxes
from crawlerproject.stores.protocols import Applied, Changes
from tests.fleet.local.mail_workers import hosts_by_partition, over_wire, plan_of
from tests.stores.memory_store import MemoryStore

PLAN = plan_of(*(f"worker-{number}" for number in range(1, 17)))
HOSTS = hosts_by_partition(PLAN)
# Whose hosts are popular, and one more.
BUSY = sorted({PLAN.holder(host) for host in HOSTS[:4]} | {"worker-16"})
STEPS = 3000
# So small that they bind.
WINDOW_BYTES, SLICE_BYTES, INBOX_BYTES = 1500, 700, 1000
BIGGEST_BYTES = 700


class Disk(MemoryStore):
    """A store whose disk may refuse, and may forget what was not synced."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.log: list[Changes] = []
        self.synced = 0
        self._chance = chance

    def apply(self, changes: Changes) -> None:
        """As any store."""
        if self._chance.random() < 0.01:
            raise StorageError("full")
        self.log.append(changes)
        super().apply(changes)

    def sync(self) -> None:
        """As any store."""
        if self._chance.random() < 0.02:
            raise StorageError("broken")
        super().sync()
        self.synced = len(self.log)

    def opened_again(self, kept: int) -> Disk:
        """By another process, with so many of the changes."""
        again = Disk(self._chance)
        again.log, again.synced = self.log[:kept], min(self.synced, kept)
        if any(changes.messages for changes in again.log):
            again.messages.outbox = self.messages.outbox
        for changes in again.log:
            MemoryStore.apply(again, changes)
        again.messages.applied, again.messages.durable = Applied(0, again.messages.applied.last), Applied()
        again.messages.take_changed()
        return again


class Effects:
    """Stands for a frontier: counts what messages do to it, some at once, some with the next commit."""

    def __init__(self, store: Disk) -> None:
        self.state = self
        self.changes = Changes()
        self._store = store
        self._counts: dict[str, int] = {}  # as they will be with the next commit

    def read(self, message: Message, now: float) -> None:
        """Links are queued at once, and known ones change nothing; an answer counts each time, with the commit."""
        if isinstance(message, Links):
            self._store.apply(Changes(facts=[(f"known {item.address.url}", b"") for item in message.found]))
            return
        what = cast("RobotsWanted", message).origin
        count = self._counts.get(what) or int(self._store.fact(f"count {what}") or 0)
        self._counts[what] = count + 1
        self.changes.facts.append((f"count {what}", b"%d" % (count + 1)))

    def take_back(self, changes: Changes) -> None:
        """As frontier/frontier_state.py does."""
        later, self.changes = self.changes, changes
        for name in ("facts", "messages", "read", "delivered"):
            getattr(changes, name).extend(getattr(later, name))


class Question:
    """One to the supervisor, or its answer: on its way until it arrives."""

    def __init__(self, asked: Any) -> None:
        self.asked = over_wire(asked)
        self.answer: Any = None
        self.arrived: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class Worker:
    """One process. A commit is several steps, between which anything may happen."""

    def __init__(self, name: str, store: Disk) -> None:
        self.name = name
        self.store = store
        self.hosts = LocalHosts(PLAN, name)
        self.effects = Effects(store)
        self.question: Question | None = None  # on its way
        self._steps = self._commits()
        self.mail: LocalMail | None = None  # until it has started

    @property
    def quiet(self) -> bool:
        """Whether it has nothing to do, as it says itself."""
        mail, effects = self.mail, self.effects
        return mail is not None and self.exchange.empty and mail.quiet and not (mail.unread() or effects.changes)

    async def step(self) -> None:
        """A part of a commit, or of the start."""
        await anext(self._steps)

    async def ask(self, name: str, *asked: Any) -> Any:
        """As that of a ``SupervisorLink``."""
        self.question = Question(asked)
        return await self.question.arrived

    async def _commits(self) -> AsyncIterator[None]:
        while True:
            try:
                self.store.sync()
                break
            except StorageError:
                yield
        mail = self.mail = LocalMail(self.store, self.ask, PLAN)
        self.exchange = LocalExchange(self.hosts, self.store.messages, mail)
        while True:
            try:
                async for _ in self._commit(mail):
                    yield
            except StorageError:
                yield

    async def _commit(self, mail: LocalMail) -> AsyncIterator[None]:
        exchange, effects = self.exchange, self.effects
        await exchange.read(cast("Any", effects), lambda: 0.0)
        changes, effects.changes = effects.changes, Changes()
        self.hosts.add_messages(changes)
        yield
        if changes:  # else nothing is to be written, nor synced: maybe the sync before failed
            try:
                self.store.apply(changes)
            except StorageError:
                effects.take_back(changes)
                raise
            exchange.settle()
            yield
            self.store.sync()
            yield
        exchange.settle()
        mail.turn()
        yield

    def write(self, chance: random.Random, what: str) -> None:
        """Something is found for a host of another worker; its cause is in the same commit."""
        hosts = chance.choice((HOSTS[:4], HOSTS))  # some are very popular
        host = chance.choice([host for host in hosts if not self.hosts.mine(host)] or HOSTS)
        if self.hosts.mine(host):
            return
        url = f"http://{host}/{what}"
        self.effects.changes.facts.append((f"wrote {url}", b""))
        if what.startswith("link"):
            self.hosts.send_links([DiscoveredUrl(parse(url), 1, "L", "http://via.example/", 1)])
        else:
            self.hosts.send(host, RobotsWanted(url, url, "R" * chance.randrange(BIGGEST_BYTES // 2), url))

    def end(self) -> None:
        """The process has."""
        if self.mail is not None:
            self.mail.close()


class Machine:
    """All workers and their supervisor."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.workers = {name: Worker(name, Disk(self.chance)) for name in PLAN.workers}
        self.inboxes = InboxTable()
        self.written = 0
        self.happened: dict[str, int] = {}

    async def step(self) -> None:
        """One thing happens."""
        acts: list[tuple[Callable[[], Any], float]] = [
            (self.write, 30), (self.commit, 60), (self.arrive, 60), (self.answer, 60), (self.rush, 3),
            (self.crash, 0.7), (self.crash_supervisor, 0.2), (self.lose_power, 0.3),
        ]  # fmt: skip
        names, weights = zip(*acts, strict=True)
        act = self.chance.choices(names, weights)[0]
        self.happened[act.__name__] = self.happened.get(act.__name__, 0) + 1
        await act()

    async def write(self) -> None:
        """A worker finds something."""
        worker, self.written = self.some(), self.written + 1
        worker.write(self.chance, f"{self.chance.choice(('link', 'robots'))}-{self.written}")

    async def commit(self) -> None:
        """A worker's commit goes on."""
        await self.some().step()

    async def arrive(self, worker: Worker | None = None) -> None:
        """A question reaches the supervisor, which answers."""
        worker = worker or self.some()
        if (question := worker.question) is not None and question.answer is None:
            posts = question.asked[0]
            question.answer = over_wire(self.inboxes.exchange(*question.asked))
            for _, _, rows in question.answer[1]:
                assert rows
            assert sum(len(packed) + 200 for _, _, _, packed in posts) < 2 * (WINDOW_BYTES + BIGGEST_BYTES)
            fetched = sum(len(packed) for _, _, rows in question.answer[1] for _, _, packed in rows)
            assert fetched < INBOX_BYTES + 2 * BIGGEST_BYTES

    async def answer(self, worker: Worker | None = None) -> None:
        """An answer reaches its worker."""
        worker = worker or self.some()
        if (question := worker.question) is not None and question.answer is not None:
            worker.question = None
            question.arrived.set_result(question.answer)
            for _ in range(3):
                await asyncio.sleep(0)

    async def rush(self) -> None:
        """Much happens between two workers, while a commit of one of them stands still."""
        source, target = self.some(), self.some()
        for _ in range(3):
            for worker in (source, target):
                await self.arrive(worker)
                await self.answer(worker)
            for _ in range(5):
                await target.step()
        if self.chance.random() < 0.2:
            await self.lose_power()

    async def crash(self) -> None:
        """A process dies and another takes its place; its disk has all. What it asked may have arrived."""
        worker = self.one()
        if self.chance.random() < 0.5:
            await self.arrive(worker)
        self.replace(worker, len(worker.store.log))

    async def crash_supervisor(self) -> None:
        """Its workers end without it."""
        for worker in list(self.workers.values()):
            self.replace(worker, len(worker.store.log))
        self.inboxes = InboxTable()

    async def lose_power(self) -> None:
        """All die, and each disk loses some of what was not synced."""
        for worker in list(self.workers.values()):
            self.replace(worker, self.chance.randint(worker.store.synced, len(worker.store.log)))
        self.inboxes = InboxTable()

    def replace(self, worker: Worker, kept: int) -> None:
        """Another process with the worker's name."""
        worker.end()
        self.workers[worker.name] = Worker(worker.name, worker.store.opened_again(kept))

    def one(self) -> Worker:
        """Any worker."""
        return self.chance.choice(list(self.workers.values()))

    def some(self) -> Worker:
        """Mostly one of four, so that much goes on between these."""
        busy = [self.workers[name] for name in BUSY]
        return self.chance.choice(busy) if self.chance.random() < 0.8 else self.one()

    async def come_to_rest(self) -> None:
        """Nothing breaks any more: in a while nothing is on its way."""
        self.chance.random = lambda: 1.0  # type: ignore[method-assign]
        for _ in range(600):
            for worker in self.workers.values():
                await worker.step()
                await self.arrive(worker)
                await self.answer(worker)
            if all(worker.quiet and not worker.store.messages.boxes() for worker in self.workers.values()):
                assert self.inboxes._rows == {}
                return
        raise AssertionError("messages are on their way for ever")

    def judge(self) -> tuple[int, int]:
        """Every message took effect once, and none without a cause; how many did, and how many causes were lost."""
        facts: dict[str, int] = {}
        for worker in self.workers.values():
            for name, value in worker.store._facts.items():
                assert name not in facts or name.startswith("wrote")
                facts[name] = int(value or b"1")
        wrote = {name.removeprefix("wrote ") for name in facts if name.startswith("wrote ")}
        took_effect = {name.partition(" ")[2]: count for name, count in facts.items() if not name.startswith("wrote ")}
        assert took_effect == dict.fromkeys(wrote, 1)
        return len(wrote), self.written - len(wrote)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_mail, "WINDOW_BYTES", WINDOW_BYTES)
    monkeypatch.setattr(outboxes, "_SLICE_BYTES", SLICE_BYTES)
    monkeypatch.setattr(local_mail, "_PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(fleet_tables, "INBOX_BYTES", INBOX_BYTES)


def played(seed: int) -> Machine:
    """So many steps, until all is at rest."""

    async def play() -> Machine:
        machine = Machine(seed)
        for _ in range(STEPS):
            await machine.step()
        await machine.come_to_rest()
        for worker in machine.workers.values():
            worker.end()
        return machine

    return asyncio.run(play())


@settings(max_examples=3, phases=[Phase.reuse, Phase.generate])
@given(st.integers(0, 2**32))
def test_every_message_takes_effect_exactly_once(seed: int) -> None:
    """Whatever crashes, comes late or not at all, and whenever."""
    played(seed).judge()


def test_the_simulation_has_all_that_may_happen() -> None:
    """The law above would hold for nothing if nothing were ever lost."""
    happened: dict[str, int] = {}
    took_effect = lost = 0
    for seed in range(2):
        machine = played(seed)
        effects, causes = machine.judge()
        took_effect += effects
        lost += causes
        for what, count in machine.happened.items():
            happened[what] = happened.get(what, 0) + count
    assert len(happened) == 8
    assert min(happened.values()) > 1
    assert took_effect > 200
    assert lost > 10
