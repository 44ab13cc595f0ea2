"""A running crawl shows itself to this machine: a page, JSON and Prometheus metrics. Opt-in and read-only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any

from scrapy.utils.asyncio import create_looping_call
from twisted.web.server import Site

from crawlerproject.config.crawl_kind import crawl_of
from crawlerproject.config.old_settings import ours_of
from crawlerproject.crawl.scheduler import FrontierScheduler
from crawlerproject.errors import STORE_FORGOT, StorageError
from crawlerproject.extensions.http_listener import HttpListener
from crawlerproject.extensions.status_file import StatusFile
from crawlerproject.inspection.status_facts import SILENT_SECONDS
from crawlerproject.rules.printable import human_seconds
from crawlerproject.stores.crawl_dir import read_facts, write_facts
from crawlerproject.watch import live
from crawlerproject.watch.fleet_summary import Beside, of_all
from crawlerproject.watch.watch_pages import (
    Bodiless,
    NoAnswer,
    Pages,
    Questions,
    Served,
    Unfit,
    json_page,
    json_question,
    one,
    static,
)

logger = logging.getLogger(__name__)

# Names under which this machine calls itself: a page elsewhere whose name was pointed here (DNS rebinding) is refused.
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
# The file of the last hour has some 50 kB: so often it costs nothing, and a crash forgets no more.
KEEP_SECONDS = 60.0
# Prometheus' own scrape_interval: so long an end waits that an operator has to be woken for.
_LAST_WORD_SECONDS = 60.0


class StatusServer(HttpListener):
    """Listens at WATCH_ADDRESS:WATCH_PORT."""

    settings = "WATCH"
    unheard = "No live page at"

    def site(self) -> Site | None:
        """The page, its JSON and the metrics."""
        from crawlerproject.reports.metrics import metrics  # a crawl that is not watched need not import it

        scheduler = self.scheduler
        if scheduler is None:
            logger.warning("WATCH_PORT does nothing: this spider is not crawled by this project's scheduler.")
            return None
        self._scheduler: FrontierScheduler = scheduler
        crawl, settings = scheduler.crawl, self._crawler.settings
        whole = crawl_of(self._crawler)
        self._beside = Beside(whole, crawl.folder)
        run = read_facts(crawl.folder.run)
        self._run = {
            "folder": str(whole),
            "spider": run.get("spider", ""),
            "pid": run.get("pid"),
            "started": run.get("started"),
        }
        asked = ours_of(settings) | {"CRAWL_DIR": str(whole.absolute())}
        self._questions = Questions(asked)
        self._sampler = live.HostSampler(scheduler)
        self._hour = live.read_last_hour(read_facts(crawl.folder.last_hour), crawl.run.now())
        text = metrics(lambda: self._counted(each=True))
        self._read_last = asyncio.Event()

        def answered(_: Mapping[str, str]) -> bytes:
            if self._counted().get("finish_reason"):
                self._read_last.set()
            return text()

        served = {
            **static(),
            "live.json": json_page(self._live),
            "hosts.json": json_page(self._hosts),
            "host.json": json_question(lambda asked: self._questions.ask("host", one(asked, "name"))),
            "why.json": json_question(lambda asked: self._questions.ask("why", one(asked, "q"))),
            "status.json": json_page(lambda _: self._counted()),
            "metrics": Served("text/plain; version=0.0.4; charset=utf-8", answer=answered),
            "ready": json_question(self._ready),
        }
        pages = Pages(served, _OWN_NAMES | {self._address})
        return Site(pages, requestFactory=Bodiless)  # type: ignore[no-untyped-call]  # Twisted's

    def begun(self) -> None:
        """Say where, and begin to look."""
        logger.info("Watch this crawl at http://%s:%d/", self._address, self._port)
        self._sampler.start()
        self._rows = create_looping_call(self._add_row)
        self._rows.start(live.STEP_SECONDS, now=True)
        self._keeping = create_looping_call(self._keep)
        self._keeping.start(KEEP_SECONDS, now=False)

    async def last_word(self, reason: str) -> None:
        """That Redis has forgotten is to be read once by who watches: a closed port does not say why."""
        if reason == STORE_FORGOT:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._read_last.wait(), _LAST_WORD_SECONDS)

    def ended(self) -> None:
        """Keep the last hour for the next start."""
        self._sampler.stop()
        self._rows.stop()
        self._keeping.stop()
        self._questions.close()
        self._keep()

    def _counted(self, *, each: bool = False) -> Mapping[str, Any]:
        """The status, with what the whole crawl has done, by all of its workers on this machine.

        ``each``: and what each of them says of its own.
        """
        extension = self._crawler.get_extension(StatusFile)
        if extension is None or not (status := extension.last):
            return {}
        own = {**status, "totals": self._scheduler.crawl.session.totals.now()._asdict()}
        now = time.monotonic()
        others = self._beside.statuses(now)
        whole = (of_all(own, others) if others else own) | {"workers": self._beside.rows(now, own)}
        return {**whole, "each": self._beside.each(now, status)} if each else whole

    async def _ready(self, _: Mapping[str, str]) -> dict[str, Any]:
        """The place of each worker on this machine in the crawl; NoAnswer names those that have none."""
        crawl, now = self._scheduler.crawl, time.time()
        own = {**self._counted(), "time": now, "fleet": crawl.session.role.membership(crawl.run)._asdict()}
        each = self._beside.each(time.monotonic(), own) or {"": own}
        absent = {name: why for name, status in each.items() if (why := _absence(status, now))}
        if absent:
            raise NoAnswer("; ".join(f"{name}: {why}" if name else why for name, why in absent.items()))
        return {"ready": True, "workers": {name: status.get("fleet") for name, status in each.items()}}

    def _live(self, asked: Mapping[str, str]) -> dict[str, Any]:
        rows = self._hour.since(_moment(asked.get("since", "")), self._scheduler.crawl.run.now())
        return live.live_facts(self._counted(), self._run, self._sampler.last, rows)

    def _hosts(self, asked: Mapping[str, str]) -> dict[str, Any]:
        order = asked.get("by", "left")
        if order not in live.ORDERS:
            raise Unfit(f"Ask with ?by= one of {', '.join(live.ORDERS)}.")
        return live.host_table(self._sampler.last, order, live.FIRST_ROWS)

    def _add_row(self) -> None:
        crawl, status = self._scheduler.crawl, self._counted()
        if not status or crawl.run.closed:
            return
        progress = status["progress"]
        levels = live.Levels(
            progress["ceiling_per_second"],
            progress["queued_urls"],
            progress["hosts_in_flight"],
            status["machine"]["rss_bytes"],
        )
        done, others = crawl.run.tallies, [one["progress"] for one in self._beside.statuses(time.monotonic())]
        own = live.Totals(done.pages, done.bytes, done.errors)
        totals = (own[at] + sum(one[name] for one in others) for at, name in enumerate(live.Totals._fields))
        self._hour.add(crawl.run.now(), live.Totals(*totals), levels)

    def _keep(self) -> None:
        crawl = self._scheduler.crawl
        try:
            write_facts(crawl.folder.last_hour, self._hour.as_dict(crawl.run.now()))
        except StorageError:
            return  # the crawl itself reports a full disk


def _absence(status: Mapping[str, Any], now: float) -> str:
    if ended := status.get("finish_reason"):
        return f"has ended ({ended})"
    if (silent_seconds := now - status["time"]) > SILENT_SECONDS:
        return f"has reported nothing for {human_seconds(silent_seconds)}"
    return str(status.get("fleet", {}).get("absent", ""))


def _moment(text: str) -> float:
    try:
        moment = float(text or 0.0)
    except ValueError:
        raise Unfit("since is a moment in epoch seconds.") from None
    return moment if moment == moment else 0.0
