"""``python -m tests.stores.redis.dying_copies REDIS FOLDER PLACE``: a worker dies at every step of making copies.

Each process is forked, takes a partition as a worker whose disk is lost, looks whether all is there that Redis was
given, changes something, gives that to Redis and copies; it is killed (-9) one step later than the one before, until it
comes to the end: of whole copies, then of those that are extended. Prints how many died of each.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis import copies
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.copies import CopySize
from crawlerproject.stores.redis.copy_place import CopyPlace
from crawlerproject.stores.rocks import giving_store, journaled_store
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.stores.conformance import row
from tests.stores.journaled_crawls import LEASE_MS, end_lease, host_in, opened

CRAWL = "dying"
HOST = host_in(0)


class Steps:
    """Counts what is asked of Redis and of the place; the process dies at one."""

    def __init__(self, last: int) -> None:
        self._left = last
        self.counts = False

    def step(self) -> None:
        """One more."""
        if self.counts:
            self._left -= 1
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)

    def wrap(self, do: Callable[..., Any]) -> Callable[..., Any]:
        """The same, with a step before it and one behind it."""

        def done(*given: Any) -> Any:
            self.step()
            answer = do(*given)
            self.step()
            return answer

        return done


def live(redis: str, folder: Path, place: str, steps: Steps, *, whole: bool) -> None:
    """One process. The file ``synced`` has how many rows Redis was given."""
    at_once = RedisLink._at_once

    def called(link: RedisLink, calls: list[Call], *, whole: bool = False) -> Any:
        steps.step()
        return at_once(link, calls, whole=whole)

    RedisLink._at_once = called  # type: ignore[method-assign, assignment]
    CopyPlace.put = steps.wrap(CopyPlace.put)  # type: ignore[method-assign]
    CopyPlace.remove = steps.wrap(CopyPlace.remove)  # type: ignore[method-assign]
    CopySize.wanted = lambda self, grown, *_, **__: (grown, whole or not self.there)  # type: ignore[method-assign]
    copies._KEPT_MS = 0
    journaled_store._LEAST_COPIED_BYTES = 0
    giving_store._LOG_BYTES = 0
    shutil.rmtree(folder / "one", ignore_errors=True)
    with closing(opened(folder, redis, "one", CRAWL, place_url=place)) as store:
        end_lease(store, 0)
        synced = folder / "synced"
        known = int(synced.read_text()) if synced.exists() else 0
        assert store.take(0, LEASE_MS)
        assert [each.arrival for each in store.queue(HOST)] == list(range(known)), "rows are lost"
        store.apply(Changes(queued=[row(HOST, known)]))
        store.sync()
        synced.write_text(str(known + 1))
        steps.counts = True
        copy(store)
        steps.counts = False
        store.journals.release([0])


def copy(store: JournaledStore) -> None:
    """All that there is."""
    while store._grown[0]:
        store.copy_some()


def main(redis: str, folder: Path, place: str) -> None:
    """See above."""
    import_module("s3fs")  # once, not in every process
    for whole in (True, False):
        for deaths in range(100):
            process = os.fork()
            if not process:
                live(redis, folder, place, Steps(deaths + 1), whole=whole)
                os._exit(0)
            _, status = os.waitpid(process, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                assert status == 0
                print(deaths)
                break


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
