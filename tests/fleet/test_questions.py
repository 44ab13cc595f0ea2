"""Questions go together where answers are quick, and do not wait for each other where they are slow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.questions import ContentAhead, Questions


def test_pages_are_compared_together() -> None:
    """A question takes so many at most."""
    said: list[list[Any]] = []

    async def ask(pages: Iterable[Any]) -> None:
        content = ContentAhead(lambda some: said.append(list(some)))
        await asyncio.gather(*(content(page) for page in pages))

    asyncio.run(ask(range(300)))

    assert sorted(map(len, said)) == [44, 256]
    assert sorted(page for some in said for page in some) == list(range(300))


def test_a_store_that_does_not_answer_holds_no_page() -> None:
    """They are compared with what is known here."""

    def away(some: Any) -> None:
        raise StorageError("away")

    async def ask() -> None:
        await ContentAhead(away)(b"digest")

    asyncio.run(ask())


@pytest.mark.parametrize(("quick", "together"), [(True, 1), (False, 8)])
def test_a_slow_answer_keeps_no_other_question_waiting(quick: bool, together: int) -> None:
    """So many are under way together at most; then all has been asked."""
    left, most = 20, 0
    free = asyncio.Event()

    async def ask() -> None:
        nonlocal left, most
        left -= 1
        most = max(most, len(questions._under_way))
        if not quick:
            if most == together:
                free.set()
            await free.wait()

    questions = Questions(ask, lambda: left > 0)

    async def run() -> None:
        questions.start()
        while questions.busy:
            await asyncio.sleep(0)

    asyncio.run(run())

    assert (left, most) == (0, together)


def test_what_is_cancelled_is_asked_no_more() -> None:
    """Nor is an answer taken."""
    answered: list[bool] = []

    async def ask() -> None:
        await asyncio.sleep(60)
        answered.append(True)

    async def run() -> None:
        questions = Questions(ask, lambda: True)
        questions.start()
        while not questions._under_way:
            await asyncio.sleep(0)
        questions.cancel()
        while questions.busy:
            await asyncio.sleep(0)

    asyncio.run(run())

    assert not answered
