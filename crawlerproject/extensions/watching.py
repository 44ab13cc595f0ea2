"""A running crawl shows itself to this machine: a page, JSON and Prometheus metrics. Opt-in and read-only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import Site

from crawlerproject.crawl.running import scheduler_of
from crawlerproject.extensions.listening import Listener
from crawlerproject.extensions.status import StatusFile
from crawlerproject.frontier.host_table import HostRow, host_row, outlook, with_addresses
from crawlerproject.frontier.progress import NOTHING_LEFT, human_bytes, human_seconds
from crawlerproject.reports.report_page import document, table
from crawlerproject.rules.bound import bound_by, load_of
from crawlerproject.rules.hosts import host_name
from crawlerproject.terminal import json_text

logger = logging.getLogger(__name__)

# Rows of the page's table, the longest to go first; all of them: scrapy hosts.
_ROWS = 100
# A person looks on; the page loads itself again, since it has no script.
_RELOAD_SECONDS = 5
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
}
# Names under which this machine calls itself: a page elsewhere whose name was pointed here (DNS rebinding) is refused.
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Watching(Listener):
    """Listens at WATCH_ADDRESS:WATCH_PORT."""

    settings = "WATCH"
    unheard = "Nobody can watch at"

    def site(self) -> Site:
        """The page, its JSON and the metrics."""
        from crawlerproject.reports.metrics import metrics  # whoever is not watched need not import it

        pages: dict[bytes, tuple[str, Callable[[], bytes]]] = {
            b"": ("text/html; charset=utf-8", self.page),
            b"status.json": ("application/json", lambda: json_text(self._status()).encode()),
            b"metrics": ("text/plain; version=0.0.4; charset=utf-8", metrics(self._status)),
        }
        return Site(_Pages(pages, _OWN_NAMES | {self._address}))  # type: ignore[no-untyped-call]  # Twisted's

    def begun(self) -> None:
        """Say where."""
        logger.info("Watch this crawl at http://%s:%d/", self._address, self._port)

    def page(self) -> bytes:
        """The same as ``scrapy status`` and ``scrapy hosts``, of the hosts in memory."""
        status = self._status()
        scheduler = scheduler_of(self._crawler)
        if not status or scheduler is None:
            return document("Crawl", "<h1>The crawl has not begun</h1>").encode()
        now = scheduler.crawl.now()
        rows = [host_row(host, now, leased=host.name in scheduler.leases) for host in scheduler.crawl.frontier.hosts()]
        return status_page(str(scheduler.crawl.folder), status, rows).encode()

    def _status(self) -> Mapping[str, Any]:
        extension = self._crawler.get_extension(StatusFile)
        return extension.last if extension is not None else {}


class _Pages(Resource):
    """GET and HEAD of a few pages, for this machine's own names alone."""

    isLeaf = True

    def __init__(self, pages: Mapping[bytes, tuple[str, Callable[[], bytes]]], names: frozenset[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's
        self._pages = pages
        self._names = names

    def render_GET(self, request: Any) -> bytes:
        """One page, or 403 and 404."""
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        asked = request.getHeader("host") or ""
        if host_name(asked.lower()) not in self._names:
            request.setResponseCode(403)
            return b"Ask for this machine by its own address.\n"
        found = self._pages.get(request.path.lstrip(b"/"))
        if found is None:
            request.setResponseCode(404)
            return b"There are /, /status.json and /metrics.\n"
        kind, content = found
        request.setHeader("Content-Type", kind)
        return content()


def status_page(folder: str, status: Mapping[str, Any], rows: list[HostRow]) -> str:
    """The page of one moment; ``rows`` in any order."""
    progress = status["progress"]
    ahead = with_addresses(outlook(rows), progress)
    eta = NOTHING_LEFT if ahead.eta_seconds is None else f"at least {human_seconds(ahead.eta_seconds)}"
    cards = [
        ("Pages", f"{progress['pages']:,}"),
        ("Received", human_bytes(progress["bytes"])),
        ("Errors", f"{progress['errors']:,}"),
        ("Rate", f"{status['pages_per_second']:.1f} pages/s"),
        ("Politeness allows", f"{ahead.ceiling:.1f} answers/s"),
        ("Queued", f"{progress['queued_urls']:,}"),
        ("Left", eta),
        ("Resting, apart", f"{ahead.resting_queued:,} URLs"),
    ]
    list_ = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in cards)
    hosts = sorted(rows, key=lambda row: (-(row.eta_seconds or 0.0), row.host))[:_ROWS]
    names = ["host", "state", "queued", "done", "pace", "free in", "rests", "failures", "ETA"]
    cells = [
        [
            row.host, row.state, row.queued, row.done, human_seconds(row.pace_seconds),
            human_seconds(row.free_in_seconds), human_seconds(row.rests_seconds or 0.0), row.failures,
            NOTHING_LEFT if row.eta_seconds is None else human_seconds(row.eta_seconds),
        ]
        for row in hosts
    ]  # fmt: skip
    states = ", ".join(f"{count:,} {state}" for state, count in ahead.hosts.most_common())
    body = (
        f"<h1>Crawl {escape(folder)}</h1><p>Bound by {escape(bound_by(load_of(status)).text)}</p><dl>{list_}</dl>"
        f"<h2>Hosts</h2><p>{escape(states)} of those in memory; the first {len(hosts):,} by ETA."
        f" All of them: <code>scrapy hosts</code></p>{table(names, cells)}"
    )
    return document(f"Crawl {folder}", body, f'<meta http-equiv="refresh" content="{_RELOAD_SECONDS}">\n')
