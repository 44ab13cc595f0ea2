"""One running crawl: its folder, opened once, and the objects that work on it together."""

from __future__ import annotations

import logging
import os
import shutil
import time
from typing import TYPE_CHECKING

from crawlerproject.config.crawl_dir import crawl_folder
from crawlerproject.config.fleet import shared
from crawlerproject.crawl import assembly as parts
from crawlerproject.crawl.completion.commits import Commits
from crawlerproject.crawl.completion.pages import PageCompletion
from crawlerproject.crawl.completion.renders import RenderCompletion
from crawlerproject.crawl.limits import CrawlLimits, refuse_sums
from crawlerproject.crawl.orders import say_paused
from crawlerproject.crawl.progress.figures import Allowed
from crawlerproject.crawl.progress.tallies import Tallies
from crawlerproject.crawl.progress.totals import TotalsBook
from crawlerproject.crawl.progress.troubles import Troubles
from crawlerproject.crawl.start.preflight import check_settings
from crawlerproject.crawl.start.resume import Resumed, resume
from crawlerproject.errors import NameTaken, OperatorError, StorageError
from crawlerproject.fetch.resolver import resolver_for
from crawlerproject.fleet.join import join
from crawlerproject.fleet.worker import Fleet
from crawlerproject.frontier.admission import SCOPE_FACT, moves_of
from crawlerproject.frontier.gates import gates_of, scope_of
from crawlerproject.frontier.holds import Holds
from crawlerproject.frontier.learned.announcements import Announcements
from crawlerproject.frontier.learned.certificates import BadCertificates
from crawlerproject.frontier.learned.learners import Learners
from crawlerproject.frontier.learned.traps import TrapModel
from crawlerproject.guard.guard import guard_of
from crawlerproject.reading.page_reader import page_reader_of
from crawlerproject.rules.limits import limits_of
from crawlerproject.rules.url.seed_rules import host_limits
from crawlerproject.runtime.clock import steady
from crawlerproject.stores.crawl_dir import take_lock
from crawlerproject.stores.operator_files.control import Control, Pauses
from crawlerproject.stores.operator_files.trap_allow import TrapAllowFile
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.buffered_store import BufferedStore
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, open_frontier
from crawlerproject.stores.rocks.store import RocksStore

if TYPE_CHECKING:
    from typing import Any

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


