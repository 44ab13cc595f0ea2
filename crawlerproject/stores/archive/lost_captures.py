"""Pages whose captures the disk lost: put back into the frontier, to be fetched and archived again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.cdxj import CdxjEntry
from crawlerproject.rules.archive.digests import sha1_of
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.priority import SEED
from crawlerproject.rules.url.urls import UrlRefused, parse
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, OpenFile, pack_open
from crawlerproject.stores.logs.request_log import log_files, read_rows
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage


class LostCapture(NamedTuple):
    """A capture that was committed and is gone."""

    url: str
    digest: bytes  # sha1 of its payload, b"" when that is not known


class PageStore(Protocol):
    """What of a frontier's store is needed here."""

    def page(self, key: bytes) -> PageRecord | None: ...

    def pages(self) -> Iterator[tuple[bytes, PageRecord]]: ...

    def host(self, host: str) -> bytes | None: ...

    def fact(self, name: str) -> bytes | None: ...

    def original(self, digest: bytes) -> Original | None: ...

    def apply(self, changes: Changes) -> None: ...


def lost_of_row(row: CdxjEntry) -> LostCapture:
    """The capture of an index row."""
    return LostCapture(row.url, sha1_of(row.digest))


class Discovery(NamedTuple):
    """How a page was found."""

    depth: int = 0
    hops: str = ""
    via: str = ""


def places_of(log_folder: Path, urls: Iterable[str]) -> dict[str, Discovery]:
    """How pages were found, by the request log; the newest days are read first, and no more than is needed."""
    places: dict[str, Discovery] = {}
    wanted = set(urls)
    for path in reversed(log_files(log_folder)):
        if not wanted:
            break
        with suppress(OSError, ValueError):  # what is not known of a page does not keep it from being fetched
            for row in read_rows(path):
                if row is not None and row["url"] in wanted:
                    places[str(row["url"])] = Discovery(int(str(row["depth"])), str(row["hop"]), str(row["via"]))
        wanted -= places.keys()
    return places


Counted = Callable[[PageStore, Changes], None]
"""Adds to changes that queue rows what becomes of the hosts' states; ``frontier.shelf.count_rows``."""


def rows_lost(
    store: PageStore, log_folder: Path, rows: list[CdxjEntry], kept: OpenFile | None, now: float, counted: Counted
) -> int:
    """The open file was found shorter than committed: queue the pages of ``rows`` again and commit what is ``kept``."""
    places = places_of(log_folder, (row.url for row in rows))
    return fetch_again(store, map(lost_of_row, rows), places, now, [(ARCHIVE_FACT, pack_open(kept))], counted)


def try_again(store: PageStore, log_folder: Path, now: float, counted: Counted) -> int:
    """Queue the pages that were set aside as poison, in one change; how many were. Reads every page's record."""
    changes = Changes()
    arrival = int(now * 1_000_000)
    pages = [(key, record) for key, record in store.pages() if record.reason == Reason.POISON]
    places = places_of(log_folder, (record.url for _, record in pages))
    for key, record in pages:
        host, place = parse(record.url).host, places.get(record.url, Discovery())
        changes.queued.append(QueuedPage(host, key, record.url, SEED, arrival - len(changes.queued), *place))
        changes.pages.append((key, PageRecord(record.url, Reason.LOST, 0, now)))
    counted(store, changes)
    if changes:
        store.apply(changes)
    return len(changes.queued)


def fetch_again(
    store: PageStore,
    lost: Iterable[LostCapture],
    places: Mapping[str, Discovery],
    now: float,
    facts: list[tuple[str, bytes]],
    counted: Counted,
) -> int:
    """Queue the pages of lost captures and apply ``facts``, all in one change; how many pages were queued.

    ``now`` in epoch seconds. A page that has another capture by now, that waits in its queue or is no page of the
    frontier (a robots.txt: asked for again when it is stale) is left as it is. No later capture may stand on the
    payload of a lost one. A page that is not in ``places`` is taken for a seed.
    """
    changes = Changes(facts=list(facts))
    arrival = int(now * 1_000_000)
    queued: set[bytes] = set()
    for url, digest in lost:
        original = store.original(digest) if digest else None
        if original is not None and original.url == url:
            changes.payloads.append((digest, None))
        try:
            _, key, host, _ = parse(url)
        except UrlRefused:
            continue
        record = store.page(key)
        another = record is None or not record.status or (digest and record.digest and record.digest != digest)
        if record is None or another or key in queued:
            continue
        queued.add(key)
        # Backwards in time: what the frontier queues from now on gets later moments, and none twice.
        changes.queued.append(QueuedPage(host, key, url, SEED, arrival - len(queued), *places.get(url, Discovery())))
        changes.pages.append((key, PageRecord(url, Reason.LOST, 0, now)))
    counted(store, changes)
    if changes:
        store.apply(changes)
    return len(queued)
