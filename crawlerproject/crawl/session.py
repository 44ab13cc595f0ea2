"""All that a crawl works with from its start to its end, or until it starts over: built whole and replaced as one."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.settings import BaseSettings

from crawlerproject import __version__
from crawlerproject.config.chromium import find_chromium
from crawlerproject.config.crawl_file import STORE, accepted_names, adopt_crawl_file, keeping_crawl_file
from crawlerproject.config.crawl_kind import whole_crawl, worker_name
from crawlerproject.config.values import documents_asked, identity, obeyed_for, preset_of, rest_limits_of
from crawlerproject.crawl.commits import Commits
from crawlerproject.crawl.figures import FailureReporter
from crawlerproject.crawl.page_completion import CrawlRecords, PageCompletion
from crawlerproject.crawl.roles.single_process import SingleProcess, role_of
from crawlerproject.crawl.run import CrawlLimits, Run, TotalsBook, share_renders
from crawlerproject.crawl.start.resumption import Resumed, resume
from crawlerproject.frontier.assembly import pause_stretch, politeness_of, scope_of, url_filters_of
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.frontier_state import FrontierState, HostOwnership, unsure_until
from crawlerproject.frontier.hosts.names_and_domains import NamesToResolve
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.frontier.hosts.table import MAX_HOSTS_IN_MEMORY, HostSuspensions, HostTable, Start
from crawlerproject.frontier.known_seeds import SCOPE_FACT, moves_of
from crawlerproject.frontier.learned.duplicates import Ahead, DuplicateIndex, NearBits, OtherWorkers
from crawlerproject.frontier.learned.models import BadCertificates, CrawlModels, TrapModel
from crawlerproject.frontier.learned.render_gains import MAX_PER_HOST, RenderLimits, Renders
from crawlerproject.frontier.learned.revisits import CHECK_SHARE, Revisits
from crawlerproject.frontier.learned.subscriptions import RemoteSubscriptions, Subscriptions
from crawlerproject.frontier.robots_cache import RobotsCache
from crawlerproject.frontier.url_filters import NeverCrawl, UrlFilters
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.limits import limits_of
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.rules.politeness.pauses import HOUR_SECONDS, delay_seconds
from crawlerproject.rules.rendering.browser_limits import MAX_SUBREQUESTS
from crawlerproject.rules.text_likeness import MAX_BITS, NEAR_BITS
from crawlerproject.rules.url.domains import bounded_domain
from crawlerproject.rules.url.refused_urls import DEFAULT_MAX_PORTS
from crawlerproject.rules.url.scope import host_limits
from crawlerproject.stores.archive.archive import Archive, WarcSeries
from crawlerproject.stores.archive.recovery import LostPages
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, TrapAllowFile
from crawlerproject.stores.poison import NO_MARK, Waiting
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, FrontierStore, RoundOptions, unpack_open
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT
from crawlerproject.stores.rocks.rocks_store import RocksStore

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
    subscriptions: RemoteSubscriptions | None  # None: hubs cannot reach this crawl
    resumed: Resumed
    reporter: FailureReporter
    limits: CrawlLimits
    pages: PageCompletion
    commits: Commits

    @property
    def store(self) -> RocksStore:
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


def open_session(
    settings: BaseSettings, folder: CrawlDir, spider: Any, run: Run, waiting: Waiting = NO_MARK
) -> Session:
    """Open the frontier and the archive in ``folder``, and mend what a crash left. Blocking; raises OperatorError."""
    accept_loss = STORE in accepted_names(spider.accept)
    wanted = RoundOptions(spider.recrawl, spider.budget, str(settings["FLEET_RUN"]), accept_loss)
    role = role_of(settings, folder, run, wanted)
    try:
        return assembled(settings, folder, spider, run, role, waiting)
    except BaseException:
        role.store.close()
        raise


def assembled(
    settings: BaseSettings, folder: CrawlDir, spider: Any, run: Run, role: SingleProcess, waiting: Waiting = NO_MARK
) -> Session:
    """All parts around a store that is open, those in ``folder`` recovered. Raises OperatorError."""
    store = role.store
    clean = store.fact(CLEAN_FACT)
    archive = archive_of(settings, folder, store, run.now, role, waiting)
    totals = TotalsBook(store, run.tallies, run.now())
    crawl = whole_crawl(settings, spider.name)
    with keeping_crawl_file(crawl):
        adopt_crawl_file(crawl, folder)
        resumed = resume(crawl, store, spider, continued=clean is not None)
    limits = CrawlLimits(limits_of(resumed.arguments.limits), totals, run, settings.getint("FRONTIER_MAX_IN_FLIGHT"))
    traps = traps_of(settings, store)
    filters = url_filters_in(settings, store, resumed, run.never_crawl, traps)
    per_host = limits_of(resumed.arguments.limits, per_host=True)
    suspensions = HostSuspensions(per_host, host_limits(resumed.patterns.seeds), run.pauses.hosts)
    hosts = hosts_of(settings, store, Began(run.now(), clean), role.ownership, suspensions)
    frontier = frontier_of(settings, hosts, filters, crawl.ranked_linked, recrawl=spider.recrawl, waiting=waiting)
    models = models_of(settings, store, frontier, traps, totals, role.texts(run), role.content_ahead())
    _share_sums(role, run, limits, frontier)
    records = CrawlRecords(archive, frontier, models.duplicates)
    reporter = FailureReporter(resumed.hosts)
    longest_seconds = settings.getfloat("RETRY_AFTER_MAX_SECONDS")
    pages = PageCompletion(frontier, records, models, reporter, run, longest_seconds, asks_redis=not role.keeps_hosts)
    session = Session(
        role,
        archive,
        filters,
        frontier,
        models,
        totals,
        subscriptions_of(settings, role, frontier),
        resumed,
        reporter,
        limits,
        pages,
        Commits(frontier, archive, pages, models, role, reporter, run),
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


def archive_of(
    settings: BaseSettings,
    folder: CrawlDir,
    store: RocksStore,
    clock: Callable[[], float],
    role: SingleProcess,
    waiting: Waiting,
) -> Archive:
    """The archive, cut back to the last commit; what had to be repaired is logged, of an own frontier queued again."""
    archive = Archive(
        folder,
        unpack_open(store.fact(ARCHIVE_FACT)),
        WarcSeries(
            prefix=settings["WARC_PREFIX"],
            # Workers on one machine have names of their own, so that their files can be put into one folder.
            host_name=socket.gethostname() if role.all_hosts else worker_name(settings),
            max_bytes=settings.getint("WARC_MAX_BYTES"),
            description=_description(settings, folder.resolve().name),
        ),
        keep_days=settings.getint("LOG_KEEP_DAYS"),
        clock=clock,
        # In Redis the pages may be another worker's: what is lost is reported, and not queued again.
        lost=LostPages(store, folder.log, clock(), count_rows).rows_lost if role.keeps_hosts else None,
        waiting=waiting,
    )
    for message in archive.messages:
        logger.warning(message)
    return archive


def _description(settings: BaseSettings, crawl_name: str) -> list[tuple[str, str]]:
    fields = [
        ("software", f"crawlerproject/{__version__}"),
        ("http-header-user-agent", identity(settings).user_agent),
        ("robots", "obeyed (RFC 9309)"),
        ("purpose", settings["PURPOSE"]),
        ("isPartOf", crawl_name),
        ("hostname", socket.gethostname()),
    ]
    if settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]:
        fields.append(("operator", settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]))
    return fields


def traps_of(settings: BaseSettings, store: FrontierStore) -> TrapModel:
    """What is known of traps, with those that the operator allows."""
    return TrapModel(
        store,
        TrapAllowFile(settings["TRAP_ALLOW_FILE"], settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", RELOAD_SECONDS)),
    )


def url_filters_in(
    settings: BaseSettings, store: FrontierStore, resumed: Resumed, never_crawl: NeverCrawl, traps: TrapModel
) -> UrlFilters:
    """The crawl's filters, its scope widened by redirects of seeds."""
    hosts = [*resumed.hosts, *(store.fact(SCOPE_FACT) or b"").decode().split()]
    scope = scope_of(settings, resumed.scope, hosts, resumed.patterns)
    for seed, place in moves_of(store):
        scope.move(seed, place)
    return url_filters_of(settings, scope, never_crawl, traps)


