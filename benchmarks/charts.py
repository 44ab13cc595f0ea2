"""A line chart as SVG text, without a plotting library: for figures in docs/ that a script makes."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 720, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 190, 40, 50
_COLOURS = ("#888888", "#d95f02", "#7570b3", "#1b9e77", "#66a61e", "#000000", "#e7298a")


class Line(NamedTuple):
    """One series of (x, y) points."""

    name: str
    points: list[tuple[float, float]]


def line_chart(lines: list[Line], *, title: str, x: str, y: str) -> str:
    """The chart; x from the smallest to the largest value on a log scale, y likewise on a plain one."""
    xs = [point[0] for line in lines for point in line.points]
    ys = [point[1] for line in lines for point in line.points]
    low, high = 5 * math.floor(min(ys) / 5), 5 * math.ceil(max(ys) / 5)

    def across(value: float) -> float:
        whole = math.log(max(xs) / min(xs)) or 1.0
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * math.log(value / min(xs)) / whole

    def down(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
    ]
    for value in range(low, high + 1, 5):
        at = down(value)
        parts.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{value}</text>')
    for x_value in sorted(set(xs)):
        parts.append(f'<text x="{across(x_value):.1f}" y="{_HEIGHT - 30}" text-anchor="middle">{x_value:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x)}</text>')
    parts.append(
        f'<text transform="translate(16 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(y)}</text>'
    )
    ends = sorted(((down(line.points[-1][1]), number) for number, line in enumerate(lines)), key=lambda end: end[0])
    labels: dict[int, float] = {}
    last = -math.inf
    for at, number in ends:  # names beside the line ends, pushed apart where they would overlap
        last = labels[number] = max(at, last + 15)
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{across(px):.1f},{down(py):.1f}" for px, py in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across(px):.1f}" cy="{down(py):.1f}" r="3" fill="{colour}"/>' for px, py in line.points
        ]
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 10}" y="{labels[number] + 4:.1f}" fill="{colour}">{escape(line.name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])
