"""What a page forbids robots, in its head or in its headers, and what owners say about AI."""

import pytest

from crawlerproject.rules.page.page import license_of_feed, page_robots, read_html, stated_by_site


@pytest.mark.parametrize(
    ("metas", "headers", "nofollow", "noindex"),
    [
        ([], [], False, False),
        ([("robots", "noindex, nofollow")], [], True, True),
        ([("ROBOTS", "NONE")], [], True, True),
        ([("OurBot", "nofollow")], [], True, False),
        ([("googlebot", "nofollow")], [], False, False),
        ([("robots", "index,follow"), ("robots", "noindex")], [], False, True),
        ([("robots", "noindex nofollow")], [], True, True),
        ([], ["nofollow"], True, False),
        ([], ["ourbot: nofollow"], True, False),
        ([], ["otherbot: noindex, nofollow"], False, False),
        ([], ["otherbot: noindex, ourbot: nofollow"], True, False),
        ([], ["max-snippet: 20, nofollow"], True, False),
        ([], ["unavailable_after: 25 Jun 2030 15:00:00 PST", "noindex"], False, True),
    ],
)
def test_strictest_word_for_us_wins(
    metas: list[tuple[str, str]], headers: list[str], nofollow: bool, noindex: bool
) -> None:
    """Names match without case; another agent's words are not ours."""
    assert page_robots(metas, headers, "OurBot")[:2] == (nofollow, noindex)


def test_words_on_artificial_intelligence_are_recorded() -> None:
    """Those of pages and headers together, each once; other agents' are not ours."""
    metas, headers = [("robots", "noai, noimageai")], ["noai, nofollow", "otherbot: noml"]
    assert page_robots(metas, headers, "OurBot") == (
        True,
        False,
        [("ai-use-page", "noai"), ("ai-use-page", "noimageai")],
    )


def test_robots_txt_and_headers() -> None:
    """Each with where it was said, as it was written."""
    notes = stated_by_site(
        [("ai-use-robots-txt", "search=yes, ai-train=no")], [("TDM-Reservation", "1"), ("Content-Usage", "train-ai=n")]
    )
    assert notes == [
        ("ai-use-robots-txt", "search=yes, ai-train=no"),
        ("ai-use-header", "tdm-reservation: 1"),
        ("ai-use-header", "content-usage: train-ai=n"),
    ]


def test_meta_elements_and_words() -> None:
    """Only those that are about it."""
    metas = [("TDM-Policy", "/tdm.json"), ("author", "x"), ("robots", "noai")]
    assert page_robots(metas, (), "x").ai_use == [
        ("ai-use-page", "noai"),
        ("ai-use-page", "tdm-policy: /tdm.json"),
    ]


def test_values_cannot_break_the_record() -> None:
    """Line ends and endless values stay out of it, and so do endless lines."""
    notes = stated_by_site([("ai-use-robots-txt", "a\r\nWARC-Type: evil " + "x" * 10_000)] * 100, [])
    assert len(notes) == 20
    assert all("\n" not in value and len(value) == 500 for _, value in notes)


def test_a_page_that_is_read() -> None:
    """From its head and from its X-Robots-Tag."""
    html = b'<html><head><meta name="robots" content="noai"><meta name="tdm-reservation" content="1"></head></html>'
    facts = read_html(html, url="http://a.example/", content_type=None, x_robots=["noimageai"], token="x")
    assert facts.ai_use == [
        ("ai-use-page", "noai"),
        ("ai-use-page", "noimageai"),
        ("ai-use-page", "tdm-reservation: 1"),
    ]


CONTENT = '<content url="%s"><license><payment type="crawl"/></license></content>'


def batched(words: list[str]) -> list[tuple[str, str]]:
    """By twos."""
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("head", "licenses"),
    [
        ('<link rel="license" type="application/rsl+xml" href="/l.xml?a=1">', ["page", "license: /l.xml?a=1"]),
        ("<LINK href=l.xml type=application/rsl+xml rel=license>", ["page", "license: l.xml"]),
        (f'<script type="application/rsl+xml">\n<rsl>{CONTENT % "/a"}</rsl></script>', ["license", "payment: crawl"]),
        (f'<script type="application/rsl+xml"><rsl>{CONTENT % "/b"}</rsl></script>', []),
        ('<script type="application/rsl+xml"><rsl></rsl></script>', ["license", "unreadable: no <content>"]),
        (
            '<script type="application/rsl+xml"><!DOCTYPE rsl><rsl>',
            ["license", "unreadable: a document type is declared"],
        ),
        ('<link type="application/rsl+xml">' * 30, ["license", "unreadable: a licence without an address"] * 20),
        ('<link rel="license" href="/l.html"><p>application/rsl+xml', []),
    ],
)
def test_a_licence_of_rsl_that_a_page_names_or_has(head: str, licenses: list[str]) -> None:
    """RSL 1.0, 4.5 and 4.6; of one that it has the words on this page, beside its other words."""
    body = f"<title>t</title><meta name=robots content=noai>{head}<p>text".encode()
    facts = read_html(body, url="http://a.example/a#b", content_type="text/html", x_robots=[], token="OurBot")
    found = [(f"ai-use-{place}", words) for place, words in batched(licenses)]

    assert list(facts.ai_use) == [("ai-use-page", "noai"), *found]


def test_a_licence_of_rsl_in_a_feed() -> None:
    """RSL 1.0, 4.4: of all entries, whichever host they are of; what cannot be read is doubt."""
    feed = '<rss xmlns:rsl="https://rslstandard.org/rsl"><channel><content>x</content>%s</channel></rss>'
    entry = "<item><x/>" + CONTENT.replace("<", "<rsl:").replace("rsl:/", "/rsl:") % "http://b.example/1" + "</item>"

    def said(entries: str) -> list[str]:
        return [words for _, words in license_of_feed((feed % entries).encode(), "http://a.example/feed")]

    assert said(entry * 2 + entry.replace("crawl", "free")) == ["payment: crawl", "permits: "]
    assert said("") == []
    assert said("".join(entry.replace("crawl", f"k{n}") for n in range(20))) == ["unreadable: too many licences"]
    assert said(entry[:-5])[0].startswith("unreadable: ")
    assert said("<a>" * 40 + "</a>" * 40) == ["unreadable: too deep or too long"]
    assert license_of_feed(b"<rss/>", "http://a.example/feed") == []
