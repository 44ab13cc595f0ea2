"""The report as one HTML page: plots with their figures below, no script, nothing loaded from elsewhere.

Its parts are the macros of ``report.html``. Marks of plots are inline SVG that stretches with the page, text beside
them is HTML that never shrinks or is cut: a name as long as a URL wraps, numbers stand below each other, and an axis
has its unit at every mark. Colours are those of ``look.css``; none says anything that text does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from math import floor, log10
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from crawlerproject.reasons import REMEDIES, Reason
from crawlerproject.reports.crawl_report import Count, CrawlReport
from crawlerproject.rules.printable import counted

if TYPE_CHECKING:
    from jinja2 import Environment

# A smaller one is rounded to nothing, which it is not.
_LEAST_SHARE = 0.005
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_PERCENT = re.compile(r"\d+ ?%")
# Below so many a second an axis counts by the minute.
_FEW_A_SECOND = 0.5
_HUNDRED = 100  # units of every canvas: a mark's place is its share
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of an axis, times a power of ten
_WHOLE_STEPS = (1.0, 2.0, 5.0, 10.0)  # of one that counts whole things
_MARKS = 4  # of an axis, about
_REASONS = frozenset(map(str, Reason))


@cache
def templates() -> Environment:
    """The pages' templates; whatever is put into them is escaped."""
    from jinja2 import Environment, PackageLoader  # a third of a command's start, and Scrapy's list imports them all

    return Environment(loader=PackageLoader("crawlerproject.reports", ""), autoescape=True)


def _part(name: str, *values: Any) -> Markup:
    """A macro of the report's, filled in."""
    macros: Any = templates().get_template("report.html").module
    return Markup(getattr(macros, name)(*values))  # it comes from the template, which escapes


class Title(NamedTuple):
    """What the page is headed with."""

    name: str
    description: str  # "" for none


def page(
    title: Title, report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]], folder: str
) -> str:
    """The whole page. ``states``: hosts by state; ``traps``: host, template and why of suspects; ``folder``: of it."""
    figures = [
        ("Pages", f"{report.pages:,}{_visited(report)}"),
        ("Attempts", f"{report.attempts:,}"),
        ("Hosts", f"{report.hosts:,}"),
        ("Received", _bytes(report.bytes)),
        ("Pauses too short", f"{report.short_pauses:,}"),
        ("From (UTC)", _time(report.began)),
        ("To (UTC)", _time(report.ended)),
    ]
    parts = [part for part in _sections(report, states, traps, folder) if part]
    body = _part("page", title, report.about, [(name, text) for name, text in figures if text], parts)
    return _document(title, body)


class Linked(NamedTuple):
    """A line of a replay's first page."""

    link: str
    name: str
    title: str
    cells: Sequence[str]


def replay_page(
    title: Title, about: Sequence[tuple[str, str]], counted: str, seeds: Sequence[Linked], hosts: Sequence[Linked]
) -> str:
    """What a replay opens with. Its links lead from the collection's own address."""
    note = "A page leads to others as it did; what was not archived says so."
    return _document(title, _part("replay", title, about, counted, seeds, hosts, note))


def _document(title: Title, body: Markup) -> str:
    style = "".join((files("crawlerproject.reports") / name).read_text() for name in ("look.css", "report.css"))
    return _part("document", title.name, body, Markup(style))  # ours


def _handed_on(report: CrawlReport) -> Iterable[Markup]:
    """The first questions of a recipient of the archive."""
    yield _listing(
        "Seeds",
        f"What became of each, by its last attempt. {_of(report.seeds, report.seeds_in_all)}",
        ["seed", "what became of it"],
        [[seed.url, seed.became] for seed in report.seeds],
    )
    yield _listing(
        "Hosts",
        "Errors: attempts that brought no page, or no answer for robots.txt; bytes are those on the wire. "
        + _of(report.by_host, report.hosts),
        ["host", "pages", "bytes", "errors", "first", "last"],
        [[row[name] for name in ("host", "pages", "bytes", "errors", "first", "last")] for row in report.by_host],
    )
    yield _listing(
        "URLs that failed",
        f"By their last attempt. {_of(report.failed, report.failed_in_all)}",
        ["URL", "why", "attempts", "last (UTC)"],
        [
            [row["url"], row["reason"] if row["status"] is None else status_words(str(row["status"])), row["attempts"],
             _time(row["time"])]
            for row in report.failed
        ],
    )  # fmt: skip
    yield _listing(
        "Refused",
        "URLs that were found and not asked for, since the last start. docs/reasons.md explains each word.",
        ["why", "URLs", ""],
        [[name, number, REMEDIES.get(Reason(name), "") if name in _REASONS else ""] for name, number in report.refused],
    )


