"""bursts: a turn of the event loop does so much and no more, and the next one goes on."""

from __future__ import annotations

import asyncio
import time

from crawlerproject.runtime.loop_budget import LoopBudget


def test_a_burst_ends_and_the_next_turn_has_its_own() -> None:
    """After its time no more is done in this turn; in the next one it is."""

    async def run() -> tuple[list[bool], bool]:
        budget = LoopBudget(most_seconds=0.02)
        answers = [budget.over()]
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        answers.append(budget.over())
        await asyncio.sleep(0)
        return answers, budget.over()

    assert asyncio.run(run()) == ([False, True], False)


def test_who_has_no_room_waits_in_line() -> None:
    """Twenty pieces of work of a fifth of a burst each: all are done, in their order, never all in one turn."""
    done: list[tuple[int, int]] = []

    async def run() -> None:
        budget, turn = LoopBudget(most_seconds=0.005), 0

        async def work(number: int) -> None:
            await budget.room()
            until = time.monotonic() + 0.001
            while time.monotonic() < until:
                pass
            done.append((number, turn))

        tasks = [asyncio.create_task(work(number)) for number in range(20)]
        while not all(task.done() for task in tasks):
            turn += 1
            await asyncio.sleep(0)

    asyncio.run(run())
    issuer = [turn for _, turn in done]

    assert [number for number, _ in done] == list(range(20))
    assert max(issuer.count(turn) for turn in issuer) <= 10  # at first five or six, then eight at a time


def test_a_place_in_line_may_be_given_up() -> None:
    """Who was cancelled while waiting holds up nobody."""

    async def run() -> list[int]:
        budget, done = LoopBudget(most_seconds=0.0), list[int]()

        async def work(number: int) -> None:
            await budget.room()
            done.append(number)

        tasks = [asyncio.create_task(work(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        await asyncio.wait(tasks)
        return done

    assert asyncio.run(run()) == [0, 1, 3, 4]
