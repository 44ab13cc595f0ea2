"""NeverCrawl, early in the chain."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.utils.test import get_crawler

from crawlerproject.guard.guard import Refused
from crawlerproject.middlewares.nevercrawl import NeverCrawlMiddleware
from crawlerproject.reasons import Reason
from crawlerproject.settings import OURS
from tests.exchanges import under_lease


@pytest.fixture
def middleware(tmp_path: Path) -> NeverCrawlMiddleware:
    """One that excludes never.test."""
    (tmp_path / "never.txt").write_text("never.test\n")
    crawler = get_crawler(settings_dict=OURS | {"NEVERCRAWL_FILE": str(tmp_path / "never.txt")})
    crawler._apply_settings()
    return NeverCrawlMiddleware.from_crawler(crawler)


def test_an_excluded_host_is_refused_before_other_middlewares_work_on_it(middleware: NeverCrawlMiddleware) -> None:
    """Its subdomains and ports as well; other hosts pass."""
    for url in ("http://never.test/", "http://www.never.test:8080/x"):
        with pytest.raises(Refused) as refused:
            middleware.process_request(Request(url))
        assert refused.value.reason is Reason.NEVERCRAWL
    middleware.process_request(Request("http://other.test/"))


def test_what_is_leased_is_the_gates_and_the_guards(middleware: NeverCrawlMiddleware) -> None:
    """It has been judged when it was leased, and is judged again in the handler."""
    lease: Any = SimpleNamespace(row=SimpleNamespace(host="never.test"))
    middleware.process_request(under_lease(Request("http://never.test/"), lease))
