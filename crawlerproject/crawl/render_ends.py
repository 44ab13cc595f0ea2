"""How renders and their sub-requests end: in the archive, in the request log, in the frontier's books."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from crawlerproject.reasons import Reason
from crawlerproject.rules.payload_type import SAMPLE_BYTES
from crawlerproject.rules.rendered_records import Render
from crawlerproject.rules.request_line import Attempt
from crawlerproject.rules.warc_records import Context, payload_digest
from crawlerproject.stores.archive import exchange_of
from crawlerproject.stores.plain_answers import PlainAnswer
from crawlerproject.stores.protocols import FLAG_STRANGER

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlerproject.crawl.crawl import Crawl
    from crawlerproject.errors import FetchError
    from crawlerproject.fetch.wire import Wire
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.items import Page
    from crawlerproject.rules.urls import Address
    from crawlerproject.stores.archive import Written

logger = logging.getLogger(__name__)

# A page during whose render the browser died is given to the next browser so often (ours: it may be the cause).
_TRIES = 3


class RenderEnds:
    """As ``PageEnds``, for pages in the browser and what they ask for."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._said_no_browser = False

    def no_browser(self, why: str) -> None:
        """Pages that want a browser stay queued for a later run; said once."""
        self._crawl.frontier.renders.closed = why
        if not self._said_no_browser:
            self._said_no_browser = True
            logger.warning("Pages that need a browser stay queued for a later run: %s.", why)

    def place(self, page: Page, written: Written | None) -> str:
        """Where the browser will find the plain answer, for a page that goes back for it; "" for any other."""
        if page.to_render is None or written is None:
            return ""
        if why := self._crawl.frontier.renders.closed:
            self.no_browser(why)
        return PlainAnswer(written.filename, written.offset, written.length, *page.to_render).note()

    def write(self, page: Page) -> Written | None:
        """Archive what the browser made of a page; StorageError without room."""
        rendered = page.rendered
        if rendered is None or not rendered.html:
            return None
        facts = [*rendered.facts(), *page.notes]
        times = rendered.started_at, rendered.ended_at
        return self._crawl.archive.write_render(
            Render(page.url, rendered.plain_id, rendered.html, *times, facts, rendered.screenshot)
        )

    def end(self, page: Page, written: Written | None) -> None:
        """Log a render, remember what it gained, charge its host and end its lease."""
        crawl, lease, rendered = self._crawl, page.lease, page.rendered
        row, renders, now = lease.row, crawl.frontier.renders, crawl.now()
        crawl.archive.attempt(
            Attempt(
                rendered.started_at if rendered and rendered.started_at else lease.leased_at,
                rendered.ended_at if rendered and rendered.ended_at else now,
                page.url,
                page.reason,
                host=row.host,
                via=row.via,
                depth=row.depth,
                hop=row.hops,
                mime="text/html" if written else "",
                digest=written.digest_text if written else "",
                warc=written.filename if written else "",
                offset=written.offset if written else None,
                length=written.length if written else None,
                error=page.error,
                tries=row.tries,
                rendered=True,
            ),
            now,
        )
        again = page.again and (row.tries + 1 < _TRIES or bool(renders.closed))
        if page.gained is not None and not row.flags & FLAG_STRANGER:
            plain = PlainAnswer.of(row.note)
            renders.learned(page.url, row.host, (plain.words, plain.links), page.gained)
        if page.text_marks and crawl.traps.learn_rendered(row, page.text_marks):
            crawl.frontier.domains.yielded(row.host)
        crawl.frontier.finish_render(lease, rendered.asked_own if rendered else 0, now, again=again)

    def embedded(
        self,
        lease: Lease,
        address: Address,
        hop: str,
        delay_seconds: float | None,  # None: within the page's turn
        wire: Wire | None,
        response: Response | None,
        error: FetchError | None,
    ) -> None:
        """Archive and log what a page in the browser asked for; StorageError without room."""
        crawl, row = self._crawl, lease.row
        written = self._keep(lease, address, hop, delay_seconds, wire, response)
        status = wire.status or None if wire else None
        now = crawl.now()
        crawl.archive.attempt(
            Attempt(
                wire.started_at if wire and wire.started_at else now,
                wire.ended_at if wire and wire.ended_at else now,
                address.url,
                error.reason if error else (Reason.FETCHED if (status or 0) < 400 else Reason.HTTP_ERROR),
                status=status,
                host=address.host,
                ip=wire.ip if wire else "",
                via=row.url,
                depth=row.depth + 1,
                hop=hop,
                mime=_mime(response),
                received_bytes=wire.received_bytes if wire else 0,
                ttfb_seconds=wire.ttfb_seconds if wire else None,
                delay_seconds=delay_seconds,
                digest=written.digest_text if written else "",
                warc=written.filename if written else "",
                offset=written.offset if written else None,
                length=written.length if written else None,
                error=(error.detail or str(error)) if error else "",
                truncated=wire.truncated if wire else None,
            ),
            now,
        )
        if wire is not None:
            crawl.bytes += wire.received_bytes

    def _keep(
        self,
        lease: Lease,
        address: Address,
        hop: str,
        delay_seconds: float | None,
        wire: Wire | None,
        response: Response | None,
    ) -> Written | None:
        """Archive an answer; a robots.txt has its copy too."""
        if wire is None or not wire.status or response is None:
            return None
        row, archive = lease.row, self._crawl.archive
        context = Context(address.url, row.url, row.hops + hop, delay_seconds, None, response.body[:SAMPLE_BYTES])
        written = archive.write(exchange_of(wire), context, payload_digest(wire.body))
        if hop == "P" and wire.status == 200:
            archive.robots_copy(f"{address.scheme}://{address.host}", wire.started_at, response.body)
        return written


def _mime(response: Response | None) -> str:
    value = response.headers.get("Content-Type") if response is not None else None
    return value.decode("latin-1").partition(";")[0].strip().lower() if value else ""
