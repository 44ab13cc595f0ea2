"""From a response and what was read in it to the outcome of the lease."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.http import HtmlResponse, Response

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.passage import Lease
from crawlerproject.items import LeaseResult, Rendered
from crawlerproject.parse.links import followed
from crawlerproject.reading.jobs import Job, Kind, ReadPage, read_facts
from crawlerproject.reading.outcomes import (
    Consent,
    Outcomes,
    goes_to_browser,
    rendered_result,
    result_of,
    result_of_hub,
)
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.page.page import PageFacts, read_html
from crawlerproject.rules.rendering.thin_pages import RenderNeed, Triage
from crawlerproject.rules.row_kinds import FLAG_RENDER, FLAG_ROBOTS, FLAG_SITEMAP
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage

HOST = "http://a.test"
URL = f"{HOST}/page"
PAGE = b"<title>t</title><p>some words<a href=/1>1</a><link rel=canonical href=/one>"
ROBOTS = b"User-agent: *\nDisallow: /no\nSitemap: /map.xml\n"


def row_of(flags: int = 0, hops: str = "L") -> QueuedPage:
    """The queue's row."""
    address = parse(URL)
    return QueuedPage(address.host, address.key, URL, 10, 1, 1, hops, "", flags=flags)


def lease_of(flags: int = 0, hops: str = "L") -> Lease:
    """The row, handed out."""
    return Lease(row_of(flags, hops), Host("a.test", 1.0), "192.0.2.1", 0.0, 1.0)


