"""A start on a crawl's folder: what is continued, what is new, and what must be accepted first."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from crawlerproject.crawl_file import (
    ALL,
    CRAWL_FILE,
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
from crawlerproject.frontier.progress import Progress, counted
from crawlerproject.settings import OURS
from crawlerproject.stores.protocols import Changes, FrontierStore

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawlerproject.rules.urls import Address

logger = logging.getLogger(__name__)

_SCOPE_FACT = "scope of the seeds"
_SEEDS_FACT = "keys of the seeds"
_MARK_BYTES = 8
"""Of a seed's key that are kept: among ten million seeds two are taken for one with a chance of 3 in a million."""


_WHAT_NEXT = (
    "To visit its pages again: -a mode=recrawl; for more pages: new seeds with -a accept=seeds; for another crawl: "
    "-s CRAWL_DIR=…."
)


@dataclass(slots=True, frozen=True)
class Resumed:
    """What a crawl is at this start."""

    scope: str
    hosts: list[str]  # host keys of all its seeds
    continued: bool  # it was begun by an earlier start
    new_seeds: int
    recrawl: bool = False  # its known pages are visited again

    def say_queued(self, urls: int, hosts: int, pages: int) -> None:
        """What earlier starts have done and left; known when all of it is taken up."""
        if not self.continued or self.recrawl:
            return
        done = f"{counted(pages, 'page')} done, " if pages else ""  # of an older version's folder that is not known
        if urls:
            logger.info("From before: %s%s of %s queued", done, counted(urls, "URL"), counted(hosts, "host"))
        elif not self.new_seeds:
            logger.info("From before: %snothing queued: this crawl has ended. %s", done, _WHAT_NEXT)

    def say_end(self, folder: Path, reason: str, progress: Progress) -> None:
        """What a start came to that had nothing to do, and what is left for another one."""
        if reason != "finished":
            return
        if self.continued and not progress.pages and not self.recrawl:
            tried = f" ({counted(progress.errors, 'attempt')} failed)" if progress.errors else ""
            logger.info("Nothing was left to fetch%s: the crawl in %s has ended before. %s", tried, folder, _WHAT_NEXT)
        if progress.queued_urls:
            left = counted(progress.queued_urls, "URL")
            logger.info("Left for another start: %s of hosts that rest for longer than FRONTIER_PATIENCE_SECONDS", left)


def resume(folder: Path, store: FrontierStore, spider: Any, *, continued: bool) -> Resumed:
    """Compare a start with what the folder remembers, and remember what it changes.

    Raises OperatorError for a change that ``-a accept=`` does not name.
    """
    accepted, settings = accepted_names(spider.accept), spider.crawler.settings
    file = read_crawl_file(folder)
    kept_scope, hosts = _scope(store)
    if file is None and continued and kept_scope:
        file = CrawlFile(scope=kept_scope, settings=kept_settings(settings))  # of a version that wrote none
    scope = spider.scope_given or (file.scope if file is not None else spider.scope)
    seeds: list[Address] = spider.seeds or []
    known = store.fact(_SEEDS_FACT) or b""
    new = _unknown(seeds, known)
    if file is not None and continued:
        found = differences(file, spider.scope_given, settings)
        if new and known and spider.seeds_given != file.seeds:
            found.insert(0, Difference(SEEDS, file.seeds, spider.seeds_given))
        refuse_differences(folder, found, spider.accept)
    elif file is not None and spider.seeds_given:
        file.seeds = spider.seeds_given  # prepared by hand before the first start
        write_crawl_file(folder, file)
    spider.scope = scope
    _say(folder, seeds, len(new), continued=continued)
    hosts = sorted({*hosts, *(seed.host for seed in seeds)})
    _remember(folder, file, spider, scope, settings, accepted)
    store.apply(Changes(facts=facts_of(scope, hosts, new, known)))
    return Resumed(scope, hosts, continued, len(new), spider.recrawl)


def facts_of(scope: str, hosts: list[str], seeds: Iterable[Address], known: bytes = b"") -> list[tuple[str, bytes]]:
    """What a frontier keeps of its crawl: the scope, the host keys of all seeds, and which seeds are ``known``."""
    marks = known + b"".join(seed.key[-_MARK_BYTES:] for seed in seeds)
    return [(_SCOPE_FACT, orjson.dumps((scope, hosts))), (_SEEDS_FACT, marks)]


def _say(folder: Path, seeds: list[Address], new: int, *, continued: bool) -> None:
    """What a start does with its folder: a crawl that another one joins unseen would be a mixture of two."""
    if not continued:
        logger.info("A new crawl in %s: %s", folder, _count(len(seeds)))
    elif seeds:
        joined = f", {new:,} of them new" if new else ", none of them new"
        logger.info("Continues the crawl in %s: %s%s", folder, _count(len(seeds)), joined)
    else:
        logger.info("Continues the crawl in %s", folder)


def _count(seeds: int) -> str:
    return counted(seeds, "seed")


def _scope(store: FrontierStore) -> tuple[str, list[str]]:
    kept = store.fact(_SCOPE_FACT)
    scope, hosts = orjson.loads(kept) if kept else ("", [])
    return scope, hosts


def _unknown(seeds: Iterable[Address], known: bytes) -> list[Address]:
    marks = {known[at : at + _MARK_BYTES] for at in range(0, len(known), _MARK_BYTES)}
    return [seed for seed in seeds if seed.key[-_MARK_BYTES:] not in marks]


def _remember(
    folder: Path, file: CrawlFile | None, spider: Any, scope: str, settings: BaseSettings, accepted: frozenset[str]
) -> None:
    """Write the crawl's file when there is none, or when a change was accepted."""
    if file is None or not (folder / CRAWL_FILE).exists():
        write_crawl_file(folder, CrawlFile(spider.seeds_given, scope, kept_settings(settings)))
        return
    if not accepted:
        return
    if accepted & {SEEDS, ALL} and spider.seeds_given:
        file.seeds = _both(file.seeds, spider.seeds_given)
    if accepted & {SCOPE, ALL}:
        file.scope = scope
    given = kept_settings(settings)
    changed = [name for name in DECISIVE if name in accepted or ALL in accepted]
    file.settings |= {name: given.get(name, OURS[name]) for name in changed if name in given or name in file.settings}
    write_crawl_file(folder, file)


def _both(before: str, more: str) -> str:
    """Seeds as one argument: URLs are joined, of files the later is kept (all of theirs are in the frontier)."""
    return f"{before},{more}" if "://" in before and "://" in more else more