class Crawl:
    """Owns store, frontier and archive. Pages end in ``ends``; ``commits`` makes their ends durable together."""

    def __init__(self, crawler: Crawler, spider: Spider) -> None:
        """Open the folder, mend what a crash left, and say so. Raises OperatorError."""
        settings = crawler.settings
        self.crawler = crawler
        self.folder = crawl_folder(settings, spider.name)
        self.fleet: Fleet | None = None  # with a frontier in Redis: the other workers and our part
        self.lost = ""  # why another worker may have what we work on; "" while none has
        self.paused = ""  # why, in words
        self.closed = False
        self.pages = 0  # these three since this process started, as in Progress
        self.bytes = 0
        self.errors = 0
        self.tallies = Tallies()  # likewise
        self.allowed = Allowed()
        self._epoch = steady() - time.monotonic()
        self._started = time.monotonic()
        self.retry_after_max = settings.getfloat("RETRY_AFTER_MAX_SECONDS")
        self._min_free_bytes = settings.getint("DISK_MIN_FREE_BYTES")
        self.ends = PageCompletion(self)
        self.commits = Commits(self)
        check_settings(settings)  # the crawl command has done so; another project's may not have
        self._lock = take_lock(self.folder)
        try:
            beside = self.folder.parent.iterdir() if shared(settings) else ()
            siblings = [folder for folder in beside if folder.is_dir()]
            self.poison = Poison(self.folder, time.time(), siblings=siblings)
            self.reader = page_reader_of(crawler, self.poison)
            self._build(settings, spider)
        except BaseException:
            os.close(self._lock)
            raise

    def now(self) -> float:
        """Epoch seconds that never jump: the machine's clock may be set while a crawl runs."""
        return self._epoch + time.monotonic()

    @property
    def running_seconds(self) -> float:
        """Since this start."""
        return time.monotonic() - self._started

    # --- opening and closing --------------------------------------------------------------------

    def _build(self, settings: BaseSettings, spider: Any) -> None:
        if shared(settings):
            self.fleet = join(settings, self.folder)
            self._epoch = self.fleet.begin()
            self.store: BufferedStore | RocksStore = self.fleet.store
        else:
            self.store = open_frontier(self.folder)
        self._begin(settings, spider)

    def begin_anew(self) -> None:
        """Another worker has what we worked on: forget what is not committed and join again. Blocking.

        Nothing may be leased any more. Raises NameTaken; StorageError when it must be tried again.
        """
        assert self.fleet is not None
        self.archive.abandon()
        self.store.close()
        spider = self.crawler.spider
        assert spider is not None
        try:
            self._build(self.crawler.settings, spider)
        except NameTaken:
            raise
        except OperatorError as error:  # it was fit at the start: Redis is away
            raise StorageError(str(error)) from error
        self.lost = ""

    def _begin(self, settings: BaseSettings, spider: Any) -> None:
        store, fleet = self.store, self.fleet
        clean = store.fact(CLEAN_FACT)
        self.archive = parts.archive_of(settings, self.folder, store, self.now, alone=fleet is None)
        self.totals = TotalsBook(self)
        self.resolver = resolver_for(self.crawler)
        allowed = TrapAllowFile(settings["TRAP_ALLOW_FILE"], settings.getfloat("NEVERCRAWL_RELOAD_SECONDS"))
        traps = TrapModel(store, allowed)
        if fleet is not None:
            refuse_sums(limits_of(spider.arguments.limits))  # before the folder remembers them
        self.resumed: Resumed = resume(self.folder, store, spider, continued=clean is not None)
        self.troubles = Troubles(self.resumed.hosts)
        hosts = [*self.resumed.hosts, *(store.fact(SCOPE_FACT) or b"").decode().split()]
        patterns, arguments = self.resumed.patterns, self.resumed.arguments
        scope = scope_of(settings, self.resumed.scope, hosts, patterns)
        self.gates = gates_of(settings, scope, guard_of(self.crawler).never_crawl, traps)
        for seed, place in moves_of(store):
            self.gates.scope.move(seed, place)
        self.limits = CrawlLimits(self, limits_of(arguments.limits))
        self.control = Control(self.folder if fleet is None else self.folder.parent)
        self.pauses = self.control.changed() or Pauses()
        say_paused(self.pauses)
        holds = Holds(limits_of(arguments.limits, per_host=True), host_limits(patterns.seeds), self.pauses.hosts)
        self.renders = RenderCompletion(self)
        self.frontier = parts.frontier_of(settings, self.folder, store, self.gates, fleet, self.now(), clean, holds)
        self.duplicates = parts.contents_of(settings, store)
        frontier, revisits = self.frontier, parts.revisits_of(settings, store)
        self.learned = Learners(traps, BadCertificates(store), frontier.renders, revisits, frontier.domains)
        self.announcements = Announcements(store, frontier, revisits, recrawl=spider.recrawl)
        self.subscriptions = parts.subscriptions_of(settings, store, self.frontier) if fleet is None else None
        if fleet is not None and settings.getint("WEBSUB_PORT"):
            logger.warning("WEBSUB_PORT does nothing with several workers: a hub knows one address.")
        # From here on a start that does not find "1" again follows a crash.
        store.apply(Changes(facts=[(CLEAN_FACT, b"0")]))

    def close(self) -> None:
        """The last commit; then everything is closed under its final name."""
        if self.closed:
            return
        self.closed = True
        self.reader.close()
        try:
            if self.lost:
                raise StorageError(self.lost)
            self.ends.write_again()
            self.frontier.add_again(self.now())
            self.commits.whole()
            self.archive.close()
            self.store.apply(Changes(facts=[(CLEAN_FACT, b"1")]))
            self.store.sync()
            if self.fleet is not None:
                self.fleet.close()
        except StorageError as error:
            logger.error("The crawl could not be closed cleanly (%s); the next start recovers it.", error)
            self.archive.abandon()
        finally:
            self.store.close()
            self.poison.close()
            os.close(self._lock)

    @property
    def halted(self) -> str:
        """Why nothing is asked now, in words: a full disk, an absent Redis, the operator; "" while it goes on."""
        return self.paused or (f"by the operator, {self.pauses.crawl}" if self.pauses.crawl else "")

    def lose(self, why: str) -> None:
        """Rely on nothing that is not committed: the next beat begins anew, and nothing is leased till then."""
        self.pause(why)
        if not self.lost:
            logger.warning("%s: this worker forgets what it has not committed and joins again.", why)
        self.lost = why

    # --- room on the disk -----------------------------------------------------------------------

    def pause(self, why: str) -> None:
        """Lease nothing more until there is room again, or Redis answers again."""
        if not self.paused:
            logger.error("The crawl pauses: %s; it goes on by itself when that is over.", why)
        self.paused = why

    def check_room(self) -> bool:
        """Pause when the disk is nearly full; True when a pause has just ended."""
        free = shutil.disk_usage(self.folder).free
        if free < self._min_free_bytes:
            self.pause(f"{self.folder} has {free:,} bytes free, under DISK_MIN_FREE_BYTES={self._min_free_bytes:,}")
            return False
        if not self.paused:
            return False
        try:
            self.ends.write_again()
            self.frontier.add_again(self.now())
        except StorageError as error:
            self.paused = str(error)
            return False
        logger.warning("The crawl goes on.")
        self.paused = ""
        return True
