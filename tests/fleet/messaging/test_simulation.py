"""Sixteen workers, messages that are lost, doubled and late, and crashes and power losses at any point in between.

Every message whose cause is durable takes effect exactly once, and no other does. The test plays the network, the
disks, the commits and the crashes; what is sent, taken, acknowledged and kept is the crawl's own code.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.errors import StorageError
from crawlerproject.fleet.messaging import message_delivery
from crawlerproject.fleet.messaging.message_delivery import (
    HEAD,
    BrokenConnection,
    Connection,
    acks_frame,
    acks_of,
    posts_frame,
    posts_of,
)
from crawlerproject.fleet.messaging.peer_links import PeerLinks
from crawlerproject.frontier.other_workers import Links, Message, RobotsWanted
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Applied, Changes
from tests.fleet.messaging.workers import hosts_by_partition, plan_of
from tests.stores.memory_store import MemoryStore

PLAN = plan_of(*(f"worker-{number}" for number in range(1, 17)))
HOSTS = hosts_by_partition(PLAN)
# Whose hosts are popular, and one more.
BUSY = sorted({PLAN.holder(host) for host in HOSTS[:4]} | {"worker-16"})
STEPS = 5000
# So small that they bind.
WINDOW_BYTES, SLICE_BYTES, INBOX_BYTES = 1500, 700, 6000
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


class Worker:
    """One process. A commit is several steps, between which anything may happen."""

    def __init__(self, name: str, store: Disk) -> None:
        self.name = name
        self.store = store
        self.box = PeerLinks(store, CrawlDir("/nowhere"), name, PLAN)
        self.effects = Effects(store)
        self._steps = self._commits()
        self.started = False

    def step(self) -> None:
        """A part of a commit, or of the start."""
        next(self._steps)

    def _commits(self) -> Any:
        while not self.started:
            try:
                self.store.sync()
                self.started = True
            except StorageError:
                pass
            yield
        while True:
            try:
                yield from self._commit()
            except StorageError:
                yield

    def _commit(self) -> Any:
        exchange, effects = self.box.exchange, self.effects
        yield from turns(exchange.read(cast("Any", effects), lambda: 0.0))
        changes, effects.changes = effects.changes, Changes()
        self.box.hosts.add_messages(changes)
        if not changes:  # nothing is to be written, nor synced: maybe the sync before failed
            self.box.synced()
            yield
            return
        yield
        try:
            self.store.apply(changes)
        except StorageError:
            effects.take_back(changes)
            raise
        exchange.settle()
        yield
        self.store.sync()
        yield
        self.box.synced()
        yield

    def write(self, chance: random.Random, what: str) -> None:
        """Something is found for a host of another worker; its cause is in the same commit."""
        hosts = chance.choice((HOSTS[:4], HOSTS))  # some are very popular
        host = chance.choice([host for host in hosts if not self.box.hosts.mine(host)] or HOSTS)
        if self.box.hosts.mine(host):
            return
        url = f"http://{host}/{what}"
        self.effects.changes.facts.append((f"wrote {url}", b""))
        if what.startswith("link"):
            self.box.hosts.send_links([DiscoveredUrl(parse(url), 1, "L", "http://via.example/", 1)])
        else:
            self.box.hosts.send(host, RobotsWanted(url, url, "R" * chance.randrange(BIGGEST_BYTES // 2), url))


def turns(work: Coroutine[Any, Any, None]) -> Any:
    """What a coroutine does, turn by turn of its loop."""
    while True:
        try:
            work.send(None)
        except StopIteration:
            return
        yield


class Wire:
    """A connection from one process to another; it may be broken and still have frames on it."""

    def __init__(self, source: Worker, target: Worker) -> None:
        self.source, self.target = source, target
        self.frames: deque[bytes] = deque()
        self.acks: deque[bytes] = deque()
        self.broken = False
        self.end: Connection = target.box._incoming.begin(lambda: None)

    @property
    def sender(self) -> message_delivery.Outgoing:
        """What the source has for the target."""
        return self.source.box._receivers[self.target.name].outgoing

    def send(self) -> None:
        """The source sends what it may."""
        if posts := self.sender.next():
            self.frames.append(posts_frame(posts))

    def arrive(self, *, twice: bool = False) -> None:
        """The oldest frame does. Raises BrokenConnection."""
        mail = self.target.box._incoming
        if not self.frames or mail.full:
            return
        frame = self.frames[0] if twice else self.frames.popleft()
        mail.take(self.end, posts_of(frame[HEAD.size :]))
        self.acknowledge()
        assert mail.bytes < INBOX_BYTES + SLICE_BYTES + BIGGEST_BYTES

    def acknowledge(self) -> None:
        """The target says what it has read."""
        if acks := self.end.take_acks():
            self.acks.append(acks_frame(acks))

    def hear(self, *, twice: bool = False) -> None:
        """The oldest acknowledgement arrives."""
        self.acknowledge()
        if self.acks:
            frame = self.acks[0] if twice else self.acks.popleft()
            for box, up_to in acks_of(frame[HEAD.size :]):
                self.sender.acknowledged(box, up_to)

    def break_(self) -> None:
        """The source knows of it first."""
        if not self.broken:
            self.broken = True
            self.sender.lost()


class Machine:
    """All workers and what lies between them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.workers = {name: Worker(name, Disk(self.chance)) for name in PLAN.workers}
        self.wires: dict[tuple[str, str], Wire] = {}
        self.old: list[Wire] = []  # broken, with frames still on them
        self.written = 0
        self.happened: dict[str, int] = {}

    def step(self) -> None:
        """One thing happens."""
        acts: list[tuple[Callable[[], None], float]] = [
            (self.write, 30), (self.commit, 60), (self.send, 60), (self.arrive, 40), (self.hear, 40),
            (self.arrive_twice, 2), (self.hear_twice, 2), (self.lose, 2), (self.lose_ack, 1), (self.break_one, 1),
            (self.arrive_late, 4), (self.rush, 3), (self.crash, 0.7), (self.lose_power, 0.3),
        ]  # fmt: skip
        names, weights = zip(*acts, strict=True)
        act = self.chance.choices(names, weights)[0]
        self.happened[act.__name__] = self.happened.get(act.__name__, 0) + 1
        act()

    def write(self) -> None:
        """A worker finds something."""
        worker, self.written = self.some(), self.written + 1
        worker.write(self.chance, f"{self.chance.choice(('link', 'robots'))}-{self.written}")

    def commit(self) -> None:
        """A worker's commit goes on."""
        self.some().step()

    def send(self) -> None:
        """Between two workers that may not be connected yet."""
        source, target = self.some(), self.some()
        if source.started and target.started and source is not target:
            wire = self.wires.get((source.name, target.name))
            if wire is None:
                wire = self.wires[source.name, target.name] = Wire(source, target)
            wire.send()
            assert wire.sender._sent_bytes < WINDOW_BYTES + BIGGEST_BYTES + 300

    def rush(self) -> None:
        """Much happens between two workers, while a commit of one of them stands still."""
        wire = self.wire()
        if wire is not None and wire.source.started:
            try:
                wire.send()
                for _ in range(3):
                    wire.arrive()
                for _ in range(8):
                    wire.target.step()
                wire.hear()
            except BrokenConnection:
                self.break_(wire)
            if self.chance.random() < 0.2:
                self.lose_power()

    def arrive(self, *, twice: bool = False) -> None:
        """A frame reaches its worker."""
        if wire := self.wire():
            try:
                wire.arrive(twice=twice)
            except BrokenConnection:
                self.happened["refuse"] = self.happened.get("refuse", 0) + 1
                self.break_(wire)

    def arrive_twice(self) -> None:
        """A frame will come once more."""
        self.arrive(twice=True)

    def hear(self) -> None:
        """An acknowledgement reaches the sender."""
        if wire := self.wire():
            wire.hear()

    def hear_twice(self) -> None:
        """One will come once more."""
        if wire := self.wire():
            wire.hear(twice=True)

    def lose(self) -> None:
        """A frame never arrives."""
        if (wire := self.wire()) and wire.frames:
            wire.frames.popleft()

    def lose_ack(self) -> None:
        """An acknowledgement never arrives."""
        if (wire := self.wire()) and wire.acks:
            wire.acks.popleft()

    def break_one(self) -> None:
        """A connection ends; its frames may arrive all the same."""
        if wire := self.wire():
            self.break_(wire)

    def arrive_late(self) -> None:
        """What was sent over a connection that is broken by now."""
        if self.old:
            wire = self.chance.choice(self.old)
            try:
                self.chance.choice((wire.arrive, wire.hear))()
            except BrokenConnection:
                wire.frames.clear()
            if not wire.frames and not wire.acks:
                self.old.remove(wire)
                wire.target.box._incoming.end(wire.end)

    def crash(self) -> None:
        """A process dies and another takes its place; its disk has all."""
        worker = self.one()
        self.replace(worker, len(worker.store.log))

    def lose_power(self) -> None:
        """All die, and each disk loses some of what was not synced."""
        for worker in list(self.workers.values()):
            self.replace(worker, self.chance.randint(worker.store.synced, len(worker.store.log)))
        self.wires.clear()
        self.old.clear()

    def replace(self, worker: Worker, kept: int) -> None:
        """Another process with the worker's name."""
        for wire in [wire for wire in self.wires.values() if worker in (wire.source, wire.target)]:
            self.break_(wire)
        self.old = [wire for wire in self.old if wire.target is not worker]
        for wire in self.old:
            if wire.source is worker:
                wire.acks.clear()
        self.workers[worker.name] = Worker(worker.name, worker.store.opened_again(kept))

    def break_(self, wire: Wire) -> None:
        wire.break_()
        del self.wires[wire.source.name, wire.target.name]
        self.old.append(wire)

    def one(self) -> Worker:
        """Any worker."""
        return self.chance.choice(list(self.workers.values()))

    def some(self) -> Worker:
        """Mostly one of four, so that much goes on between these."""
        busy = [self.workers[name] for name in BUSY]
        return self.chance.choice(busy) if self.chance.random() < 0.8 else self.one()

    def wire(self) -> Wire | None:
        """Any connection."""
        return self.chance.choice(list(self.wires.values())) if self.wires else None

    def come_to_rest(self) -> None:
        """Nothing breaks any more: in a while nothing is on its way."""
        self.chance.random = lambda: 1.0  # type: ignore[method-assign]
        for wire in list(self.wires.values()):
            self.break_(wire)
        self.old.clear()
        for _ in range(400):
            for worker in self.workers.values():
                worker.step()
            for source in self.workers.values():
                for target in self.workers.values():
                    if source is not target and source.started and target.started:
                        self.exchange(source, target)
            if all(self.at_rest(worker) for worker in self.workers.values()):
                return
        raise AssertionError("messages are on their way for ever")

    def exchange(self, source: Worker, target: Worker) -> None:
        """All that is to be said between two."""
        wire = self.wires.get((source.name, target.name)) or Wire(source, target)
        self.wires[source.name, target.name] = wire
        wire.send()
        wire.arrive()
        wire.hear()

    def at_rest(self, worker: Worker) -> bool:
        """Whether it has nothing to do, as it says itself, and nothing is left in its store."""
        quiet = worker.box.quiet and not worker.box.unread() and not worker.effects.changes
        return quiet and not worker.store.messages.holds()

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
    monkeypatch.setattr(message_delivery, "WINDOW_BYTES", WINDOW_BYTES)
    monkeypatch.setattr(message_delivery, "SLICE_BYTES", SLICE_BYTES)
    monkeypatch.setattr(message_delivery, "MOST_BYTES", INBOX_BYTES)


@settings(max_examples=5)
@given(st.integers(0, 2**32))
def test_every_message_takes_effect_exactly_once(seed: int) -> None:
    """Whatever is lost, doubled, late or crashes, and whenever."""
    machine = Machine(seed)
    for _ in range(STEPS):
        machine.step()
    machine.come_to_rest()
    machine.judge()


def test_the_simulation_has_all_that_may_happen() -> None:
    """The law above would hold for nothing if nothing were ever lost."""
    happened: dict[str, int] = {}
    took_effect = lost = 0
    for seed in range(2):
        machine = Machine(seed)
        for _ in range(STEPS):
            machine.step()
        machine.come_to_rest()
        effects, causes = machine.judge()
        took_effect += effects
        lost += causes
        for what, count in machine.happened.items():
            happened[what] = happened.get(what, 0) + count
    assert len(happened) == 15
    assert min(happened.values()) > 1
    assert took_effect > 300
    assert lost > 10
