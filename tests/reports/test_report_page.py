"""Plots: every mark is in proportion, every text escaped and whole."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.reports.report_page import Bar, bars, line, ticks

AMOUNTS = st.floats(0.0, 1e12, allow_nan=False, allow_subnormal=False).filter(lambda value: value == 0 or value > 1e-6)


def widths(html: str) -> list[float]:
    """Of all bars, in their order."""
    return [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', html)]


def test_bars_are_as_long_as_their_share() -> None:
    """The longest fills the row; one of next to nothing can still be seen, one of nothing cannot."""
    html = bars([Bar("a", 200.0, "200"), Bar("b", 50.0, "50"), Bar("c", 0.001, "few"), Bar("d", 0.0, "none")])
    assert widths(html) == [100.0, 25.0, 0.5, 0.0]


def test_bars_of_nothing_have_no_length() -> None:
    """No division by the largest of them."""
    assert widths(bars([Bar("a", 0.0, "0")])) == [0.0]
    assert bars([]) == '<ul class="bars"></ul>'


def test_a_bar_may_have_a_kind() -> None:
    """A class of the style sheet beside that of all bars."""
    html = bars([Bar("a", 1.0, "1", "short"), Bar("b", 1.0, "1")])
    assert re.findall(r'<rect class="([^"]*)"', html) == ["bar short", "bar"]


@pytest.mark.parametrize("text", ["<script>x</script>", "a&b", '"'])
def test_names_and_texts_are_escaped(text: str) -> None:
    """They come from logs, and so from strangers."""
    html = bars([Bar(text, 1.0, text)]) + line(text, (text, text), [1.0], lambda value: text)
    root = ElementTree.fromstring(f"<div>{html}</div>")
    assert text in [each.text for each in root.iter("span")]
    assert [each.get("aria-label") for each in root.iter("svg") if each.get("role") == "img"] == [text]


def test_a_line_goes_from_edge_to_edge() -> None:
    """Equal distances, zero at the bottom, the axis's highest mark at the top."""
    html = line("Pages", ("10:00", "10:02"), [0.0, 2.0, 4.0], str)
    points = re.search(r'<polyline class="curve" points="([^"]*)"', html)
    assert points is not None
    assert points[1] == "0.00,100.00 50.00,50.00 100.00,0.00"
    assert re.findall(r'<text x="100%" y="([\d.]+)%">([\d.]+)</text>', html) == [
        ("100.00", "0.0"), ("75.00", "1.0"), ("50.00", "2.0"), ("25.00", "3.0"), ("0.00", "4.0"),
    ]  # fmt: skip


@pytest.mark.parametrize("values", [[], [0.0], [7.0]])
def test_a_line_of_next_to_nothing_is_drawn(values: list[float]) -> None:
    """An empty log, or one interval, is no error."""
    assert "<polyline" in line("Pages", ("", ""), values, str)


@pytest.mark.parametrize(
    ("most", "whole", "marks"),
    [
        (10.0, False, [2.5, 5.0, 7.5, 10.0]),
        (10.0, True, [5.0, 10.0]),
        (0.0, False, [0.25]),
        (0.3, True, [1.0]),
        (1000.0, True, [500.0, 1000.0]),
    ],
)
def test_marks_of_an_axis(most: float, *, whole: bool, marks: list[float]) -> None:
    """Round numbers; what counts whole things has no halves."""
    assert ticks(most, whole=whole)[: len(marks)] == marks


@given(AMOUNTS)
def test_marks_are_few_round_and_within_reach(most: float) -> None:
    """Whatever the values: one to eight of them, in equal steps, none far above the largest value."""
    marks = ticks(most)
    assert 1 <= len(marks) <= 8
    assert marks[-1] <= max(most * 1.01, marks[0])
    assert all(abs(mark - number * marks[0]) <= marks[0] * 1e-6 for number, mark in enumerate(marks, 1))
