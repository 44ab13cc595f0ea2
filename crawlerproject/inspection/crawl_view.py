"""A crawl seen from outside, read only: its folder or its workers', the settings of its start, and its state.

What a crawl is, in words for a title page: by whom, by which bot, since when, how far.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlerproject.config.crawl_file import CrawlFile, apply, apply_of_folder, read_crawl_file
from crawlerproject.config.crawl_kind import shared, whole_crawl
from crawlerproject.config.values import identity
from crawlerproject.errors import OperatorError
from crawlerproject.frontier.known_seeds import COMBINED, SCOPE_FACT, KnownSeeds, moves_of
from crawlerproject.inspection.crawl_progress import together, workers_below
from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import limits_of
from crawlerproject.rules.printable import counted, without_passwords
from crawlerproject.rules.url.scope import Patterns, globs, host_limits
from crawlerproject.stores.crawl_dir import CrawlDir, check_there, read_facts
from crawlerproject.stores.crawl_folders import FleetPlan, folders_of, read_plan, refuse_moving
from crawlerproject.stores.operator_files.control import Pauses, read_pauses
from crawlerproject.stores.operator_files.watched_lists import TrapAllowFile
from crawlerproject.stores.redis.copy_place import copies_url
from crawlerproject.stores.redis.journal_view import JournalView, crawl_in_redis
from crawlerproject.stores.rocks.frontier_folder import FleetView
from crawlerproject.stores.rocks.rocks_store import FrontierView

if TYPE_CHECKING:
    from crawlerproject.frontier.hosts.table import HostSuspensions
    from crawlerproject.frontier.url_filters import UrlFilters
    from crawlerproject.inspection.explanation import Why

LocalView = FrontierView | FleetView
View = LocalView | JournalView

_CMDLINE = SETTINGS_PRIORITIES["cmdline"]
# Settings that name a file of the operator's: relative to where the crawl was started.
_PATHS = (
    *("NEVERCRAWL_FILE", "HOST_PACE_FILE", "TRAP_ALLOW_FILE", "FETCH_HOSTS_FILE", "FETCH_CA_FILE"),
    "IDENTITY_KEY_FILE",
)


class CrawlView:
    """One look at one crawl folder; ``now`` is its moment. Raises OperatorError when the folder holds no crawl.

    A folder with workers' folders in it is a crawl of several: its run is the latest start of any of them. ``plan`` is
    that of several workers on this machine with a frontier each; None for any other crawl.
    """

    def __init__(self, settings: BaseSettings) -> None:
        self.folder = whole_crawl(settings)
        check_there(self.folder)
        kept = (self.folder.frontier, self.folder.run, self.folder.fleet_plan)  # for its owner
        closed = any(path.exists() and not os.access(path, os.R_OK) for path in kept)
        if closed or not os.access(self.folder, os.R_OK | os.X_OK):
            raise OperatorError(f"{self.folder} is closed to this user, as a crawl's folder is; ask as its owner.")
        self.now = time.time()
        plan = None if shared(settings) else read_plan(self.folder)
        self.plan: FleetPlan | None = None if plan is None or plan.alone else plan
        alone = self.plan is None and self.folder.run.exists() and not shared(settings)
        self.workers = [] if alone else workers_below(self.folder, self.plan)
        if self.workers:
            runs = [*(worker.run for worker in self.workers), read_facts(self.folder.run)]
            self.run = max(runs, key=lambda run: float(run.get("started", 0.0)))
            self.status = together(self.workers)
            self.running = any(worker.running for worker in self.workers)
        else:
            self.run = read_facts(self.folder.run)
            self.status = read_facts(self.folder.status)
            self.running = self.folder.running(self.status)
        # The crawl's file where the next start is the first that reads it as it is now.
        path, started = self.folder.crawl_file, float(self.run.get("started", 0.0))
        changed = not self.running and path.exists() and path.stat().st_mtime >= started
        self._file: CrawlFile | None = read_crawl_file(self.folder) if changed else None
        self.settings = self._as_started(settings)

    @property
    def folders(self) -> list[CrawlDir]:
        """Where logs and archives are: the crawl's folder, and those of its workers on this machine."""
        return folders_of(self.folder)

    @property
    def logs(self) -> list[Path]:
        """The folders of the request logs."""
        return [folder.log for folder in self.folders]

    def store(self) -> View:
        """The frontier as of its last commit; close it."""
        if self.plan is None and shared(self.settings):
            return shared_frontier(self.settings, self.folders)
        return frontier_in(self.folder)

    def workers_elsewhere(self) -> list[str]:
        """Workers of this crawl that are at work and have no folder here."""
        if not shared(self.settings):
            return []
        here = {worker.folder.name for worker in self.workers}
        with self.store() as store:
            names = [worker.name for worker in store.workers()] if isinstance(store, JournalView) else []
        return [name for name in names if name not in here]

    def filters(self, store: View) -> UrlFilters:
        """The filters of the crawl as it was started."""
        # Most of a crawl, of which commands that read archives need nothing.
        from crawlerproject.frontier.assembly import never_crawl_of, scope_of, url_filters_of
        from crawlerproject.frontier.learned.models import TrapModel

        traps = TrapModel(store, TrapAllowFile(self.settings["TRAP_ALLOW_FILE"]))
        include, exclude = (globs(self._arguments.get(name) or []) for name in ("include", "exclude"))
        known = KnownSeeds(store)
        hosts = {*self.run.get("seed_hosts", []), *known.hosts, *(store.fact(SCOPE_FACT) or b"").decode().split()}
        patterns = Patterns(include, exclude, known.rules())
        scope = self._file.scope if self._file is not None else self.run.get("scope", "any")
        filters = url_filters_of(
            self.settings, scope_of(self.settings, scope, hosts, patterns), never_crawl_of(self.settings), traps
        )
        for seed, place in moves_of(store):
            filters.scope.move(seed, place)
        return filters

    def holds(self, store: View) -> HostSuspensions:
        """The hosts that are not asked though they have work."""
        from crawlerproject.frontier.hosts.table import HostSuspensions

        limits = limits_of(self._arguments.get("limits", {}), per_host=True)
        return HostSuspensions(limits, host_limits(KnownSeeds(store).rules()), self.pauses.hosts)

    @property
    def _arguments(self) -> dict[str, Any]:
        """Patterns and limits, of the last start or of a ``crawl.toml`` that is newer."""
        if (file := self._file) is not None:
            return {"include": file.include, "exclude": file.exclude, "limits": file.limits}
        arguments: dict[str, Any] = self.run.get("arguments", {})
        return arguments

    @property
    def pauses(self) -> Pauses:
        """What the operator has paused."""
        return read_pauses(self.folder)

    def halted(self) -> tuple[Reason, str] | None:
        """Why nothing at all is asked, when that is the operator's wish."""
        if why_paused := self.pauses.crawl:
            return Reason.PAUSED, f"the crawl is paused, {why_paused}"
        if limit := self.status.get("limit"):
            return Reason.CRAWL_LIMIT, f"the crawl has had its {limit}; a start with a higher one goes on"
        return None

    def leases(self) -> dict[str, dict[str, Any]]:
        """What is on its way now, by host; empty when the crawl does not run."""
        return {lease["host"]: lease for lease in self.status.get("leases", [])} if self.running else {}

    def why(self, store: View) -> Why:
        """Who answers why a URL is where it is."""
        from crawlerproject.inspection.explanation import Stops, Why

        token = identity(self.settings).token
        return Why(store, self.filters(store), token, self.now, self.leases(), Stops(self.holds(store), self.halted()))

    def _as_started(self, settings: BaseSettings) -> BaseSettings:
        """The settings of the crawl's last start; this command line wins, and a ``crawl.toml`` that is newer."""
        merged = settings.copy()
        apply(self._file, merged)
        newer = self._file.settings if self._file is not None else {}
        for name, value in self.run.get("settings", {}).items():
            if name in newer:
                continue
            if ":***@" in str(value) and value == without_passwords(str(merged[name])):
                continue  # the folder has no passwords, the settings may
            if (merged.getpriority(name) or 0) < _CMDLINE:
                # A default stays one: its file need not be there (``never_crawl_of``).
                priority = (merged.getpriority(name) or 0) if value == merged[name] else _CMDLINE
                if name in _PATHS and value:
                    value = str(Path(self.run.get("cwd", "."), value))
                merged.set(name, value, priority)
        return merged


