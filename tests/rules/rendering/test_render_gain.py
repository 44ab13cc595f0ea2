"""Whether one more render of a template is worth it."""

import pytest

from crawlerproject.rules.rendering.render_gain import Gain, pays, template, worth_a_render
from crawlerproject.rules.rendering.triage import RenderNeed

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
