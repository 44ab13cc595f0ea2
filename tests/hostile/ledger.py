"""Who pays for an attack, how much, and how much that may be: a test's figures, and one table of them all.

A test says ``pays(attack, who, figure, unit, at_most=bound)``, which fails when the bound does not hold. ``make
hostile`` loads this module as a plugin of pytest (``-p tests.hostile.ledger``), which prints the rows when all tests
have ended. Rows of one attack and one payer, as of a parametrised test, are one line: that nearest to its bound.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

_PAGE = Path(__file__).resolve().parents[2] / "SECURITY.md"
_MARKS = "<!-- hostile: begin -->\n", "<!-- hostile: end -->"
_PROPERTY = "pays"


class Row(NamedTuple):
    """What one attack costs one payer."""

    attack: str
    who: str  # pays
    figure: float
    unit: str
    bound: float
    at_most: bool  # whether the bound is the most that it may be, or the least

    @property
    def holds(self) -> bool:
        """Whether the figure is within the bound."""
        return self.figure <= self.bound if self.at_most else self.figure >= self.bound

    @property
    def nearness(self) -> float:
        """How near the figure is to the bound, whatever the unit: positive beyond it."""
        beyond = self.figure - self.bound if self.at_most else self.bound - self.figure
        return beyond / (abs(self.bound) or 1.0)


_rows: list[Row] = []  # of the test that runs


def pays(
    attack: str,
    who: str,
    figure: float,
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> None:
    """Enter a row, and fail when its bound does not hold. Who pays is the site, a site beside it, the crawl or such."""
    bound = at_most if at_least is None else at_least
    assert bound is not None
    row = Row(attack, who, float(figure), unit, float(bound), at_least is None)
    _rows.append(row)
    assert row.holds, f"{attack}: {who} pays {figure:g} {unit}, {_bound(row)}"


def table(rows: Iterable[Row]) -> list[str]:
    """Markdown: one line for each attack and payer, in order of attack."""
    worst: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = row.attack, row.who, row.unit
        worst[key] = max(worst.get(key, row), row, key=lambda each: each.nearness)
    lines = ["| attack | who pays | figure | bound |", "|---|---|---|---|"]
    for _, row in sorted(worst.items()):
        broken = "" if row.holds else " **broken**"
        lines.append(f"| {row.attack} | {row.who} | {_number(row.figure)} {row.unit} | {_bound(row)}{broken} |")
    return lines


def _bound(row: Row) -> str:
    return f"at {'most' if row.at_most else 'least'} {_number(row.bound)}"


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure == int(figure) else f"{figure:,.2f}"


# --- the plugin -----------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--write`` puts the table into SECURITY.md."""
    parser.addoption("--write", action="store_true", help="put the table of attacks into SECURITY.md")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test's rows travel in its report, from a worker too."""
    report = yield
    report.user_properties.extend((_PROPERTY, tuple(row)) for row in _rows)
    _rows.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The table, and how many bounds hold."""
    reports = [each for kind in ("passed", "failed", "error") for each in terminalreporter.stats.get(kind, [])]
    # A passing test's set-up and end are no category of their own: "" has them.
    reports += terminalreporter.stats.get("", [])
    rows = [Row(*row) for each in reports for name, row in each.user_properties if name == _PROPERTY]
    if not rows or hasattr(config, "workerinput"):  # a worker has its share of them only
        return
    lines = table(rows)
    terminalreporter.section("who pays")
    for line in lines:
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"{sum(row.holds for row in rows)} of {len(rows)} bounds hold")
    if config.getoption("write"):
        first, last = _MARKS
        whole = re.compile(f"({re.escape(first)}).*({re.escape(last)})", re.DOTALL)
        text = "\n".join(lines) + "\n"
        _PAGE.write_text(whole.sub(lambda found: found[1] + text + found[2], _PAGE.read_text()))
