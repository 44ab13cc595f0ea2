"""A table: on a terminal its first rows, in the columns that have room; elsewhere lines with tabs, row by row."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from textwrap import wrap
from typing import Any, NamedTuple

from crawlerproject.rules.printable import printable_line, without_passwords
from crawlerproject.terminal import say

SCREEN_ROWS = 50
"""Of a table on a terminal (ours): what a person reads."""
_GAP = "   "
_TELLING = 28  # letters of the first column for whose sake others are left out: a name and its port
_SHORTEST = 8
ELLIPSIS = "…"


class Layout(NamedTuple):
    """``columns``: the title of each and how its cell is written, the first one's being a name."""

    columns: Mapping[str, Callable[[Any], str]]
    texts: tuple[str, ...]  # columns of words, which stand at their left; numbers at their right
    least_first: tuple[str, ...] = ()  # without room the first of these goes first


def is_screen() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def say_table(layout: Layout, rows: Iterable[Any]) -> list[str]:
    """Write the rows as they come; on a terminal hold them to find their widths. The columns that had no room."""
    if is_screen():
        return _on_screen(layout, list(rows))
    _write(layout.columns, "\t")
    for row in rows:
        _write((printable_line(cell(row)) for cell in layout.columns.values()), "\t")
    return []


def say_below(*lines: str) -> None:
    """What is said of a table as a whole: below it on a terminal, elsewhere on standard errors, apart from the rows."""
    if not is_screen():
        say(*lines, error=True)
        return
    for line in lines:
        say(*wrap(line, shutil.get_terminal_size().columns))


def _on_screen(layout: Layout, rows: list[Any]) -> list[str]:
    cells = {name: [printable_line(cell(row)) for row in rows] for name, cell in layout.columns.items()}
    widths = {name: max(map(len, (name, *texts))) for name, texts in cells.items()}
    shown, room = columns_that_fit(widths, layout.least_first, shutil.get_terminal_size().columns)
    first, *_ = widths
    widths[first] = min(widths[first], room)
    cells[first] = [_end_of(text, room) for text in cells[first]]
    aligned = {name: str.ljust if name in layout.texts else str.rjust for name in shown}
    _write((aligned[name](name, widths[name]) for name in shown), _GAP)
    _write(["-" * (sum(widths[name] for name in shown) + len(_GAP) * (len(shown) - 1))], _GAP)
    for row in zip(*(cells[name] for name in shown), strict=True):
        _write((aligned[name](cell, widths[name]) for name, cell in zip(shown, row, strict=True)), _GAP)
    return [name for name in widths if name not in shown]


def columns_that_fit(widths: Mapping[str, int], least_first: Iterable[str], room: int) -> tuple[list[str], int]:
    """The columns for which there is room, in the order of ``widths``, and the width of the first.

    Least important ones are left out before the first loses its telling part; a number is never cut.
    """
    shown = list(widths)
    least = min(widths[shown[0]], _TELLING)

    def others() -> int:
        return sum(widths[name] + len(_GAP) for name in shown[1:])

    for name in least_first:
        if least + others() <= room:
            break
        shown.remove(name)
    return shown, max(_SHORTEST, min(widths[shown[0]], room - others()))


def _end_of(text: str, room: int) -> str:
    """The end of a name says whose it is."""
    return text if len(text) <= room else ELLIPSIS + text[len(text) - room + len(ELLIPSIS) :]


def _write(cells: Iterable[str], between: str) -> None:
    sys.stdout.write(without_passwords(between.join(cells)).rstrip(" ") + "\n")
