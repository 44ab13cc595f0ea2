"""A crawl in Redis as commands see it, while its workers are at work or after: as of the changes that Redis has.

The frontiers are on the workers' disks. What no worker of this machine has is put into a database here, from what Redis
has of the partition (``stores/redis/journals.py``); that database goes with the view.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import NamedTuple, TypeVar

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.url.urls import host_of_page
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import PageRecord, QueuedPage, host_of_fact
from crawlerproject.stores.redis import format_two, journals
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.copies import copied_parts, listed
from crawlerproject.stores.redis.copy_place import CopyDamaged, CopyPlace
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import CRAWL_ID, fleet_keys, ledger_key
from crawlerproject.stores.redis.redis_crawl import RedisCrawl
from crawlerproject.stores.redis.worker_log import Append, joined, logged
from crawlerproject.stores.rocks.frontier_folder import Combine
from crawlerproject.stores.rocks.partition_rows import MARK_FACT, all_parts, clear, put
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksReader
from crawlerproject.stores.rocks.rocks_tables import Tables, open_facts, open_to_write
from crawlerproject.stores.rocks.row_packing import pack_changes, unpack_rows
from crawlerproject.stores.row_codec import ROBOTS, TEXT

# A copy takes the place of another one a few times an hour: twice while one is read would be chance.
_TRIES = 20
# While a partition is copied without what was withdrawn.
_LEASE_MS = 60_000


_T = TypeVar("_T")


class _Kept(NamedTuple):
    """What Redis has of a partition."""

    of: int  # 0: it never had a row
    copy: int  # number of the last change that its copy holds
    crawl: str  # the crawl's id; "-": none was given
    journal: int  # number of the last change


_Holder = tuple[str, int]
"""The crawl's id and the token of one that held a partition."""


