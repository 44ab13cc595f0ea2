"""A page's place in the archive: its capture, or what the browser made of it, and what later pages may refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from crawlerproject.rules.archive.payload_type import SAMPLE_BYTES
from crawlerproject.rules.archive.rendered_records import Render
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, payload_digest
from crawlerproject.stores.archive.archive import Written, exchange_of
from crawlerproject.stores.protocols import Fingerprint

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.items import Page
    from crawlerproject.rules.archive.log_line import Attempt
    from crawlerproject.stores.archive.archive import Archive


class Records(Protocol):
    """Where the completion of pages records them."""

    def write(self, page: Page) -> Written | None:
        """Record what was received; None when that is nothing. StorageError without room."""

    def log(self, attempt: Attempt, now: float) -> None:
        """Record one attempt."""


class PageArchive:
    """``Records`` in the crawl's archive and request log."""

    def __init__(self, archive: Archive, frontier: Frontier, duplicates: DuplicateIndex) -> None:
        self._archive = archive
        self._frontier = frontier
        self._duplicates = duplicates
        self.log = archive.attempt

    def write(self, page: Page) -> Written | None:
        """Archive a page; StorageError when there is no room, and nothing has changed then."""
        wire, lease = page.wire, page.lease
        if lease.is_render:
            return self._write_render(page)
        if wire is None or not wire.status or lease.is_hub:
            return None
        context = Context(
            page.url,
            lease.row.via,
            lease.embed.page.hops + lease.row.hops if lease.embed else lease.row.hops,
            lease.delay_seconds,
            wire.started_at - lease.host.answered_at if lease.host.answered_at else None,
            page.body[:SAMPLE_BYTES],
            page.notes,
        )
        digest = page.digest or payload_digest(wire.body)
        original = self._original(page, digest) if lease.embed is None else None
        written = self._archive.write(exchange_of(wire), context, digest, original)
        if lease.embed is None:
            remember(page, written, original, self._duplicates, self._frontier)
        if lease.is_robots and wire.status == 200 and not page.unusable:
            self._archive.robots_copy(lease.row.note, wire.started_at, page.body)
        return written

    def _write_render(self, page: Page) -> Written | None:
        rendered = page.rendered
        if rendered is None or not rendered.html:
            return None
        facts = [*rendered.facts(), *page.notes]
        times = rendered.started_at, rendered.ended_at
        return self._archive.write_render(
            Render(page.url, rendered.plain_id, rendered.html, *times, facts, rendered.screenshot)
        )

    def _original(self, page: Page, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        if page.status == 304:
            before = self._frontier.state.store.page(page.lease.row.page_key)
            original = self._duplicates.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if page.to_render is not None:
            return None  # the browser is given this very record
        return self._duplicates.original(digest) if page.payload else None


def remember(
    page: Page, written: Written, original: Original | None, duplicates: DuplicateIndex, frontier: Frontier
) -> None:
    """Let later pages refer to this one."""
    row, changes = page.lease.row, frontier.state.changes
    if page.payload and original is None:
        duplicates.add_payload(written.digest, Original(written.record_id, page.url, written.date), changes)
    if page.fingerprint is not None and page.duplicate is None:
        duplicates.add_fingerprint(Fingerprint(row.host, page.fingerprint, row.page_key), page.url, changes)
