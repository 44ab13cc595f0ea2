"""``scrapy state copy FROM TO``: a crawl's frontier moved between its folder and Redis."""

from __future__ import annotations

import argparse
import os
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from crawlerproject.errors import OperatorError
from crawlerproject.fleet.moves.move import is_alone, move
from crawlerproject.inspection.operator_command import OperatorCommand
from crawlerproject.stores.copy.compare import Copied, RedisCrawl
from crawlerproject.stores.copy.to_redis import to_redis
from crawlerproject.stores.copy.to_rocks import to_rocks
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.fleet_plan import ALONE
from crawlerproject.stores.redis.client import SCHEMES, without_password
from crawlerproject.terminal import say

_EXAMPLE = "scrapy state copy crawls/web redis://localhost:6379/0"


class Command(OperatorCommand):
    """Changes TO only."""

    arguments = "copy FROM TO"
    summary = "Copy a stopped crawl's frontier from its folder to Redis, or back"
    details = (
        "One of FROM and TO is a crawl's folder, the other a Redis (the crawl is called FLEET_CRAWL there). An "
        "interrupted copy goes on with the same command; at the end everything is counted on both sides and some "
        "pages and hosts are compared. What several workers on one machine hold is brought together first. WARC files "
        f"and logs stay where they are. Example: {_EXAMPLE}"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Copy, and say what both sides hold now."""
        if len(args) != 3 or args[0] != "copy" or (_is_redis(args[1]) == _is_redis(args[2])):
            raise OperatorError(f"Give copy, a crawl's folder and a Redis, in either order: {_EXAMPLE}")
        copied = _into_redis(self.settings, args) if _is_redis(args[2]) else _into_folder(self.settings, args)
        for what, count in copied.counts.items():
            say(f"{count:>15,} {what}")
        target = without_password(args[2])
        say(f"{target} holds all of it; {copied.looked_at:,} pages and hosts were compared whole.")


def _is_redis(place: str) -> bool:
    return urlsplit(place).scheme + "://" in SCHEMES


def _into_redis(settings: BaseSettings, args: list[str]) -> Copied:
    folder = CrawlDir(args[1])
    if not folder.is_dir() or (is_alone(folder) and not folder.has_frontier()):
        raise OperatorError(f"There is no frontier in {folder}; name a crawl's folder.")
    lock = take_lock(folder)
    try:
        # What workers on this machine hold is first brought together; messages keep their partitions' numbers.
        partitions = move(folder, [ALONE], _say, settings.getint("FLEET_PARTITIONS")).partitions
        if left := next(iter(folder.open_warcs()), None):
            raise OperatorError(
                f"The crawl in {folder} did not end in good order ({left.name} is open); start it and stop it (Ctrl-C)."
            )
        started = [each.run.stat().st_mtime_ns for each in folders_of(folder) if each.run.exists()]
        stamp = f"{folder.resolve()} {max(started, default=0)}"
        most_texts = settings.getint("NEAR_DUPLICATE_MAX_PAGES")
        target = RedisCrawl(args[2], str(settings["FLEET_CRAWL"]), partitions, most_texts)
        return to_redis(folder.frontier, stamp, target, _say)
    finally:
        os.close(lock)


def _into_folder(settings: BaseSettings, args: list[str]) -> Copied:
    folder = CrawlDir(args[2])
    lock = take_lock(folder)
    try:
        if not is_alone(folder):
            raise OperatorError(f"There is a crawl of several workers in {folder} already; choose another folder.")
        return to_rocks(RedisCrawl(args[1], str(settings["FLEET_CRAWL"])), folder.frontier, _say)
    finally:
        os.close(lock)


def _say(text: str) -> None:
    say(text, error=True)
