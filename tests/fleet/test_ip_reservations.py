"""Every lease whose address is asked for gets an answer, whatever becomes of the question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.questions import IpReservations
from crawlerproject.rules.politeness.address_turns import Claim


@pytest.mark.parametrize("error", [StorageError("away"), RuntimeError("ours"), ConnectionError("theirs")])
def test_a_question_that_fails_is_asked_again(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """The lease is refused for a moment, so that its host is free; an error of ours is logged as such.

    What it may have reserved is given back: to others the address would be taken for as long as a request may take.
    """
    answers: list[Exception | list[float]] = [error, [0.0]]
    asked = list[tuple[list[str], list[str]]]()
    ends: list[str] = []

    class Ends:
        """Notes what is answered."""

        def granted(self, lease: Any, error: Any) -> None:
            ends.append("granted")

        def refused(self, lease: Any, wait_seconds: float, *, gives_way: bool) -> None:
            ends.append(f"again in {wait_seconds}")

        def quick_waits(self, lease: Any) -> bool:
            return False

    async def reserve(wanted: Sequence[Claim], rested: Sequence[Claim]) -> list[float]:
        asked.append(([each.mark for each in wanted], [each.mark for each in rested]))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run() -> None:
        asks = IpReservations(reserve, Ends(), failed=lambda why: ends.append(str(why)))
        for answered in ("again in 0.25", "granted"):
            site = SimpleNamespace(name="a.test")
            lease = SimpleNamespace(address="192.0.2.1", mark="", host=site, took_seconds=None)
            asks.want(cast("Any", lease))
            while answered not in ends:
                await asyncio.sleep(0.001)

    asyncio.run(run())

    paused = ["away"] if isinstance(error, StorageError) else []
    assert ends == [*paused, "again in 0.25", "granted"]
    assert asked == [(["1"], []), (["2"], ["1"])]
    assert [record.exc_info is not None for record in caplog.records] == [True] * (not paused)
