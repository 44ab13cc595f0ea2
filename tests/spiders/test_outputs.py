"""All that a Scrapy callback may give, as a list of items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from crawlerproject.spiders.web import is_late, items_of


async def _yielding() -> AsyncIterator[dict[str, int]]:
    for number in (1, 2):
        await asyncio.sleep(0)
        yield {"n": number}


async def _returning(what: Any) -> Any:
    return what


@pytest.mark.parametrize(
    ("make", "late", "items"),
    [
        (lambda: None, False, []),
        (lambda: {"n": 1}, False, [{"n": 1}]),
        (lambda: [{"n": 1}, {"n": 2}], False, [{"n": 1}, {"n": 2}]),
        (lambda: ({"n": n} for n in (1, 2)), False, [{"n": 1}, {"n": 2}]),
        (_yielding, True, [{"n": 1}, {"n": 2}]),
        (lambda: _returning(None), True, []),
        (lambda: _returning({"n": 1}), True, [{"n": 1}]),
        (lambda: _returning([{"n": 1}]), True, [{"n": 1}]),
    ],
)
def test_items_of_all_kinds(make: Any, late: bool, items: list[dict[str, int]]) -> None:
    """Nothing, one, several; at once or later."""

    async def run() -> None:
        given = make()
        assert is_late(given) is late
        assert await items_of(given) == items

    asyncio.run(run())
