"""When nothing is left to do: in a simulation no message is ever on its way when the agreement is reached."""

from __future__ import annotations

import random

import pytest

from crawlerproject.fleet.local.agreement import Agreement, WorkerReport

QUIET = WorkerReport(True, 3, [])


def test_two_rounds_in_which_nothing_happened() -> None:
    """Every worker in each; a round begins with what is said after the one before."""
    agreement = Agreement(["a", "b"])
    assert [agreement.report(worker, QUIET) for worker in "aabab"] == [False, False, False, False, True]
    assert agreement.done


def test_what_a_worker_did_in_between_counts() -> None:
    """It is quiet again, and its activity has grown."""
    agreement = Agreement(["a", "b"])
    for worker in "ab":
        agreement.report(worker, QUIET)
    said = [("a", 4), ("b", 3), ("a", 4), ("b", 3)]
    assert [agreement.report(worker, WorkerReport(True, activity, [])) for worker, activity in said] == [
        False, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("said", [WorkerReport(False, 3, []), WorkerReport(True, 3, ["b"])])
def test_one_that_is_not_done_begins_it_anew(said: WorkerReport) -> None:
    """It has work, or something of its is on the way."""
    agreement = Agreement(["a", "b"])
    for worker in "aba":
        agreement.report(worker, QUIET)
    agreement.report("a", said)
    assert [agreement.report(worker, QUIET) for worker in "baab"] == [False, False, False, True]


def test_one_that_died_is_waited_for() -> None:
    """It is started again; one that is not is not waited for, nor is what was sent to it."""
    agreement = Agreement(["a", "b"])
    for worker in "ab":
        agreement.report(worker, QUIET)
    agreement.gone("b")
    assert not any(agreement.report("a", QUIET) for _ in range(5))
    agreement.gone("b", ended=True)
    assert [agreement.report("a", WorkerReport(True, 3, ["b"])) for _ in range(2)] == [False, True]


def test_one_that_comes_back_is_waited_for() -> None:
    """As at the start."""
    agreement = Agreement(["a", "b"])
    agreement.gone("b", ended=True)
    agreement.report("a", QUIET)
    agreement.back("b")
    assert not any(agreement.report("a", QUIET) for _ in range(5))


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
        elif agreement.report(name, worker.report()):
            assert not any(one.work or one.outbox for one in workers.values())
            return
    raise AssertionError("no end was found")
