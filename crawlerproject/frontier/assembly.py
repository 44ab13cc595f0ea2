"""Parts of the frontier as settings have them: the one module of this room that reads settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlerproject.config.crawl_kind import shared, whole_crawl
from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.config.values import list_of, preset_of, rest_limits_of
from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.learned.revisits import Importance, RevisitPolicy, by_depth, by_rank
from crawlerproject.frontier.politeness import HostPoliteness, QuietHours
from crawlerproject.frontier.url_filters import NeverCrawl, UrlFilters
from crawlerproject.rules.revisits.history import DAY_SECONDS, History
from crawlerproject.rules.traps.budgets import DEFAULT_MAX_REQUISITES
from crawlerproject.rules.url.refused_urls import DEFAULT_MAX_PORTS, AddressRules
from crawlerproject.rules.url.scope import Patterns, Scope
from crawlerproject.runtime.clock import MOST_STEERING
from crawlerproject.stores.operator_files.user_settings import ANYWHERE, user_path
from crawlerproject.stores.operator_files.watched_lists import (
    RELOAD_SECONDS,
    HostPaceFile,
    NeverCrawlLists,
    WithdrawnFile,
)
from crawlerproject.stores.protocols import FactReader


def scope_of(settings: BaseSettings, mode: str, seed_hosts: Iterable[str], patterns: Patterns | None = None) -> Scope:
    """The scope of a crawl with these settings, ``-a scope=``, host keys of seeds, and patterns."""
    return Scope(
        mode,
        seed_hosts,
        max_depth=settings.getint("SCOPE_MAX_DEPTH"),
        max_url_length=settings.getint("SCOPE_MAX_URL_LENGTH"),
        patterns=patterns,
    )


def url_filters_of(
    settings: BaseSettings, scope: Scope, never_crawl: NeverCrawl, traps: TrapModel | None = None
) -> UrlFilters:
    """The filters of a crawl with these settings."""
    return UrlFilters(
        scope,
        never_crawl,
        AddressRules(list_of(settings, "FETCH_ALLOW_NETWORKS")),
        traps,
        max_urls_per_host=settings.getint("SCOPE_MAX_URLS_PER_HOST"),
        skip_extensions=list_of(settings, "SKIP_EXTENSIONS"),
        max_ports_per_host=settings.getint("SCOPE_MAX_PORTS_PER_HOST", DEFAULT_MAX_PORTS),
        max_hosts_per_domain=settings.getint("SCOPE_MAX_HOSTS_PER_DOMAIN"),
        hubs=bool(settings.getint("WEBSUB_PORT")),
        requisites=settings["REQUISITES"],
        max_requisites_per_host=settings.getint("REQUISITES_MAX_PER_HOST", DEFAULT_MAX_REQUISITES),
        withdrawn=WithdrawnFile(whole_crawl(settings), settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", RELOAD_SECONDS)),
    )


def never_crawl_of(settings: BaseSettings) -> NeverCrawlLists:
    """The lists that a crawl with these settings honours: the project's, and the operator's own."""
    paths = [settings.get("NEVERCRAWL_FILE"), user_path(settings.get("NEVERCRAWL_USER_FILE") or "")]
    # The default's is in a checkout; elsewhere one that was never made is no news.
    by_default = os.path.basename(paths[0] or "") == SETTINGS["NEVERCRAWL_FILE"].default and (
        ANYWHERE in os.environ or (settings.getpriority("NEVERCRAWL_FILE") or 0) < SETTINGS_PRIORITIES["project"]
    )
    seconds = settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", RELOAD_SECONDS)
    return NeverCrawlLists(paths, seconds, by_default=by_default)


def politeness_of(settings: BaseSettings, *, max_failures: int, store: FactReader | None = None) -> HostPoliteness:
    """By the PACE_* and BACKOFF_* settings; ``max_failures`` in a row park a host. Raises OperatorError.

    ``store`` keeps what is learned of hosts' hours; without one, as with QUIET_HOURS off, hours make no difference.
    """
    quiet = QuietHours(store) if store is not None and settings.getbool("QUIET_HOURS") else None
    path, seconds = settings["HOST_PACE_FILE"], settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", RELOAD_SECONDS)
    paces = HostPaceFile(path, seconds) if path else None
    rests, stretch = rest_limits_of(settings), pause_stretch(settings)
    return HostPoliteness(
        preset_of(settings), rests, max_failures=max_failures, paces=paces, stretch=stretch, quiet_hours=quiet
    )


def pause_stretch(settings: BaseSettings) -> float:
    """By what pauses are longer than promised: the clock of a worker is steered to that of its store."""
    return 1 + MOST_STEERING if shared(settings) else 1.0


def revisit_policy(settings: BaseSettings, budget: int | None) -> RevisitPolicy:
    """Which known pages are visited again, by the settings and by what ``scrapy rank`` has found in the whole crawl."""
    ranked = whole_crawl(settings).ranked_pages
    importance: Callable[[str, History], Importance] = by_depth
    if ranked.is_file():
        from crawlerproject.stores.index.ranks import Ranks  # loads numpy and Arrow

        importance = by_rank(Ranks(ranked))
    return RevisitPolicy(budget, settings.getfloat("RECRAWL_RECENT_DAYS") * DAY_SECONDS, importance)