def answer(status: int = 200, body: bytes = b"", **headers: str) -> Response:
    """A server's."""
    return Response(
        URL, status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


CONSENT = Consent("ai-train", False, lambda url: [("ai-use-robots-txt", "ai-train=no")])


def read_of(body: bytes = PAGE) -> ReadPage:
    """What is read of an HTML page."""
    facts = read_html(body, url=URL, content_type="text/html", x_robots=[], token="TestBot")
    return read_facts(Job(Kind.HTML, row_of(), URL, "text/html", [], "TestBot"), facts, body)


def fetched(
    read: ReadPage, *, status: int = 200, flags: int = 0, to_render: bool = False, sitemaps: bool = True, **given: Any
) -> LeaseResult:
    """The result of a fetch; ``marks``: Scrapy's flags of the response."""
    more = {"headers": given.get("headers"), "flags": given.get("marks")}
    response = HtmlResponse(URL, status=status, body=given.get("body", PAGE), **more)
    outcomes = Outcomes("TestBot", sitemaps=sitemaps, consent=given.get("consent", CONSENT))
    wire = given.get("wire") or Wire(status=status)
    lease = lease_of(flags, given.get("hops", "L"))
    return outcomes.fetched(lease, response, wire, read, to_render=to_render)


def test_a_page_with_its_text_and_links() -> None:
    """What the robots.txt of its site states is noted with it."""
    read = read_of()
    page = fetched(read)

    assert (page.reason, page.shell, page.is_feed) == (Reason.FETCHED, None, False)
    assert page.found == read.found
    assert page.is_text
    assert page.canonical is not None
    assert (page.canonical.url, page.marks) == ("http://a.test/one", read.text_marks)
    assert page.notes[0][0] == "charset-detected"
    assert any("ai-train=no" in value for _, value in page.notes)


def test_a_page_for_the_browser_has_links_and_no_text() -> None:
    """Its words and links are measured without the browser."""
    read = read_of()
    page = fetched(read, to_render=True)

    assert read.facts is not None
    assert (page.shell, page.is_text) == ((read.facts.words, 2), False)
    assert page.found == read.found


def test_a_list_is_what_it_names() -> None:
    """Its flaw is the page's error; a sitemap has no notes, a feed those of its site."""
    found = followed(row_of(), read_html(PAGE, url=URL, content_type=None, x_robots=[], token="x").links)
    sitemap = fetched(ReadPage(found=found, flaw="cut"), flags=FLAG_SITEMAP)

    assert (sitemap.found, sitemap.error, sitemap.notes, sitemap.is_text) == (found, "cut", [], False)


@pytest.mark.parametrize(("sitemaps", "named"), [(True, ["http://a.test/map.xml"]), (False, [])])
def test_a_robots_txt_names_sitemaps(sitemaps: bool, named: list[str]) -> None:
    """Where the SITEMAPS setting wants them."""
    page = fetched(ReadPage(), flags=FLAG_ROBOTS, sitemaps=sitemaps, body=ROBOTS)

    assert [found.address.url for found in page.found] == named
    assert page.body == ROBOTS


def test_a_robots_txt_that_is_not_there_names_nothing() -> None:
    """Whatever its body says."""
    assert fetched(ReadPage(), status=404, flags=FLAG_ROBOTS, body=ROBOTS).found == ()


def test_a_parser_bomb_says_so() -> None:
    """In the log by its error, in the metadata by a note; it stands without links."""
    read = read_of(b"<a href=/1>1</a><p " + b" ".join(b"a%d" % number for number in range(2_000)) + b">")
    page = fetched(read)

    assert (page.reason, page.found) == (Reason.FETCHED, [])
    assert page.error.startswith("parser bomb: ")
    assert ("unparsed", "parser-bomb") in page.notes
    assert rendered_result(lease_of(), Rendered(URL), read).error == page.error


@pytest.mark.parametrize(("status", "reason"), [(200, Reason.FETCHED), (404, Reason.HTTP_ERROR)])
def test_soft_marks_of_walls_are_noted(status: int, reason: Reason) -> None:
    """And nothing else."""
    read = read_of() if status == 200 else ReadPage()
    read.wall_marks = "datadome: x-datadome"
    page = fetched(read, status=status)

    assert (page.reason, page.notes[-1], page.error) == (reason, ("wall-marks", "datadome: x-datadome"), "")
    if status == 200:
        assert ("wall-marks", "datadome: x-datadome") in rendered_result(lease_of(), Rendered(URL), read).notes


def test_what_could_not_be_read_is_noted() -> None:
    """The page stands without links."""
    page = fetched(ReadPage(unread="could not be read in 1 s"))

    assert (page.error, page.notes[0], page.found) == (
        "could not be read in 1 s",
        ("unread", "could not be read in 1 s"),
        (),
    )


@pytest.mark.parametrize("status", [200, 403])
def test_a_wall_is_a_challenge(status: int) -> None:
    """Noted with its vendor."""
    page = fetched(ReadPage(challenge="cloudflare"), status=status)

    assert (page.reason, page.notes[-1]) == (Reason.CHALLENGE, ("challenge", "cloudflare"))


def test_a_redirect_is_no_page() -> None:
    """Its target, and nothing of its body."""
    page = fetched(ReadPage(), status=302, headers={"Location": "/there"})

    assert page.target is not None
    assert (page.target.address.url, page.found, page.is_text) == ("http://a.test/there", (), False)


def test_a_render_has_the_links_of_its_scripts() -> None:
    """And where they went, unless the page asks for nofollow."""
    rendered = Rendered(URL, navigations=["/went"])
    page = rendered_result(lease_of(), rendered, read_of())
    nofollow = rendered_result(lease_of(), rendered, read_of(b"<meta name=robots content=nofollow><a href=/1>1</a>"))

    assert [found.address.url for found in page.found] == [
        *(link.address.url for link in read_of().found),
        f"{HOST}/went",
    ]
    assert page.gained is not None
    assert list(nofollow.found) == []


def test_a_render_that_could_not_be_read() -> None:
    """It gained nothing that is known."""
    page = rendered_result(lease_of(), Rendered(URL), ReadPage(unread="too slow"))

    assert (page.reason, page.gained, page.is_text, page.error) == (Reason.RENDERED, None, False, "too slow")


def test_only_html_has_a_text() -> None:
    """Lists and unread pages are not compared."""
    assert not fetched(ReadPage()).is_text
    assert fetched(read_of()).is_text


# --- by the status and the headers ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (200, Reason.FETCHED),
        (206, Reason.FETCHED),
        (301, Reason.REDIRECT),
        (308, Reason.REDIRECT),
        (304, Reason.HTTP_ERROR),
        (300, Reason.FETCHED),
        (404, Reason.HTTP_ERROR),
        (500, Reason.HTTP_ERROR),
        (429, Reason.RATE_LIMITED),
        (503, Reason.RATE_LIMITED),
    ],
)
def test_the_status_is_the_reason(status: int, reason: Reason) -> None:
    """What went wrong while the body was read comes later."""
    assert result_of(lease_of(), answer(status), Wire(status=status)).reason is reason


