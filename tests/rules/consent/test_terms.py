"""Documents beside robots.txt: what is read of TDMRep and RSL; nothing in them is expanded or endless."""

from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.rules.consent.terms import TDMREP, Document, Terms, documents_of, read_document
from crawlerproject.rules.consent.verdict import PURPOSES, Verdict, judge
from tests.spending import bounded

SITE = "https://a.example"
FILE, LICENSE = SITE + TDMREP, SITE + "/license.xml"
SPACE = 'xmlns="https://rslstandard.org/rsl"'


def rsl(*contents: str) -> bytes:
    """A document with these contents."""
    return f"<rsl {SPACE}>{''.join(contents)}</rsl>".encode()


def content(url: str, inner: str, more: str = "") -> str:
    """One content with one licence."""
    return f'<content url="{url}"{more}><license>{inner}</license></content>'


def said(url: str, body: bytes, path: str = "/") -> list[str]:
    """The words on a path."""
    return [words for _, words in Terms([Document(url, read_document(url, 200, body))]).notes(path)]


def test_of_tdmrep_the_first_rule_that_matches_counts() -> None:
    """Section 6.1; patterns are those of robots.txt."""
    body = orjson.dumps(
        [
            {"location": "/free/*.pdf$", "tdm-reservation": 0},
            {"location": "/free", "tdm-reservation": 1, "tdm-policy": "https://a.example/policy"},
            {"location": "/free/also", "tdm-reservation": 0},
            {"location": "odd", "tdm-reservation": "perhaps"},
        ]
    )
    assert said(FILE, body, "/free/x.pdf") == ["tdm-reservation: 0"]
    assert said(FILE, body, "/free/also") == ["tdm-reservation: 1; https://a.example/policy"]
    assert said(FILE, body, "/odd") == ["tdm-reservation: 1"]
    assert said(FILE, body, "/") == []


@pytest.mark.parametrize(
    ("status", "body", "reserved"),
    [
        (200, b"", True),
        (200, b"[{", True),
        (200, b'"all"', True),
        (200, b'[{"tdm-reservation": 0}]', True),
        (200, b'{"location": "/", "tdm-reservation": 0}', False),
        (200, b"[" * 100_000, True),
        (200, orjson.dumps([{"location": f"/{n}", "tdm-reservation": 0} for n in range(501)]), True),
        (200, orjson.dumps([{"location": "/*" * 51, "tdm-reservation": 0}]), True),
        (200, b" " * 600_000 + b"[]", True),
        (200, b"[]", False),
        (200, b"\n<!doctype html><title>Not found</title>", False),
        (404, b"[{", False),
        (503, b"", True),
        (0, b"", True),
        (403, b"", False),
    ],
)
def test_doubt_about_tdmrep_reserves(status: int, body: bytes, reserved: bool) -> None:
    """What is there and cannot be read; a page of HTML is how sites answer for what they do not have."""
    notes = Terms([Document(FILE, read_document(FILE, status, body))]).notes("/x")

    assert (judge(notes, "research").verdict is Verdict.RESERVED) == reserved
    assert judge(notes, "search").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("inner", "more", "words"),
    [
        ('<permits type="usage">search, AI-input</permits>', "", "permits: search ai-input"),
        ('<prohibits type="usage">ai-train</prohibits><payment type="free"/>', "", "prohibits: ai-train"),
        ('<permits type="usage">all</permits><payment type="crawl"><amount currency="USD">1</amount></payment>', "",
         "permits: all; payment: crawl"),
        ('<payment type="attribution"/>', "", "condition: attribution"),
        ("<payment/>", "", "payment: unstated"),
        ('<permits type="user">some</permits><prohibits type="geo">DE</prohibits>', "", "user: some; geo: de"),
        ("", ' server="https://l.example"', "server: yes"),
        ("", "", "permits: "),
        ("<permits/>", "", "permits: nothing"),
        ('<permits type="usage">a|b; payment: c</permits>', "", "permits: other c"),
        ("<terms>x</terms>", "", "permits: "),
    ],
)  # fmt: skip
def test_a_licence_in_words(inner: str, more: str, words: str) -> None:
    """RSL 1.0, section 3."""
    assert said(LICENSE, rsl(content("/", inner, more))) == [words]


def test_the_longest_content_that_matches_counts() -> None:
    """An absolute address is of this host or says nothing here; licences of one content are alternatives."""
    body = rsl(
        content("/", '<prohibits type="usage">all</prohibits>'),
        content("https://a.example/free/*", '<permits type="usage">all</permits>'),
        content("https://b.example/", '<payment type="crawl"/>'),
        '<content url="/both"><license><payment type="crawl"/></license><license/></content>',
        '<content url="/none"/>',
    )
    assert said(LICENSE, body, "/x") == ["prohibits: all"]
    assert said(LICENSE, body, "/free/x") == ["permits: all"]
    assert said(LICENSE, body, "/both") == ["payment: crawl | permits: "]
    assert said(LICENSE, body, "/none") == ["unreadable: a content without a licence"]
    assert said(LICENSE, rsl(content("https://b.example/", ""))) == []