def frontier_in_redis(crawl: CrawlDir, settings: BaseSettings) -> JournalView | None:
    """That of a fleet whose folder, or whose workers' folders, this is; None: it is on this machine, or nowhere.

    As of what Redis has, which archives are cut to. Raises OperatorError when Redis does not know the crawl.
    """
    of_folder = settings.copy()
    of_folder.set("CRAWL_DIR", str(crawl), "cmdline")
    apply_of_folder(of_folder)
    if not shared(of_folder):
        return None
    return shared_frontier(of_folder)


def shared_frontier(settings: BaseSettings, folders: Sequence[CrawlDir] = ()) -> JournalView:
    """That of the crawl in Redis which settings name; ``folders`` as JournalView takes them. OperatorError."""
    url, crawl, place_url = (str(settings[name]) for name in ("STATE_URL", "FLEET_CRAWL", "ARCHIVE_URL"))
    return crawl_in_redis(url, crawl, COMBINED, folders, copies_url(place_url))


def frontier_in(crawl: CrawlDir, *, at_once: bool = False) -> LocalView:
    """The frontier of a crawl on this machine, be it one process's or divided among workers; close it.

    ``at_once``: as of one moment, also for what is read of it much later. Raises OperatorError.
    """
    if not crawl.is_here:
        raise OperatorError(f"{crawl} is an archive at another place: a frontier is not there.")
    refuse_moving(crawl)
    plan = read_plan(crawl)
    if plan is None or plan.alone:
        return FrontierView(crawl.frontier)
    return FleetView(crawl, plan, COMBINED, at_once=at_once)


