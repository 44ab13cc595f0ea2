"""Which ports are never asked, and what a key with a port means."""

import pytest

from crawlerproject.rules.url.ports import BAD_PORTS, bad_port, key_of, port_of
from crawlerproject.rules.url.urls import parse


@pytest.mark.parametrize(
    ("host", "bad"),
    [
        ("example.org", False),
        ("example.org:8080", False),
        ("example.org:443", False),
        ("example.org:22", True),
        ("example.org:25", True),
        ("example.org:6379", True),
        ("example.org:11211", True),
        ("[::1]", False),
        ("[::25]", False),
        ("[::1]:6697", True),
        ("", False),
    ],
)
def test_bad_ports(host: str, bad: bool) -> None:
    """The Fetch standard's port blocking, by host key; an IPv6 address has no port of itself."""
    assert bad_port(host) is bad


def test_the_list_is_whole() -> None:
    """The ends and the middle of the standard's table, and none that the web uses."""
    assert {1, 7, 69, 137, 161, 554, 989, 1719, 4190, 5060, 6000, 6566, 6665, 6679, 6697, 10080} <= BAD_PORTS
    assert not BAD_PORTS & {80, 81, 443, 591, 3000, 5000, 8000, 8008, 8080, 8081, 8443, 8888, 9443}
    assert len(BAD_PORTS) == 85


def test_key_and_port() -> None:
    """A key is its name and port put together again; the default port is 0."""
    for url in ("http://a.test/", "https://a.test:8443/", "http://[::1]:81/", "https://[::1]/", "http://192.0.2.1:82/"):
        host = parse(url).host
        name = host.rpartition(":")[0] if port_of(host) else host
        assert key_of(name, port_of(host)) == host
