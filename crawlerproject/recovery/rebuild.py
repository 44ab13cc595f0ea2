"""Tells whether a crawl's frontier is damaged, makes a new one beside it, and replaces it when that is complete.

A frontier is whole when every row of every table can be read, which checks every block on the disk.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from rocksdict import Rdict
from scrapy.settings import BaseSettings

from crawlerproject.config.arguments import PATTERNS, Arguments, read
from crawlerproject.config.crawl_file import CrawlFile, apply, read_crawl_file
from crawlerproject.crawl.start.preflight import seeds_with_options
from crawlerproject.crawl.start.resumption import Resumed
from crawlerproject.errors import FrontierDamaged, OperatorError
from crawlerproject.fleet.repartition.repartition import adopt_recovered
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.frontier.known_seeds import KnownSeeds
from crawlerproject.recovery.attempt_replay import Replay
from crawlerproject.recovery.attempts import Attempt, PlacedStore, attempts
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.scope import Patterns, Seeds
from crawlerproject.rules.url.urls import Address, UrlRefused, parse
from crawlerproject.stores import row_codec
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.logs.request_log import day_of, log_files
from crawlerproject.stores.protocols import DUE_FACT, Changes, QueuedPage
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, KNOWS_NOTHING, finish, never_begun
from crawlerproject.stores.rocks.rocks_store import RocksReader
from crawlerproject.stores.rocks.rocks_tables import Tables, damaged, open_to_read

# Rows of known pages that wait all the same.
_ROWS_AT_A_TIME = 1000

# Of rows, between two calls of ``progress``.
_BYTES_AT_A_TIME = 1 << 20


# --- whether it is damaged -------------------------------------------------------------------------


def damage_of(folder: CrawlDir, progress: Progress) -> str:
    """What is wrong with a crawl folder's frontier, as a sentence; "" for one that is whole.

    ``progress`` is called with the bytes of rows, unpacked. Raises OperatorError for one of another version.
    """
    if not folder.has_frontier():
        return f"There is no frontier in {folder}"
    frontier = str(folder.frontier)
    try:
        try:
            there = Rdict.list_cf(frontier)
        except Exception as error:  # rocksdict raises no narrower class
            raise damaged(frontier, str(error)) from error
        # The table of hosts that are due as well, where there is one. No crawl runs: its files stay as they are.
        shown = [name for name in row_codec.NAMED if name in there]
        with closing(open_to_read(frontier, shown, tries=1)) as opened:
            _read_all(opened, progress)
            if never_begun(RocksReader(opened)) and folder.has_archive():
                return _without_hint(damaged(frontier, KNOWS_NOTHING))
    except FrontierDamaged as error:
        return _without_hint(error)
    except (struct.error, ValueError, IndexError) as error:
        return _without_hint(damaged(frontier, f"a row is malformed: {error}"))
    return ""


def _read_all(opened: Tables, progress: Progress) -> None:
    """Read every row. Raises FrontierDamaged, or what ``schema.READ`` raises for a malformed row."""
    done = 0
    for table in opened.columns:
        read = row_codec.READ.get(table)
        for key, value in opened.rows(table):
            if table == row_codec.HOSTS:
                Host.unpack(key.decode(), value)
            elif read is not None:
                read(key, value)
            done += len(key) + len(value)
            if done >= _BYTES_AT_A_TIME:
                progress(done)
                done = 0
    progress(done)


def _without_hint(error: FrontierDamaged) -> str:
    """The sentence up to what is to be done, which is being done."""
    return str(error).rpartition("; scrapy recover")[0] or str(error)


# --- made again ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rebuilt:
    """What a new frontier holds, and what could not be recovered."""

    pages: int = 0  # known: archived, or given up
    waiting: int = 0  # URLs that wait
    hosts: int = 0  # for which they wait
    kept: list[Path] = field(default_factory=list)  # where old frontiers are now
    counts: Counter[str] = field(default_factory=Counter)  # of attempts, by what became of them
    missing: list[str] = field(default_factory=list)  # sentences


def rebuild(settings: BaseSettings, folder: CrawlDir, folders: Sequence[CrawlDir], progress: Progress) -> Rebuilt:
    """Make the frontier of the crawl in ``folder`` again. The folder's lock is held, and its WARC files are closed.

    ``folders``: all that have archives and logs of it. Whichever workers held its hosts, one process does then.
    ``progress`` is called with the bytes of WARC files read. Raises OperatorError when the crawl is unknown, and
    StorageError when the disk refuses; the old frontier is as it was then.
    """
    rebuilt = Rebuilt()
    file = _file(folder)
    apply(file, settings)
    seeds = _seeds(file, rebuilt)
    store = PlacedStore(folder.frontier_unfinished)
    try:
        logging.disable(logging.WARNING)  # warnings about hosts would be repeated
        known = _known_seeds(folders, file, store, seeds)
        include, exclude = (read(name, getattr(file, name)) for name in PATTERNS)
        patterns = Patterns(include, exclude, known.rules())
        crawl = Resumed(file.scope, known.hosts, patterns, Arguments(), continued=True, new_seeds=0)
        replay = Replay(settings, folder, store, crawl)
        asyncio.run(_replayed(replay, seeds.addresses, attempts(folders, progress)))
        store.apply(Changes(facts=[*known.facts(), (CLEAN_FACT, b"0")]))
        _sweep(store, rebuilt)
        store.sync()
    finally:
        logging.disable(logging.NOTSET)
        store.close()
    rebuilt.counts = replay.counts
    _list_missing(folders, rebuilt)
    finish(folder)
    rebuilt.kept = adopt_recovered(folder)
    return rebuilt


async def _replayed(replay: Replay, seeds: list[Address], found: Iterator[Attempt]) -> None:
    """Replay all attempts."""
    first = next(found, None)
    replay.begin(time.time() if first is None else first.ended_at, seeds)
    try:
        for attempt in chain([first] if first is not None else [], found):
            await replay.take(attempt)
    finally:
        replay.reader.close()
    replay.commit()


def _file(folder: CrawlDir) -> CrawlFile:
    """What the crawl is: by its file, or by the facts of its last start."""
    file = read_crawl_file(folder)
    if file is not None:
        return file
    run = read_facts(folder.run)
    if not isinstance(run.get("settings"), dict):
        raise OperatorError(
            f"Nothing in {folder} says what this crawl was: write {folder.crawl_file} with seeds = […] and "
            'scope = "any", "domain" or "host", and run this again.'
        )
    return CrawlFile(scope=str(run.get("scope") or "any"), settings=run["settings"])


def _seeds(file: CrawlFile, rebuilt: Rebuilt) -> Seeds:
    if file.seeds:
        try:
            return seeds_with_options(file.seeds, file.scope)
        except OperatorError as error:
            rebuilt.missing.append(f"seeds that were never asked ({error})")
    return Seeds([], [], {})


def _known_seeds(folders: Sequence[CrawlDir], file: CrawlFile, store: PlacedStore, seeds: Seeds) -> KnownSeeds:
    """The file's seeds, and where the scope hangs on them those that were added while the crawl ran."""
    known = KnownSeeds(store)
    known.take(seeds.addresses, seeds.addresses, seeds.options, file.scope)
    if file.scope != "any":
        by_key: dict[bytes, Address] = {}
        for attempt in attempts(folders, lambda count: None):  # progress is reported when the files are read again
            if not attempt.hops and not attempt.depth:
                with suppress(UrlRefused):
                    address = parse(attempt.url)
                    by_key[address.key] = address
        added = known.unknown(by_key.values())
        known.take(added, added, {}, file.scope)
    return known


