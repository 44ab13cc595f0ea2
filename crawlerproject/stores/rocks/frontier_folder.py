"""Where a crawl's frontier lies, where a new one is made beside it, and how that one comes into its place.

A new frontier is made in ``frontier.recovering``, which is nothing until it is whole; then it is called
``frontier.recovered``, and that name alone says that it is to become the crawl's. So a process may die anywhere: who
opens the folder next puts it in place.

The frontier of a crawl whose hosts several folders hold, read only: it answers as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key, host_of_page
from crawlerproject.stores.atomic_files import storage_errors, sync_path, unused
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import FleetPlan, refuse_moved
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, FactReader, PageRecord, QueuedPage, host_of_fact
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from crawlerproject.stores.rocks.rocks_tables import damaged, open_facts, whole_crawl

if TYPE_CHECKING:
    from crawlerproject.stores.redis.journals import PartitionJournals
    from crawlerproject.stores.rocks.journaled_store import JournaledStore

CLEAN_FACT = "clean"
"""Whether the last run ended in good order (b"1"); b"0" after a crash. Every start of a crawl writes it."""
_OF_PARTITIONS = b"partition/"  # the facts of which partitions a JournaledStore has the rows
IMPORTED_FACT = "imported"
"""Records of other archives were taken in, perhaps before a first start."""
KNOWS_NOTHING = "it knows nothing of the crawl whose archive is beside it"


def put_in_place(folder: CrawlDir) -> Path | None:
    """Make a new frontier that is whole the crawl's; where the old one is kept now, if there was any.

    Does nothing when there is no new one. The folder's lock is held. Raises OperatorError when the disk refuses.
    """
    built, frontier = folder.frontier_recovered, folder.frontier
    if not built.is_dir():
        return None
    try:
        kept = moved_aside(folder)
        built.rename(frontier)
        sync_path(folder)
    except OSError as error:
        raise OperatorError(
            f"{built} cannot be put in the place of {frontier} ({error.strerror}); check the permissions of {folder}."
        ) from error
    return kept


def finish(folder: CrawlDir) -> None:
    """A frontier that was made beside the old one is whole and closed: from now on it is the one that counts."""
    with storage_errors(folder.frontier_recovered):
        sync_path(folder.frontier_unfinished)
        folder.frontier_unfinished.rename(folder.frontier_recovered)
        sync_path(folder)


def refuse_gone(folder: CrawlDir) -> None:
    """Raise OperatorError for a folder with captures and without a frontier: a start would fetch all of it again."""
    if folder.has_frontier() or not folder.has_archive():
        return
    whole = whole_crawl(folder)
    raise OperatorError(
        f"The frontier in {folder} is gone, and {folder.warc} has what was crawled: scrapy recover {whole} makes "
        "it again from that; or set CRAWL_DIR to another folder."
    )


def open_frontier(folder: CrawlDir) -> RocksStore:
    """The frontier of the crawl in ``folder``, a new one for a new crawl. Raises OperatorError.

    One that knows of no crawl although there is an archive has lost its tables: RocksDB opens a manifest that was cut
    short as an earlier one. A start on it would begin the crawl again.
    """
    put_in_place(folder)
    refuse_shared_out(folder)
    refuse_gone(folder)
    refuse_moved(folder)
    store = RocksStore(folder.frontier)
    if never_begun(store) and folder.has_archive():
        store.close()
        raise damaged(str(folder.frontier), KNOWS_NOTHING)
    return store


def open_journaled(folder: CrawlDir, journals: PartitionJournals, *, rejoins: bool) -> JournaledStore:
    """The frontier of a worker whose partitions others may take over. Raises OperatorError."""
    from crawlerproject.stores.rocks.journaled_store import JournaledStore

    put_in_place(folder)
    if folder.has_frontier() and not folder.worker.exists():
        with closing(open_facts(folder.frontier)) as facts:
            begun = facts.get(CLEAN_FACT.encode())
        if begun is not None:
            raise OperatorError(
                f"The crawl in {folder} is not shared out by Redis; set CRAWL_DIR or FLEET_WORKER to another name, or "
                "bring it there: scrapy state copy."
            )
    store = JournaledStore(folder.frontier, journals, rejoins=rejoins)
    if never_begun(store) and folder.has_archive():
        store.close()
        raise damaged(str(folder.frontier), KNOWS_NOTHING)
    return store


def refuse_shared_out(folder: CrawlDir) -> None:
    """Raise OperatorError for the folder of a crawl over Redis, or of one of its workers, where another is expected.

    What one worker has is a part of the crawl, and perhaps not the newest; a start beside it would begin again.
    """
    workers = [folder] if folder.has_frontier() else [folder, *folder.started_below()]
    if shared := next(filter(of_redis_worker, workers), None):
        raise OperatorError(
            f"Redis shares out the crawl of {shared} among its workers: start it with its STATE_URL, make it one of a "
            "folder (scrapy state copy), or set CRAWL_DIR to another folder."
        )


def of_redis_worker(folder: CrawlDir) -> bool:
    """Whether the folder is a worker's whose partitions others may take over: Redis says what of it counts."""
    if not folder.worker.exists() or not folder.has_frontier():
        return folder.worker.exists()
    with closing(open_facts(folder.frontier)) as facts:
        found = facts.iter()
        found.seek(_OF_PARTITIONS)
        return bool(found.valid() and found.key().startswith(_OF_PARTITIONS))


