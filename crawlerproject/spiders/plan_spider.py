"""The spider of batch crawls: exactly the pages of a plan, and links of theirs up to a depth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from crawlerproject.batch.plans import Broken, plan_and_depth, read_plan
from crawlerproject.crawl.intake import Intake
from crawlerproject.items import LeaseResult
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.spiders.web import WebSpider

logger = logging.getLogger(__name__)


class PlanSpider(WebSpider):
    """``scrapy crawl plan -a plan=FILE [-a depth=0]``; run it again to continue."""

    name = "plan"

    def __init__(self, plan: str | None = None, depth: str = "0", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if plan is not None:
            self.plan, self.depth = plan_and_depth(plan, depth)
            self.seeds = []

    async def start(self) -> AsyncIterator[Any]:
        """Queue the plan, one domain at a time; known pages are skipped."""
        intake, stats = self.services[Intake], self.crawler.stats
        for line in read_plan(self.plan):
            if isinstance(line, Broken):
                logger.warning("%s, line %d: %s; it is skipped", self.plan, line.number, line.problem)
                stats.inc_value("plan/broken_lines")
            else:
                intake.add_seeds(line)
                await asyncio.sleep(0)
        nothing: tuple[Any, ...] = ()
        for request in nothing:
            yield request

    def choose_links(self, page: LeaseResult) -> None:
        """Keep links within the plan's depth and the page's own domain."""
        row = page.lease.row
        domain = registered_domain(row.host)
        page.found = [
            found
            for found in page.found
            if found.depth <= self.depth and registered_domain(found.address.host) == domain
        ]
