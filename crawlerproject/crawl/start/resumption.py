"""A start in a crawl's folder: what is continued, what is new, and what must be accepted first."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings

from crawlerproject.config.arguments import PATTERNS, Arguments, read
from crawlerproject.config.crawl_file import (
    ALL,
    DECISIVE,
    SCOPE,
    SEEDS,
    CrawlFile,
    Difference,
    accepted_names,
    differences,
    kept_settings,
    read_crawl_file,
    refuse_differences,
    write_crawl_file,
)
from crawlerproject.config.settings_table import SETTINGS
from crawlerproject.errors import NOTHING_FETCHED
from crawlerproject.frontier.known_seeds import KnownSeeds
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.scope import Patterns
from crawlerproject.rules.url.urls import Address
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes, FrontierStore

logger = logging.getLogger(__name__)


_WHAT_NEXT = (
    "To visit its pages again: -a mode=recrawl; for more pages: new seeds with -a accept=seeds; for another crawl: "
    "-s CRAWL_DIR=…."
)


@dataclass(slots=True, frozen=True)
class Resumed:
    """The crawl as this start finds it."""

    scope: str
    hosts: list[str]  # host keys of all its seeds
    patterns: Patterns
    arguments: Arguments  # as they hold
    continued: bool  # an earlier start began it
    new_seeds: int
    recrawl: bool = False  # its known pages are visited again
    known: frozenset[bytes] = frozenset()  # keys of seeds that earlier starts had

    def is_new(self, seed: Address) -> bool:
        """Whether no earlier start had this seed."""
        return seed.key not in self.known

    def fetched_nothing(self, good: int) -> bool:
        """Whether a start with seeds to begin with has ended without one good answer, of ``good`` so far."""
        return not (good or self.recrawl) and (not self.continued or self.new_seeds > 0)

    def say_queued(self, urls: int, hosts: int, pages: int) -> None:
        """Log what earlier starts have done and left; known when all hosts are loaded."""
        if not self.continued or self.recrawl:
            return
        done = f"{counted(pages, 'page')} done, " if pages else ""  # of an older version's folder that is not known
        if urls:
            logger.info("From before: %s%s of %s queued", done, counted(urls, "URL"), counted(hosts, "host"))
        elif not self.new_seeds:
            logger.info("From before: %snothing queued: this crawl has ended. %s", done, _WHAT_NEXT)

    def say_end(self, folder: Path, reason: str, progress: Progress) -> None:
        """Log that a start had nothing to do, and what is left for another one."""
        if reason not in ("finished", NOTHING_FETCHED):
            return
        if reason == NOTHING_FETCHED:
            tried = f", {counted(progress.errors, 'attempt')} failed" if progress.errors else ""
            logger.warning(
                "Nothing was fetched: no seed had a good answer%s. What became of each stands above, and "
                "scrapy why URL -s CRAWL_DIR=%s tells.", tried, folder,
            )  # fmt: skip
        if self.continued and not progress.pages and not self.recrawl:
            tried = f" ({counted(progress.errors, 'attempt')} failed)" if progress.errors else ""
            logger.info("Nothing was left to fetch%s: the crawl in %s has ended before. %s", tried, folder, _WHAT_NEXT)
        if progress.queued_urls:
            left = counted(progress.queued_urls, "URL")
            logger.info("Left for another start: %s of hosts that rest for longer than FRONTIER_MAX_REST_SECONDS", left)


def resume(folder: CrawlDir, store: FrontierStore, spider: Any, *, continued: bool) -> Resumed:
    """Compare a start with what the folder remembers, and remember what it changes.

    Raises OperatorError for a change that ``-a accept=`` does not name.
    """
    accepted, settings = accepted_names(spider.accept), spider.crawler.settings
    file = read_crawl_file(folder)
    known = KnownSeeds(store)
    if file is None and continued and known.scope:
        file = CrawlFile(scope=known.scope, settings=kept_settings(settings))  # of a version that wrote none
    scope = spider.scope_given or (file.scope if file is not None else spider.scope)
    seeds: list[Address] = spider.seeds or []
    new = known.unknown(seeds)
    changed = list(known.changed(seeds, new, spider.seed_options))
    if file is not None and continued:
        found = differences(file, spider.scope_given, settings, spider.arguments)
        if new and known and spider.seeds_given != file.seeds:
            found.insert(0, Difference(SEEDS, file.seeds, spider.seeds_given))
        elif changed:
            url, old, now = changed[0]
            found.insert(0, Difference(SEEDS, f"{url} {old}".strip(), f"{url} {now}".strip()))
        refuse_differences(folder, found, spider.accept)
        for one in found:
            logger.info("From now on %s is %r (%r before)", one.name, one.given, one.kept)
    elif file is not None:  # prepared by hand before the first start
        file.seeds, file.scope = spider.seeds_given or file.seeds, scope
        file.settings |= kept_settings(settings)
        file.include = file.include if spider.arguments.include is None else spider.arguments.include
        file.exclude = file.exclude if spider.arguments.exclude is None else spider.arguments.exclude
        write_crawl_file(folder, file)
    spider.scope = scope
    _say(folder, seeds, len(new), continued=continued)
    spider.arguments = _remember(folder, file, spider, scope, settings, accepted)
    old_version = continued and not known  # it kept no list of its seeds: none of them is news
    known.take(seeds, new, spider.seed_options, scope)
    store.apply(Changes(facts=known.facts()))
    include, exclude = (read(name, getattr(spider.arguments, name)) for name in PATTERNS)
    patterns = Patterns(include, exclude, known.rules())
    fresh = [] if old_version else new
    before = {seed.key for seed in seeds}.difference(seed.key for seed in fresh) if len(fresh) < len(seeds) else ()
    return Resumed(
        scope, known.hosts, patterns, spider.arguments, continued, len(new), spider.recrawl, frozenset(before)
    )


def _say(folder: Path, seeds: list[Address], new: int, *, continued: bool) -> None:
    """Log what a start does with its folder, lest two crawls be mixed unnoticed."""
    if not continued:
        logger.info("A new crawl in %s: %s", folder, counted(len(seeds), "seed"))
    elif seeds:
        joined = f", {new:,} of them new" if new else ", none of them new"
        logger.info("Continues the crawl in %s: %s%s", folder, counted(len(seeds), "seed"), joined)
    else:
        logger.info("Continues the crawl in %s", folder)


def _remember(
    folder: CrawlDir, file: CrawlFile | None, spider: Any, scope: str, settings: BaseSettings, accepted: frozenset[str]
) -> Arguments:
    """Write the crawl's file when there is none or it changes; the crawl's arguments.

    A limit is no part of a crawl's identity: another one holds from now on, and needs no acceptance.
    """
    given: Arguments = spider.arguments
    if file is None or not folder.crawl_file.exists():
        file = CrawlFile(spider.seeds_given, scope, kept_settings(settings), given.include or [], given.exclude or [])
        file.bound(given.limits)
        write_crawl_file(folder, file)
        return Arguments(file.include, file.exclude, file.limits)
    bounds = file.bound(given.limits)
    for change in bounds:
        logger.info("From now on %s", change)
    if accepted & {SEEDS, ALL} and spider.seeds_given:
        before, more = file.seeds, spider.seeds_given  # URLs are joined, of files the later is kept: all are queued
        file.seeds = f"{before},{more}" if "://" in before and "://" in more else more
    if accepted & {SCOPE, ALL}:
        file.scope = scope
    for name in PATTERNS:
        if accepted & {name, ALL} and (patterns := getattr(spider.arguments, name)) is not None:
            setattr(file, name, patterns)
    now = kept_settings(settings)
    changed = [name for name in DECISIVE if name in accepted or ALL in accepted]
    file.settings |= {
        name: now.get(name, SETTINGS[name].default) for name in changed if name in now or name in file.settings
    }
    if accepted or bounds:
        write_crawl_file(folder, file)
    return Arguments(file.include, file.exclude, file.limits)
