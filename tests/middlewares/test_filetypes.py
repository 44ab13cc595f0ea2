"""The extension gate of the downloader chain."""

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from crawlerproject.guard.guard import Refused
from crawlerproject.middlewares.filetypes import FileTypesMiddleware
from crawlerproject.reasons import Reason
from crawlerproject.settings import OURS
from tests.exchanges import under_lease


def filetypes(**settings: Any) -> FileTypesMiddleware:
    """The middleware as a crawler makes it."""
    crawler = get_crawler(settings_dict=OURS | settings)
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


def test_what_is_wanted_is_exempt() -> None:
    """The operator may ask for anything; the frontier has filters of its own."""
    url = "http://a.test/y.jpg"
    gate: Any = filetypes()

    assert gate.process_request(Request(url, meta={"seed": True})) is None
    assert gate.process_request(under_lease(Request(url), SimpleNamespace(row=None))) is None


def test_the_list_may_be_replaced_or_emptied() -> None:
    """SKIP_EXTENSIONS replaces the default; empty switches the gate off."""
    gate = filetypes(SKIP_EXTENSIONS=".Foo,bar")
    with pytest.raises(Refused):
        gate.process_request(Request("http://a.test/y.foo"))
    gate.process_request(Request("http://a.test/y.jpg"))
    with pytest.raises(NotConfigured):
        filetypes(SKIP_EXTENSIONS=[])
