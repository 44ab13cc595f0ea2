"""What the table of marks makes of an answer; whole pages are judged in tests/reading/test_walls.py."""

import pytest

from crawlerproject.rules.rendering import challenge
from crawlerproject.rules.rendering.challenge import HEADERS, Wall, looks_short, may_have_mark, wall

CHALLENGE = b"<script>window._cf_chl_opt={};a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1'</script>"


def test_a_header_that_only_a_wall_has_counts_with_any_status() -> None:
    """Without a look at the body."""
    assert wall(500, {"cf-mitigated": "Challenge"}, b"") == Wall("cloudflare", "cloudflare: cf-mitigated: challenge")
    assert wall(200, {"x-amzn-waf-action": "count"}, b"") == Wall()


def test_all_marks_are_named_and_evidence_decides() -> None:
    """The soft ones of another vendor as well."""
    found = wall(403, {"x-datadome": "protected", "set-cookie": "a=b\n__cf_bm=c"}, b"<div id=px-captcha>")
    assert found.vendor == "perimeterx"
    assert found.marks == "cloudflare: set-cookie: __cf_bm=; datadome: x-datadome; perimeterx: px-captcha"


@pytest.mark.parametrize("status", [200, 404, 500])
def test_a_mark_that_a_page_may_have_needs_a_status_that_refuses(status: int) -> None:
    """With 403 it is a wall."""
    assert wall(status, {}, b"<div id=px-captcha>").vendor == ""
    assert wall(403, {}, b"<div id=px-captcha>").vendor == "perimeterx"


def test_some_marks_need_a_header_too() -> None:
    """Words alone are anyone's."""
    assert wall(403, {}, b"The request is blocked.").vendor == ""
    assert wall(403, {"x-azure-ref": "1"}, b"The request is blocked.").vendor == "azure"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a.test/search?q=a+_cf_chl_opt", b""),
        ("http://a.test/%5Fcf_chl_opt", b""),
        ("http://a.test/", b"A note on _cf_chl_opt"),
    ],
)
def test_what_a_page_quotes_is_no_evidence(url: str, shown: bytes) -> None:
    """From its own address, or for its reader; the soft marks stay."""
    assert wall(200, {}, CHALLENGE, url, shown) == Wall("", "cloudflare: /cdn-cgi/challenge-platform/")
    assert wall(200, {}, CHALLENGE, "http://a.test/", b"A note").vendor == "cloudflare"


@pytest.mark.parametrize(
    ("status", "body_bytes", "words", "links", "looked_at"),
    [
        (200, 9_000, 250, 10, True),
        (200, 9_000, 251, 0, False),
        (200, 9_000, 0, 11, False),
        (200, 9_000, None, 0, True),
        (403, 65_536, 9_000, 90, True),
        (403, 65_537, 0, 0, False),
        (404, 900, 0, 0, False),
    ],
)
def test_a_body_is_looked_at_where_a_wall_may_be(
    status: int, body_bytes: int, words: int | None, links: int, *, looked_at: bool
) -> None:
    """An ordinary page has too much to say, and no page of another status is one."""
    assert looks_short(status, body_bytes, words, links) is looked_at


@pytest.mark.parametrize("part", challenge._IN_PAGES)
def test_the_quick_look_overlooks_no_mark(part: bytes) -> None:
    """Wherever it stands; a page without one is passed."""
    text = b"<p>a_b.c _ . .com/ challenge</p>" * 9
    assert may_have_mark(text + part + text)
    assert not may_have_mark(text)


def test_headers_are_in_lower_case() -> None:
    """As answers are asked for them."""
    assert {"cf-mitigated", "x-dd-b", "x-datadome"} <= HEADERS
    assert all(name == name.lower() for name in HEADERS)
