"""Where an answer leads: depth, discovery path, who named it."""

from __future__ import annotations

import pytest

from crawlerproject.frontier.discovered import DiscoveredUrl
from crawlerproject.parse.links import MAX_REDIRECTS, hops_to, linked, navigated, redirected, redirected_enough
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED, FLAG_SEED, FLAG_SITEMAP
from crawlerproject.rules.url.urls import Address, parse
from crawlerproject.stores.protocols import QueuedPage

URL = "http://www.a.test/dir/page"


def row_of(
    url: str = URL, *, hops: str = "LL", via: str = "http://www.a.test/", flags: int = 0, note: str = ""
) -> QueuedPage:
    """A queue's row, two links from a seed."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, 10, 1, 2, hops, via, flags=flags, note=note)


def page(html: str, *, x_robots: list[str] | None = None) -> PageFacts:
    """What an HTML page says."""
    return read_html(html.encode(), url=URL, content_type="text/html", x_robots=x_robots or [], token="TestBot")


def address(url: str) -> Address:
    """A URL."""
    return parse(url)


def flags(found: list[DiscoveredUrl]) -> list[int]:
    """Of each."""
    return [item.flags for item in found]


def test_links_are_one_deeper_and_know_their_page() -> None:
    """In the page's order, each with its letter."""
    found = linked(row_of(), page("<a href=/1>1</a><a href=2>2</a><iframe src=/3></iframe>"))

    assert [item.address.url for item in found] == [
        "http://www.a.test/1",
        "http://www.a.test/dir/2",
        "http://www.a.test/3",
    ]
    assert {(item.depth, item.via) for item in found} == {(3, URL)}
    assert {item.hops[:2] for item in found} == {"LL"}
    assert {len(item.hops) for item in found} == {3}


def test_links_to_other_domains_are_a_strangers_word() -> None:
    """Another host of the same domain is not a stranger's."""
    found = linked(row_of(), page("<a href=http://b.test/>1</a><a href=http://blog.a.test/>2</a><a href=/3>3</a>"))

    assert flags(found) == [FLAG_EXTERNAL, 0, 0]


@pytest.mark.parametrize(
    "facts",
    [page("<meta name=robots content=nofollow><a href=/1>1</a>"), page("<a href=/1>1</a>", x_robots=["nofollow"])],
)
def test_nofollow_stops_all_links(facts: PageFacts) -> None:
    """By a meta element or by a header."""
    assert linked(row_of(), facts) == []


def test_discovery_paths_have_an_end() -> None:
    """The last fifty letters."""
    assert hops_to(row_of(hops="L" * 50), "R") == "L" * 49 + "R"
    assert hops_to(row_of(hops=""), "L") == "L"


def test_a_redirects_target_stands_for_the_page() -> None:
    """As deep, one place more urgent, and a seed if the page was one."""
    target = redirected(row_of(flags=FLAG_SEED), address("http://b.test/there"))

    assert (target.depth, target.priority, target.hops, target.via) == (2, 9, "LLR", URL)
    assert target.flags == FLAG_SEED  # the operator asked for it: no stranger did


def test_the_domain_that_redirects_names_the_target() -> None:
    """Within a domain the one that named the page goes on being asked about it."""
    elsewhere = redirected(row_of(), address("http://b.test/there"))
    assert (elsewhere.flags, elsewhere.note) == (FLAG_EXTERNAL, "")

    within = redirected(row_of(flags=FLAG_EXTERNAL, via="http://c.test/"), address("http://www.a.test/there"))
    assert (within.flags, within.note) == (FLAG_EXTERNAL, "c.test")

    listed = redirected(row_of(flags=FLAG_LISTED), address("http://www.a.test/there"))
    assert listed.flags == FLAG_LISTED


def test_a_sitemap_that_moves_keeps_whom_it_speaks_for() -> None:
    """Its note is the origin that declared it."""
    target = redirected(row_of(flags=FLAG_SITEMAP, note="http://www.a.test"), address("http://www.a.test/new.xml"))

    assert (target.flags, target.note) == (FLAG_SITEMAP, "http://www.a.test")


def test_redirects_in_a_row_end() -> None:
    """Ten; a link in between begins anew."""
    assert redirected_enough(row_of(hops="L" + "R" * MAX_REDIRECTS))
    assert not redirected_enough(row_of(hops="L" + "R" * (MAX_REDIRECTS - 1)))
    assert not redirected_enough(row_of(hops="R" * MAX_REDIRECTS + "L"))


def test_where_scripts_went_is_a_redirect() -> None:
    """Relative targets too; what is no URL of the web is left out."""
    found = navigated(row_of(), ["/next", "http://b.test/", "about:blank"])

    assert [(item.address.url, item.depth, item.hops) for item in found] == [
        ("http://www.a.test/next", 2, "LLR"),
        ("http://b.test/", 2, "LLR"),
    ]
    assert flags(found) == [0, FLAG_EXTERNAL]
    assert navigated(row_of(hops="R" * MAX_REDIRECTS), ["/next"]) == []
