"""The schedule gate on links as they stand on pages: extensions, addresses inside, NeverCrawl on every way in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_ROBOTS, FLAG_SEED, FLAG_SITEMAP
from crawlerproject.rules.url.refused_urls import SKIP_EXTENSIONS, AddressRules, Exclusion
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import Base
from crawlerproject.stores.protocols import QueuedPage

PAGE = Base("http://page.example/dir/")


def filters(skip: list[str] | None = None, allow: tuple[str, ...] = ()) -> UrlFilters:
    """The filters of a crawl; never.example is excluded."""
    never = SimpleNamespace(current=lambda now: Exclusion.parse(["never.example", "192.0.3.7"])[0])
    extensions = sorted(SKIP_EXTENSIONS) if skip is None else skip
    return UrlFilters(Scope("any"), never, AddressRules(allow), max_urls_per_host=10, skip_extensions=extensions)


def refusal(link: str, gate: UrlFilters | None = None, *, flags: int = 0) -> Reason | None:
    """What becomes of a link on our page."""
    address = PAGE.join(link)
    assert address is not None
    return (gate or filters()).refusal(DiscoveredUrl(address, 1, "L", PAGE.url, 1, flags), 0.0)


@pytest.mark.parametrize(
    "link",
    [
        "a.jpg",
        "a.JPG?size=2",
        "/x/film.mp4#t=3",
        "p.png",
        "old.doc",
        "new.docx",
        "s.ppt",
        "m.m4b",
        "s.css;v=1",
    ],
)
def test_useless_extensions(link: str) -> None:
    """The path's last segment, whatever its case; query, parameters and fragment do not count."""
    assert refusal(link) is Reason.EXTENSION


@pytest.mark.parametrize(
    "link",
    [
        "/page.php?img=x.jpg",
        "/show?file=a.zip",
        "/a.jpg/comments",
        "/gallery.zip/",
        "/paper.pdf",
        "/notes.txt",
        "/feed.xml",
        "/v1.2",
        "/",
        "?x.exe",
    ],
)
def test_pages_that_only_look_like_files(link: str) -> None:
    """An extension elsewhere than at the path's end means nothing, and documents are pages."""
    assert refusal(link) is None


def test_the_list_is_the_operators_and_off_for_seeds() -> None:
    """Another list replaces the default; a seed is asked for whatever it is."""
    assert refusal("a.foo", filters([".FOO"])) is Reason.EXTENSION
    assert refusal("a.jpg", filters([".FOO"])) is None
    assert refusal("a.jpg", flags=FLAG_SEED) is None


@pytest.mark.parametrize(
    "link",
    [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1:8080/",
        "http://0/",
        "http://10.1.2.3/",
        "http://192.168.0.1/",
        "http://172.31.255.255/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://100.100.100.200/",
        "http://[::1]/",
        "http://[::]/",
        "http://[0:0:0:0:0:0:0:1]:81/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fe80::1]/",
        "http://[fc00::1]/",
        "http://127。0。0。1/",
        "http://①②⑦.0.0.1/",
        "//169.254.169.254",
    ],
)
def test_addresses_inside_however_they_are_written(link: str) -> None:
    """Links, redirect targets and seeds alike: metadata services, mapped and embedded IPv4, odd numbers, full width."""
    assert refusal(link) is Reason.PRIVATE_ADDRESS
    assert refusal(link, flags=FLAG_SEED) is Reason.PRIVATE_ADDRESS


def test_what_the_operator_allows_and_names_pass() -> None:
    """Listed networks only; a name is judged by what it resolves to."""
    assert refusal("http://10.1.2.3/", filters(allow=("10.0.0.0/8",))) is None
    assert refusal("http://192.168.0.1/", filters(allow=("10.0.0.0/8",))) is Reason.PRIVATE_ADDRESS
    assert refusal("http://93.184.216.34/") is None
    assert refusal("http://localhost.example/") is None


@pytest.mark.parametrize("link", ["http://never.example/", "https://a.b.never.example:8443/x", "http://192.0.3.7/"])
def test_the_exclusion_list_holds_for_links_redirects_and_seeds(link: str) -> None:
    """At queueing, and again when its turn comes."""
    assert refusal(link) is Reason.NEVERCRAWL
    assert refusal(link, flags=FLAG_SEED) is Reason.NEVERCRAWL
    address = PAGE.join(link)
    assert address is not None
    row = QueuedPage(address.host, address.key, address.url, 0, 1, 0, "R", "", 0, FLAG_SEED)
    assert filters().refusal_again(row, 0.0) is Reason.NEVERCRAWL


def test_an_almost_excluded_name_passes() -> None:
    """A domain excludes itself and what is below it, no more."""
    assert refusal("http://never.example.org/") is None
    assert refusal("http://evernever.example/") is None


@pytest.mark.parametrize(
    ("flags", "reason"), [(0, Reason.EXTENSION), (FLAG_SITEMAP, None), (FLAG_SEED, None), (FLAG_ROBOTS, None)]
)
def test_an_extension_that_is_skipped_since_an_earlier_run(flags: int, reason: Reason | None) -> None:
    """A queued URL is judged again at its turn; a packed sitemap and what was asked for are wanted all the same."""
    row = QueuedPage("a.example", b"", "http://a.example/x/map.GZ?page=1.html", 0, 0, 1, "L", "", 0, flags)
    assert filters(["gz"]).refusal_again(row, 0.0) is reason
