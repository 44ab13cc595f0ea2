"""The report as one HTML page: plots with their figures below, no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from crawlerproject.reports.crawl_report import Count, CrawlReport
from crawlerproject.reports.svg import Bar, Series, bars, lines

STYLE = """
:root { color-scheme: light dark; --mark: #2a6f97; --second: #b3541e }
@media (prefers-color-scheme: dark) { :root { --mark: #7cc0e8; --second: #f0a070 } }
* { box-sizing: border-box }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 84rem }
h1 { font-size: 1.5rem; line-height: 1.2; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 0 0 .5rem }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .5rem; margin: 1rem 0 }
dl div { border: 1px solid; border-radius: .4rem; padding: .4rem .7rem } dt { font-size: .85rem }
dd { margin: 0; font-size: 1.2rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1.5rem 2rem }
section { min-width: 0 }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; fill: currentColor }
.bar { fill: var(--mark) } .axis { fill: none; stroke: currentColor; stroke-width: 1 }
.line0, .line1 { fill: none; stroke: var(--mark); stroke-width: 2 }
.line1 { stroke: var(--second); stroke-dasharray: 6 4 }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #8886; vertical-align: top }
td.n { text-align: right; white-space: nowrap } td { min-width: 4rem } summary { cursor: pointer; padding: .4rem 0 }
@media (max-width: 40rem) { svg { font-size: 20px } }
""".strip()


def page(title: str, report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]]) -> str:
    """The whole page. ``states``: hosts by state; ``traps``: host, template and why of suspects."""
    head = [
        ("Pages", f"{report.pages:,}"),
        ("Attempts", f"{report.attempts:,}"),
        ("Hosts", f"{report.hosts:,}"),
        ("Bytes", f"{report.bytes:,}"),
        ("Pauses too short", f"{report.short_pauses:,}"),
        ("From (UTC)", _time(report.began)),
        ("To (UTC)", _time(report.ended)),
    ]
    cards = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in head)
    return document(
        title, f"<h1>{escape(title)}</h1><dl>{cards}</dl><main>{''.join(_sections(report, states, traps))}</main>"
    )


def document(title: str, body: str, head: str = "") -> str:
    """A page in the common style."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n{head}<style>\n{STYLE}\n</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _over_time(report: CrawlReport) -> str:
    over, ends = report.over_time, _ends(report)
    pages, received = [moment.pages for moment in over], [moment.bytes for moment in over]
    series = [
        Series("pages", pages, f"{max(pages, default=0):,}"),
        Series("bytes", received, _short(max(received, default=0))),
    ]
    return section(
        "Pages and bytes over time",
        lines("Pages and bytes over time", ends, series)
        + _details(["time", "pages", "bytes"], [[m.time, m.pages, m.bytes] for m in over]),
    )


def _renders(report: CrawlReport) -> str:
    if not report.rendered:
        return section("Renders", "<p>No attempt by a browser.</p>")
    rendered = [moment.rendered for moment in report.over_time]
    chart = lines("Renders over time", _ends(report), [Series("renders", rendered, f"{max(rendered):,}")])
    return section("Renders", f"<p>{report.rendered:,} attempts by a browser.</p>{chart}")


def _ends(report: CrawlReport) -> tuple[str, str]:
    over = report.over_time
    return (over[0].time, over[-1].time) if over else ("", "")


def _sections(report: CrawlReport, states: Mapping[str, int], traps: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield _over_time(report)
    yield _plot("Status codes", report.statuses)
    yield _plot("Response times (to the first byte)", report.response_times)
    yield _plot("Pauses: kept minus promised", report.margins, "How much longer than promised hosts were left alone.")
    yield _plot("Hosts by state", [Count(state, count) for state, count in states.items()])
    yield _plot("File types", report.types)
    yield _plot("Near-duplicates", report.duplicates, "Of the pages with status 200, by what the log says of them.")
    yield _renders(report)
    yield _plot("Top errors", report.errors)
    yield section(
        "Trap suspects", table(["host", "template", "why"], [[t["host"], t["template"], t["why"]] for t in traps])
    )
    yield section(
        "Extension against Content-Type",
        "<p>An extension that is never HTML may be worth skipping: SKIP_EXTENSIONS.</p>"
        + table(
            ["extension", "Content-Type", "pages", "bytes", "HTML"],
            [
                [row["extension"] or "(none)", row["type"], row["pages"], row["bytes"], f"{row['html_share']:.0%}"]
                for row in report.extensions
            ],
        ),
    )
    yield section(
        "Hosts that yield nothing new",
        table(
            ["host", "pages", "different", "share", "bytes"],
            [
                [row["host"], row["pages"], row["new"], f"{row['share']:.0%}", row["bytes"]]
                for row in report.stale_hosts
            ],
        ),
    )


def _plot(title: str, counts: Sequence[Count], note: str = "") -> str:
    """Bars with number and share, and nothing but a word when there is none."""
    total = sum(count.number for count in counts)
    if not total:
        return section(title, "<p>None.</p>")
    rows = [Bar(name, count, f"{count:,} ({count / total:.0%})") for name, count in counts]
    return section(title, (f"<p>{escape(note)}</p>" if note else "") + bars(title, rows))


def section(title: str, content: str) -> str:
    """One part of the page."""
    return f"<section><h2>{escape(title)}</h2>{content}</section>"


def table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table that scrolls by itself on a narrow screen; numbers to the right."""
    lines_ = [_row(row) for row in rows]
    if not lines_:
        return "<p>None.</p>"
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines_)}</tbody></table></div>'


def _row(row: Sequence[Any]) -> str:
    cells = [
        f'<td class="n">{cell:,}</td>' if isinstance(cell, int) else f"<td>{escape(str(cell))}</td>" for cell in row
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _details(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    return f"<details><summary>Figures</summary>{table(names, rows)}</details>"


def _time(text: str) -> str:
    return text[:19].replace("T", " ")


def _short(count: int) -> str:
    """Bytes as a label: ``321.6 kB``."""
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