def _of(shown: Sequence[Any], in_all: int) -> str:
    return f"The first {len(shown):,} of {in_all:,}." if len(shown) < in_all else ""


def _listing(title: str, note: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Markup:
    return section(title, _note(note.strip()) + table(names, rows), wide=True) if rows else Markup()


def _visited(report: CrawlReport) -> str:
    """What is no page of its own: more visits of one, and what pages need."""
    visits = f", visited {counted(report.visits, 'time')}" if report.visits != report.pages else ""
    requisites = f", and {counted(report.requisites, 'file')} that pages need" if report.requisites else ""
    return visits + requisites


def _over_time(report: CrawlReport) -> Markup:
    if not report.attempts:
        return Markup()
    over, ends, seconds = report.over_time, _ends(report), report.moment_seconds or 1.0
    received = [moment.bytes / seconds for moment in over]
    return section(
        "Pages and bytes over time",
        _note(
            f"Means over {seconds:,.3g} s each; robots.txt and what pages need do not count, each visit "
            f"counts; bytes are those on the wire. {_day(report)}"
        )
        + _rates("Pages over time", ends, [moment.pages / seconds for moment in over], "pages")
        + line("Bytes over time", ends, received, lambda value: f"{_bytes(value)}/s", whole=True)
        + _part("details", table(["time (UTC)", "pages", "bytes"], [[m.time, m.pages, m.bytes] for m in over])),
        wide=True,
    )


def _renders(report: CrawlReport) -> Markup:
    if not report.rendered:
        return Markup()
    seconds = report.moment_seconds or 1.0
    chart = _rates("Renders over time", _ends(report), [m.rendered / seconds for m in report.over_time], "renders")
    return section("Renders", Markup("<p>{} by a browser.</p>").format(counted(report.rendered, "attempt")) + chart)


def _rates(title: str, ends: tuple[str, str], rates: Sequence[float], what: str) -> Markup:
    """A line of so many a second, or a minute where they are few."""
    few = max(rates, default=0.0) < _FEW_A_SECOND
    values = [60 * rate for rate in rates] if few else rates
    return line(title, ends, values, lambda value: f"{value:g} {what}/{'min' if few else 's'}")


def _ends(report: CrawlReport) -> tuple[str, str]:
    """When a chart begins and ends; without the day when it is the same, which ``_day`` says."""
    over = report.over_time
    if not over:
        return ("", "")
    first, last = over[0].time, over[-1].time
    return (first, last) if first[:10] != last[:10] else (first[11:], last[11:])


def _day(report: CrawlReport) -> str:
    over = report.over_time
    same = over and over[0].time[:10] == over[-1].time[:10]
    return f"Times are UTC, of {over[0].time[:10]}." if same else "Times are UTC."


def _sections(
    report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]], folder: str
) -> Iterable[Markup]:
    """In the order in which they are read; an empty one is left out."""
    yield from _handed_on(report)
    yield section("How to look at it", _part("look", folder), wide=True)
    yield _over_time(report)
    statuses = [Count(status_words(count.name), count.number) for count in report.statuses]
    yield _plot("Status codes", statuses, "Answers, robots.txt included.", lambda name: f"c{name[0]}")
    yield _plot(
        "Response times (to the first byte)", report.response_times, "Answers, by the time from the request sent."
    )
    yield _plot(
        "Pauses: kept minus promised",
        report.margins,
        "Requests, by how much longer than promised their host was left alone before.",
        lambda name: "short" if name.startswith("shorter") else "",
    )
    yield _plot("Hosts by state", [Count(state, count) for state, count in states.items()], "Hosts, at this moment.")
    yield _plot("File types", report.types, "Pages with status 200, by Content-Type.")
    yield _plot("Near-duplicates", report.duplicates, "Pages, each as it was last, by what the log says of them.")
    yield _renders(report)
    yield _plot("Top errors", report.errors, "Attempts without an answer, by reason.")
    yield from _tables(report, traps)


