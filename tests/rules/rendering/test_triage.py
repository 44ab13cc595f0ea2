"""Which pages need a browser, and when one more render is worth it."""

import pytest

from crawlerproject.rules.rendering.triage import Gain, RenderNeed, pays, template, triage, worth_a_render
from tests.web.answers import page_html, text
from tests.web.shells import shells

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
