"""Host keys: names with the port only when it is not the default."""

import pytest

from crawlerproject.rules.url.hosts import host_key, host_name


@pytest.mark.parametrize(
    ("url", "key", "name"),
    [
        ("http://Example.org/x", "example.org", "example.org"),
        ("https://example.org:443/", "example.org", "example.org"),
        ("http://example.org:443/", "example.org:443", "example.org"),
        ("http://u:p@example.org:8080/", "example.org:8080", "example.org"),
        ("http://[::1]:8080/", "[::1]:8080", "[::1]"),
        ("https://[::1]/", "[::1]", "[::1]"),
        ("http://intranet./", "intranet", "intranet"),
        ("https://example.org.:8443/x", "example.org:8443", "example.org"),
        ("ftp://Example.org.:2121/x", "example.org:2121", "example.org"),
        ("data:text/plain,x", "", ""),
        ("http://example.org:99999/", "", ""),
    ],
)
def test_host_key_and_name(url: str, key: str, name: str) -> None:
    """The key keeps an unusual port, the name never does."""
    assert host_key(url) == key
    assert host_name(key) == name
