"""Plots for a page: marks as inline SVG that stretches with it, text beside them as HTML that never shrinks or is cut.

A name as long as a URL wraps, numbers stand below each other, and an axis has its unit at every mark. Colours are
those of ``look.css``; none says anything that text does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

_HUNDRED = 100  # units of every canvas: a mark's place is its share
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of an axis, times a power of ten
_WHOLE_STEPS = (1.0, 2.0, 5.0, 10.0)  # of one that counts whole things
_MARKS = 4  # of an axis, about


class Bar(NamedTuple):
    """One bar: its name, its length, and what stands beside it; ``kind`` is a class of the style sheet."""

    name: str
    value: float
    text: str
    kind: str = ""


def bars(rows: Sequence[Bar]) -> str:
    """Horizontal bars, the given order."""
    most = max((row.value for row in rows), default=0.0) or 1.0
    parts = []
    for name, value, text, kind in rows:
        width = max(0.5, _HUNDRED * value / most) if value else 0.0
        parts.append(
            f'<li><span class="name">{escape(name)}</span><span class="value">{escape(text)}</span>'
            f'<svg viewBox="0 0 {_HUNDRED} 1" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="{f"bar {kind}".strip()}" width="{width:.1f}" height="1"/></svg></li>'
        )
    return f'<ul class="bars">{"".join(parts)}</ul>'


def line(
    title: str, ends: tuple[str, str], values: Sequence[float], label: Callable[[float], str], *, whole: bool = False
) -> str:
    """Values at equal distances from zero up; ``ends``: labels of the first and the last, ``label``: a value's text.

    ``whole``: what is counted has no halves, so the axis has none.
    """
    marks = ticks(max(values, default=0.0), whole=whole)
    top = max(marks[-1], *values) if values else marks[-1]
    step = _HUNDRED / max(1, len(values) - 1)
    points = " ".join(f"{i * step:.2f},{_HUNDRED - _HUNDRED * value / top:.2f}" for i, value in enumerate(values))
    grid = "".join(f"M0 {_place(mark, top):.2f}H{_HUNDRED}" for mark in marks)
    names = "".join(
        f'<span style="top:{_place(mark, top):.2f}%">{escape(label(mark))}</span>' for mark in (0.0, *marks)
    )
    return (
        f'<figure class="line"><div class="marks">{names}</div>'
        f'<svg viewBox="0 0 {_HUNDRED} {_HUNDRED}" preserveAspectRatio="none" role="img" aria-label="{escape(title)}">'
        f'<path class="grid" d="{grid}"/><polygon class="area" points="0,{_HUNDRED} {points} {_HUNDRED},{_HUNDRED}"/>'
        f'<polyline class="curve" points="{points}"/><path class="axis" d="M0 {_HUNDRED}H{_HUNDRED}"/></svg>'
        f'<figcaption class="dim"><span>{escape(ends[0])}</span><span>{escape(ends[1])}</span></figcaption></figure>'
    )


def ticks(most: float, *, whole: bool = False) -> list[float]:
    """Round marks of an axis from zero to ``most``, zero left out; at least one."""
    rough = (most or 1.0) / _MARKS
    power = 10.0 ** floor(log10(rough))
    step = next(step * power for step in (_WHOLE_STEPS if whole else _STEPS) if step * power >= rough * 0.999)
    step = max(step, 1.0) if whole else step
    return [step * number for number in range(1, max(1, int(most / step + 0.001)) + 1)]


def _place(value: float, top: float) -> float:
    return _HUNDRED - _HUNDRED * value / top
