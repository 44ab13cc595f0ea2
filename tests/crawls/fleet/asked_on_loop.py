"""``python -m tests.crawls.fleet.asked_on_loop FILE crawl …``: scrapy, and in FILE each wait of its loop for Redis.

What is asked while the crawl is opened does not count. A line is where a question came from, innermost first.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scrapy.cmdline import execute

from crawlerproject.stores.redis.connection import Call, RedisLink

_many = RedisLink.many
_OPENING, _ENDING = "open_spider_async", "_closed"


def _watched(file: Path) -> Any:
    def many(self: RedisLink, calls: Sequence[Call]) -> list[Any]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return _many(self, calls)
        frames = [frame for frame in reversed(traceback.extract_stack()) if "crawlerproject" in frame.filename]
        if all(frame.name not in (_OPENING, _ENDING) for frame in frames) and calls:
            with file.open("a") as said:
                said.write(" < ".join(f"{Path(frame.filename).stem}.{frame.name}" for frame in frames) + "\n")
        return _many(self, calls)

    return many


if __name__ == "__main__":
    RedisLink.many = _watched(Path(sys.argv.pop(1)))  # type: ignore[method-assign]
    execute()