BOMB = '<!DOCTYPE rsl [<!ENTITY a "ha"><!ENTITY b "%s">]>' % ("&a;" * 1000)


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (404, rsl(content("/", "")), "status 404"),
        (200, b"", "no element found"),
        (200, rsl(content("/", ""))[:-3], "unclosed token"),
        (200, BOMB.encode() + rsl(content("/", "&b;")), "a document type is declared"),
        (200, b'<!DOCTYPE rsl SYSTEM "file:///etc/passwd">' + rsl(content("/", "")), "a document type is declared"),
        (200, rsl(content("/", "&nbsp;")), "undefined entity"),
        (200, b"<html><content/></html>", "not RSL"),
        (200, rsl(), "no <content>"),
        (200, rsl(content("", "")), "a content without an address"),
        (200, rsl("<a>" * 40 + "</a>" * 40), "too deep or too long"),
        (200, rsl("<a/>" * 20_001), "too deep or too long"),
        (200, rsl(*(content(f"/{n}", "") for n in range(502))), "too many rules"),
        (200, rsl(content("/" + "a" * 40_000, "")), "too long"),
        (200, rsl(content("/", '<permits type="usage">' + "a b " * 200 + "c" * 30 + "</permits>" * 1)), ""),
        (200, b'<?xml version="1.0" encoding="x-none"?>' + rsl(content("/", "")), "unknown encoding"),
    ],
)
def test_doubt_about_a_licence_reserves(status: int, body: bytes, why: str) -> None:
    """For every purpose; no entity is expanded, no document type read."""
    rules = read_document(LICENSE, status, body)
    notes = Terms([Document(LICENSE, rules)]).notes("/")

    if why:
        assert [pattern for pattern, _ in rules] == ["/"]
        assert notes[0][1].startswith(f"unreadable: {why}"), notes
        assert all(judge(notes, purpose).verdict is Verdict.RESERVED for purpose in PURPOSES)
    else:
        assert notes[0][1].startswith("permits: ")  # each word counts once


def test_what_an_origin_is_asked_for() -> None:
    """tdmrep.json, and its first licences as robots.txt names them, as far as robots.txt lets us."""
    licenses = ["/l.xml", "/l.xml", "https://b.example/l.xml", "/secret/l.xml", "ftp:", "/2.xml"]
    documents = documents_of(SITE, licenses, lambda url: "/secret" not in url)

    asked = [document.url for document in documents if document.rules is None]
    assert asked == [FILE, SITE + "/l.xml", "https://b.example/l.xml"]
    terms = Terms(documents)
    assert terms.next == 1
    terms = terms.answered(1, 404, b"", "a.example")
    assert terms.next == 2
    assert Terms.unpack(terms.pack()).notes("/") == terms.notes("/")
    terms = terms.answered(2, 200, rsl(content("/", "")), "a.example")
    others = rsl(content("https://b.example/", "<payment/>"), content("https://a.example/", ""))
    done = Terms.unpack(terms.answered(3, 200, others, "a.example").pack())
    assert done.next is None
    assert [words.partition(":")[0] for _, words in done.notes("/")] == ["permits"] * 2 + ["unreadable"] * 3
    assert documents_of(SITE, [], lambda _: False) == []
    assert [each.url for each in documents_of(SITE, ["/l.xml"], lambda _: True, tdmrep=False)] == [SITE + "/l.xml"]


def test_what_was_not_asked_for_is_doubt() -> None:
    """A record whose documents are not all known allows nothing."""
    assert judge(Terms([Document(FILE)]).notes("/"), "ai-train").verdict is Verdict.RESERVED


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # what orjson writes
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["/", "*", "0", "1"]),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.dictionaries(st.sampled_from(["location", "tdm-reservation", "tdm-policy", "x"]), inner, max_size=4)
    ),
    max_leaves=40,
)
NAMES = st.sampled_from(["rsl", "content", "license", "permits", "prohibits", "payment", "x"])
XML = st.recursive(
    st.text(alphabet="ab &;<>\"'|:*/$é\x00", max_size=12),
    lambda inner: st.builds(
        lambda name, more, parts: f"<{name} {more}>{''.join(parts)}</{name}>",
        NAMES,
        st.sampled_from(
            ["", 'url="/"', 'url="/*a$"', 'type="usage"', 'type="crawl"', 'server=""', SPACE, 'url="\u00e9"']
        ),
        st.lists(inner, max_size=4),
    ),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(body=st.one_of(JSON.map(orjson.dumps), XML.map(str.encode), st.binary(max_size=400)))
def test_nothing_that_a_document_holds_is_raised_or_endless(body: bytes) -> None:
    """Rules that can be stored, matched and judged for each purpose, whatever it holds."""
    for url in (FILE, LICENSE):
        for whole in (body, body[: len(body) // 2], rsl(content("/", "")).replace(b"</license>", body + b"</license>")):
            terms = Terms([Document(url, read_document(url, 200, whole))])
            notes = Terms.unpack(terms.pack()).notes("/a")
            verdicts = [judge(notes, purpose).verdict for purpose in PURPOSES]
            if any(words.startswith("unreadable") for _, words in notes):
                assert verdicts[PURPOSES.index("ai-train")] is Verdict.RESERVED


@pytest.mark.parametrize(
    "body", [b"[" * 500_000, b"<" * 500_000, b"<a " + b"b='c' " * 80_000, b"<rsl><!--" + b"-" * 500_000]
)
def test_a_large_document_is_read_in_no_time(body: bytes) -> None:
    """Whatever its shape."""
    began = time.process_time()
    with bounded(2.0):
        for url in (FILE, LICENSE):
            read_document(url, 200, body)
    assert time.process_time() - began < 2.0
