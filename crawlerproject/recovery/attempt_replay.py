"""Replays a crawl's attempts into a new frontier, by the crawl's own code and at their original times.

No request is sent: where a page's end writes a capture, it is given the place of the one that is there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from scrapy.settings import BaseSettings

from crawlerproject.crawl.figures import FailureReporter
from crawlerproject.crawl.page_completion import PageCompletion, remember
from crawlerproject.crawl.run import Run, TotalsBook
from crawlerproject.crawl.session import Began, frontier_of, hosts_of, models_of, traps_of, url_filters_in
from crawlerproject.crawl.start.resumption import Resumed
from crawlerproject.errors import StorageError, sentence_of
from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.hosts.host import HostState, Stage
from crawlerproject.frontier.learned.duplicates import DuplicateIndex
from crawlerproject.frontier.learned.revisits import DueRevisit, again
from crawlerproject.frontier.leasing import robots_row
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, document_of, of_other_domain, seed_found
from crawlerproject.frontier.url_filters import NO_REQUISITES
from crawlerproject.items import LeaseResult
from crawlerproject.reading.page_reader import Unmarked, page_reader_of
from crawlerproject.recovery.attempts import Answers, Attempt, PlacedStore, Unreadable
from crawlerproject.rules.revisits.history import REQUISITE, History
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_RENDER,
    FLAG_REQUISITE,
    FLAG_ROBOTS,
    FLAG_SEED,
    HOP_PREREQUISITE,
    priority,
)
from crawlerproject.rules.url.urls import Address, UrlRefused, host_key, parse
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage, is_embedded

logger = logging.getLogger(__name__)

# Pages whose ends are stored together.
_COMMIT_PAGES = 500
# Pages after which the frontier is opened again: what it keeps of hosts and of their clocks is in memory meanwhile.
_FRONTIER_PAGES = 50_000
# Links of one page that are queued in one change.
_LINKS_AT_A_TIME = 5_000


class _Archived:
    """The ``Records`` of pages whose captures and lines stand in the archive and the log already."""

    def __init__(self, frontier: Frontier, duplicates: DuplicateIndex) -> None:
        self._frontier = frontier
        self._duplicates = duplicates
        self.written: Written | None = None  # the capture of the page that ends next
        self.repeats = False  # it is a revisit

    def write(self, result: LeaseResult) -> Written | None:
        """Where its capture is; later pages may refer to it."""
        written = self.written
        if written is not None and not result.lease.kind.is_render:
            original = self._duplicates.original(written.digest) if self.repeats else None
            remember(result, written, original, self._duplicates, self._frontier)
        return written

    def log(self, now: float, line: Mapping[str, object] | bytes) -> None:
        """It is in the log."""


class _Stats(Counter[str]):
    """The statistics of a crawl."""

    def inc_value(self, key: str, count: int = 1) -> None:
        """Count something, as Scrapy's collector does."""
        self[key] += count


