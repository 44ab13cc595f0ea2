"""The end of a render: its line in the log, what it teaches, the end of its lease."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from crawlerproject.frontier.learned.learner import Visit
from crawlerproject.items import FailedRender
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.log_line import Attempt
from crawlerproject.stores.archive.warc_reader import PlainResponse

if TYPE_CHECKING:
    from crawlerproject.crawl.completion.records import Records
    from crawlerproject.crawl.run import Run
    from crawlerproject.frontier.frontier import Frontier
    from crawlerproject.frontier.learned.models import CrawlModels
    from crawlerproject.frontier.lease import Lease
    from crawlerproject.items import LeaseResult, Render
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

    def end(self, result: LeaseResult, outcome: Render, written: Written | None) -> None:
        """Log a render, learn what it gained and end its lease."""
        frontier, lease, rendered = self._frontier, result.lease, outcome.rendered
        row, renders, now, duplicate = lease.row, frontier.renders, self._run.now(), result.compared.duplicate
        self._records.log(
            Attempt(
                rendered.started_at if rendered and rendered.started_at else lease.leased_at,
                rendered.ended_at if rendered and rendered.ended_at else now,
                row.url,
                outcome.reason,
                host=row.host,
                via=row.via,
                depth=row.depth,
                hop=row.hops,
                mime="text/html" if written else "",
                digest=written.digest_text if written else "",
                warc=written.filename if written else "",
                offset=written.offset if written else None,
                length=written.length if written else None,
                error=outcome.error,
                tries=row.tries,
                rendered=True,
                duplicate=duplicate.kind if duplicate else "",
                duplicate_of=duplicate.url if duplicate else "",
            ),
            now,
        )
        visit = Visit(row, outcome.reason)
        again = False
        if isinstance(outcome, FailedRender):
            again = outcome.again and (row.tries + 1 < _TRIES or bool(renders.closed))
        elif outcome.text is not None:
            visit = visit._replace(marks=outcome.text.marks)
            if outcome.gained is not None and not row.kind.is_external and not outcome.rendered.short:
                plain = PlainResponse.of(row.note)
                visit = visit._replace(plain=(plain.words, plain.links), rendered=outcome.gained)
        self._models.learn(visit, now)
        frontier.finish_render(lease, now, again=again)

    def refused(self, lease: Lease, address: Address, reason: Reason) -> None:
        """Log and count a sub-request that got no turn of its host for a reason of this moment."""
        if reason not in _NO_TURN:
            return
        row, now = lease.row, self._run.now()
        self._frontier.state.refused.counts[reason] += 1
        self._records.log(
            Attempt(
                now, now, address.url, reason, host=address.host, via=row.url, depth=row.depth + 1, hop="E",
                error=_NO_TURN[reason],
            ),
            now,
        )  # fmt: skip