@pytest.mark.parametrize("condition", [b"If-None-Match: x", b"if-modified-since: y"])
def test_a_304_counts_where_it_was_asked_for(condition: bytes) -> None:
    """By the request that was sent, which the browser may have made."""
    wire = Wire(b"GET / HTTP/1.1\r\nHost: a\r\n" + condition + b"\r\n\r\n", status=304)

    assert result_of(lease_of(), answer(304), wire).reason is Reason.NOT_MODIFIED


def test_headers_that_are_needed_later() -> None:
    """As received; the media type without parameters."""
    page = result_of(
        lease_of(),
        answer(
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

    assert (page.mime, page.retry_after, page.etag) == ("text/html", "120", '"x"')
    assert page.last_modified.startswith("Mon, 05 Jan")
    assert page.freshness == {"cache-control": "max-age=60", "age": "3"}


def test_a_flaw_of_the_wire_is_noted() -> None:
    """Why it was cut, and that a certificate was not verified."""
    wire = Wire(status=200, flaw="the chunk's size is no number", unverified=True)
    page = result_of(lease_of(), answer(), wire)

    assert page.error == "the chunk's size is no number"
    assert page.notes == [
        ("cut", "the chunk's size is no number"),
        ("tls-certificate", "not verified (TLS_ALLOW_HOSTS)"),
    ]


def test_the_payload_stands_for_others_only_when_whole() -> None:
    """A 200 whose body came to its end, and was taken for an answer."""
    whole = Wire(body=b"x", status=200)

    assert result_of(lease_of(), answer(), whole).payload == b"x"
    assert result_of(lease_of(), answer(), Wire(body=b"x", status=200, truncated="length")).payload == b""
    assert result_of(lease_of(), answer(404), Wire(body=b"x", status=404)).payload == b""
    assert LeaseResult.failed(lease_of(), Reason.BAD_RESPONSE, "", whole).payload == b""
    assert result_of(lease_of(), answer(), Wire()).status is None


@pytest.mark.parametrize(
    ("status", "marks", "usable", "reason"),
    [
        (200, [], True, Reason.FETCHED),
        (200, ["truncated-time"], False, Reason.BAD_RESPONSE),
        (404, ["truncated-time"], True, Reason.HTTP_ERROR),
    ],
)
def test_a_robots_txt_that_was_cut(status: int, marks: list[str], usable: bool, reason: Reason) -> None:
    """It counts as unreachable, where it would have been obeyed."""
    page = fetched(ReadPage(), status=status, flags=FLAG_ROBOTS, body=ROBOTS, marks=marks)

    assert (page.status, page.reason) == (status if usable else None, reason)


def test_a_robots_txt_that_broke_off() -> None:
    """By the wire's own word it is a lost connection."""
    wire = Wire(status=200, truncated="disconnect")
    page = fetched(ReadPage(), flags=FLAG_ROBOTS, body=b"", marks=["truncated-disconnect"], wire=wire)

    assert (page.status, page.reason) == (None, Reason.DISCONNECTED)
    assert page.error == "robots.txt cannot be used (truncated-disconnect): as if it could not be reached"


def test_a_robots_txt_too_long_is_obeyed_as_far_as_it_goes() -> None:
    """But for half a line."""
    body = b"User-agent: *\nDisallow: /a\nDisal"
    page = fetched(ReadPage(), flags=FLAG_ROBOTS, body=body, marks=["truncated-length"])

    assert page.body == b"User-agent: *\nDisallow: /a\n"


@pytest.mark.parametrize("nowhere", ["", "mailto:x@a.test"])
def test_a_redirect_that_leads_nowhere(nowhere: str) -> None:
    """What is no URL of the web has no target."""
    page = fetched(ReadPage(), status=302, headers={"Location": nowhere})

    assert (page.target, page.location) == (None, "")


@pytest.mark.parametrize(
    ("octets", "escaped"), [("/straße?q=ü".encode(), "/stra%C3%9Fe?q=%C3%BC"), ("/ü".encode("latin-1"), "/%FC")]
)
def test_a_redirect_whose_place_is_not_escaped(octets: bytes, escaped: str) -> None:
    """Its octets are asked for as they are, whichever encoding the server means, as browsers do."""
    page = fetched(ReadPage(), status=302, headers={"Location": octets})

    assert page.location == f"http://a.test{escaped}"


def test_some_redirects_are_not_followed_as_links() -> None:
    """One too many, and that of a robots.txt, which the frontier follows for its origin."""
    there = {"Location": "/there"}
    many = fetched(ReadPage(), status=302, headers=there, hops="R" * 10)
    robots = fetched(ReadPage(), status=302, headers=there, flags=FLAG_ROBOTS)

    assert (many.target, many.error) == (None, "more than 10 redirects in a row")
    assert (robots.target, robots.location, robots.error) == (None, "http://a.test/there", "")


def test_what_a_hub_answers() -> None:
    """Its own words where it refuses."""
    accepted = result_of_hub(lease_of(), answer(202), Wire(status=202))
    refused = result_of_hub(lease_of(), answer(503, b"come back", Retry_After="60"), Wire(status=503))

    assert (accepted.reason, accepted.error) == (Reason.SUBSCRIBED, "")
    assert (refused.reason, refused.error, refused.retry_after) == (Reason.RATE_LIMITED, "come back", "60")


def test_what_a_page_says_of_itself() -> None:
    """As lines of the metadata record."""
    body = b"<link rel=canonical href=/one><meta name=robots content='noindex,nofollow,noai'>"
    page = fetched(read_of(body))

    assert page.notes[0][0] == "charset-detected"
    assert ("canonical", "http://a.test/one") in page.notes
    assert ("robots-meta", "noindex") in page.notes
    assert ("robots-meta", "nofollow") in page.notes
    assert any(name.startswith("ai-use") for name, _ in page.notes)


def obeying(words: str = "") -> Consent:
    """What a crawl for training has that obeys; ``words`` are those of the site's robots.txt."""
    return Consent("ai-train", True, lambda url: [("ai-use-robots-txt", words)] if words else [])


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"Content-Usage": "train-ai=n"}, Reason.RESERVED_HEADER),
        ({"TDM-Reservation": "1"}, Reason.RESERVED_HEADER),
        ({"Link": '<https://a.example/l.xml>; rel="license"; type="application/rsl+xml"'}, Reason.RESERVED_HEADER),
        ({"Content-Usage": "train-ai=y"}, Reason.FETCHED),
        ({}, Reason.FETCHED),
    ],
)
def test_what_an_answer_reserves_is_not_kept(headers: dict[str, str], reason: Reason) -> None:
    """No body, no link, no text to compare, nothing for the browser; its words are."""
    page = fetched(read_of(), headers=headers, consent=obeying(), wire=Wire(status=200, body=PAGE), to_render=True)
    kept = reason is Reason.FETCHED

    assert page.reason is reason
    assert page.wire is not None
    assert (bool(page.body), bool(page.wire.body), page.shell is not None) == (kept, kept, kept)
    assert kept or (not page.found and not page.is_text and ("consent", "reserved") in page.notes)