class Replay:
    """A crawl's frontier under reconstruction."""

    def __init__(self, settings: BaseSettings, folder: CrawlDir, store: PlacedStore, resumed: Resumed) -> None:
        """``folder`` is the crawl's, ``resumed`` what ``crawl.toml`` has of it."""
        self.settings, self.folder, self.store = settings, folder, store
        self._run = Run(_Stats(), never_crawl_of(self.settings), clock=lambda: self._now)
        self.counts = Counter[str]()  # what became of attempts
        self._resumed = resumed
        self._now = 0.0
        self._uncommitted = self._since_opened = 0
        self.reader = page_reader_of(settings, Unmarked(), self._run.stats)
        self.answers = Answers(settings, store, self.reader)
        self._requisites = settings["REQUISITES"] != NO_REQUISITES

    def begin(self, now: float, seeds: Iterable[Address]) -> None:
        """Open the frontier at the crawl's first moment, and give it the seeds."""
        self._now = now
        self._open()
        self.frontier.begin_loading()
        while self.frontier.load_some(1):
            pass  # it is empty
        self.frontier.add([seed_found(address) for address in seeds], now)

    def commit(self) -> None:
        """Store the ends of pages so far."""
        changes, facts = self.frontier.state.take_changes(), self._models.facts()
        self.frontier.state.apply(changes, facts)
        self._models.stored(changes, facts)
        self._uncommitted = 0

    def _open(self) -> None:
        settings, store = self.settings, self.store
        traps = traps_of(settings, store)
        filters = url_filters_in(settings, store, self._resumed, self._run.never_crawl, traps)
        hosts = hosts_of(settings, store, Began(self._now, b"1"))
        self.frontier = frontier_of(settings, hosts, filters, self.folder.ranked_linked)
        totals = TotalsBook(store, self._run.tallies, self._now)
        models = self._models = models_of(settings, store, self.frontier, traps, totals)
        self._records = _Archived(self.frontier, models.duplicates)
        self._completion = PageCompletion(
            self.frontier,
            self._records,
            models,
            FailureReporter(()),
            self._run,
            settings.getfloat("RETRY_AFTER_MAX_SECONDS"),
        )
        self._since_opened = 0

    # --- one attempt ----------------------------------------------------------------------------

    async def take(self, attempt: Attempt) -> None:
        """Take in one attempt. StorageError when there is no room."""
        if (is_embedded(attempt.hops) and not self._requisites) or attempt.logged("method") == "POST":
            return  # no page of the frontier's
        self._now = max(self._now, attempt.ended_at)
        if attempt.lost:
            self._expect(attempt)
            return
        lease = self._lease(attempt)
        if lease is None:
            await self._follow(attempt)
            return
        try:
            result = await self.answers.page(lease, attempt, self.frontier.renders)
        except Unreadable as error:
            self._leave(lease, str(error))
            return
        except OSError as error:  # this machine's: the next try reads it
            raise StorageError(sentence_of(error)) from error
        except StorageError:
            raise
        except Exception:  # of one page: the others are not to be lost for it
            logger.exception("could not read %s again", lease.row.url)
            self._leave(lease, "could not be read again")
            return
        self._finish(result, attempt)
        self._uncommitted += 1
        self._since_opened += 1
        if self._uncommitted >= _COMMIT_PAGES:
            self.commit()
        if self._since_opened >= _FRONTIER_PAGES:
            self.commit()
            self._open()

    def _leave(self, lease: Lease, why: str) -> None:
        """An attempt cannot be used: its page waits as before."""
        self.counts[why] += 1
        self.frontier.requeue(lease, self._now)

    async def _follow(self, attempt: Attempt) -> None:
        """Take in the links of a render that this frontier would not have asked for; nothing else is known of it."""
        if not attempt.rendered or attempt.capture is None:
            self.counts["for an address or a reason that is not known"] += 1
            return
        address = parse(attempt.url)
        row = QueuedPage(
            address.host, address.key, address.url, 0, 0, attempt.depth, attempt.hops, attempt.via, 0, FLAG_RENDER
        )
        lease = Lease(row, self.frontier.hosts.of(address.host), "", self._now, 0.0)
        result = await self.answers.page(lease, attempt, self.frontier.renders)
        self._add(result.found)
        self._add(result.requisites)

    def _add(self, found: Sequence[DiscoveredUrl]) -> int:
        return sum(
            self.frontier.add(found[start : start + _LINKS_AT_A_TIME], self._now)
            for start in range(0, len(found), _LINKS_AT_A_TIME)
        )

    def _finish(self, result: LeaseResult, attempt: Attempt) -> None:
        result.new_links = self._add(result.found)
        self._add(result.requisites)
        if result.changed:
            self.frontier.changed(result.changed, self._now)
        capture = attempt.capture
        self._records.written = self.answers.written(capture) if capture is not None else None
        self._records.repeats = capture is not None and capture.member.kind == "revisit"
        self._completion.finish(result)
        if self._run.paused:  # there is no room: a crawl would wait for some
            raise StorageError(self._run.paused)
        self.counts["captures" if capture is not None else "failures"] += 1

    # --- whose turn it was ----------------------------------------------------------------------

    def _lease(self, attempt: Attempt) -> Lease | None:
        """The lease that the attempt had; None when its host or its purpose cannot be determined."""
        hops, url = attempt.hops, attempt.url
        try:
            address = parse(url)
        except UrlRefused:
            return None
        state, hosts = self.frontier.state, self.frontier.hosts
        if hops and not hops.strip(HOP_PREREQUISITE):
            host = hosts.of(address.host)
            arrival, number = state.next_arrival(host, self._now), document_of(hops)
            row: QueuedPage | None = robots_row(host, address.scheme, arrival, number, url if number else "")
            stored = False
        else:
            robots = _asks_for_robots(hops)
            kind = FLAG_ROBOTS if robots else FLAG_REQUISITE if is_embedded(hops) else 0
            row, stored = self._row(url, kind), True
            if row is not None and attempt.rendered != row.kind.is_render:
                row = None
            if row is None and not robots and not attempt.rendered:
                row = self._made(attempt, address)
        if row is None:
            return None
        host = hosts.of(row.host)
        host.state = HostState.ASKED  # it was, until a start
        if stored:
            state.take(row, host)
        if row.kind.ends_news:
            state.recent.add([row.page_key])
        state.leased += 1
        member = attempt.capture.member if attempt.capture is not None else None
        ip = str(attempt.logged("ip") or (member.field("warc-ip-address") if member else ""))
        lease = Lease(row, host, ip, self._now, host.promise_seconds, stored)
        if row.kind.is_render:
            self.frontier.renders.started()
            host.rendering = True
        else:
            host.stage = Stage.IN_FLIGHT
            self.frontier.workbench.in_flight += 1
            self.frontier.workbench.places.take(host.payer)
        return lease

    def _row(self, url: str, flags: int) -> QueuedPage | None:
        """The row that waits for a URL; what the next commit would store is stored for it."""
        row = self.store.row(url, flags)
        if row is not None and row.arrival not in self.frontier.hosts.of(row.host).taken:
            return row
        if row is None and not self.frontier.state.changes.queued:
            return None
        self.commit()
        return self.store.row(url, flags)

    def _expect(self, attempt: Attempt) -> None:
        """Queue a page whose capture is lost, unless it is queued or was fetched later."""
        if attempt.rendered or _asks_for_robots(attempt.hops):
            return
        try:
            address = parse(attempt.url)
        except UrlRefused:
            return
        self.counts["lost"] += 1
        kind = FLAG_REQUISITE if is_embedded(attempt.hops) else 0
        if self._row(attempt.url, kind) is None and self.store.page(address.key) is None:
            self._made(attempt, address)

    def _made(self, attempt: Attempt, address: Address) -> QueuedPage:
        """A row for a page that is not queued: what named it is unknown, or it is a revisit."""
        record = self.store.page(address.key)
        embedded = is_embedded(attempt.hops)
        history = History.unpack(record.history) if record is not None else History()
        if record is not None and embedded == (history.kind == REQUISITE):
            found, kept = again(DueRevisit(0.0, address.key, record, history), self._now)
            return self._queued(found, [(address.key, kept)])
        hops, via, depth = attempt.hops, attempt.via, attempt.depth
        if not hops.strip("R"):
            return self._queued(DiscoveredUrl(address, depth, hops, via, priority(depth, ""), FLAG_SEED), [])
        flags = FLAG_EXTERNAL if via and of_other_domain(address.host, host_key(via)) else 0
        flags |= FLAG_REQUISITE if embedded else 0
        return self._queued(DiscoveredUrl(address, depth, hops, via, priority(depth, hops[-1]), flags).owned(), [])

    def _queued(self, found: DiscoveredUrl, pages: list[tuple[bytes, PageRecord]]) -> QueuedPage:
        """Queue a page past the filters, which admitted it the first time."""
        address, depth, hops, via, place, flags, note = found
        state, hosts = self.frontier.state, self.frontier.hosts
        if not hosts.ports.knows(address.host):
            self.frontier.domains.taken_up(address.host)
        host = hosts.of(address.host)
        arrival = state.next_arrival(host, self._now)
        row = QueuedPage(address.host, found.queue_key, address.url, place, arrival, depth, hops, via, 0, flags, note)
        host.rows += 1
        host.known += not pages and row.kind.in_page_budget
        self.store.apply(Changes(queued=[row], pages=pages, hosts=[(host.name, host.pack())]))
        hosts.waits(host, 1)
        hosts.dirty[host.name] = host
        return row


def _asks_for_robots(hops: str) -> bool:
    """Whether a row with these hops is of a robots.txt or of a document beside it, redirected or not."""
    return hops.startswith(HOP_PREREQUISITE) and not hops.strip(HOP_PREREQUISITE + "R")
