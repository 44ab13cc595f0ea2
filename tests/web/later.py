"""``python -m tests.web.later DAYS crawl web …``: Scrapy's command line in a process whose clock is DAYS ahead.

A month of coming back is tested in seconds: the machine's clock stays, the process has another. Of a fleet in Redis the
store's clock counts: ``store:DAYS`` sets that ahead too, as this process reads it. ``workers:DAYS`` does so for the
processes that ``scrapy fleet`` starts. ``DAYS+PPM``: the machine's clocks, those that are never set as well, are faster
by so many millionths. ``DAYS@FILE``: not ahead until the file is there, in the middle of the crawl.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

_LOOK_SECONDS = 0.02
_ahead = [0.0]  # seconds


def main() -> None:
    place, _, ahead = sys.argv[1].rpartition(":")
    first, _, flag = ahead.partition("@")
    days, _, faster = first.partition("+")
    ahead_seconds = float(days) * 86400
    _ahead[0] = 0.0 if flag else ahead_seconds
    if faster:
        _hasten(float(faster) / 1e6)
    real = time.time
    time.time = lambda: real() + _ahead[0]  # before anything of ours is imported, but for what the zygote has
    _set_crawls()
    if place == "store":
        _set_store()
    elif place == "workers":
        _set_workers(ahead if flag else days)
    if flag and place != "workers":
        threading.Thread(target=_leap, args=(Path(flag), ahead_seconds), daemon=True).start()
    from scrapy.cmdline import execute

    execute(["scrapy", *sys.argv[2:]])


def _hasten(share: float) -> None:
    """All clocks from now on."""
    wall, steady, boot = time.time, time.monotonic, time.clock_gettime
    began = steady()
    time.time = lambda: wall() + share * (steady() - began)
    time.monotonic = lambda: steady() + share * (steady() - began)
    time.clock_gettime = lambda which: boot(which) + share * (steady() - began)


def _set_crawls() -> None:
    """The crawl's own clock, as it is set when it is imported."""
    from crawlerproject.runtime import clock

    clock._EPOCH = clock.epoch_of_boot()
    clock.CRAWL.follow(clock._EPOCH)


def _leap(flag: Path, seconds: float) -> None:
    """Set the clocks ahead once the file is there."""
    from crawlerproject.runtime import clock

    while not flag.exists():
        time.sleep(_LOOK_SECONDS)
    _ahead[0] = seconds
    clock._EPOCH += seconds
    clock.CRAWL.follow(clock.CRAWL.apart(0.0) + seconds)


def _set_store() -> None:
    from crawlerproject.stores.redis import membership

    read = membership.RedisFleet.epoch

    def epoch(fleet: Any) -> Any:
        found = read(fleet)
        return found._replace(seconds=found.seconds + _ahead[0])

    membership.RedisFleet.epoch = epoch  # type: ignore[method-assign,assignment]


def _set_workers(days: str) -> None:
    from crawlerproject.fleet import supervisor

    made = supervisor.Worker.__init__

    def make(worker: Any, name: str, command: list[str], *more: Any) -> None:
        at = command.index("scrapy")
        made(worker, name, [*command[:at], "tests.web.later", days, *command[at + 1 :]], *more)

    supervisor.Worker.__init__ = make  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    main()
