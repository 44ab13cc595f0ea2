"""Servers of a test in a thread of its process: an event loop that ends with everything in it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator

_SECONDS = 10.0  # to begin to listen, and to end


@contextlib.contextmanager
def listening(listen: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Run ``listen`` in a loop of a thread; from when it has returned the loop serves, until this is left."""
    loop, ready = asyncio.new_event_loop(), threading.Event()

    async def begin() -> None:
        await listen()
        ready.set()

    def serve() -> None:
        beginning = loop.create_task(begin())
        loop.run_forever()
        loop.run_until_complete(_end_all())
        loop.close()
        del beginning  # a loop holds its tasks weakly

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(_SECONDS)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS)


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