Fact = tuple[str, str]
"""A name and its text."""


def view_of(folder: CrawlDir, settings: BaseSettings) -> CrawlView | None:
    """A look at the crawl in a folder that a command names; None of an archive without one. OperatorError."""
    if not (folder.is_here and (folder.crawl_file.exists() or folder.run.exists() or folder.started_below())):
        return None
    own = settings.copy()
    own.set("CRAWL_DIR", str(folder), "cmdline")
    apply_of_folder(own)
    return CrawlView(own)


def settings_there(folder: CrawlDir, settings: BaseSettings) -> BaseSettings:
    """The settings of that crawl."""
    crawl = view_of(folder, settings)
    return settings if crawl is None else crawl.settings


def title_of(settings: BaseSettings, folder: CrawlDir) -> str:
    """CRAWL_TITLE; without one the folder's name."""
    return str(settings["CRAWL_TITLE"] or "") or f"Crawl “{folder.resolve().name}”"


def about(crawl: CrawlView) -> list[Fact]:
    """The facts in the order in which they are read; what is not known is left out."""
    return [(name, text) for name, text in _facts(crawl) if text]


def _facts(crawl: CrawlView) -> Iterator[Fact]:
    settings, status, run = crawl.settings, crawl.status, crawl.run
    yield "Crawled by", str(settings["WARC_OPERATOR"] or "")
    yield "Bot", identity(settings).user_agent
    yield (
        "Contact",
        ", ".join(str(settings[name]) for name in ("CRAWLER_CONTACT", "CRAWLER_INFO_URL") if settings[name]),
    )
    yield "Purpose", str(settings["PURPOSE"])
    yield "Began", _moment((status.get("totals") or {}).get("since") or run.get("started"))
    yield "Ended", _moment(status.get("ended")) if not crawl.running else "not yet: it runs"
    yield "How it ended", "" if crawl.running else str(status.get("finish_reason") or "")
    yield "Halted", halted[1] if (halted := crawl.halted()) else ""
    yield "Scope", _scope(run, settings)
    build = status.get("build", {})
    yield "Made with", f"crawlerproject {build['version']}, Scrapy {build['scrapy']}" if build else ""


def _scope(run: Mapping[str, Any], settings: BaseSettings) -> str:
    arguments = run.get("arguments", {})
    words = [f"scope={run.get('scope', 'any')}", f"at most {counted(int(settings['SCOPE_MAX_DEPTH']), 'link')} deep"]
    words += [f"{name}={' '.join(found)}" for name in ("include", "exclude") if (found := arguments.get(name))]
    words += [f"{name}={value}" for name, value in arguments.get("limits", {}).items() if value]
    return "; ".join(words)


def _moment(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""
