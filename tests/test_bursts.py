"""bursts: a turn of the event loop does so much and no more, and the next one goes on."""

from __future__ import annotations

import asyncio
import time

from crawlerproject.bursts import Bursts


def test_a_burst_ends_and_the_next_turn_has_its_own() -> None:
    """After its time no more is done in this turn; in the next one it is."""

    async def run() -> tuple[list[bool], bool]:
        bursts = Bursts(most_seconds=0.02)
        answers = [bursts.over()]
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        answers.append(bursts.over())
        await asyncio.sleep(0)
        return answers, bursts.over()

    assert asyncio.run(run()) == ([False, True], False)
