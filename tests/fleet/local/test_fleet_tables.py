"""When nothing is left to do: in a simulation no message is ever on its way when the agreement is reached."""

from __future__ import annotations

import random

import pytest

from crawlerproject.fleet.local import fleet_tables
from crawlerproject.fleet.local.fleet_tables import AddressTable, Agreement, Counts, InboxTable, WorkerReport

QUIET = WorkerReport(True, 3, [])


def test_two_rounds_in_which_nothing_happened() -> None:
    """Every worker in each; a round begins with what is said after the one before."""
    agreement = Agreement(["a", "b"])
    assert [agreement.take(worker, QUIET) for worker in "aabab"] == [False, False, False, False, True]
    assert agreement.done


def test_what_a_worker_did_in_between_counts() -> None:
    """It is quiet again, and its activity has grown."""
    agreement = Agreement(["a", "b"])
    for worker in "ab":
        agreement.take(worker, QUIET)
    said = [("a", 4), ("b", 3), ("a", 4), ("b", 3)]
    assert [agreement.take(worker, WorkerReport(True, activity, [])) for worker, activity in said] == [
        False, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("said", [WorkerReport(False, 3, []), WorkerReport(True, 3, ["b"])])
def test_one_that_is_not_done_begins_it_anew(said: WorkerReport) -> None:
    """It has work, or something of its is on the way."""
    agreement = Agreement(["a", "b"])
    for worker in "aba":
        agreement.take(worker, QUIET)
    agreement.take("a", said)
    assert [agreement.take(worker, QUIET) for worker in "baab"] == [False, False, False, True]


def test_one_that_died_is_waited_for() -> None:
    """It is started again; one that is not is not waited for, nor is what was sent to it."""
    agreement = Agreement(["a", "b"])
    for worker in "ab":
        agreement.take(worker, QUIET)
    agreement.exited("b")
    assert not any(agreement.take("a", QUIET) for _ in range(5))
    agreement.exited("b", ended=True)
    assert [agreement.take("a", WorkerReport(True, 3, ["b"])) for _ in range(2)] == [False, True]


def test_one_that_comes_back_is_waited_for() -> None:
    """As at the start."""
    agreement = Agreement(["a", "b"])
    agreement.exited("b", ended=True)
    agreement.take("a", QUIET)
    agreement.started("b")
    assert not any(agreement.take("a", QUIET) for _ in range(5))


class _Simulated:
    """A worker with work, an outbox of messages that are unacknowledged, and an inbox."""

    def __init__(self) -> None:
        self.work = 2
        self.activity = 0
        self.moved = True
        self.outbox: list[str] = []

    def report(self) -> WorkerReport:
        quiet = not (self.work or self.moved)
        self.activity += not quiet
        self.moved = False
        return WorkerReport(quiet, self.activity, list(self.outbox))


@pytest.mark.parametrize("seed", range(20))
def test_no_end_is_too_soon(seed: int) -> None:
    """Workers work, send, read, acknowledge and report in an order by chance."""
    rng = random.Random(seed)
    names = ["a", "b", "c"]
    workers = {name: _Simulated() for name in names}
    agreement = Agreement(names)
    sent = 0
    for _ in range(5_000):
        name = rng.choice(names)
        worker = workers[name]
        what = rng.random()
        if what < 0.4 and worker.work:
            worker.work -= 1
            worker.moved = True
            if sent < 60 and rng.random() < 0.6:
                sent += 1
                worker.outbox.append(rng.choice([one for one in names if one != name]))
        elif what < 0.6 and worker.outbox:  # read there, durable, acknowledged: all before the sender forgets it
            other = workers[worker.outbox[0]]
            other.work += 1
            other.moved = True
            del worker.outbox[0]
        elif agreement.take(name, worker.report()):
            assert not any(one.work or one.outbox for one in workers.values())
            return
    raise AssertionError("no end was found")


def test_what_is_done_adds_up_and_what_is_left_is_as_said_last() -> None:
    """A process that has nothing left says so, whatever the one before had; one that has not reported says nothing."""
    before = Counts(5, 1000, 1, 70)

    assert Counts().after(before) == Counts(5, 1000, 1, 70)
    assert Counts(2, 10, 0, 30, "no room").after(before) == Counts(7, 1010, 1, 30, "no room")
    assert Counts(9, 10, 0, 0).after(before) == Counts(14, 1010, 1, 0)


DOMAIN = "site.test"


def test_an_address_is_one_workers_until_it_has_rested() -> None:
    """That one keeps the rest by its own clock, which begins where the answer ended: before it has said so."""
    table = AddressTable(0.5)
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.0) == 0.0
    assert table.reserve("b", "1.1.1.1", DOMAIN, 10.1) > 0
    assert table.reserve("b", "2.2.2.2", DOMAIN, 10.1) == 0.0
    table.rest("a", "1.1.1.1", 11.0)
    assert round(table.reserve("b", "1.1.1.1", DOMAIN, 11.2), 6) == 0.3
    assert table.reserve("b", "1.1.1.1", DOMAIN, 11.5) == 0.0
    table.rest("b", "2.2.2.2", 11.0)
    assert table.reserve("b", "2.2.2.2", DOMAIN, 11.2) == 0.0


