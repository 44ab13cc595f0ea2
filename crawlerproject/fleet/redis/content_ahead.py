"""What comparing pages will ask of Redis is asked for many of them together, while the event loop goes on.

One question a page on the loop would make the way to Redis the crawl's pace: at 20 ms there and back 34 requests a
second of 152, at 100 ms 9 (``benchmarks/redis_latency.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from crawlerproject.errors import StorageError
from crawlerproject.stores.protocols import Comparison

# A page that has no answer by then asks by itself, as without this (ours).
_PATIENCE_SECONDS = 2.0
# Between two questions, as of texts (fleet/text_questions.py).
_GATHER_SECONDS = 0.01
# Pages in one question.
_AT_A_TIME = 256

Waiting = tuple[Comparison, "asyncio.Future[None]"]


class ContentAhead:
    """For one event loop; one question is under way at a time."""

    def __init__(self, fetch: Callable[[Sequence[Comparison]], None]) -> None:
        """``fetch`` is called in a thread, and may raise StorageError."""
        self._fetch = fetch
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, page: Comparison) -> None:
        """Until what the page is compared with is at hand, or Redis does not say."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append((page, future))
        if self._task is None:
            self._task = loop.create_task(self._run())
        await asyncio.wait([future], timeout=_PATIENCE_SECONDS)

    async def _run(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(_GATHER_SECONDS)
                some, self._waiting = self._waiting[:_AT_A_TIME], self._waiting[_AT_A_TIME:]
                try:
                    await asyncio.to_thread(self._fetch, [page for page, _ in some])
                except StorageError:
                    pass  # the commit that fails likewise says so; such pages are compared with what is known here
                finally:
                    for _, future in some:
                        future.set_result(None)
        finally:
            self._task = None
