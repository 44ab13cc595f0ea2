"""The parts of a crawl, as its settings have them."""

from __future__ import annotations

import logging
import random
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from crawlerproject import __version__
from crawlerproject.config.chromium import find_chromium
from crawlerproject.config.fleet import worker_name
from crawlerproject.config.identity import identity
from crawlerproject.config.pace import rest_limits_of
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.frontier.hosts.set_back_clock import Start
from crawlerproject.frontier.hosts.table import HostBounds, HostTable
from crawlerproject.frontier.learned.duplicates import DuplicateIndex, NearBits
from crawlerproject.frontier.learned.renders import RenderLimits, Renders
from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.learned.subscriptions import Subscriptions
from crawlerproject.frontier.politeness import politeness_of
from crawlerproject.frontier.robots.cache import RobotsCache
from crawlerproject.frontier.state import FrontierState
from crawlerproject.frontier.workbench import Workbench
from crawlerproject.rules.archive.cdxj import CdxjEntry
from crawlerproject.rules.duplicates.permuted_tables import MAX_BITS
from crawlerproject.rules.politeness.backoff import HOUR_SECONDS
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.rules.url.scope import bounded_domain
from crawlerproject.stores.archive.archive import Archive
from crawlerproject.stores.archive.lost_captures import rows_lost
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, OpenFile, unpack_open
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.ranks import Linked

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.fleet.worker import Fleet
    from crawlerproject.frontier.gates import Gates
    from crawlerproject.frontier.holds import Holds
    from crawlerproject.stores.redis.buffered_store import BufferedStore
    from crawlerproject.stores.rocks.store import RocksStore

    Store = BufferedStore | RocksStore

logger = logging.getLogger(__name__)


def archive_of(
    settings: BaseSettings, folder: CrawlDir, store: Store, clock: Callable[[], float], *, alone: bool
) -> Archive:
    """The archive, cut back to the last commit; what had to be mended is said, and queued again when ``alone``."""

    def lost(rows: list[CdxjEntry], kept: OpenFile | None) -> int:
        return rows_lost(store, folder.log, rows, kept, clock(), count_rows)

    archive = Archive(
        folder,
        unpack_open(store.fact(ARCHIVE_FACT)),
        prefix=settings["WARC_PREFIX"],
        max_bytes=settings.getint("WARC_MAX_BYTES"),
        # Workers on one machine have names of their own, so that their files may lie in one folder one day.
        host_name=socket.gethostname() if alone else worker_name(settings),
        keep_days=settings.getint("LOG_KEEP_DAYS"),
        description=_description(settings, folder.resolve().name),
        clock=clock,
        # In a fleet the pages may be another worker's: what is lost is said, and not queued again.
        lost=lost if alone else None,
    )
    for message in archive.messages:
        logger.warning(message)
    return archive


def _description(settings: BaseSettings, crawl_name: str) -> list[tuple[str, str]]:
    fields = [
        ("software", f"crawlerproject/{__version__}"),
        ("http-header-user-agent", identity(settings).user_agent),
        ("robots", "obeyed (RFC 9309)"),
        ("isPartOf", crawl_name),
        ("hostname", socket.gethostname()),
    ]
    if settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]:
        fields.append(("operator", settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]))
    return fields


def frontier_of(
    settings: BaseSettings,
    folder: CrawlDir,
    store: Store,
    gates: Gates,
    fleet: Fleet | None,
    now: float,
    clean: bytes | None,
    holds: Holds | None = None,
) -> Frontier:
    """The frontier; ``clean``: b"0" after a crash, None when nobody ran before us."""
    ip_pause = settings.getfloat("PACE_IP_SECONDS")
    workbench = Workbench[Host](
        per_ip=settings.getbool("PACE_PER_IP"),
        ip_pause_seconds=ip_pause,
        ips_free_from=0.0 if clean is None else now + ip_pause,
        domain_of=bounded_domain,
    )
    politeness = politeness_of(settings, max_failures=settings.getint("HOST_MAX_FAILURES"))
    hosts = HostTable(
        store,
        workbench,
        Start(now, clean != b"0", _longest(settings)),
        HostBounds(
            politeness.start_delay_seconds,
            settings.getint("FRONTIER_MAX_HOSTS_IN_MEMORY"),
            settings.getint("SCOPE_MAX_PORTS_PER_HOST"),
        ),
        ownership=fleet.held if fleet is not None else None,
        holds=holds,
    )
    robots = RobotsCache(store, identity(settings).token, settings.getfloat("ROBOTS_TTL_SECONDS"))
    linked = folder.ranked_linked
    return Frontier(
        FrontierState(hosts, robots),
        gates,
        politeness,
        _renders_of(settings, store, workbench),
        random.Random(),
        Linked(linked).less_important if linked.is_file() else None,
    )


def _longest(settings: BaseSettings) -> Longest:
    """How long a host may be put off, by these settings."""
    rests = rest_limits_of(settings)
    return Longest(
        max(rests.max_seconds, rests.retry_after_max_seconds),
        max(settings.getfloat("ROBOTS_TTL_SECONDS"), HOUR_SECONDS),  # an old copy serves for an hour, whatever its TTL
        1 if settings["RENDER"] == "never" else 1 + settings.getint("RENDER_MAX_SUBREQUESTS"),
    )


def _renders_of(settings: BaseSettings, store: Store, workbench: Workbench[Host]) -> Renders:
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
            settings.getint("RENDER_MAX_PER_HOST"),
        ),
        closed="no Chromium was found on this machine" if missing else "",
    )


def contents_of(settings: BaseSettings, store: Store) -> DuplicateIndex:
    """What knows payloads and texts that were met before."""
    reach = NearBits(settings.getint("NEAR_DUPLICATE_BITS"), MAX_BITS)
    return DuplicateIndex(store, reach)


def revisits_of(settings: BaseSettings, store: Store) -> Revisits:
    """What knows how often pages change."""
    return Revisits(
        store,
        random.Random(),
        near_bits=settings.getint("NEAR_DUPLICATE_BITS"),
        check_share=settings.getfloat("RECRAWL_FULL_FETCH_SHARE"),
    )


def subscriptions_of(settings: BaseSettings, store: Store, frontier: Frontier) -> Subscriptions | None:
    """Who pushes to us; None unless hubs can reach us."""
    port = settings.getint("WEBSUB_PORT")
    if not port:
        return None
    here = f"http://{settings['WEBSUB_ADDRESS']}:{port}/"
    return Subscriptions(store, frontier, settings["WEBSUB_PUBLIC_URL"] or here)