class Began(NamedTuple):
    """The moment (epoch seconds) at which a session begins, and CLEAN_FACT as the one before it left it."""

    at: float
    clean: bytes | None  # b"0": it crashed; None: there was none


def hosts_of(
    settings: BaseSettings,
    store: FrontierStore,
    began: Began,
    ownership: HostOwnership | None = None,
    suspensions: HostSuspensions | None = None,
) -> HostTable:
    """The hosts and their clocks. Without ``ownership`` all of them are this process's."""
    clean = began.clean != b"0"
    names = NamesToResolve(store, ownership or HostOwnership(unsure_until(store, began.at, clean_start=clean)))
    ip_pause = pause_stretch(settings) * settings.getfloat("PACE_IP_SECONDS")
    workbench = Workbench(
        per_ip=settings.getbool("PACE_PER_IP"),
        ip_pause_seconds=ip_pause,
        ips_free_from=0.0 if began.clean is None else began.at + ip_pause,
        domain_of=bounded_domain,
        payer_of=names.payer,
        places=settings.getint("FRONTIER_MAX_IN_FLIGHT"),
    )
    return HostTable(
        store,
        workbench,
        names,
        Start(began.at, clean, _longest(settings)),
        start_delay_seconds=delay_seconds(preset_of(settings), ()),
        max_in_memory=settings.getint("FRONTIER_MAX_HOSTS_IN_MEMORY", MAX_HOSTS_IN_MEMORY),
        max_ports=settings.getint("SCOPE_MAX_PORTS_PER_HOST", DEFAULT_MAX_PORTS),
        suspensions=suspensions,
    )