def test_the_addresses_of_one_that_is_gone_rest_once() -> None:
    """From then on; a worker that is stopped keeps its own."""
    table = AddressTable(0.5)
    table.reserve("a", "1.1.1.1", DOMAIN, 10.0)
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.0) > 0
    table.exited("a", 1000.0)
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.4) > 0
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.5) == 0.0


def test_a_new_process_waits_for_what_the_one_before_it_asked() -> None:
    """It does not know where that answer ended."""
    table = AddressTable(0.5)
    table.reserve("a", "1.1.1.1", DOMAIN, 10.0)
    table.rest("a", "1.1.1.1", 11.0)
    table.exited("a", 11.1)
    assert round(table.reserve("a", "1.1.1.1", DOMAIN, 11.2), 6) == 0.3


def test_after_a_start_every_address_rests_once() -> None:
    """What was asked of it before is unknown."""
    table = AddressTable(0.5, free_from=10.5)
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.0) == 0.5
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.5) == 0.0


def test_addresses_that_have_rested_are_forgotten() -> None:
    """Memory is of those that rest now."""
    table = AddressTable(0.5)
    for number in range(3 * fleet_tables._SWEPT_AT):
        table.reserve("a", str(number), DOMAIN, float(number))
        table.rest("a", str(number), float(number))
    assert len(table._free_at) <= fleet_tables._SWEPT_AT + 1


def test_a_message_stays_in_its_inbox_until_it_was_read() -> None:
    """Posted twice it comes twice, said to be read twice it goes once; what has waited for longest comes first."""
    table, one, two = InboxTable(), "01", "02"
    posts = [(7, one, 4, "a"), (7, two, 1, "b"), (9, one, 5, "c"), (7, one, 4, "a")]
    assert table.exchange(posts, [], [(7, one)], []) == ([0], [])
    waiting = [(7, 0, [(one, 4, "a"), (two, 1, "b"), (one, 4, "a")]), (9, 0, [(one, 5, "c")])]
    for _ in range(2):
        assert table.exchange([], [], [], [9, 7, 8]) == ([], waiting)
    for _ in range(2):
        numbers, unread = table.exchange([], [(7, 2, [(one, 4), (two, 1)])], [(7, two), (7, one), (9, one)], [7, 9])
        assert (numbers, unread) == ([1, 4, 0], [(9, 0, [(one, 5, "c")]), (7, 2, [(one, 4, "a")])])
    assert table.exchange([], [(7, 3, [(one, 3)]), (9, 1, [])], [(7, one)], [7, 9]) == ([4], [])
    assert table.exchange([(7, one, 8, "d")], [], [], [7]) == ([], [(7, 3, [(one, 8, "d")])])


def test_an_answer_has_bounded_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """One there is, whatever its size."""
    monkeypatch.setattr(fleet_tables, "INBOX_BYTES", 5)
    table = InboxTable()
    posts = [(partition, "01", number, "xxx") for partition in (1, 2) for number in (1, 2, 3)]
    assert [(each[0], len(each[2])) for each in table.exchange(posts, [], [], [1, 2])[1]] == [(1, 2)]
    assert [(each[0], len(each[2])) for each in table.exchange([], [(1, 2, [])], [], [1, 2])[1]] == [(2, 2)]
