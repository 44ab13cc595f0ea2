"""From a response to the page: its reason, its headers, where it leads."""

from __future__ import annotations

import pytest
from scrapy.http import Headers, Response

from crawlerproject.items import FetchedPage
from crawlerproject.parse.response_page import (
    ai_use,
    header,
    html_facts,
    page_notes,
    page_of,
    page_of_hub,
    redirected_page,
    robots_page,
)
from crawlerproject.reasons import Reason
from crawlerproject.rules.row_kinds import FLAG_ROBOTS
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.wire import Wire

URL = "http://a.test/page"


def response(status: int = 200, body: bytes = b"", **headers: str) -> Response:
    """An answer."""
    return Response(
        URL, status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def row_of(flags: int = 0, hops: str = "L") -> QueuedPage:
    """The queue's row."""
    address = parse(URL)
    return QueuedPage(address.host, address.key, URL, 10, 1, 1, hops, "", flags=flags)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, Reason.FETCHED),
        (206, Reason.FETCHED),
        (301, Reason.REDIRECT),
        (308, Reason.REDIRECT),
        (304, Reason.NOT_MODIFIED),
        (300, Reason.FETCHED),
        (404, Reason.HTTP_ERROR),
        (500, Reason.HTTP_ERROR),
        (429, Reason.RATE_LIMITED),
        (503, Reason.RATE_LIMITED),
    ],
)
def test_the_status_is_the_reason(status: int, reason: Reason) -> None:
    """What went wrong while the body was read comes later."""
    assert page_of(response(status), Wire(status=status)).reason is reason


def test_headers_that_are_needed_later() -> None:
    """As received; the media type without parameters."""
    page = page_of(
        response(
            Content_Type="Text/HTML; charset=utf-8",
            Retry_After="120",
            Etag='"x"',
            Last_Modified="Mon, 05 Jan 2026 00:00:00 GMT",
            Cache_Control="max-age=60",
            Age="3",
            Vary="Accept",
        ),
        Wire(status=200),
    )

    headers = page.headers
    assert (headers.mime, headers.retry_after, headers.etag) == ("text/html", "120", '"x"')
    assert headers.last_modified.startswith("Mon, 05 Jan")
    assert headers.freshness == {"cache-control": "max-age=60", "age": "3"}
    assert page_of(response(), Wire(status=200)).headers == FetchedPage(Reason.FETCHED, Wire()).headers


def test_a_flaw_of_the_wire_is_noted() -> None:
    """Why it was cut, and that a certificate was not verified."""
    page = page_of(response(), Wire(status=200, flaw="the chunk's size is no number", unverified=True))

    assert page.error == "the chunk's size is no number"
    assert page.notes == [
        ("cut", "the chunk's size is no number"),
        ("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"),
    ]


def test_the_payload_stands_for_others_only_when_whole() -> None:
    """A 200 whose body came to its end."""
    assert FetchedPage(Reason.FETCHED, Wire(body=b"x", status=200)).payload == b"x"
    assert FetchedPage(Reason.FETCHED, Wire(body=b"x", status=200, truncated="length")).payload == b""
    assert FetchedPage(Reason.HTTP_ERROR, Wire(body=b"x", status=404)).payload == b""
    assert FetchedPage(Reason.FETCHED, Wire()).status is None


@pytest.mark.parametrize(
    ("status", "flags", "usable", "reason"),
    [
        (200, [], True, Reason.FETCHED),
        (200, ["truncated-time"], False, Reason.BAD_RESPONSE),
        (404, ["truncated-time"], True, Reason.HTTP_ERROR),
    ],
)
def test_a_robots_txt_that_was_cut(status: int, flags: list[str], usable: bool, reason: Reason) -> None:
    """It counts as unreachable, where it would have been obeyed."""
    page = robots_page(page_of(response(status, b"User-agent: *\n"), Wire(status=status)), flags)

    assert (page.usable, page.reason) == (usable, reason)


def test_a_robots_txt_that_broke_off() -> None:
    """By the wire's own word it is a lost connection."""
    page = robots_page(page_of(response(), Wire(status=200, truncated="disconnect")), ["truncated-disconnect"])

    assert (page.usable, page.reason) == (False, Reason.DISCONNECTED)
    assert page.error == "robots.txt cannot be used (truncated-disconnect): as if it could not be reached"


def test_a_robots_txt_too_long_is_obeyed_as_far_as_it_goes() -> None:
    """But for half a line."""
    page = page_of(response(body=b"User-agent: *\nDisallow: /a\nDisal"), Wire(status=200))

    assert robots_page(page, ["truncated-length"]).body == b"User-agent: *\nDisallow: /a\n"


def test_a_redirects_target() -> None:
    """Relative or not; what is no URL of the web is none."""
    page = page_of(response(302), Wire(status=302))
    there = redirected_page(page, row_of(), "/there")

    assert there.location == "http://a.test/there"
    assert there.target is not None
    assert there.target.address.url == "http://a.test/there"
    for nowhere in ("", "mailto:x@a.test"):
        assert redirected_page(page, row_of(), nowhere) == page


def test_some_redirects_are_not_followed_as_links() -> None:
    """One too many, and that of a robots.txt, which the frontier follows for its origin."""
    page = page_of(response(302), Wire(status=302))
    many = redirected_page(page, row_of(hops="R" * 10), "/there")
    robots = redirected_page(page, row_of(FLAG_ROBOTS), "/there")

    assert (many.target, many.error) == (None, "more than 10 redirects in a row")
    assert (robots.target, robots.location, robots.error) == (None, "http://a.test/there", "")


def test_what_a_hub_answers() -> None:
    """Its own words where it refuses."""
    accepted = page_of_hub(response(202), Wire(status=202))
    refused = page_of_hub(response(503, b"come back", Retry_After="60"), Wire(status=503))

    assert (accepted.reason, accepted.error) == (Reason.SUBSCRIBED, "")
    assert (refused.reason, refused.error, refused.headers.retry_after) == (Reason.RATE_LIMITED, "come back", "60")


def test_what_a_page_says_of_itself() -> None:
    """As lines of the metadata record."""
    body = b"<link rel=canonical href=/one><meta name=robots content='noindex,nofollow,noai'>"
    facts = html_facts(response(body=body, Content_Type="text/html"), "text/html", "TestBot")

    notes = page_notes(facts)
    assert notes[0] == ("charset-detected", facts.encoding)
    assert ("canonical", "http://a.test/one") in notes
    assert ("robots-meta", "noindex") in notes
    assert ("robots-meta", "nofollow") in notes
    assert any(name.startswith("ai-use") for name, _ in notes)
    assert ai_use((), response().headers) == []


def test_a_headers_last_value_counts() -> None:
    """Names in title case, as Scrapy keeps them."""
    headers = Headers({"X-Y": ["one", "two"]})

    assert header(headers, b"X-Y") == "two"
    assert header(headers, b"Z") == ""
