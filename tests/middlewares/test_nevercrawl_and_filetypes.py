"""The never-crawl and extension gates of the downloader chain."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from crawlerproject.middlewares.filetypes import FileTypesMiddleware
from crawlerproject.middlewares.nevercrawl import NeverCrawlMiddleware
from crawlerproject.middlewares.refusal import Refused
from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import FLAG_SEED
from tests.exchanges import under_lease


def lease(host: str, *, seed: bool = False) -> Any:
    """What a leased request carries, as far as the gates look."""
    return SimpleNamespace(row=SimpleNamespace(host=host, flags=FLAG_SEED if seed else 0), embed=None)


@pytest.fixture
def never(tmp_path: Path) -> NeverCrawlMiddleware:
    """The middleware over a list of one domain."""
    (tmp_path / "never.txt").write_text("# why\nexample.org\n", "utf-8")
    crawler = get_crawler(settings_dict={"NEVERCRAWL_FILE": str(tmp_path / "never.txt")})
    crawler._apply_settings()
    return NeverCrawlMiddleware.from_crawler(crawler)


def test_an_excluded_host_is_refused_and_counted(never: NeverCrawlMiddleware) -> None:
    """From whatever source, subdomains and ports included."""
    for url in ("http://example.org/", "https://www.example.org:8443/x"):
        with pytest.raises(Refused) as refusal:
            never.process_request(Request(url))
        assert refusal.value.reason is Reason.NEVERCRAWL
        assert "line 2" in refusal.value.detail
    assert never.stats is not None
    assert never.stats.get_value("refused/nevercrawl") == 2


def test_a_leased_request_is_refused_too(never: NeverCrawlMiddleware) -> None:
    """The list may have changed since it was queued."""
    with pytest.raises(Refused):
        never.process_request(under_lease(Request("http://example.org:81/"), lease("example.org:81")))


def test_other_hosts_pass(never: NeverCrawlMiddleware) -> None:
    """And so does what has no host."""
    never.process_request(Request("http://example.net/example.org"))
    never.process_request(Request("data:text/plain,x"))
    never.process_request(under_lease(Request("http://example.net/"), lease("example.net")))


def filetypes(**settings: Any) -> FileTypesMiddleware:
    """The middleware as a crawler makes it."""
    crawler = get_crawler(settings_dict=settings)
    crawler._apply_settings()
    return FileTypesMiddleware.from_crawler(crawler)


def test_useless_extensions_are_refused() -> None:
    """By the path's last segment: a query does not count."""
    gate = filetypes()
    with pytest.raises(Refused) as refusal:
        gate.process_request(Request("http://a.test/x/y.JPG?size=2"))
    assert refusal.value.reason is Reason.EXTENSION
    gate.process_request(Request("http://a.test/page.php?img=x.jpg"))
    gate.process_request(Request("http://a.test/"))


def test_seeds_are_exempt() -> None:
    """The operator may ask for anything."""
    gate = filetypes()
    gate.process_request(Request("http://a.test/y.jpg", meta={"seed": True}))
    gate.process_request(under_lease(Request("http://a.test/y.jpg"), lease("a.test", seed=True)))
    with pytest.raises(Refused):
        gate.process_request(under_lease(Request("http://a.test/y.jpg"), lease("a.test")))


def test_the_list_may_be_replaced_or_emptied() -> None:
    """SKIP_EXTENSIONS replaces the default; empty switches the gate off."""
    gate = filetypes(SKIP_EXTENSIONS=".Foo,bar")
    with pytest.raises(Refused):
        gate.process_request(Request("http://a.test/y.foo"))
    gate.process_request(Request("http://a.test/y.jpg"))
    with pytest.raises(NotConfigured):
        filetypes(SKIP_EXTENSIONS=[])
