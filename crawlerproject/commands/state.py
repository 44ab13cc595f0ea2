"""``scrapy state``: a crawl's frontier moved between its folder and Redis; backups of it; migrations of its formats."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from scrapy.settings import BaseSettings

from crawlerproject.config.crawl_file import apply_of_folder
from crawlerproject.config.crawl_kind import shared, whole_crawl
from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.fact_rules import join
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.operator_command import OperatorCommand, locked, option
from crawlerproject.rules.printable import counted, human_bytes, moment, without_passwords
from crawlerproject.stores.atomic_files import replace_file
from crawlerproject.stores.backup.making import back_up, read_backup
from crawlerproject.stores.backup.restoring import restore
from crawlerproject.stores.copy.copying import Copied, RedisCrawl, to_redis, to_rocks
from crawlerproject.stores.crawl_dir import CrawlDir, check_there
from crawlerproject.stores.crawl_folders import ALONE, folders_of, is_alone, refuse_moved, refuse_moving, refuse_part
from crawlerproject.stores.migrations import described, migrate, pending
from crawlerproject.stores.redis.connection import SCHEMES
from crawlerproject.stores.redis.copy_place import copies_url
from crawlerproject.stores.redis.texts import MOST_TEXTS
from crawlerproject.stores.rocks.frontier_folder import refuse_shared_out
from crawlerproject.terminal import say

_EXAMPLE = "scrapy state copy crawls/web redis://localhost:6379/0"
_BACK_EXAMPLE = "scrapy state copy redis://localhost:6379/0 crawls/copy"
_say = partial(say, error=True)
_WAIT_SECONDS = 120.0
"""A running crawl looks for orders twice a second, and writes out 80 MB at most; on a busy disk both take longer."""


class Command(OperatorCommand):
    """``copy`` changes TO only, ``backup`` makes DIR, ``restore`` and ``migrate`` change CRAWL_DIR."""

    arguments = "copy FROM TO | backup DIR [--wait SECONDS] | restore DIR | migrate [--check]"
    summary = "Copy a stopped crawl's frontier from its folder to Redis, or back; backups; migrations"
    details = (
        "backup: save the state of the crawl, while it runs or not, in DIR, which is new; then copy warc/, index/ and"
        " log/. restore: go back to that moment; what the archive gained since is kept in torn/. migrate: bring a "
        "stopped crawl's folders to today's formats, as a start does. copy: move a stopped crawl's frontier between "
        f"its folder and a Redis, where it is called FLEET_CRAWL; an interrupted copy goes on. Example: {_EXAMPLE}"
    )

    options = (
        option(
            "--wait",
            type=float,
            default=_WAIT_SECONDS,
            metavar="SECONDS",
            help=f"backup: how long a running crawl may take to make its checkpoint ({_WAIT_SECONDS:g})",
        ),
        option("--check", action="store_true", help="migrate: say what would be done, and change nothing"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do what the first argument says."""
        match args:
            case ["copy", source, target] if _is_redis(source) != _is_redis(target):
                self._copy(source, target)
            case ["backup", target]:
                self._back_up(target, opts.wait)
            case ["restore", source]:
                restore(read_backup(Path(source)), self._crawl(), _say)
            case ["migrate"] if opts.check:
                _check(self._folders())
            case ["migrate"]:
                _migrate(self._folders())
            case _:
                raise OperatorError(
                    f"Give copy, a crawl's folder and a Redis in either order ({_EXAMPLE}), or backup or restore and "
                    "a backup's folder, or migrate."
                )

    def _copy(self, source: str, target: str) -> None:
        """Copy, and say what both sides hold now."""
        into = _into_redis if _is_redis(target) else _into_folder
        copied = into(self.settings, source, target)
        for what, count in copied.counts.items():
            say(f"{count:>15,} {what}")
        named = without_passwords(target)
        compared = counted(copied.looked_at, "page or host was", "pages and hosts were")
        say(f"{named} holds all of it; {compared} compared whole.")

    def _back_up(self, target: str, wait_seconds: float) -> None:
        """Make a backup, and say what it counts of the archive."""
        crawl = self._crawl()
        back_up(crawl, Path(target), wait_seconds)
        backup = read_backup(Path(target))
        size = sum(path.stat().st_size for path in backup.folder.rglob("*") if path.is_file())
        say(f"{target} holds the state of the crawl in {crawl} at {moment(backup.made_at)}: {human_bytes(size)}")
        closed = sum(len(folder.closed) for folder in backup.folders)
        say(f"Of the archive, which is not in it, it counts {counted(closed, 'closed WARC file')}")
        for folder in backup.folders:
            if (file := folder.still_open) is not None:
                say(f"and {file.length:>11,} bytes of {file.filename}")
        say("Copy warc/, index/ and log/ from now on, to keep what was archived.")

    def _folders(self) -> list[CrawlDir]:
        """Of the crawl that CRAWL_DIR names: its own, then those of its workers, wherever its frontier is."""
        crawl = whole_crawl(self.settings)
        check_there(crawl)
        refuse_moving(crawl)
        return list(dict.fromkeys([crawl, *folders_of(crawl)]))

    def _crawl(self) -> CrawlDir:
        """The folder that CRAWL_DIR names. Raises OperatorError for a crawl whose frontier is elsewhere."""
        apply_of_folder(self.settings)
        if shared(self.settings):
            raise OperatorError(
                "What counts of this crawl's frontier is in Redis: have Redis keep it (appendonly, BGSAVE), or stop "
                f"the workers and copy it: {_BACK_EXAMPLE}"
            )
        return _whole(whole_crawl(self.settings))