def never_begun(store: FactReader) -> bool:
    """Whether no crawl has ever opened or committed with a frontier, and nothing was imported into it."""
    return all(store.fact(name) is None for name in (CLEAN_FACT, ARCHIVE_FACT, IMPORTED_FACT))


def moved_aside(folder: CrawlDir) -> Path | None:
    """The old frontier keeps everything under another name, which is given back; one that is empty goes. OSError."""
    frontier = folder.frontier
    if not frontier.exists():
        return None
    if not any(frontier.iterdir()):
        frontier.rmdir()
        return None
    kept = unused(Path(f"{folder.frontier_damaged}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"))
    frontier.rename(kept)
    sync_path(frontier.parent)
    return kept


Combine = Callable[[list[bytes]], bytes]
"""One value of a fact from those of several workers."""

KEPT_OPEN = 4
"""Frontiers that stay open for the next question about a host: each has files, a log to read and 48 MB of blocks."""


class FleetView:
    """As ``FrontierView``: a question about a host opens the frontier of its holder alone, lists go from one to the
    next. What a folder has of another's hosts, as one that was left while hosts moved, does not count.
    """

    def __init__(
        self, crawl: CrawlDir, plan: FleetPlan, combined: Mapping[str, Combine], *, at_once: bool = False
    ) -> None:
        """``combined``: how crawl-wide facts are made one; any other is that of the first worker that has it.
        ``at_once``: all frontiers are opened now and stay open, so that all answers are of the same moment.

        Raises OperatorError when no worker has a frontier.
        """
        self._kept_open = len(plan.workers) if at_once else KEPT_OPEN
        self._plan = plan
        self._combined = combined
        # A worker that never began has none, and nothing to say.
        pairs = zip(plan.workers, plan.folders(crawl), strict=True)
        self._folders = {worker: folder for worker, folder in pairs if folder.has_frontier()}
        self._open: dict[str, FrontierView] = {}
        self._facts: dict[str, bytes | None] = {}
        if not self._folders:
            raise OperatorError(f"No worker of the crawl in {crawl} has a frontier yet; start it, or set CRAWL_DIR.")
        for worker in self._folders if at_once else ():
            self._of(worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        while self._open:
            self._open.popitem()[1].__exit__()

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before; without ``hosts`` all workers are asked."""
        found = [False] * len(keys)
        for worker in self._folders:
            places = [at for at in range(len(keys)) if hosts is None or self._plan.holder(hosts[at]) == worker]
            answers = self._of(worker).known([keys[at] for at in places]) if places else []
            for at, known in zip(places, answers, strict=True):
                found[at] = found[at] or known
        return found

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        return next((view.head(host, limit, after) for view in self._views(host)), [])

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return chain.from_iterable(view.queue(host) for view in self._views(host))

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; without its ``host`` all workers are asked."""
        found = (view.page(key) for view in self._views(host))
        return next((record for record in found if record is not None), None)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key, worker by worker."""
        for worker, view in self._each():
            yield from (row for row in view.pages() if self._plan.holder(host_of_page(row[1].url)) == worker)

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return next((view.host(host) for view in self._views(host)), None)

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state, worker by worker."""
        for worker, view in self._each():
            yield from (row for row in view.hosts() if self._plan.holder(row[0]) == worker)

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return next((view.robots(origin) for view in self._views(origin.rpartition("://")[2])), None)

    def fact(self, name: str) -> bytes | None:
        """A fact of a host, or one of the crawl: of all workers together."""
        if host := host_of_fact(name):
            return next((view.fact(name) for view in self._views(host)), None)
        if name not in self._facts:
            found = [value for worker in self._folders if (value := self.fact_of(worker, name)) is not None]
            combine = self._combined.get(name, itemgetter(0))
            self._facts[name] = combine(found) if found else None
        return self._facts[name]

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every fact about a host whose name begins with ``prefix``, worker by worker."""
        for worker, view in self._each():
            yield from (row for row in view.facts(prefix) if self._plan.holder(host_of_fact(row[0])) == worker)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1 that any worker knows."""
        found = (view.original(digest) for _, view in self._each())
        return next((original for original in found if original is not None), None)

    def fact_of(self, worker: str, name: str) -> bytes | None:
        """A crawl-wide fact as one worker has it."""
        folder = self._folders.get(worker)
        if folder is None:
            return None
        if worker in self._open:
            return self._open[worker].fact(name)
        with closing(open_facts(str(folder.frontier))) as facts:
            value: bytes | None = facts.get(name.encode())
            return value

    def _views(self, host: str | None) -> Iterator[FrontierView]:
        """That of the host's holder, if it has begun; without a ``host`` all of them."""
        workers = self._folders if host is None else [self._plan.holder(host)]
        return (self._of(worker) for worker in workers if worker in self._folders)

    def _of(self, worker: str) -> FrontierView:
        view = self._open.pop(worker, None) or FrontierView(self._folders[worker].frontier)
        self._open[worker] = view  # the last one used is the last
        if len(self._open) > self._kept_open:
            self._open.pop(next(iter(self._open))).__exit__()
        return view

    def _each(self) -> Iterator[tuple[str, FrontierView]]:
        """One after the other, each open only while it is read, unless it is anyhow."""
        for worker, folder in self._folders.items():
            if self._kept_open >= len(self._plan.workers):
                yield worker, self._of(worker)
                continue
            with FrontierView(folder.frontier) as view:
                yield worker, view


class HeldStores:
    """What is known of pages goes to the holders of their hosts, what is known of the crawl to every worker."""

    def __init__(self, crawl: CrawlDir, plan: FleetPlan) -> None:
        """The locks of all folders are held. Raises OperatorError."""
        self._plan = plan
        self._stores: dict[str, RocksStore] = {}
        with ExitStack() as opened:
            for worker, folder in zip(plan.workers, plan.folders(crawl), strict=True):
                self._stores[worker] = open_frontier(folder)
                opened.callback(self._stores[worker].close)
            self._opened = opened.pop_all()

    def page(self, key: bytes, host: str) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        return self._stores[self._plan.holder(host)].page(key)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1, in any worker's archive."""
        found = (store.original(digest) for store in self._stores.values())
        return next((original for original in found if original is not None), None)

    def apply(self, changes: Changes) -> None:
        """Apply pages, payloads and facts, in each frontier atomically; again without harm. StorageError."""
        parts = {worker: Changes(facts=changes.facts) for worker in self._stores}
        for key, record in changes.pages:
            parts[self._plan.holder(host_key(record.url))].pages.append((key, record))
        for digest, original in changes.payloads:
            assert original is not None
            parts[self._plan.holder(host_key(original.url))].payloads.append((digest, original))
        for worker, part in parts.items():
            if part:
                self._stores[worker].apply(part)

    def sync(self) -> None:
        """Make everything applied so far survive a power loss. StorageError."""
        for store in self._stores.values():
            store.sync()

    def close(self) -> None:
        """Let go of all folders."""
        self._opened.close()