def _tables(report: CrawlReport, traps: Sequence[Mapping[str, Any]]) -> Iterable[Markup]:
    yield _listing(
        "Trap suspects",
        "Places that seem to have no end; what looks like one is not followed further.",
        ["host", "template", "why"],
        [[t["host"], t["template"], t["why"]] for t in traps],
    )
    yield _listing(
        "Extension against Content-Type",
        "An extension that is never HTML may be worth skipping: SKIP_EXTENSIONS.",
        ["extension", "Content-Type", "pages", "bytes", "HTML"],
        [
            [row["extension"] or "(none)", row["type"], row["pages"], row["bytes"], f"{row['html_share']:.0%}"]
            for row in report.extensions
        ],
    )
    yield _listing(
        "Hosts that mostly repeat themselves",
        "Hosts of whose pages at most half were new: what they have may be worth fewer visits.",
        ["host", "pages", "new", "share", "bytes"],
        [[row["host"], row["pages"], row["new"], f"{row['share']:.0%}", row["bytes"]] for row in report.stale_hosts],
    )


def _plot(title: str, counts: Sequence[Count], note: str, kind: Callable[[str], str] = lambda name: "") -> Markup:
    """Bars with number and share, nothing when nothing was counted; ``note`` says what is counted."""
    total = sum(count.number for count in counts)
    if not total:
        return Markup()
    rows = [Bar(name, count, f"{count:,} ({_share(count / total)})", kind(name)) for name, count in counts]
    return section(title, _note(note) + bars(rows))


def section(title: str, content: Markup, *, wide: bool = False) -> Markup:
    """One part of the page; a wide one has the whole row."""
    return _part("section", title, content, wide)


def _note(text: str) -> Markup:
    return _part("note", text)


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    """A table that scrolls by itself on a narrow screen; numbers and the heads above them to the right."""
    lines = [list(row) for row in rows]
    kinds = [_kind(cell) for cell in lines[0]]
    return _part(
        "table", names, kinds, [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in lines]
    )


def _kind(cell: Any) -> str:
    """A class of the style sheet: numbers stand to the right, and like dates on one line."""
    if isinstance(cell, int) or _PERCENT.fullmatch(str(cell)):
        return "n"
    return "day" if _DAY.match(str(cell)) else ""


class Bar(NamedTuple):
    """One bar: its name, its length, and what stands beside it; ``kind`` is a class of the style sheet."""

    name: str
    value: float
    text: str
    kind: str = ""


def bars(rows: Sequence[Bar]) -> Markup:
    """Horizontal bars, the given order."""
    most = max((row.value for row in rows), default=0.0) or 1.0
    return _part("bars", [(row, max(0.5, _HUNDRED * row.value / most) if row.value else 0.0) for row in rows])


def line(
    title: str, ends: tuple[str, str], values: Sequence[float], label: Callable[[float], str], *, whole: bool = False
) -> Markup:
    """Values at equal distances from zero up; ``ends``: labels of the first and the last, ``label``: a value's text.

    ``whole``: what is counted has no halves, so the axis has none.
    """
    marks = ticks(max(values, default=0.0), whole=whole)
    top = max(marks[-1], *values) if values else marks[-1]
    step = _HUNDRED / max(1, len(values) - 1)
    points = " ".join(f"{i * step:.2f},{_place(value, top):.2f}" for i, value in enumerate(values))
    grid = "".join(f"M0 {_place(mark, top):.2f}H{_HUNDRED}" for mark in marks)
    return _part("line", title, ends, [(_place(mark, top), label(mark)) for mark in (0.0, *marks)], points, grid)


def ticks(most: float, *, whole: bool = False) -> list[float]:
    """Round marks of an axis from zero to ``most``, zero left out; at least one."""
    rough = (most or 1.0) / _MARKS
    power = 10.0 ** floor(log10(rough))
    step = next(step * power for step in (_WHOLE_STEPS if whole else _STEPS) if step * power >= rough * 0.999)
    step = max(step, 1.0) if whole else step
    return [step * number for number in range(1, max(1, int(most / step + 0.001)) + 1)]


def _place(value: float, top: float) -> float:
    return _HUNDRED - _HUNDRED * value / top


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _share(part: float) -> str:
    return f"{part:.0%}" if part >= _LEAST_SHARE or not part else "<1%"


def status_words(code: str) -> str:
    """``404 Not Found``; a code that no RFC names alone."""
    try:
        return f"{code} {HTTPStatus(int(code)).phrase}"
    except ValueError:
        return code


def _bytes(count: float) -> str:
    """``321.6 kB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.95:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