def _whole(folder: CrawlDir) -> CrawlDir:
    """It, unless it has only a part of a crawl. Raises OperatorError."""
    refuse_shared_out(folder)
    refuse_part(folder)
    return folder


def _check(folders: list[CrawlDir]) -> None:
    """Say what a migration of these would do."""
    for folder in folders:
        say(*described(folder))
    if any(map(pending, folders)):
        say("scrapy state migrate does it, or the next start; a backup (scrapy state backup DIR) leads back.")
    else:
        say("Nothing is to be migrated.")


def _migrate(folders: list[CrawlDir]) -> None:
    """Do what is pending in each of these, while no process of the crawl runs."""
    with locked(folders):
        for folder in folders:
            migrate(folder, say)
            say(described(folder)[0])


def _is_redis(place: str) -> bool:
    return urlsplit(place).scheme + "://" in SCHEMES


def _into_redis(settings: BaseSettings, source: str, target: str) -> Copied:
    folder = _whole(CrawlDir(source))
    if not folder.is_dir() or (is_alone(folder) and not folder.has_frontier()):
        raise OperatorError(f"There is no frontier in {folder}; name a crawl's folder.")
    crawl = str(settings["FLEET_CRAWL"])
    place = f"{without_passwords(target)}, FLEET_CRAWL {crawl}"
    with locked([folder]):
        refuse_moved(folder, place)
        # What workers on this machine hold is first brought together; messages keep their partitions' numbers.
        partitions = move(folder, [ALONE], _say, settings.getint("FLEET_PARTITIONS")).partitions
        if left := next(iter(folder.open_warcs()), None):
            raise OperatorError(
                f"The crawl in {folder} did not end in good order ({left.name} is open); start it and stop it (Ctrl-C)."
            )
        started = [each.run.stat().st_mtime_ns for each in folders_of(folder) if each.run.exists()]
        stamp = f"{folder.resolve()} {max(started, default=0)}"
        most_texts = settings.getint("NEAR_DUPLICATE_MAX_PAGES", MOST_TEXTS)
        redis = RedisCrawl(target, crawl, partitions, most_texts, copies_url(str(settings["ARCHIVE_URL"])))
        return to_redis(folder.frontier, stamp, redis, lambda: replace_file(folder.moved, f"{place}\n".encode()), _say)


def _into_folder(settings: BaseSettings, source: str, target: str) -> Copied:
    folder = CrawlDir(target)
    with locked([folder]):
        if not is_alone(folder):
            raise OperatorError(f"There is a crawl of several workers in {folder} already; choose another folder.")
        source_crawl = RedisCrawl(source, str(settings["FLEET_CRAWL"]))
        return to_rocks(source_crawl, folder.frontier, join, lambda: folder.moved.unlink(missing_ok=True), _say)
