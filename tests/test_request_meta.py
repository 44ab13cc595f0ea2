"""What a request carries belongs to that request alone."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.http import Headers

from crawlerproject.errors import FetchError
from crawlerproject.reasons import Reason
from crawlerproject.request_meta import META_KEY, exchange_of, header, lease_in, leased
from crawlerproject.rules.archive.http_messages import Wire
from tests.exchanges import told, under_lease

LEASE: Any = SimpleNamespace(row=None)


def test_a_lease_is_found_in_the_request_that_was_handed_out() -> None:
    """And in no copy of it: a redirect, a retry, the meta of its response."""
    request = under_lease(Request("http://a.test/"), LEASE, address="192.0.2.1")

    assert lease_in(request) is LEASE
    for copied in (
        request.copy(),
        request.replace(url="http://b.test/"),
        Request("http://a.test/", meta=request.meta),
    ):
        assert lease_in(copied) is None
        assert exchange_of(copied).address == ""
        assert leased(copied) is None
    exchange = leased(request)
    assert exchange is not None
    assert exchange.address == "192.0.2.1"


def test_what_is_told_to_a_copy_stays_with_it() -> None:
    """Requests that share a meta and are under way at once do not write to each other."""
    first = Request("http://a.test/")
    exchange_of(first).address = "192.0.2.1"
    second = first.replace(url="http://b.test/")
    exchange_of(second).address = "192.0.2.2"
    exchange_of(second).wire = Wire()

    assert (exchange_of(first).address, exchange_of(first).wire) == ("192.0.2.1", None)
    assert exchange_of(second).address == "192.0.2.2"


def test_a_spiders_own_word_is_no_exchange() -> None:
    """Whatever a project puts under our key."""
    request = Request("http://a.test/", meta={META_KEY: "theirs"})

    assert lease_in(request) is None
    assert exchange_of(request).error is None


def test_an_exchange_does_not_go_to_a_disk_queue() -> None:
    """Scrapy pickles the meta of requests that wait: neither bytes nor errors go along."""
    request = told(Request("http://a.test/"), error=FetchError(Reason.DNS_FAILED), wire=Wire(body=b"x" * 100_000))

    stored = pickle.dumps(request.meta)
    assert len(stored) < 200
    again = Request("http://a.test/", meta=pickle.loads(stored))
    assert exchange_of(again).wire is None
    assert exchange_of(again).error is None


def test_a_request_that_is_over_is_freed() -> None:
    """The exchange knows its request weakly."""
    exchange = exchange_of(Request("http://a.test/"))

    assert exchange.owner() is None


def test_a_headers_last_value_counts() -> None:
    """Names in title case, as Scrapy keeps them."""
    headers = Headers({"X-Y": ["one", "two"]})

    assert header(headers, b"X-Y") == "two"
    assert header(headers, b"Z") == ""