@pytest.mark.parametrize(
    ("words", "reason"),
    [(None, Reason.RESERVED_HEADER), ("permits: all", Reason.FETCHED), ("payment: crawl", Reason.RESERVED_LICENSE)],
)
def test_a_licence_that_a_page_names_is_judged_or_asked_for(words: str | None, reason: Reason) -> None:
    """By its address, however that is written; without its words the page is withheld until they are known."""
    said = {"http://a.test/l.xml": [("ai-use-license", words)]} if words else {}
    headers = {"Link": '</l.xml>; rel="license"; type="application/rsl+xml"'}
    page = fetched(
        read_of(),
        headers=headers,
        consent=Consent("ai-train", True, lambda _: [], lambda _, address: said.get(address)),
    )

    assert page.reason is reason
    assert page.license_named == ("" if words else "http://a.test/l.xml")
    assert words is None or ("ai-use-license", words) in page.notes


def test_words_of_a_page_reserve_it() -> None:
    """Also in what a browser made of it."""
    body = b'<meta name="robots" content="noai"><p>Words'
    plain = fetched(read_of(body), consent=obeying())
    seen = rendered_result(lease_of(0), Rendered(URL, html=body), read_of(body), obeying())

    assert plain.reason is seen.reason is Reason.RESERVED_PAGE
    assert seen.rendered is not None
    assert not seen.rendered.html


