"""Pages whose captures the disk lost: put back into the frontier, to be fetched and archived again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.cdxj import CdxjEntry, sha1_of
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import FLAG_FRAME, FLAG_REQUISITE
from crawlerproject.rules.traps.requisite_budgets import requisite_key
from crawlerproject.rules.url.priority import SEED
from crawlerproject.rules.url.urls import UrlRefused, parse
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, OpenFile, pack_open
from crawlerproject.stores.logs.request_log import log_files, read_rows
from crawlerproject.stores.protocols import Changes, FrontierStore, PageRecord, QueuedPage, is_embedded


class LostCapture(NamedTuple):
    """A committed capture that the disk lost."""

    url: str
    digest: bytes  # sha1 of its payload, b"" when that is not known


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


Counted = Callable[[FrontierStore, Changes], None]
"""Adds to changes that queue rows what becomes of the hosts' states; ``frontier.hosts.on_disk.count_rows``."""


class LostPages:
    """Queues pages again, as of ``now`` (epoch seconds), with what the log in ``log_folder`` tells of them.

    A page that no log has is taken for a seed.
    """

    def __init__(
        self, store: FrontierStore, log_folder: Path, now: float, counted: Counted, *, other_logs: Iterable[Path] = ()
    ) -> None:
        """``other_logs``: of former holders of the pages."""
        self._store = store
        self._log_folders = [*other_logs, log_folder]
        self._now = now
        self._counted = counted

    def rows_lost(self, rows: list[CdxjEntry], kept: OpenFile | None) -> int:
        """The open file was found shorter than committed: queue the pages of ``rows`` and commit what is ``kept``."""
        lost = [LostCapture(row.url, sha1_of(row.digest)) for row in rows]
        return self.fetch_again(lost, [(ARCHIVE_FACT, pack_open(kept))])

    def fetch_again(self, lost: Sequence[LostCapture], facts: Iterable[tuple[str, bytes]] = ()) -> int:
        """Queue the pages of lost captures and apply ``facts``, all in one change; how many pages were queued.

        A page that has another capture by now, that is queued or is no page of the frontier (a robots.txt, which is
        requested again when it is stale) is left as it is. No later capture may stand on the payload of a lost one.
        """
        payloads: list[tuple[bytes, Original | None]] = []
        pages: dict[bytes, str] = {}
        for url, digest in lost:
            original = self._store.original(digest) if digest else None
            if original is not None and original.url == url:
                payloads.append((digest, None))
            try:
                address = parse(url)
            except UrlRefused:
                continue
            key, host = address.key, address.host
            record = self._store.page(key, host)
            if record is None:  # a document that a page embeds has its record apart
                key = requisite_key(key)
                record = self._store.page(key, host)
            another = record is None or not record.status or (digest and record.digest and record.digest != digest)
            if not another:
                pages.setdefault(key, url)
        return self._queue(pages, Changes(facts=list(facts), payloads=payloads))

    def poisoned(self) -> int:
        """Queue the pages that were set aside as poison, in one change; how many were. Reads every page's record."""
        return self._queue({key: row.url for key, row in self._store.pages() if row.reason == Reason.POISON}, Changes())

    def _queue(self, pages: Mapping[bytes, str], changes: Changes) -> int:
        places: dict[str, Discovery] = {}
        for folder in self._log_folders:
            places |= places_of(folder, pages.values())
        arrival = int(self._now * 1_000_000)
        for number, (key, url) in enumerate(pages.items(), 1):
            host, place = parse(url).host, places.get(url, Discovery())
            # Backwards in time: what the frontier queues from now on gets later moments, and none twice.
            row = QueuedPage(host, key, url, SEED, arrival - number, *place)
            if is_embedded(place.hops):
                apart = requisite_key(parse(url).key)
                frame = FLAG_FRAME if key == apart else 0
                row = row._replace(key=apart, flags=FLAG_REQUISITE | frame)
            changes.queued.append(row)
            changes.pages.append((key, PageRecord(url, Reason.LOST, 0, self._now)))
        self._counted(self._store, changes)
        if changes:
            self._store.apply(changes)
        return len(pages)
