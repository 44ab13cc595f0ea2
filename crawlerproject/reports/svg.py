"""Plots as inline SVG: bars, lines and histograms that scale with the page and read without colour.

Every plot is drawn on a canvas of fixed units and scaled by its viewBox; values stand beside the marks as text, a
second series has a dashed line, and colours follow the page (``currentColor`` and two variables of its style sheet).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 640
_ROW = 24  # of a bar chart
_LABEL = 190  # for the names of bars
_VALUE = 130  # for their values
_HEIGHT = 220  # of a line chart
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 80, 22, 34
_LETTERS = 26  # of a bar's name


class Bar(NamedTuple):
    """One bar: its name, its length, and what stands beside it."""

    name: str
    value: float
    text: str


class Series(NamedTuple):
    """One line of a chart; ``texts`` are the labels of its smallest and largest value."""

    name: str
    values: Sequence[float]
    top: str


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars, the given order."""
    most = max((row.value for row in rows), default=0.0) or 1.0
    room = WIDTH - _LABEL - _VALUE
    height = max(1, len(rows)) * _ROW + 8
    parts = []
    for number, row in enumerate(rows):
        y = number * _ROW + 4
        width = max(1.0, room * row.value / most) if row.value else 0.0
        parts.append(
            f'<text x="{_LABEL - 8}" y="{y + 15}" text-anchor="end">{escape(_short(row.name))}'
            f"<title>{escape(row.name)}</title></text>"
            f'<rect class="bar" x="{_LABEL}" y="{y + 3}" width="{width:.1f}" height="{_ROW - 8}"/>'
            f'<text x="{_LABEL + width + 6:.1f}" y="{y + 15}">{escape(row.text)}</text>'
        )
    return _svg(title, height, parts)


def lines(title: str, xs: tuple[str, str], series: Sequence[Series]) -> str:
    """One or two series over the same moments, each on its own scale from zero; ``xs``: first and last label."""
    room, depth = WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    base = _TOP + depth
    parts = [f'<path class="axis" d="M{_LEFT} {_TOP}V{base}H{_LEFT + room}"/>']
    for number, (name, values, top) in enumerate(series):
        most = max(values, default=0.0) or 1.0
        step = room / max(1, len(values) - 1)
        points = " ".join(f"{_LEFT + i * step:.1f},{base - depth * value / most:.1f}" for i, value in enumerate(values))
        x, anchor = ((_LEFT - 6, "end"), (_LEFT + room + 6, "start"))[number]
        key = _LEFT + 70 + number * 200  # of the legend
        parts.append(
            f'<polyline class="line{number}" points="{points}"/>'
            f'<text x="{x}" y="{_TOP + 8}" text-anchor="{anchor}">{escape(top)}</text>'
            f'<text x="{x}" y="{base}" text-anchor="{anchor}">0</text>'
            f'<line class="line{number}" x1="{key}" x2="{key + 30}" y1="8" y2="8"/>'
            f'<text x="{key + 36}" y="13">{escape(name)}</text>'
        )
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 10}">{escape(xs[0])}</text>')
    parts.append(f'<text x="{_LEFT + room}" y="{_HEIGHT - 10}" text-anchor="end">{escape(xs[1])}</text>')
    return _svg(title, _HEIGHT, parts)


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
