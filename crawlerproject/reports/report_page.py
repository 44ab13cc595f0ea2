"""The report as one HTML page: plots with their figures below, no script, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import Any

from crawlerproject.reports.crawl_report import Count, CrawlReport
from crawlerproject.reports.svg import Bar, bars, line

STYLE = "".join((files("crawlerproject.reports") / name).read_text() for name in ("look.css", "report.css"))
"""What a crawl's live page has as well, and the report's own."""

# A smaller one is rounded to nothing, which it is not.
_LEAST_SHARE = 0.005
# Of a figure in large letters.
_SHORT_LETTERS, _LONG = 12, ' class="long"'
_PERCENT = re.compile(r"\d+ ?%")
# Below so many a second an axis counts by the minute.
_FEW_A_SECOND = 0.5


def page(title: str, report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]]) -> str:
    """The whole page. ``states``: hosts by state; ``traps``: host, template and why of suspects."""
    head = [
        ("Pages", f"{report.pages:,}"),
        ("Attempts", f"{report.attempts:,}"),
        ("Hosts", f"{report.hosts:,}"),
        ("Received", _bytes(report.bytes)),
        ("Pauses too short", f"{report.short_pauses:,}"),
        ("From (UTC)", _time(report.began)),
        ("To (UTC)", _time(report.ended)),
    ]
    cards = "".join(
        f"<div><dt>{name}</dt><dd{_LONG if len(value) > _SHORT_LETTERS else ''}>{escape(value)}</dd></div>"
        for name, value in head
    )
    sections = "".join(_sections(report, states, traps))
    body = f'<h1>{escape(title)}</h1><dl class="figures">{cards}</dl><main class="cards">{sections}</main>'
    return document(title, body)


def document(title: str, body: str, head: str = "") -> str:
    """A page in the common style."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n{head}"
        f"<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _over_time(report: CrawlReport) -> str:
    over, ends, seconds = report.over_time, _ends(report), report.moment_seconds or 1.0
    received = [moment.bytes / seconds for moment in over]
    return section(
        "Pages and bytes over time",
        _note(f"Means over {seconds:,.3g} s each; robots.txt is no page, bytes are those on the wire. {_day(report)}")
        + _rates("Pages over time", ends, [moment.pages / seconds for moment in over], "pages")
        + line("Bytes over time", ends, received, lambda value: f"{_bytes(value)}/s", whole=True)
        + _details(["time (UTC)", "pages", "bytes"], [[m.time, m.pages, m.bytes] for m in over]),
        wide=True,
    )


def _renders(report: CrawlReport) -> str:
    if not report.rendered:
        return section("Renders", "<p>No attempt by a browser.</p>")
    seconds = report.moment_seconds or 1.0
    chart = _rates("Renders over time", _ends(report), [m.rendered / seconds for m in report.over_time], "renders")
    return section("Renders", f"<p>{report.rendered:,} attempts by a browser.</p>{chart}")


def _rates(title: str, ends: tuple[str, str], rates: Sequence[float], what: str) -> str:
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


def _sections(report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield _over_time(report)
    statuses = [Count(_status(count.name), count.number) for count in report.statuses]
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


def _tables(report: CrawlReport, traps: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield section(
        "Trap suspects",
        table(["host", "template", "why"], [[t["host"], t["template"], t["why"]] for t in traps]),
        wide=True,
    )
    yield section(
        "Extension against Content-Type",
        _note("An extension that is never HTML may be worth skipping: SKIP_EXTENSIONS.")
        + table(
            ["extension", "Content-Type", "pages", "bytes", "HTML"],
            [
                [row["extension"] or "(none)", row["type"], row["pages"], row["bytes"], f"{row['html_share']:.0%}"]
                for row in report.extensions
            ],
        ),
    )
    yield section(
        "Hosts that mostly repeat themselves",
        _note("Hosts of whose pages at most half were new: what they have may be worth fewer visits.")
        + table(
            ["host", "pages", "new", "share", "bytes"],
            [
                [row["host"], row["pages"], row["new"], f"{row['share']:.0%}", row["bytes"]]
                for row in report.stale_hosts
            ],
        ),
    )


def _plot(title: str, counts: Sequence[Count], note: str, kind: Callable[[str], str] = lambda name: "") -> str:
    """Bars with number and share, and nothing but a word when there is none; ``note`` says what is counted."""
    total = sum(count.number for count in counts)
    if not total:
        return section(title, "<p>None.</p>")
    rows = [Bar(name, count, f"{count:,} ({_share(count / total)})", kind(name)) for name, count in counts]
    return section(title, _note(note) + bars(rows))


def section(title: str, content: str, *, wide: bool = False) -> str:
    """One part of the page; a wide one has the whole row."""
    return f'<section class="card{" wide" if wide else ""}"><h2>{escape(title)}</h2>{content}</section>'


def _note(text: str) -> str:
    return f'<p class="dim">{escape(text)}</p>'


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls by itself on a narrow screen; numbers and the heads above them to the right."""
    lines = [list(row) for row in rows]
    if not lines:
        return "<p>None.</p>"
    kinds = [' class="n"' if _is_number(cell) else "" for cell in lines[0]]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for kind, name in zip(kinds, names, strict=True))
    body = "".join(f"<tr>{''.join(map(_cell, kinds, row))}</tr>" for row in lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(kind: str, cell: Any) -> str:
    return f"<td{kind}>{f'{cell:,}' if isinstance(cell, int) else escape(str(cell))}</td>"


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int) or _PERCENT.fullmatch(str(cell)) is not None


def _details(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return f"<details><summary>Figures</summary>{table(names, rows)}</details>"


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _share(part: float) -> str:
    return f"{part:.0%}" if part >= _LEAST_SHARE or not part else "<1%"


def _status(code: str) -> str:
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
