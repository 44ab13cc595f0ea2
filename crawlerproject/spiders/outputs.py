"""What a callback gave, as a list: an item or several, a generator, a coroutine or an asynchronous generator."""

from __future__ import annotations

import inspect
from typing import Any

from scrapy.utils.misc import arg_to_iter


def is_late(given: Any) -> bool:
    """Whether it must be awaited: ``async def``, with or without ``yield``."""
    return inspect.isawaitable(given) or hasattr(given, "__aiter__")


async def items_of(given: Any) -> list[Any]:
    """The items of anything that Scrapy takes from a callback."""
    if inspect.isawaitable(given):
        given = await given
    if hasattr(given, "__aiter__"):
        return [item async for item in given]
    return list(arg_to_iter(given))
