"""Keys of URLs: what is written here is what the package ``surt`` says, and what is not is left to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.archive.surt_keys import _library_key, _plain_key, surt_key

_HOSTS = ["example.com", "www.example.co.uk", "www3.a.b", "www", "www.com", "a.1", "a-b.c_d", "ex.com.", "A.b"]
_PORTS = ["", ":8080", ":80", ":443", ":065", ":65535", ":59999", ":70000", ":"]
_PIECES = [
    *("/", "//", "/.", "/..", ".", "?", "&", "=", "==", "#", "%", "%41", "%2f", "A", "b", "Index.HTML", "0", "~", "+"),
    *("(", ")", ".aspx", "/(s(abcdefghijklmnopqrstuvwx))/", "sid=", "JSESSIONID=", "cfid=1&cftoken=2", "0aB1" * 8),
    *("é", " ", "\n", "\\", "|", "@", ":", ";", ",", "'", '"', "!", "$", "*", "http://", "ASPSESSIONIDABCDEFGH="),
]
_URLS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}{''.join(rest)}",
    st.sampled_from(["http", "https", "HTTP", "ftp"]),
    st.sampled_from(_HOSTS),
    st.sampled_from(_PORTS),
    st.lists(st.sampled_from(_PIECES), max_size=9),
)


@given(_URLS)
def test_a_plain_key_is_that_of_the_package(url: str) -> None:
    """Of URLs of all shapes: a key of ours is the package's, to the letter."""
    key = _plain_key(url)
    assert key is None or key == _library_key(url)
    assert surt_key(url) == _library_key(url)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.example.com/", "com,example)/"),
        ("https://a.example.com:8080/Dir/Index.html", "com,example,a:8080)/dir/index.html"),
        ("http://example.com/dir/?", "com,example)/dir"),
        ("http://example.com/?b=2&A=1&b=", "com,example)/?a=1&b=&b=2"),
        ("http://example.com/a?b", "com,example)/a?b"),
    ],
)
def test_the_common_case_needs_no_package(url: str, key: str) -> None:
    """What most addresses are like is written here."""
    assert _plain_key(url) == key == _library_key(url)


@pytest.mark.parametrize("url", ["http://[::1]:80/x", "http://1.2.3.4/", "http://a.test/a b", "http://[bad/", "x", ""])
def test_odd_urls_are_the_packages(url: str) -> None:
    """A URL the package cannot read still gets a key without blanks."""
    assert _plain_key(url) is None
    assert " " not in surt_key(url)
