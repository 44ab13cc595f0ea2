"""One running crawl: its folder, locked, and the session that works in it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Any

from scrapy.crawler import Crawler

from crawlerproject import __version__
from crawlerproject.config.crawl_kind import crawl_folder, local, one_of_several, shared
from crawlerproject.crawl.figures import Figures
from crawlerproject.crawl.run import Run
from crawlerproject.crawl.session import Session, open_session
from crawlerproject.crawl.start.preflight import check_settings, raise_limit
from crawlerproject.crawl.start.setting_limits import check_directory
from crawlerproject.errors import NameTaken, OperatorError, StorageError, StoreForgot
from crawlerproject.guard.guard import guard_of
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.reading.page_reader import page_reader_of
from crawlerproject.rules.printable import listed
from crawlerproject.stores.crawl_dir import stamp_formats, take_lock
from crawlerproject.stores.crawl_folders import ALONE, is_alone
from crawlerproject.stores.migrations import migrate
from crawlerproject.stores.operator_files.control import Control, Pauses
from crawlerproject.stores.poison import Poison

logger = logging.getLogger(__name__)

_NOT_CLEAN = "The crawl could not be closed cleanly (%s); the next start recovers it."


class Crawl:
    """Owns the folder. ``session`` is replaced as a whole when another worker has what this one worked on."""

    def __init__(self, crawler: Crawler, spider: Any) -> None:
        """Open the folder, mend what a crash left, and log it. Raises OperatorError."""
        settings = crawler.settings
        assert crawler.stats is not None
        self._settings = settings
        self._spider = spider
        self.folder = crawl_folder(settings, spider.name)
        self.run = Run(crawler.stats, guard_of(crawler).never_crawl, rejoins=shared(settings))
        self.committing = asyncio.Lock()  # no two commits overlap, nor a commit and the crawl's end
        self._figures = Figures()
        self.min_free_bytes = settings.getint("DISK_MIN_FREE_BYTES")
        raise_limit(settings)
        check_settings(settings)  # the crawl command has done so; another project's may not have
        check_directory(settings)
        self._lock = take_lock(self.folder)
        try:
            self._migrate()
            several = one_of_several(settings)
            of_all = self.folder.parent if several else self.folder  # a fleet's workers share one
            if not several and not (is_alone(self.folder) and not self.folder.frontier_recovered.is_dir()):
                from crawlerproject.fleet.repartition.repartition import move  # a start is quicker without

                move(self.folder, [ALONE], logger.info, settings.getint("FLEET_PARTITIONS"))
            # Of a local fleet each has the crawl's seeds in its own frontier; the supervisor hands them on.
            self.control = Control(of_all, self.folder if local(settings) else None)
            # Of others, and of those whose hosts this process has by now.
            siblings = [folder for folder in of_all.iterdir() if folder.is_dir()]
            if local(settings):
                siblings.append(of_all)
            self.poison = Poison(self.folder, time.time(), siblings=siblings)
            self.reader = page_reader_of(settings, self.poison, crawler.stats)
            self.session: Session = self._opened()
            self._stamp()
        except BaseException:
            os.close(self._lock)
            raise

    def _migrate(self) -> None:
        """Bring the folder of an earlier version to today's formats. OperatorError; the next start does the rest."""
        try:
            migrate(self.folder, logger.info)
        except StorageError as error:
            raise OperatorError(f"{error}; mend that, then start again.") from error

    def _stamp(self) -> None:
        """Say in the folder, and in the log, that this version writes it from now on. OperatorError."""
        try:
            before = stamp_formats(self.folder, __version__)
        except StorageError as error:
            raise OperatorError(f"{error}; make room, then start again.") from error
        if before:
            logger.info(
                "This folder was written by version %s; from now on %s writes it, each row as it comes to it. An "
                "earlier one may refuse it then: a backup from before goes back.", before, __version__
            )  # fmt: skip

    def _opened(self) -> Session:
        run = self.run
        run.pauses = self.control.changed() or run.pauses
        session = open_session(self._settings, self.folder, self._spider, run, self.poison.unmarked)
        say_paused(run.pauses)
        return session

    def rejoin(self) -> None:
        """Another worker has what this one worked on: forget what is not committed and join again. Blocking.

        Nothing may be leased any more. Raises NameTaken or StoreForgot; StorageError when it must be tried again.
        """
        self.session.commits.discard_uncommitted()
        self.session.archive.abandon()
        self.session.store.close()
        try:
            self.session = self._opened()
        except (NameTaken, StoreForgot):
            raise
        except OperatorError as error:  # it was fit at the start: Redis is away
            raise StorageError(str(error)) from error
        self.run.lost = ""

    def progress(self, *, exact: bool = False) -> Progress:
        """Where the crawl stands; with many hosts as of some seconds ago, unless it is to be ``exact`` or has ended."""
        session, run = self.session, self.run
        return self._figures.now(session.frontier, session.reporter, run, exact=exact or run.closed)

    def close(self) -> None:
        """The last commit; then everything is closed under its final name. The folder stays this process's."""
        if self.run.closed:
            return
        self.run.closed = True
        self.reader.close()
        session = self.session
        try:
            if self.run.lost:
                raise StorageError(self.run.lost)
            session.close(self.run.now())
        except StoreForgot:  # that is why the crawl ends
            session.archive.abandon()
        except StorageError as error:
            logger.error(_NOT_CLEAN, error)
            session.archive.abandon()
        finally:
            try:
                session.store.close()
            except StorageError as error:
                logger.error(_NOT_CLEAN, error)
            self.poison.close()

    def unlock(self) -> None:
        """Leave the folder to others."""
        os.close(self._lock)


def say_paused(pauses: Pauses) -> None:
    """Log what a start finds paused, and how to resume it."""
    if pauses.crawl:
        logger.warning("The crawl is paused, %s: scrapy resume lets it go on.", pauses.crawl)
    if pauses.hosts:
        logger.warning("Paused hosts: %s; scrapy resume HOST lets one go on.", listed(sorted(pauses.hosts)))
