"""What belongs to a crawl."""

from typing import NamedTuple

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.scope import Scope, comes_back
from crawlerproject.rules.url.urls import parse


class Place(NamedTuple):
    """An address as scope sees it."""

    url: str
    host: str


def place(host: str, path: str = "/") -> Place:
    """An address at a host."""
    return Place(f"http://{host}{path}", host)


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.co.uk", "example.co.uk"),
        ("a.b.example.org:8080", "example.org"),
        ("alice.github.io", "alice.github.io"),
        ("github.io", "github.io"),
        ("localhost", "localhost"),
        ("h1.test", "h1.test"),
        ("127.0.0.1:81", "127.0.0.1"),
        ("[::1]:81", "[::1]"),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    """The public suffix list decides, its private part included."""
    assert registered_domain(host) == domain


@pytest.mark.parametrize(
    ("mode", "host", "refusal"),
    [
        ("any", "other.test", None),
        ("domain", "www.example.org", None),
        ("domain", "shop.example.org:8080", None),
        ("domain", "example.net", Reason.SCOPE),
        ("domain", "bob.github.io", Reason.SCOPE),
        ("host", "www.example.org", None),
        ("host", "example.org", Reason.SCOPE),
        ("host", "www.example.org:81", Reason.SCOPE),
    ],
)
def test_modes(mode: str, host: str, refusal: Reason | None) -> None:
    """any, the seeds' domains, or the seeds' hosts."""
    scope = Scope(mode, ["www.example.org", "alice.github.io"])
    assert scope.refusal(place(host), 1) is refusal


def test_bounds() -> None:
    """Depth and length count up to and including their bound."""
    scope = Scope("any", max_depth=2, max_url_length=30)
    assert scope.refusal(place("a.test"), 2) is None
    assert scope.refusal(place("a.test"), 3) is Reason.DEPTH
    assert scope.refusal(place("a.test", "/" + "x" * 16), 0) is None
    assert scope.refusal(place("a.test", "/" + "x" * 17), 0) is Reason.URL_LENGTH


def test_an_unknown_mode_is_a_sentence() -> None:
    """The operator learns what may be said."""
    with pytest.raises(ValueError, match="any, domain, host"):
        Scope("world")


def test_a_seeds_new_home_widens_the_scope() -> None:
    """Once, and by the scope's own measure."""
    hosts, domains = Scope("host", ["example.com"]), Scope("domain", ["example.com"])

    assert hosts.widen("www.example.com")
    assert not hosts.widen("www.example.com")
    assert hosts.refusal(parse("http://www.example.com/"), 1) is None
    assert not domains.widen("www.example.com")
    assert domains.widen("example.org")
    assert not Scope("any").widen("example.org")


@pytest.mark.parametrize(
    ("target", "back"),
    [
        ("https://login.sso.example/authorize?client_id=7&redirect_uri=https%3A%2F%2Fwww.home.example%2Fback", True),
        ("https://consent.example/?continue=http://news.home.example:8080/a?b=c", True),
        ("https://consent.example/?u=https%253A%252F%252Fhome.example", True),  # escaped twice
        ("https://idp.example/sso?SAMLRequest=fZJNT8MwDIbv&RelayState=x", True),
        ("https://www.home.example/", False),
        ("https://new.example/?utm_source=home.example", False),  # a new name, and whence
        ("https://new.example/home.example?from=https://other.example/", False),
        ("https://new.example/", False),
    ],
)
def test_a_login_that_sends_back_is_no_move(target: str, back: bool) -> None:
    """It names an address of the domain that it was reached from; a site that has moved does not."""
    assert comes_back("https://home.example/page", target) is back
