"""Plots of a soak over its time, as SVG text: plain axes from zero, and a line for each moment of a kill."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from benchmarks.charts import Line
from crawlerproject.reports.report_page import ticks

_WIDTH, _HEIGHT = 760, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 34, 44
_COLOURS = ("#1b6ca8", "#d95f02", "#1b9e77", "#7570b3", "#888888")
_NAME_HEIGHT = 16


class Frame(NamedTuple):
    """The place of values in a plot."""

    most_x: float
    most_y: float

    def x(self, value: float) -> float:
        """Of a moment."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.most_x

    def y(self, value: float) -> float:
        """Of a value."""
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.most_y


def plot(title: str, unit: str, lines: list[Line], kills: list[float]) -> str:
    """One plot; x in minutes."""
    marks_x = ticks(max((x for line in lines for x, _ in line.points), default=1.0))
    marks_y = ticks(max((y for line in lines for _, y in line.points), default=1.0))
    frame = Frame(
        max([marks_x[-1], *(x for line in lines for x, _ in line.points)]),
        max([marks_y[-1], *(y for line in lines for _, y in line.points)]),
    )
    right, ground = _WIDTH - _RIGHT, frame.y(0.0)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12"><style>text{fill:#333}</style>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{escape(title)}, {escape(unit)}</text>',
    ]
    for mark in (0.0, *marks_y):
        at = frame.y(mark)
        parts.append(f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{mark:,g}</text>')
    for mark in (0.0, *marks_x):
        parts.append(f'<text x="{frame.x(mark):.1f}" y="{ground + 18:.1f}" text-anchor="middle">{mark:g}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">minutes</text>')
    parts += [f'<path d="M{frame.x(at):.1f} {_TOP}V{ground:.1f}" stroke="#e3b7b7"/>' for at in kills]
    for number, line in enumerate(lines):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
        at = _TOP + 10 + number * _NAME_HEIGHT
        parts.append(f'<rect x="{right + 14}" y="{at - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{right + 30}" y="{at}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
