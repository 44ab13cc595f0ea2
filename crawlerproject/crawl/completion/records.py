"""What is recorded of a page: its capture, or what the browser made of it, and what later pages may refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from crawlerproject.items import FailedRender, FetchedPage, RenderedPage
from crawlerproject.rules.archive.payload_type import SAMPLE_BYTES
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, Render, payload_digest
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.protocols import Fingerprint

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.items import Fetch, LeaseResult, Rendered
    from crawlerproject.rules.archive.log_line import Attempt
    from crawlerproject.stores.archive.archive import Archive
    from crawlerproject.stores.protocols import QueuedPage


class Records(Protocol):
    """Where the completion of pages records them."""

    def write(self, result: LeaseResult) -> Written | None:
        """Record what was received; None when that is nothing. StorageError without room."""

    def log(self, attempt: Attempt, now: float) -> None:
        """Record one attempt."""


class CrawlRecords:
    """``Records`` in the crawl's archive and request log."""

    def __init__(self, archive: Archive, frontier: Frontier, duplicates: DuplicateIndex) -> None:
        self._archive = archive
        self._frontier = frontier
        self._duplicates = duplicates
        self.log = archive.attempt

    def write(self, result: LeaseResult) -> Written | None:
        """Archive a page; StorageError when there is no room, and nothing has changed then."""
        outcome, lease = result.outcome, result.lease
        if isinstance(outcome, RenderedPage | FailedRender):
            return self._write_render(outcome.rendered, result)
        wire = outcome.wire
        if wire is None or not wire.status or not lease.row.kind.is_archived:
            return None
        context = Context(
            lease.row.url,
            lease.row.via,
            lease.embed.page.hops + lease.row.hops if lease.embed else lease.row.hops,
            lease.delay_seconds,
            wire.started_at - lease.host.answered_at if lease.host.answered_at else None,
            outcome.body[:SAMPLE_BYTES],
            result.notes,
        )
        digest = result.compared.digest or payload_digest(wire.body)
        original = self._original(lease.row, outcome, digest) if lease.embed is None else None
        written = self._archive.write(wire, context, digest, original)
        if lease.embed is None:
            remember(result, written, original, self._duplicates, self._frontier)
        if lease.row.kind.is_robots and wire.status == 200 and outcome.usable:
            self._archive.robots_copy(lease.row.note, wire.started_at, outcome.body)
        return written

    def _write_render(self, rendered: Rendered | None, result: LeaseResult) -> Written | None:
        if rendered is None or not rendered.html:
            return None
        facts = [*rendered.facts(), *result.notes]
        times = rendered.started_at, rendered.ended_at
        return self._archive.write_render(
            Render(result.lease.row.url, rendered.plain_id, rendered.html, *times, facts, rendered.screenshot)
        )

    def _original(self, row: QueuedPage, outcome: Fetch, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        if outcome.status == 304:
            before = self._frontier.state.store.page(row.page_key, row.host)
            original = self._duplicates.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if outcome.shell is not None:
            return None  # the browser is given this very record
        return self._duplicates.original(digest) if outcome.payload else None


def remember(
    result: LeaseResult, written: Written, original: Original | None, duplicates: DuplicateIndex, frontier: Frontier
) -> None:
    """Let later pages refer to this one."""
    row, changes, compared = result.lease.row, frontier.state.changes, result.compared
    if original is None and isinstance(result.outcome, FetchedPage) and result.outcome.payload:
        duplicates.add_payload(written.digest, Original(written.record_id, row.url, written.date), changes)
    if compared.fingerprint is not None and compared.duplicate is None:
        duplicates.add_fingerprint(Fingerprint(row.host, compared.fingerprint, row.page_key), row.url, changes)