def test_words_are_only_recorded_unless_they_are_obeyed() -> None:
    """With the verdict for the crawl's purpose."""
    page = fetched(read_of(), headers={"X-Robots-Tag": "noai"})

    assert page.reason is Reason.FETCHED
    assert ("consent", "reserved") in page.notes


def test_a_page_that_costs_money() -> None:
    """402 is no error of the host's; the prices are recorded."""
    page = fetched(ReadPage(), status=402, headers={"Crawler-Price": "USD 0.01"})

    assert (page.reason, page.notes) == (Reason.PAYMENT_REQUIRED, [("crawler-price", "USD 0.01")])


NEEDS = ReadPage(PageFacts(words=3), 1, Triage(RenderNeed.RENDER, 9, ("empty root",)))


class Budgets:
    """The frontier's renders, which answer as the test says."""

    def __init__(self, *, wanted: bool = True) -> None:
        self.asked: list[tuple[str, str, RenderNeed]] = []
        self._wanted = wanted

    def wanted(self, url: str, host: str, verdict: RenderNeed) -> bool:
        """Whether there is room."""
        self.asked.append((url, host, verdict))
        return self._wanted

    def decide(self, page: ReadPage, *, is_render: bool = False) -> bool:
        """Whether a page that was read goes to the browser."""
        return goes_to_browser(lease_of(FLAG_RENDER if is_render else 0), page, self.wanted)


@pytest.mark.parametrize("wanted", [True, False])
def test_the_frontiers_budgets_have_the_last_word(wanted: bool) -> None:
    """They are asked with the verdict."""
    budgets = Budgets(wanted=wanted)

    assert budgets.decide(NEEDS) == wanted
    assert budgets.asked == [(URL, "a.test", RenderNeed.RENDER)]


@pytest.mark.parametrize(
    "page",
    [
        ReadPage(),
        ReadPage(unread="could not be read in 1 s"),
        ReadPage(PageFacts(), challenge="cloudflare"),
    ],
)
def test_what_is_no_readable_page_is_not_sent(page: ReadPage) -> None:
    """Lists, pictures, walls."""
    budgets = Budgets()

    assert not budgets.decide(page)
    assert budgets.asked == []


def test_a_rendered_page_is_not_sent_again() -> None:
    """Once is all it gets."""
    budgets = Budgets()

    assert not budgets.decide(NEEDS, is_render=True)
    assert budgets.asked == []
