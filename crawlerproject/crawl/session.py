"""All that a crawl works with from its start to its end, or until it begins anew: built whole and replaced as one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crawlerproject.config.crawl_file import STORE, accepted_names, adopt_crawl_file, keeping_crawl_file
from crawlerproject.config.crawl_kind import whole_crawl
from crawlerproject.crawl import assembly as parts
from crawlerproject.crawl.completion.commits import Commits
from crawlerproject.crawl.completion.pages import PageCompletion
from crawlerproject.crawl.completion.records import CrawlRecords
from crawlerproject.crawl.crawl_limits import CrawlLimits, share_renders
from crawlerproject.crawl.progress.failure_reports import Troubles
from crawlerproject.crawl.progress.tallies import TotalsBook
from crawlerproject.crawl.roles.single_process import role_of
from crawlerproject.crawl.start.resume import Resumed, resume
from crawlerproject.frontier.hosts.suspensions import HostSuspensions
from crawlerproject.rules.crawl_limits import limits_of
from crawlerproject.rules.url.seeds import host_limits
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes, RoundOptions
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.crawl.roles.single_process import SingleProcess, Store
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.learned.subscriptions import RemoteSubscriptions, Subscriptions
    from crawlerproject.frontier.url_filters import UrlFilters
    from crawlerproject.stores.archive.archive import Archive

logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Session:
    """The parts that know each other. None of them outlives the session."""

    role: SingleProcess
    archive: Archive
    filters: UrlFilters
    frontier: Frontier
    models: CrawlModels
    totals: TotalsBook
    subscriptions: Subscriptions | RemoteSubscriptions | None  # None: hubs cannot reach this crawl
    resumed: Resumed
    troubles: Troubles
    limits: CrawlLimits
    pages: PageCompletion
    commits: Commits

    @property
    def store(self) -> Store:
        """The frontier's."""
        return self.role.store

    def write_again(self, now: float) -> None:
        """Finish what found no room in the store or the archive; StorageError when there still is none."""
        self.pages.write_again()
        self.frontier.admission.add_again(now)

    def close(self, now: float) -> None:
        """Make the last commit and close everything under its final name. StorageError: ``abandon`` it."""
        self.write_again(now)
        self.commits.commit_blocking()
        self.archive.close()
        self.store.apply(Changes(facts=[(CLEAN_FACT, b"1")]))
        self.store.sync()
        self.role.close()


def open_session(settings: BaseSettings, folder: CrawlDir, spider: Any, run: Run) -> Session:
    """Open the frontier and the archive in ``folder``, and mend what a crash left. Blocking; raises OperatorError."""
    accept_loss = STORE in accepted_names(spider.accept)
    wanted = RoundOptions(spider.recrawl, spider.budget, str(settings["FLEET_RUN"]), accept_loss)
    role = role_of(settings, folder, run, wanted)
    try:
        return assembled(settings, folder, spider, run, role)
    except BaseException:
        role.store.close()
        raise


def assembled(settings: BaseSettings, folder: CrawlDir, spider: Any, run: Run, role: SingleProcess) -> Session:
    """All parts around a store that is open, those in ``folder`` recovered. Raises OperatorError."""
    store = role.store
    clean = store.fact(CLEAN_FACT)
    archive = parts.archive_of(settings, folder, store, run.now, role)
    totals = TotalsBook(store, run.tallies, run.now())
    crawl = whole_crawl(settings, spider.name)
    with keeping_crawl_file(crawl):
        adopt_crawl_file(crawl, folder)
        resumed = resume(crawl, store, spider, continued=clean is not None)
    limits = CrawlLimits(limits_of(resumed.arguments.limits), totals, run, settings.getint("FRONTIER_MAX_IN_FLIGHT"))
    traps = parts.traps_of(settings, store)
    filters = parts.url_filters_in(settings, store, resumed, run.never_crawl, traps)
    per_host = limits_of(resumed.arguments.limits, per_host=True)
    suspensions = HostSuspensions(per_host, host_limits(resumed.patterns.seeds), run.pauses.hosts)
    hosts = parts.hosts_of(settings, store, parts.Began(run.now(), clean), role.ownership, suspensions)
    frontier = parts.frontier_of(settings, hosts, filters, crawl.ranked_linked, recrawl=spider.recrawl)
    models = parts.models_of(settings, store, frontier, traps, totals, role.texts(run))
    _share_sums(role, run, limits, frontier)
    records = CrawlRecords(archive, frontier, models.duplicates)
    troubles = Troubles(resumed.hosts)
    longest_seconds = settings.getfloat("RETRY_AFTER_MAX_SECONDS")
    pages = PageCompletion(frontier, records, models, troubles, run, longest_seconds)
    session = Session(
        role,
        archive,
        filters,
        frontier,
        models,
        totals,
        parts.subscriptions_of(settings, role, frontier),
        resumed,
        troubles,
        limits,
        pages,
        Commits(frontier, archive, pages, models, role, troubles, run),
    )
    # From here on a start that does not find "1" again follows a crash.
    store.apply(Changes(facts=[(CLEAN_FACT, b"0")]))
    return session


def _share_sums(role: SingleProcess, run: Run, limits: CrawlLimits, frontier: Frontier) -> None:
    """Limits and budgets of a fleet's worker are those of all together."""
    sums = role.sums(run)
    if sums is not None:
        limits.share(sums, lambda: frontier.state.leased - frontier.renders.in_flight)
        share_renders(frontier.renders, sums)
