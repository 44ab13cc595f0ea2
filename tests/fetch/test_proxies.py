"""Which proxy a request takes."""

from __future__ import annotations

import pytest

from crawlerproject.errors import FetchError, OperatorError
from crawlerproject.fetch.proxies import Proxies, Proxy, parse_proxy
from crawlerproject.reasons import Reason

ENVIRONMENT = {
    "http": "http://web.example:3128",
    "https": "http://u:p%40ss@tls.example",
    "no": "localhost,.inside.example",
}


def test_environment_is_followed() -> None:
    """http_proxy, https_proxy and no_proxy mean what they mean to curl."""
    proxies = Proxies(ENVIRONMENT)
    assert proxies.choose({}, "http", "a.example", 80) == Proxy("web.example", 3128, b"")
    assert proxies.choose({}, "https", "a.example", 443) == Proxy("tls.example", 1080, b"Basic dTpwQHNz")
    assert proxies.choose({}, "http", "localhost", 80) is None
    assert proxies.choose({}, "http", "x.inside.example", 80) is None
    assert Proxies({}).choose({}, "http", "a.example", 80) is None


def test_meta_wins() -> None:
    """A request's own proxy wins, and None means none."""
    proxies = Proxies(ENVIRONMENT)
    assert proxies.choose({"proxy": "http://own.example:1"}, "http", "localhost", 80) == Proxy("own.example", 1, b"")
    assert proxies.choose({"proxy": None}, "http", "a.example", 80) is None


@pytest.mark.parametrize("url", ["https://p.example:1", "socks5://p.example:1", "http://", "http://p.example:port"])
def test_other_proxies_are_refused(url: str) -> None:
    """Only http:// proxies are spoken to; the environment's are checked at start."""
    with pytest.raises(FetchError) as failed:
        parse_proxy(url)
    assert failed.value.reason == Reason.PROXY_FAILED
    with pytest.raises(OperatorError, match="http_proxy"):
        Proxies({"http": url})
