"""What is recorded of a page: its capture, or what the browser made of it, and what later pages may refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from crawlerproject.reasons import RESERVED
from crawlerproject.rules.archive.http_messages import SAMPLE_BYTES, payload_digest
from crawlerproject.rules.archive.warc_records import NOT_MODIFIED, Context, Original, Render
from crawlerproject.stores.archive.archive import Written
from crawlerproject.stores.logs.request_log import attempt_line
from crawlerproject.stores.protocols import Fingerprint

if TYPE_CHECKING:
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.duplicates import DuplicateIndex
    from crawlerproject.items import LeaseResult, Rendered
    from crawlerproject.stores.archive.archive import Archive


class Records(Protocol):
    """Where the completion of pages records them."""

    def write(self, result: LeaseResult) -> Written | None:
        """Record what was received; None when that is nothing. StorageError without room."""

    def log(self, now: float, line: dict[str, object]) -> None:
        """Record one attempt by its line in the request log."""


class CrawlRecords:
    """``Records`` in the crawl's archive and request log."""

    def __init__(self, archive: Archive, frontier: Frontier, duplicates: DuplicateIndex) -> None:
        self._archive = archive
        self._frontier = frontier
        self._duplicates = duplicates
        self.log = archive.log.write

    def write(self, result: LeaseResult) -> Written | None:
        """Archive a page; StorageError when there is no room, and nothing has changed then."""
        lease, wire = result.lease, result.wire
        if result.rendered is not None:
            return self._write_render(result.rendered, result)
        if wire is None or not wire.status or not lease.row.kind.is_archived:
            return None
        context = Context(
            lease.row.url,
            lease.row.via,
            lease.embed.page.hops + lease.row.hops if lease.embed else lease.row.hops,
            lease.delay_seconds,
            wire.started_at - lease.host.answered_at if lease.host.answered_at else None,
            result.body[:SAMPLE_BYTES],
            result.notes,
        )
        if result.reason in RESERVED:
            self._archive.write_withheld(wire, context)
            return None
        digest = result.digest or payload_digest(wire.body)
        original = self._original(result, digest) if lease.embed is None else None
        if original is not None and self._archive.withdrawn(original.url):
            original = None  # what depends on it would be shown no more
        written = self._archive.write(wire, context, digest, original)
        if lease.embed is None:
            remember(result, written, original, self._duplicates, self._frontier)
        return written

    def _write_render(self, rendered: Rendered, result: LeaseResult) -> Written | None:
        if not rendered.html:
            return None
        facts = [*rendered.facts(), *result.notes]
        times = rendered.started_at, rendered.ended_at
        return self._archive.write_render(
            Render(result.lease.row.url, rendered.plain_id, rendered.html, *times, facts, rendered.screenshot)
        )

    def _original(self, result: LeaseResult, digest: bytes) -> Original | None:
        """The capture that this one need not repeat."""
        row = result.row
        if result.status == 304:
            before = self._frontier.state.store.page(row.page_key, row.host)
            original = self._duplicates.original(before.digest) if before else None
            return original and original._replace(profile=NOT_MODIFIED)
        if result.shell is not None:
            return None  # the browser is given this very record
        return self._duplicates.original(digest) if result.payload else None


def remember(
    result: LeaseResult, written: Written, original: Original | None, duplicates: DuplicateIndex, frontier: Frontier
) -> None:
    """Let later pages refer to this one."""
    row, changes = result.row, frontier.state.changes
    if original is None and result.payload:
        duplicates.add_payload(written.digest, Original(written.record_id, row.url, written.date), changes)
    if result.fingerprint is not None and result.duplicate is None:
        duplicates.add_fingerprint(Fingerprint(row.host, result.fingerprint, row.page_key), row.url, changes)


def log_line(result: LeaseResult, written: Written | None, now: float) -> dict[str, object]:
    """The line of a page in the request log; it ended ``now`` (epoch seconds) where no answer says when."""
    lease, row, wire, seen = result.lease, result.row, result.wire, result.rendered
    times: Any = seen or wire
    started_at = times.started_at if times and times.started_at else lease.leased_at
    ended_at = times.ended_at if times and times.ended_at else now
    more: dict[str, Any] = {}
    if written is not None:
        more = {"warc": written.filename, "offset": written.offset, "length": written.length}
        more["digest"] = written.digest_text
    if result.duplicate is not None:
        more.update(duplicate=result.duplicate.kind, duplicate_of=result.duplicate.url)
    if result.is_render:
        more.update(rendered=True, mime="text/html" if written else "")
    else:
        more.update(mime=result.mime, location=result.location, delay_seconds=lease.delay_seconds)
        if row.kind.is_hub:
            more["method"] = "POST"
    if wire is not None:
        more.update(status=wire.status or None, bytes=wire.received_bytes, ttfb_seconds=wire.ttfb_seconds)
        more.update(truncated=wire.truncated, ip=lease.address if lease.embed and lease.embed.proxy else wire.ip)
    return attempt_line(
        started_at, ended_at, row.url, result.reason,
        host=row.host, via=row.via, depth=row.depth, hop=row.hops, error=result.error, tries=row.tries, **more,
    )  # fmt: skip
