"""Bad ports in the shell and in other spiders."""

from types import SimpleNamespace

import pytest
from scrapy import Request

from crawlerproject.middlewares.ports import PortsMiddleware
from crawlerproject.middlewares.refusal import Refused
from crawlerproject.reasons import Reason
from tests.exchanges import under_lease


def test_a_bad_port_is_refused_before_anything_is_asked() -> None:
    """With a reason of its own, over http and https, root dots and user info included."""
    middleware = PortsMiddleware(None)
    for url in ("http://a.test:25/", "https://a.test.:6667/x", "http://u:p@[::1]:10080/"):
        with pytest.raises(Refused) as refusal:
            middleware.process_request(Request(url))
        assert refusal.value.reason is Reason.BAD_PORT


def test_others_pass() -> None:
    """The web's ports, what has no host, and what the frontier has judged."""
    middleware = PortsMiddleware(None)

    middleware.process_request(Request("http://a.test:8080/"))
    middleware.process_request(Request("data:text/plain,x"))
    middleware.process_request(under_lease(Request("http://a.test:25/"), SimpleNamespace(row=None)))
