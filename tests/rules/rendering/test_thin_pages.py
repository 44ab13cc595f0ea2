"""What the table of marks makes of an answer (whole pages: tests/reading/test_walls.py), and which pages are shells."""

import pytest

from crawlerproject.rules.rendering import thin_pages
from crawlerproject.rules.rendering.thin_pages import (
    HEADERS,
    Gain,
    RenderNeed,
    Wall,
    looks_short,
    may_have_mark,
    pays,
    template,
    wall,
    worth_a_render,
)
from tests.web.answers import page_html, text
from tests.web.shells import shells
from tests.web.unread_pages import triage

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


@pytest.mark.parametrize("part", thin_pages._IN_PAGES)
def test_the_quick_look_overlooks_no_mark(part: bytes) -> None:
    """Wherever it stands; a page without one is passed."""
    text = b"<p>a_b.c _ . .com/ challenge</p>" * 9
    assert may_have_mark(text + part + text)
    assert not may_have_mark(text)


def test_headers_are_in_lower_case() -> None:
    """As answers are asked for them."""
    assert {"cf-mitigated", "x-dd-b", "x-datadome"} <= HEADERS
    assert all(name == name.lower() for name in HEADERS)


SHELLS = shells()
HTML = "text/html; charset=utf-8"
# No word says that it is an application: only its host's history can.
MISSED = {"ember, with a frame"}


def test_there_are_at_least_a_hundred_shells() -> None:
    """Built by real generators and by hand, bare and fattened."""
    assert len(SHELLS) >= 100


@pytest.mark.parametrize("name", sorted(SHELLS.keys() - MISSED))
def test_shells_are_noticed(name: str) -> None:
    """Every shell is rendered, or left to what renders gained at its host before."""
    assert triage(SHELLS[name].encode(), HTML).verdict is not RenderNeed.PLAIN


def test_nearly_all_shells_are_rendered_at_once() -> None:
    """At least 95 of 100 need no history."""
    sure = sum(triage(html.encode(), HTML).verdict is RenderNeed.RENDER for html in SHELLS.values())

    assert sure / len(SHELLS) >= 0.95


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page_html("ordinary", ["/1", "/2", "/3"]), id="ordinary"),
        pytest.param(page_html("thin", ["/1"], body="<p>Only a few words.</p>"), id="thin, without a script"),
        pytest.param(
            page_html("counted", ["/1", "/2"], body=f"<p>{text('x', 60)}</p><script src='/analytics.js'></script>"),
            id="short, with a script",
        ),
        pytest.param(
            page_html("data", body="<p>Few words</p><script type='application/ld+json'>{}</script>"),
            id="a script that is data",
        ),
        pytest.param(
            page_html("root", ["/1", "/2", "/3"], body=f"<div id=root>{text('y', 300)}</div><script src=x></script>"),
            id="rendered by the server",
        ),
        pytest.param(b"", id="empty"),
        pytest.param(b"<script", id="cut"),
        pytest.param(b"<div>" * 60_000 + b"<script>1</script>", id="a parser bomb"),
    ],
)
def test_ordinary_pages_are_left_alone(page: bytes) -> None:
    """Neither few words nor a script alone make an application."""
    assert triage(page, HTML).verdict is RenderNeed.PLAIN


def test_the_signals_are_named() -> None:
    """The verdict's reasons are words for the archive and the shell."""
    found = triage(SHELLS["create-react-app, thin"].encode(), HTML)

    assert "empty application root" in found.signals
    assert str(found).startswith("render (score ")


NOTHING = Gain()


@pytest.mark.parametrize(
    ("url", "shape"),
    [
        ("http://a.test", "/"),
        ("http://a.test/", "/"),
        ("http://a.test/about", "/*"),
        ("http://a.test/item/17", "/item/*"),
        ("http://a.test/item/17/reviews", "/item/*/*"),
        ("http://a.test/docs/index.html?x=1", "/docs/*.html"),
        ("http://a.test/v1.2", "/*"),
    ],
)
def test_a_template_is_a_paths_shape(url: str, shape: str) -> None:
    """What varies becomes a star."""
    assert template(url) == shape


@pytest.mark.parametrize(
    ("plain", "shown", "paid"),
    [
        ((0, 0), (300, 5), True),
        ((100, 2), (110, 2), False),
        ((100, 2), (100, 6), True),
        ((100, 10), (100, 11), False),
        ((0, 0), (5, 0), False),
    ],
)
def test_what_pays(plain: tuple[int, int], shown: tuple[int, int], paid: bool) -> None:
    """A fifth more words, or links that were not there."""
    assert pays(*plain, *shown) is paid


def test_a_plain_page_is_never_rendered() -> None:
    """Whatever others of its kind have gained."""
    assert not worth_a_render(RenderNeed.PLAIN, Gain(9, 9), Gain(9, 9), 0.0)


def test_five_that_did_not_pay_stop_a_template() -> None:
    """One in fifty is tried all the same, and one that pays starts it again."""
    gain = NOTHING
    for _ in range(5):
        assert worth_a_render(RenderNeed.RENDER, gain, gain, 0.5)
        gain = gain.learned(pays=False)
    assert not worth_a_render(RenderNeed.RENDER, gain, gain, 0.5)
    assert worth_a_render(RenderNeed.RENDER, gain, gain, 0.01)
    assert worth_a_render(RenderNeed.RENDER, gain.learned(pays=True), gain, 0.5)


def test_a_doubt_is_decided_by_history() -> None:
    """Two trials, then what the template or the host has gained; else one in ten."""
    unpaid = NOTHING.learned(pays=False).learned(pays=False)

    assert worth_a_render(RenderNeed.UNSURE, NOTHING, NOTHING, 0.5)
    assert not worth_a_render(RenderNeed.UNSURE, unpaid, unpaid, 0.5)
    assert worth_a_render(RenderNeed.UNSURE, unpaid, Gain(3, 1), 0.5)
    assert worth_a_render(RenderNeed.UNSURE, Gain(3, 1), Gain(3, 1), 0.5)
    assert worth_a_render(RenderNeed.UNSURE, unpaid, unpaid, 0.05)