class JournalView(RedisCrawl):
    """As ``FrontierView``: a question about a host reads its partition, a list reads all; each is read once.

    A partition costs 20 microseconds a page from Redis; a frontier, with what is in its log, some seconds to open
    (measured). So one host is asked about in Redis. Raises StorageError.
    """

    def __init__(
        self,
        link: RedisLink,
        crawl: str,
        partitions: int,
        combined: Mapping[str, Combine],
        folders: Sequence[CrawlDir],
        place_url: str = "",
    ) -> None:
        """``combined``: how the facts of several workers are made one; any other is that of the first that has it.

        ``folders``: of workers. Lists are read there for the partitions that are whole in their frontiers, as of the
        last commit, which may be a moment ahead of what Redis has. Without them Redis alone answers.

        ``place_url``: where copies of partitions go, as ``copies_url`` has it.
        """
        super().__init__(link, crawl, partitions)
        self._combined = combined
        self._folders = folders
        self._place = CopyPlace(place_url)
        self._readers: dict[int, RocksReader] = {}  # by partition
        self._views: dict[CrawlDir, FrontierView | None] = {}
        self._opened = ExitStack()

    def __exit__(self, *exception: object) -> None:
        self._opened.close()
        super().__exit__(*exception)

    # --- questions ------------------------------------------------------------------------------

    def known(self, keys: Sequence[bytes], hosts: Sequence[str] | None = None) -> list[bool]:
        """For each key, whether the page is queued or was decided before; ``hosts``, in the same order, help."""
        if hosts is None:
            answers = [reader.known(keys) for reader in self._all()]
            return [any(found) for found in zip(*answers, strict=True)]
        places: dict[RocksReader, list[int]] = {}
        for at, host in enumerate(hosts):
            places.setdefault(self._of(host), []).append(at)
        found = [False] * len(keys)
        for reader, some in places.items():
            for at, known in zip(some, reader.known([keys[at] for at in some]), strict=True):
                found[at] = known
        return found

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """The first ``limit`` rows of the host's queue, or the first behind the place ``after`` (priority, arrival)."""
        return self._of(host).head(host, limit, after)

    def queue(self, host: str) -> Iterator[QueuedPage]:
        """The host's whole queue in order."""
        return self._of(host).queue(host)

    def page(self, key: bytes, host: str | None = None) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first. Its ``host`` helps."""
        readers = self._all() if host is None else [self._of(host)]
        return next((record for reader in readers if (record := reader.page(key)) is not None), None)

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]:
        """Every decided page and its key."""
        return self._listed(lambda reader: reader.pages(), lambda row: host_of_page(row[1].url))

    def host(self, host: str) -> bytes | None:
        """The packed state of the host."""
        return self._of(host).host(host)

    def hosts(self) -> Iterator[tuple[str, bytes]]:
        """Every host ever met and its packed state."""
        return self._listed(lambda reader: reader.hosts(), itemgetter(0))

    def robots(self, origin: str) -> bytes | None:
        """The packed robots record of the origin."""
        return self._of(_host_of(origin)).robots(origin)

    def fact(self, name: str) -> bytes | None:
        """A fact of a host, or one of the crawl: of all workers together."""
        if host := host_of_fact(name):
            return self._of(host).fact(name)
        found = [self.fact_of(worker, name) for worker in (*self.workers_ever(), "")]
        values = [value for value in found if value is not None]
        return self._combined.get(name, itemgetter(0))(values) if values else None

    def facts(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Every fact about a host whose name begins with ``prefix``."""
        return self._listed(lambda reader: reader.facts(prefix), lambda row: host_of_fact(row[0]))

    # --- where the rows are ---------------------------------------------------------------------

    def _of(self, host: str) -> RocksReader:
        """With the rows of the host's partition."""
        partition = self.partition(host)
        self._find([partition])
        return self._readers[partition]

    def _all(self) -> list[RocksReader]:
        """With the rows of all partitions."""
        self._find(range(self.partitions), here=True)
        return list(dict.fromkeys(self._readers.values()))

    def _listed(self, rows: Callable[[RocksReader], Iterator[_T]], host: Callable[[_T], str]) -> Iterator[_T]:
        """What all of them have of partitions that they answer for: a worker's frontier may keep some of others."""
        for reader in self._all():
            yield from (row for row in rows(reader) if self._readers[self.partition(host(row))] is reader)

    def _find(self, partitions: Iterable[int], *, here: bool = False) -> None:
        if unread := [partition for partition in partitions if partition not in self._readers]:
            for partition, kept in zip(unread, self._kept(unread), strict=True):
                reader = self._whole_here(partition, kept) if here else None
                if reader is None:
                    self._fill(partition, kept)
                self._readers[partition] = reader or self._reader

    # --- frontiers of workers of this machine ---------------------------------------------------

    @cached_property
    def _whole(self) -> dict[CrawlDir, dict[int, _Holder]]:
        """By folder: as whose the rows of partitions were whole there."""
        found: dict[CrawlDir, dict[int, _Holder]] = {}
        for folder in self._folders:
            if folder.has_frontier():
                with suppress(OperatorError), closing(open_facts(str(folder.frontier))) as facts:
                    found[folder] = {
                        partition: _holder(facts.get(_mark(partition).encode())) for partition in range(self.partitions)
                    }
        return found

    def _whole_here(self, partition: int, kept: _Kept) -> RocksReader | None:
        """The frontier here that has the partition's rows as the holder that Redis knows of."""
        holder = kept.crawl, kept.of
        folder = next((folder for folder, marks in self._whole.items() if kept.of and marks[partition] == holder), None)
        if folder is None:
            return None
        if folder not in self._views:
            try:
                self._views[folder] = self._opened.enter_context(FrontierView(folder.frontier))
            except OperatorError:  # then Redis answers
                self._views[folder] = None
        view = self._views[folder]  # it may have let the partition go before it was opened
        return view if view is not None and _holder(view.fact(_mark(partition))) == holder else None

    # --- what Redis has -------------------------------------------------------------------------

    @cached_property
    def _tables(self) -> Tables:
        folder = self._opened.enter_context(TemporaryDirectory(prefix="frontier-"))
        tables = open_to_write(folder)
        self._opened.callback(tables.close)
        return tables

    @cached_property
    def _reader(self) -> RocksReader:
        return RocksReader(self._tables)

    def _kept(self, partitions: Sequence[int]) -> list[_Kept]:
        ledgers = [ledger_key(self.crawl, p, cluster=self.link.cluster) for p in partitions]
        calls = [Call("HMGET", [self._keys[p].lease], _Kept._fields[:3]) for p in partitions]
        calls += [Call("HGET", [key], [p]) for key, p in zip(ledgers, partitions, strict=True)]
        found = self.link.many(calls)
        return [
            _Kept(int(of or 0), int(copy or 0), (crawl or b"-").decode(), journals.unpack_head(head)[1])
            for (of, copy, crawl), head in zip(found[: len(partitions)], found[len(partitions) :], strict=True)
        ]

    def _fill(self, partition: int, kept: _Kept) -> None:
        """Put the rows of a partition into the database; again when its copy, and its journal, changed meanwhile."""
        for _ in range(_TRIES):
            if not (kept.of or kept.copy):  # one of a crawl of format 2, if there is any row of it
                put(self._tables, format_two.rows(self.link, self.crawl, partition))
            changes, damaged = 0, None
            try:
                for packed in copied_parts(self.link, self._place, self.crawl, partition, kept.copy):
                    put(self._tables, unpack_rows(packed))
            except CopyDamaged as error:  # or it is that of before, which is gone
                damaged = error
            for _ in range(_TRIES):
                changes = 0
                for packed in listed(self.link, self._keys[partition].journal):
                    put(self._tables, unpack_rows(packed))
                    changes += 1
                for packed in self._in_logs(partition, kept.copy + changes):
                    put(self._tables, unpack_rows(packed))
                [now] = self._kept([partition])
                if now.copy != kept.copy or changes >= now.journal - now.copy:
                    break  # else what was in a log has come into the journal
            if now.copy == kept.copy:
                if damaged is not None:
                    raise damaged
                if changes < kept.journal - kept.copy:
                    break
                return
            clear(self._tables, partition)
            kept = now
        raise StorageError(f"{self.link.place} has lost a part of partition {partition} of the crawl {self.crawl!r}")

    def _in_logs(self, partition: int, last: int) -> Iterator[bytes]:
        """The changes behind ``last`` that those decided who hold the partition, or did, and no journal has."""
        keys = self._keys[partition]
        calls = [Call("HVALS", [keys.behind]), Call("HGET", [keys.lease], ["holder"])]
        before, holder = self.link.many(calls)
        names = dict.fromkeys(name.decode() for name in (*before, holder) if name)
        for some in logged(self.link, self.crawl, names).values():
            for each in joined(each for each in some if each.partition == partition):
                yield from each.changes[max(0, last + 1 - each.first) :]
                last = max(last, each.first + len(each.changes) - 1)

    # --- the one thing that is changed ----------------------------------------------------------

    def forget_robots(self, is_gone: Callable[[str], bool]) -> bool:
        """Remove the robots.txt of such origins; False: of some a worker at work holds the partition.

        Each partition is copied again without it. Its next holder reads that copy, whatever its own frontier has. Not
        of a view that has folders.
        """
        assert not self._folders
        self._all()
        origins = [key for key, _ in self._tables.rows(ROBOTS) if is_gone(key.decode(*TEXT))]
        of_partitions: dict[int, list[bytes]] = {}
        for origin in origins:
            of_partitions.setdefault(self.partition(_host_of(origin.decode(*TEXT))), []).append(origin)
        crawl_id = (self.link.call("HGET", [fleet_keys(self.crawl).facts], CRAWL_ID) or b"").decode()
        writer = PartitionJournals(
            self.link,
            self.crawl,
            f"withdraw-{uuid.uuid4().hex}",
            self.partitions,
            crawl_id,
            place_url=self._place.url,
        )
        writer.begin(uuid.uuid4().hex)
        done = [self._forget(writer, partition, gone) for partition, gone in of_partitions.items()]
        writer.end()
        return all(done)

    def _forget(self, writer: PartitionJournals, partition: int, origins: Sequence[bytes]) -> bool:
        taken = writer.acquire(partition, _LEASE_MS)
        if taken is None:
            return False
        try:
            if not (taken.of or taken.copy):
                format_two.remove_robots(self.link, self._keys[partition], origins)
                return True
            clear(self._tables, partition)  # a worker may have changed it since it was read
            for packed in writer.copies.stored(partition, taken):
                put(self._tables, unpack_rows(packed))
            [removal] = pack_changes([[(ROBOTS, origin, None) for origin in origins]])
            put(self._tables, unpack_rows(removal))
            writer.opened(partition)  # first: from now on no other frontier has these rows
            writer.append([Append(partition, taken.journal + 1, [removal])], {})
            writer.flush()
            writer.copies.copy(partition, taken.journal + 1, all_parts(self._tables, partition))
            writer.copies.sweep(partition, at_once=True)
        finally:
            writer.release([partition])
        return True


def _mark(partition: int) -> str:
    return f"{MARK_FACT}{partition}"


def _holder(mark: bytes | None) -> _Holder:
    crawl_id, token, _ = (mark or b"- 0 0").split()
    return crawl_id.decode(), int(token)


def _host_of(origin: str) -> str:
    return origin.rpartition("://")[2]


def crawl_in_redis(
    url: str,
    crawl: str,
    combined: Mapping[str, Combine] | None = None,
    folders: Sequence[CrawlDir] = (),
    place_url: str = "",
) -> JournalView:
    """A look at a crawl in Redis; close it. The others: as JournalView takes them.

    Raises OperatorError when there is no such crawl.
    """
    link = RedisLink(url)
    try:
        written, agreed = link.call("HMGET", [fleet_keys(crawl).facts], "format", "partitions")
    except StorageError as error:
        raise OperatorError(f"The crawl {crawl!r} cannot be read: {error}.") from error
    if agreed is None:
        raise OperatorError(
            f"There is no crawl {crawl!r} at {link.place}; set STATE_URL and FLEET_CRAWL to those of one."
        )
    if int(written) != format_two.FORMAT:
        journals.require_format(link, crawl, int(written))
    return JournalView(link, crawl, int(agreed), combined or {}, folders, place_url)