def frontier_of(
    settings: BaseSettings,
    hosts: HostTable,
    filters: UrlFilters,
    ranks: Path,
    *,
    recrawl: bool = False,
    waiting: Waiting = NO_MARK,
) -> Frontier:
    """The frontier; ``ranks`` is the file of all links by rank, which need not be there."""
    robots = RobotsCache(
        hosts.store, identity(settings).token, settings.getfloat("ROBOTS_TTL_SECONDS"),
        obeyed_for=obeyed_for(settings), asks=documents_asked(settings),
    )  # fmt: skip
    return Frontier(
        FrontierState(hosts, robots, waiting),
        filters,
        politeness_of(settings, max_failures=settings.getint("HOST_MAX_FAILURES"), store=hosts.store),
        _renders_of(settings, hosts.store, hosts.workbench),
        revisits_of(settings, hosts.store),
        random.Random(),
        _linked(ranks),
        recrawl=recrawl,
    )


def _linked(ranks: Path) -> Callable[[str], float | None] | None:
    if not ranks.is_file():
        return None
    from crawlerproject.stores.index.ranks import Linked  # loads numpy and Arrow

    return Linked(ranks).less_important


def _longest(settings: BaseSettings) -> Longest:
    """The longest time for which these settings can put a host off."""
    rests = rest_limits_of(settings)
    return Longest(
        max(rests.max_seconds, rests.retry_after_max_seconds),
        max(settings.getfloat("ROBOTS_TTL_SECONDS"), HOUR_SECONDS),  # an old copy serves for an hour, whatever its TTL
        1 if settings["RENDER"] == "never" else 1 + settings.getint("RENDER_MAX_SUBREQUESTS", MAX_SUBREQUESTS),
    )


def _renders_of(settings: BaseSettings, store: FrontierStore, workbench: Workbench) -> Renders:
    """The frontier's part of rendering, as the RENDER* settings have it."""
    mode = settings["RENDER"]
    missing = mode != "never" and find_chromium(settings["RENDER_BROWSER"]) is None
    return Renders(
        store,
        workbench,
        random.Random(),
        RenderLimits(
            mode,
            settings.getint("RENDER_MAX_IN_FLIGHT"),
            settings.getint("RENDER_MAX_PER_HOST", MAX_PER_HOST),
        ),
        closed="no Chromium was found on this machine" if missing else "",
    )


def models_of(
    settings: BaseSettings,
    store: RocksStore,
    frontier: Frontier,
    traps: TrapModel,
    totals: TotalsBook,
    others: OtherWorkers | None = None,
    ahead: Ahead | None = None,
) -> CrawlModels:
    """All that learns, around the frontier; ``others``, ``ahead``: of a fleet (``DuplicateIndex``)."""
    reach = NearBits(settings.getint("NEAR_DUPLICATE_BITS", NEAR_BITS), MAX_BITS)
    return CrawlModels(frontier, traps, BadCertificates(store), DuplicateIndex(store, reach, others, ahead), totals)


def revisits_of(settings: BaseSettings, store: FrontierStore) -> Revisits:
    """What is known of how often pages change."""
    return Revisits(
        store,
        random.Random(),
        near_bits=settings.getint("NEAR_DUPLICATE_BITS", NEAR_BITS),
        check_share=settings.getfloat("RECRAWL_FULL_FETCH_SHARE", CHECK_SHARE),
    )


def subscriptions_of(settings: BaseSettings, role: SingleProcess, frontier: Frontier) -> RemoteSubscriptions | None:
    """The subscriptions to hubs; None unless hubs can reach this crawl."""
    port = settings.getint("WEBSUB_PORT")
    if not port:
        return None
    if (write := role.hubs()) is not None:
        frontier.subscriptions = RemoteSubscriptions(frontier, write)
    else:
        here = f"http://{settings['WEBSUB_ADDRESS']}:{port}/"
        frontier.subscriptions = Subscriptions(role.store, frontier, settings["WEBSUB_PUBLIC_URL"] or here)
    return frontier.subscriptions
