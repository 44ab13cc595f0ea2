"""One running crawl: its folder, opened once, and the objects that work on it together."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from crawlerproject import __version__
from crawlerproject.errors import NameTaken, OperatorError, StorageError
from crawlerproject.fetch.resolver import resolver_for
from crawlerproject.frontier import letters
from crawlerproject.frontier.announcements import Announcements
from crawlerproject.frontier.certificate_book import CertificateBook
from crawlerproject.frontier.conduct import Conduct, Ending
from crawlerproject.frontier.contents import Contents, Duplicate, Reach
from crawlerproject.frontier.fleet import Fleet
from crawlerproject.frontier.found import Found
from crawlerproject.frontier.frontier import Frontier
from crawlerproject.frontier.gates import Gates
from crawlerproject.frontier.host import with_more_rows
from crawlerproject.frontier.intake import SCOPE_FACT
from crawlerproject.frontier.joining import join, shared, worker_name
from crawlerproject.frontier.progress import Progress
from crawlerproject.frontier.recrawl import again, by_depth, by_rank, due
from crawlerproject.frontier.revisits import Revisits
from crawlerproject.frontier.robots_desk import RobotsDesk
from crawlerproject.frontier.subscriptions import Subscriptions
from crawlerproject.frontier.trap_desk import TrapDesk
from crawlerproject.frontier.workbench import Stage, Workbench
from crawlerproject.identity import identity
from crawlerproject.items import Page
from crawlerproject.middlewares.pace_settings import preset_of, rest_limits_of
from crawlerproject.preflight import check_settings, crawl_folder, take_lock
from crawlerproject.reasons import Reason
from crawlerproject.render.ends import RenderEnds, renders_of
from crawlerproject.rules.addresses import AddressRules
from crawlerproject.rules.backoff import retry_after_seconds
from crawlerproject.rules.cdxj import Row
from crawlerproject.rules.priority import SEED
from crawlerproject.rules.refetch import DAY_SECONDS
from crawlerproject.rules.request_line import Attempt
from crawlerproject.rules.scope import Scope
from crawlerproject.rules.warc_records import NOT_MODIFIED, Context, Exchange, Original, payload_digest
from crawlerproject.setting_values import list_of
from crawlerproject.stores.archive import Archive, Written
from crawlerproject.stores.host_pace import HostPaceFile
from crawlerproject.stores.lost import rows_lost
from crawlerproject.stores.nevercrawl import NeverCrawlFile
from crawlerproject.stores.protocols import FLAG_SEED, Changes, Fingerprint
from crawlerproject.stores.ranks import RANKED_LINKED, RANKED_PAGES, Linked, Ranks
from crawlerproject.stores.redis_ahead import AheadStore
from crawlerproject.stores.rocks import LETTERS_FACT, RocksStore
from crawlerproject.stores.trap_allow import TrapAllowFile
from crawlerproject.stores.warc_files import ARCHIVE_FACT, OpenFile, pack_open, unpack_open

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from crawlerproject.fetch.wire import Wire
    from crawlerproject.rules.urls import Address

logger = logging.getLogger(__name__)

# The beginning of a body that is looked at to identify its type; the rarest marks lie within 512 bytes.
_SAMPLE_BYTES = 1024
# Revisits queued in one change of the store: a few hundred KB.
_REVISITS_AT_A_TIME = 1000
_CLEAN_FACT = "clean"
_SEEDS_SCOPE_FACT = "scope of the seeds"


class Crawl:
    """Owns store, frontier and archive. Pages end here; ``commit`` makes their ends durable together."""

    def __init__(self, crawler: Crawler, spider: Spider) -> None:
        settings = crawler.settings
        self.crawler = crawler
        self.folder: Path = crawl_folder(settings, spider.name)
        self.fleet: Fleet | None = None  # with a frontier in Redis: the other workers and our part
        self.lost = ""  # why another worker may have what we work on; "" while none has
        self.paused = ""  # why, in words
        self.closed = False
        self.pages = 0
        self.bytes = 0
        self.errors = 0
        self._epoch = time.time() - time.monotonic()
        self.retry_after_max = settings.getfloat("RETRY_AFTER_MAX_SECONDS")
        self._min_free_bytes = settings.getint("DISK_MIN_FREE_BYTES")
        self._unwritten: list[Page] = []
        self.commit_lock = asyncio.Lock()  # a commit in the loop and the last one never overlap
        check_settings(settings)  # the crawl command has done so; another project's may not have
        self._lock = take_lock(self.folder)
        try:
            self._build(settings, spider)
        except BaseException:
            os.close(self._lock)
            raise

    @classmethod
    def open(cls, crawler: Crawler, spider: Spider) -> Crawl:
        """Open the folder, mend what a crash left, and say so. Raises OperatorError."""
        return cls(crawler, spider)

    def _build(self, settings: Any, spider: Any) -> None:
        if shared(settings):
            self.fleet = join(settings, self.folder)
            self._epoch = self.fleet.begin() - time.monotonic()
            self.store: AheadStore | RocksStore = self.fleet.store
        else:
            self.store = RocksStore(self.folder / "frontier")
        self._begin(settings, spider)

    def begin_anew(self) -> None:
        """Another worker has what we worked on: forget what is not committed and join again. Blocking.

        Nothing may be leased any more. Raises NameTaken; StorageError when it must be tried again.
        """
        assert self.fleet is not None
        logger.warning("%s: this worker forgets what it has not committed and joins again.", self.lost)
        self.archive.abandon()
        self.store.close()
        self._unwritten.clear()
        spider = self.crawler.spider
        assert spider is not None
        try:
            self._build(self.crawler.settings, spider)
        except NameTaken:
            raise
        except OperatorError as error:  # it was fit at the start: Redis is away
            raise StorageError(str(error)) from error
        self.lost = ""

    def _begin(self, settings: Any, spider: Any) -> None:
        who = identity(settings)
        committed = self.store.fact(ARCHIVE_FACT)
        clean = self.store.fact(_CLEAN_FACT)
        self.archive = Archive(
            self.folder,
            unpack_open(committed),
            prefix=settings["WARC_PREFIX"],
            max_bytes=settings.getint("WARC_MAX_BYTES"),
            # Workers on one machine have names of their own, so that their files may lie in one folder one day.
            host_name=worker_name(settings) if self.fleet else socket.gethostname(),
            keep_days=settings.getint("LOG_KEEP_DAYS"),
            description=_description(settings, who.user_agent, self.folder.resolve().name),
            clock=self.now,
            # In a fleet the pages may be another worker's: what is lost is said, and not queued again.
            lost=None if self.fleet else self._rows_lost,
        )
        for message in self.archive.messages:
            logger.warning(message)
        now = self.now()
        ip_pause = settings.getfloat("PACE_IP_SECONDS")
        self.resolver = resolver_for(self.crawler)
        reload_seconds = settings.getfloat("NEVERCRAWL_RELOAD_SECONDS")
        self.certificates = CertificateBook(self.store)
        self.traps = TrapDesk(self.store, TrapAllowFile(settings["TRAP_ALLOW_FILE"], reload_seconds))
        scope, hosts = self._scope(spider)
        hosts += (self.store.fact(SCOPE_FACT) or b"").decode().split()
        self.gates = gates_of(settings, scope, hosts, self.traps)
        workbench = Workbench(
            per_ip=settings.getbool("PACE_PER_IP"),
            ip_pause_seconds=ip_pause,
            ips_free_from=now + ip_pause if clean is not None else 0.0,  # None: nobody ran before us
        )
        self.renders = RenderEnds(self)
        linked = self.folder / RANKED_LINKED
        self.frontier = Frontier(
            self.store,
            workbench,
            self.gates,
            Conduct(
                preset_of(settings),
                rest_limits_of(settings),
                max_failures=settings.getint("HOST_MAX_FAILURES"),
                paces=HostPaceFile(settings["HOST_PACE_FILE"], reload_seconds),
            ),
            RobotsDesk(self.store, who.token, settings.getfloat("ROBOTS_TTL_SECONDS")),
            rng=random.Random(),
            started_at=now,
            clean_start=clean != b"0",
            renders=renders_of(settings, self.store, workbench),
            territory=self.fleet,
            less_important=Linked(linked).less_important if linked.is_file() else None,
        )
        self.contents = Contents(
            self.store,
            Reach(settings.getint("NEAR_DUPLICATE_BITS"), settings.getint("NEAR_DUPLICATE_BITS_ACROSS_HOSTS")),
        )
        self.revisits = Revisits(
            self.store,
            random.Random(),
            near_bits=settings.getint("NEAR_DUPLICATE_BITS"),
            check_share=settings.getfloat("RECRAWL_CHECK_SHARE"),
        )
        self.announcements = Announcements(self.store, self.frontier, self.revisits, recrawl=spider.recrawl)
        self.subscriptions = self._subscriptions(settings)
        # From here on a start that does not find "1" again follows a crash.
        self.store.apply(Changes(facts=[(_CLEAN_FACT, b"0")]))

    def _subscriptions(self, settings: Any) -> Subscriptions | None:
        """Who pushes to us; None unless hubs can reach us."""
        port = settings.getint("WEBSUB_PORT")
        if not port:
            return None
        if self.fleet is not None:
            logger.warning("WEBSUB_PORT does nothing with several workers: a hub knows one address.")
            return None
        here = f"http://{settings['WEBSUB_ADDRESS']}:{port}/"
        return Subscriptions(self.store, self.frontier, settings["WEBSUB_PUBLIC_URL"] or here)

    def _rows_lost(self, rows: list[Row], kept: OpenFile | None) -> int:
        return rows_lost(self.store, self.folder / "log", rows, kept, self.now(), with_more_rows)

    def _scope(self, spider: Any) -> tuple[str, list[str]]:
        """Which links are followed: as the seeds say, and when known pages are visited without any, as they said."""
        if not spider.seeds and (kept := self.store.fact(_SEEDS_SCOPE_FACT)):
            mode, hosts = orjson.loads(kept)
            return mode, hosts
        scope = (spider.scope, sorted({seed.host for seed in spider.seeds}))
        self.store.apply(Changes(facts=[(_SEEDS_SCOPE_FACT, orjson.dumps(scope))]))
        return scope

    def now(self) -> float:
        """Epoch seconds that never jump: the machine's clock may be set while a crawl runs."""
        return self._epoch + time.monotonic()

    def read_letters(self) -> None:
        """What a fleet's workers wrote to each other and nobody had read when its frontier was copied to this disk."""
        for partition in range(int(self.store.fact(LETTERS_FACT) or 0)):
            name = f"{LETTERS_FACT}/{partition}"
            packed = self.store.fact(name)
            for letter in orjson.loads(packed) if packed else ():
                self.frontier.read(letters.unpack(orjson.dumps(letter)), self.now())
            if packed:
                self.store.apply(Changes(facts=[(name, b"")]))

    def seeds_found(self, seeds: Iterable[Address]) -> list[Found]:
        """Seeds on their way into the frontier."""
        return [Found(address, 0, "", "", SEED, FLAG_SEED) for address in seeds]

    def queue_revisits(self, budget: int | None) -> int:
        """Queue the known pages whose visit is worth most now, at most ``budget``; how many there are."""
        now = self.now()
        recent = self.crawler.settings.getfloat("RECRAWL_RECENT_DAYS") * DAY_SECONDS
        ranked = self.folder / RANKED_PAGES
        importance = by_rank(Ranks(ranked)) if ranked.is_file() else by_depth
        pages, hosts = self.store.pages(), self.revisits.host
        chosen = due(pages, hosts, now, budget=budget, recent_seconds=recent, importance=importance)
        queued = 0
        for start in range(0, len(chosen), _REVISITS_AT_A_TIME):
            some = chosen[start : start + _REVISITS_AT_A_TIME]
            queued += self.frontier.again((again(page, now) for page in some), now)
        return queued

    # --- the end of a page ----------------------------------------------------------------------

    def repeated(self, page: Page) -> Duplicate | None:
        """What a page repeats: another's payload, what it names as canonical, or nearly another's text."""
        row = page.lease.row
        if page.payload:
            page.digest = payload_digest(page.payload)
            exact = self.contents.exact(page.digest, page.url)
            if exact is not None:
                return exact
        if page.canonical is not None and page.canonical.key != row.key:
            return Duplicate("canonical", page.canonical.url)
        if page.fingerprint is None:
            return None
        return self.contents.near(Fingerprint(row.host, page.fingerprint, row.key))

    def finish(self, page: Page) -> None:
        """Archive and log a page and end its lease; without room on the disk it is kept until there is."""
        if self.lost:  # the page is another worker's now, whatever came of it here
            self.put_back(page)
            return
        try:
            written = self._write(page)
        except StorageError as error:
            self._unwritten.append(page)
            self.pause(str(error))
            return
        self._end(page, written)

    def put_back(self, page: Page) -> None:
        """Return a page whose end failed through a fault of ours, unless it did end."""
        if not page.lease.ended:
            self.frontier.put_back(page.lease, self.now())

    def _write(self, page: Page) -> Written | None:
        if page.lease.is_render:
            return self.renders.write(page)
        wire = page.wire
        lease = page.lease
        if wire is None or not wire.status or lease.is_hub:
            return None
        context = Context(
            page.url,
            lease.row.via,
            lease.row.hops,
            lease.delay_seconds,
            wire.started_at - lease.host.answered_at if lease.host.answered_at else None,
            page.body[:_SAMPLE_BYTES],
            page.notes,
        )
        digest = page.digest or payload_digest(wire.body)
        original = self._original(page, digest)
        written = self.archive.write(self.exchange_of(wire), context, digest, original)
        self._remember(page, written, original)
        if lease.is_robots and wire.status == 200:
            self.archive.robots_copy(lease.row.note, wire.started_at, page.body)
        return written

    @staticmethod
    def exchange_of(wire: Wire) -> Exchange:
        """What crossed the wire, as the archive writes it."""
        return Exchange(
            wire.request_bytes,
            wire.head_bytes,
            wire.body,
            wire.status,
            wire.chunked,
            wire.ip,
            wire.protocols,
            wire.cipher,
            wire.started_at,
            wire.ended_at,
            wire.truncated,
        )

    def _original(self, page: Page, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        if page.status == 304:
            before = self.store.page(page.lease.row.key)
            original = self.contents.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if page.to_render is not None:
            return None  # the browser is given this very record
        return self.contents.original(digest) if page.payload else None

    def _remember(self, page: Page, written: Written, original: Original | None) -> None:
        """Let later pages refer to this one."""
        row, changes = page.lease.row, self.frontier.books.changes
        if page.payload and original is None:
            self.contents.add_payload(written.digest, Original(written.record_id, page.url, written.date), changes)
        if page.fingerprint is not None and page.duplicate is None:
            self.contents.add_fingerprint(Fingerprint(row.host, page.fingerprint, row.key), page.url, changes)

    def _end(self, page: Page, written: Written | None) -> None:
        now = self.now()
        wire, lease = page.wire, page.lease
        self._count(page)
        if lease.is_render:
            self.renders.end(page, written)
            return
        row = lease.row
        if wire is not None and wire.ended_at:
            lease.host.answered_at = wire.ended_at
        digest = written.digest if written else b""
        self.archive.attempt(
            Attempt(
                wire.started_at if wire and wire.started_at else lease.leased_at,
                wire.ended_at if wire and wire.ended_at else now,
                page.url,
                page.reason,
                "POST" if lease.is_hub else "GET",
                page.status,
                row.host,
                wire.ip if wire else "",
                row.via,
                row.depth,
                row.hops,
                page.mime,
                wire.received_bytes if wire else 0,
                page.location,
                wire.ttfb_seconds if wire else None,
                None,
                lease.delay_seconds,
                written.digest_text if written else "",
                written.filename if written else "",
                written.offset if written else None,
                written.length if written else None,
                page.error,
                row.tries,
                wire.truncated if wire else None,
                False,
                page.duplicate.kind if page.duplicate else "",
                page.duplicate.url if page.duplicate else "",
            ),
            now,
        )
        ending = Ending(
            page.reason,
            page.status,
            wire.ttfb_seconds if wire else None,
            retry_after_seconds(page.retry_after or None, now, self.retry_after_max),
            page.location,
            row.tries,
            render=self.renders.place(page, written),
        )
        record = self.revisits.record(page, digest, now)
        self.frontier.finish(lease, ending, record, page.body, now)
        if page.to_render is None and not lease.is_hub:  # a shell says nothing yet
            self.traps.learn(page, digest)
        self.certificates.learn(page, now)

    def _count(self, page: Page) -> None:
        stats = self.crawler.stats
        assert stats is not None
        stats.inc_value(f"pages/{page.reason}")
        if page.wire is not None:
            stats.inc_value("bytes/received", page.wire.received_bytes)
            self.bytes += page.wire.received_bytes
            if page.wire.truncated:
                stats.inc_value(f"truncated/{page.wire.truncated}")
        if page.lease.is_render:
            self.errors += page.reason is not Reason.RENDERED
        elif page.status is None:
            self.errors += 1
        elif not page.lease.is_robots:
            self.pages += 1

    # --- commit ---------------------------------------------------------------------------------

    def begin_commit(self) -> tuple[Changes, list[tuple[str, bytes]]]:
        """What the next commit holds: all ends up to now, and the archive's length that covers them."""
        self.archive.flush()
        state = self.archive.warc.state()
        facts = [(ARCHIVE_FACT, pack_open(state))] if state else []
        learnt = self.traps.facts() + self.certificates.facts() + self.frontier.renders.take_facts()
        learnt += self.revisits.take_facts()
        return self.frontier.take_changes(), facts + learnt

    def end_commit(self, changes: Changes, facts: list[tuple[str, bytes]]) -> None:
        """Apply a commit whose archive bytes are durable by now."""
        self.frontier.apply(changes, facts)
        self.contents.stored(changes)
        self.traps.stored()
        self.certificates.stored()
        stats = self.crawler.stats
        assert stats is not None
        for reason, count in self.frontier.take_refused().items():
            stats.inc_value(f"refused/{reason}", count)

    def commit(self) -> None:
        """A whole commit at once, blocking."""
        changes, facts = self.begin_commit()
        try:
            self.archive.sync()
            if self.fleet is not None:
                self.fleet.deliver_now(self.frontier, self.now())
        except StorageError:
            self.frontier.take_back(changes)
            raise
        self.end_commit(changes, facts)
        self.store.sync()

    def roll(self) -> None:
        """Close the open WARC when it is full; everything in it must be committed, so commit first."""
        state = self.archive.warc.state()
        if state is not None and state.length >= self.crawler.settings.getint("WARC_MAX_BYTES"):
            self.commit()
            self.archive.warc.roll_if_full()

    def close(self) -> None:
        """The last commit; then everything is closed under its final name."""
        if self.closed:
            return
        self.closed = True
        try:
            self._write_again()
            self.commit()
            self.archive.close()
            self.store.apply(Changes(facts=[(_CLEAN_FACT, b"1")]))
            self.store.sync()
            if self.fleet is not None:
                self.fleet.close()
        except StorageError as error:
            logger.error("The crawl could not be closed cleanly (%s); the next start recovers it.", error)
            self.archive.abandon()
        finally:
            self.store.close()
            os.close(self._lock)

    # --- room on the disk -----------------------------------------------------------------------

    def pause(self, why: str) -> None:
        """Lease nothing more until there is room again, or Redis answers again."""
        if not self.paused:
            logger.error("The crawl pauses: %s; it goes on by itself when that is over.", why)
        self.paused = why

    def check_room(self) -> bool:
        """Pause when the disk is nearly full; True when a pause has just ended."""
        free = shutil.disk_usage(self.folder).free
        if free < self._min_free_bytes:
            self.pause(f"{self.folder} has {free:,} bytes free, under DISK_MIN_FREE_BYTES={self._min_free_bytes:,}")
            return False
        if not self.paused:
            return False
        try:
            self._write_again()
            self.frontier.add_again(self.now())
        except StorageError as error:
            self.paused = str(error)
            return False
        logger.warning("The crawl goes on.")
        self.paused = ""
        return True

    def _write_again(self) -> None:
        while self._unwritten:
            written = self._write(self._unwritten[0])
            self._end(self._unwritten.pop(0), written)

    # --- looking on -----------------------------------------------------------------------------

    def progress(self) -> Progress:
        """Where the crawl stands; costs a look at every host in memory."""
        now = self.now()
        in_flight = ready = waiting = resting = 0
        eta = 0.0
        for host in self.frontier.hosts():
            if host.stage == Stage.IN_FLIGHT:
                in_flight += 1
            if not host.work or host.given_up:
                continue
            eta = max(eta, host.next_free - now + host.waiting_urls * host.delay_seconds)
            if host.stage == Stage.IN_FLIGHT:
                continue
            if host.rests_until(now):
                resting += 1
            elif host.next_free <= now:
                ready += 1
            else:
                waiting += 1
        wake = self.frontier.workbench.wake_at()
        return Progress(
            pages=self.pages,
            bytes=self.bytes,
            errors=self.errors,
            hosts_in_flight=in_flight,
            hosts_ready=ready,
            hosts_waiting=waiting,
            hosts_resting=resting,
            queued_urls=max(0, self.frontier.waiting_urls),
            next_free_seconds=None if wake is None else max(0.0, wake - now),
            eta_seconds=eta if eta > 0 else None,
            paused=self.paused,
        )


def gates_of(settings: Any, scope: str, seed_hosts: Iterable[str], traps: TrapDesk | None = None) -> Gates:
    """The gates of a crawl with these settings, ``-a scope=`` and host keys of seeds."""
    never = NeverCrawlFile(settings["NEVERCRAWL_FILE"], settings.getfloat("NEVERCRAWL_RELOAD_SECONDS"))
    return Gates(
        Scope(
            scope,
            seed_hosts,
            max_depth=settings.getint("SCOPE_MAX_DEPTH"),
            max_url_length=settings.getint("SCOPE_MAX_URL_LENGTH"),
        ),
        never,
        AddressRules(list_of(settings, "FETCH_ALLOW_NETWORKS")),
        list_of(settings, "SKIP_EXTENSIONS"),
        max_urls_per_host=settings.getint("SCOPE_MAX_URLS_PER_HOST"),
        traps=traps,
        hubs=bool(settings.getint("WEBSUB_PORT")),
    )


def _description(settings: Any, user_agent: str, crawl_name: str) -> list[tuple[str, str]]:
    fields = [
        ("software", f"crawlerproject/{__version__}"),
        ("http-header-user-agent", user_agent),
        ("robots", "obeyed (RFC 9309)"),
        ("isPartOf", crawl_name),
        ("hostname", socket.gethostname()),
    ]
    if settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]:
        fields.append(("operator", settings["WARC_OPERATOR"] or settings["CRAWLER_CONTACT"]))
    return fields
