"""The end of a render: its line in the log, what it teaches, the end of its lease."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from crawlerproject.crawl.completion.records import log_line
from crawlerproject.reasons import Reason
from crawlerproject.stores.archive.warc_reader import PlainResponse
from crawlerproject.stores.logs.request_log import attempt_line

if TYPE_CHECKING:
    from crawlerproject.crawl.completion.records import Records
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.passage import Lease
    from crawlerproject.items import LeaseResult
    from crawlerproject.rules.url.urls import Address
    from crawlerproject.stores.archive.archive import Written

logger = logging.getLogger(__name__)

# A page during whose render the browser died is given to the next browser this often (our choice): it may be the cause.
_TRIES = 3
_NO_TURN = {
    Reason.RENDER_PACE: "no turn of its host within the page's time",
    Reason.STRANGER: "pages of this domain have loaded enough from the host, which is another domain's",
    Reason.STRANGER_DOOR: "the host has had trouble with what other domains' pages asked of it",
}
"""Why a sub-request that its page may make got no turn of its host, in words; what else refuses one is no news."""


class RenderCompletion:
    """As ``PageCompletion``, for pages that were in the browser."""

    def __init__(self, frontier: Frontier, records: Records, models: CrawlModels, run: Run) -> None:
        self._frontier = frontier
        self._records = records
        self._models = models
        self._run = run
        self._said_no_browser = False

    def no_browser(self, why: str) -> None:
        """Keep pages that need a browser queued for a later run; logged once."""
        self._frontier.renders.closed = why
        if not self._said_no_browser:
            self._said_no_browser = True
            logger.warning("Pages that need a browser stay queued for a later run: %s.", why)

    def place(self, shell: tuple[int, int] | None, written: Written | None) -> str:
        """Where the browser finds the plain response of a page that goes to it; "" for any other page."""
        if shell is None or written is None:
            return ""
        if why := self._frontier.renders.closed:
            self.no_browser(why)
        return PlainResponse(written.filename, written.offset, written.length, *shell).note()

    def end(self, result: LeaseResult, written: Written | None) -> None:
        """Log a render, learn what it gained and end its lease."""
        frontier, row, now = self._frontier, result.row, self._run.now()
        self._records.log(now, log_line(result, written, now))
        again = result.again and (row.tries + 1 < _TRIES or bool(frontier.renders.closed))
        rendered = result.rendered
        if result.gained is None or row.kind.is_external or rendered is None or rendered.short:
            result.gained = None  # no measure of other pages like it
        else:
            plain = PlainResponse.of(row.note)
            result.plain = plain.words, plain.links
        self._models.learn(result, now)
        frontier.finish_render(result.lease, now, again=again)

    def refused(self, lease: Lease, address: Address, reason: Reason) -> None:
        """Log and count a sub-request that got no turn of its host for a reason of this moment."""
        if reason not in _NO_TURN:
            return
        row, now = lease.row, self._run.now()
        self._frontier.state.refused.counts[reason] += 1
        about: dict[str, Any] = {"via": row.url, "depth": row.depth + 1, "hop": "E", "error": _NO_TURN[reason]}
        self._records.log(now, attempt_line(now, now, address.url, reason, host=address.host, **about))