def _sweep(store: PlacedStore, rebuilt: Rebuilt) -> None:
    """Count what is there; no row of a page that was fetched stays, whatever order it was named and fetched in."""
    rebuilt.pages = sum(1 for _ in store.pages())
    for name in store.hosts_with_work():
        packed = store.host(name)
        host = Host(name, 0.0) if packed is None else Host.unpack(name, packed)
        done: list[QueuedPage] = []
        waiting, after = 0, None
        while rows := store.head(name, _ROWS_AT_A_TIME, after):
            after = rows[-1].priority, rows[-1].arrival
            fetched = [row for row in rows if not row.kind.waits_known and store.page(row.page_key) is not None]
            waiting += len(rows) - len(fetched)
            done += fetched
        rebuilt.waiting += waiting
        rebuilt.hosts += waiting > 0
        if not done:
            continue
        changes, counts = Changes(removed=done), Counts.unpack(store.fact(DUE_FACT))
        if host.on_disk:
            counts.add(host, -1)
        host.rows -= len(done)
        if host.on_disk:
            counts.add(host)
            changes.facts.append((DUE_FACT, counts.pack()))
        changes.hosts.append((host.name, host.pack()))
        store.apply(changes)


def _list_missing(folders: Sequence[CrawlDir], rebuilt: Rebuilt) -> None:
    """List what neither archive nor log holds."""
    logs = [day_of(path) for folder in folders for path in log_files(folder.log)]
    missing, counts = rebuilt.missing, rebuilt.counts
    if logs:
        missing.append(f"attempts without an answer before {min(logs)}")
    else:
        missing.append("attempts without an answer, and how quickly hosts answered: there is no request log")
    missing.append("subscriptions to hubs (WebSub)")
    if counts["lost"]:
        lost = "answers that are in the log and not in the archive: they are requested again"
        missing.append(f"{counts['lost']:,} {lost}")
    odd = {what: count for what, count in counts.items() if what not in ("captures", "failures", "lost")}
    missing.extend(f"{counted(count, 'attempt')}: {what}" for what, count in odd.items())
