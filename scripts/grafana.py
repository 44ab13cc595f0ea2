"""Write docs/grafana.json: a dashboard of what a crawl shows at /metrics, from the table of panels below.

``python scripts/grafana.py``; a test compares the file with this table, and its metrics with those of a crawl.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOARD = Path(__file__).resolve().parent.parent / "docs" / "grafana.json"

# Grafana's grid is this wide; heights are in its rows.
GRID_COLUMNS = 24
HEIGHTS = {"stat": 4, "table": 4, "timeseries": 8}
# Every metric is selected by the job and the instances that are chosen at the top; @ stands for that in the table.
SELECTED = '{job=~"$job",instance=~"$instance"}'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """One picture: ``lines`` is expression -> legend; ``alarm`` the colour from 1 on, for what should stay 0."""

    kind: str
    columns: int
    title: str
    lines: dict[str, str]
    unit: str = "none"
    text: str = ""
    stacked: bool = False
    alarm: str = ""


def rate(metric: str, over: str = "5m") -> str:
    """Of all instances together, a second."""
    return f"sum(rate({metric}@[{over}]))"


def in_a_day(metric: str) -> str:
    """How much the counters have grown, over all instances."""
    return f"sum(increase({metric}@[1d]))"


def by(label: str, metric: str) -> dict[str, str]:
    """A line for each value of the label, a second."""
    return {f"sum by ({label}) (rate({metric}@[5m]))": f"{{{{{label}}}}}"}


def quantiles(metric: str) -> dict[str, str]:
    """Median and 95th percentile of a histogram."""
    found = {"0.5": "median", "0.95": "95 %"}
    return {
        f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket@[5m])))": name for share, name in found.items()
    }


def mean(metric: str) -> str:
    """Of a histogram."""
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


FIRST_BYTE = "crawler_first_byte_seconds"
ALLOWED = "crawler_allowed_answers_per_second"

PANELS = (
    Panel("stat", 4, "Pages per second", {rate("crawler_pages_total"): ""}, text="Answers that are pages."),
    Panel(
        "stat",
        4,
        "Pages of the whole crawl",
        {"sum(crawler_whole_crawl_pages_total@)": ""},
        "short",
        "Of all its starts.",
    ),
    Panel("stat", 4, "Queued URLs", {"sum(crawler_queued_urls@)": ""}, "short", "Known and not yet decided."),
    Panel("stat", 4, "Left", {"max(crawler_left_seconds@)": ""}, "s", "At the pace of now, if nothing new is found."),
    Panel("stat", 4, "Paused", {"max(crawler_paused@)": ""}, text="1 while nothing is asked at all.", alarm="orange"),
    Panel(
        "stat",
        4,
        "Broken promises",
        {
            in_a_day("crawler_short_pauses_total"): "short pauses",
            in_a_day("crawler_pace_guard_refused_total"): "stopped by the guard",
        },
        text="Pauses shorter than promised and requests that the guard stopped, in a day. Must stay 0.",
        alarm="red",
    ),
    Panel(
        "timeseries",
        12,
        "Pages, and what politeness allows",
        {rate("crawler_pages_total", "1m"): "pages", f"sum({ALLOWED}@)": "politeness allows"},
        text="Politeness allows so many answers over all hosts with work, robots.txt included.",
    ),
    Panel("timeseries", 12, "Bytes", {rate("crawler_received_bytes_total", "1m"): "received"}, "Bps", "On the wire."),
    Panel(
        "timeseries",
        8,
        "Hosts with work by state",
        {"sum by (state) (crawler_hosts@)": "{{state}}"},
        "short",
        stacked=True,
    ),
    Panel(
        "timeseries",
        8,
        "Hosts left alone",
        {"sum by (reason) (crawler_held_hosts@)": "{{reason}}", "sum(crawler_given_up_hosts@)": "after failures"},
        "short",
    ),
    Panel("timeseries", 8, "Queue", {"sum(crawler_queued_urls@)": "queued URLs"}, "short"),
    Panel("timeseries", 8, "Answers by class", by("class", "crawler_answers_total"), "reqps", stacked=True),
    Panel(
        "timeseries",
        8,
        "Errors by reason",
        by("reason", "crawler_errors_total"),
        "reqps",
        "Attempts without an answer.",
        stacked=True,
    ),
    Panel(
        "timeseries",
        8,
        "Refused by reason",
        by("reason", "crawler_refused_total"),
        text="URLs that were not asked for, when found or when their turn came.",
        stacked=True,
    ),
    Panel("timeseries", 8, "Attempts by outcome", by("reason", "crawler_attempts_total"), "reqps"),
    Panel(
        "timeseries",
        8,
        "Backoffs by reason",
        by("reason", "crawler_backoffs_total"),
        "reqps",
        "Answers and failures after which their host rests.",
    ),
    Panel(
        "timeseries",
        8,
        "robots.txt by verdict",
        by("verdict", "crawler_robots_answers_total"),
        "reqps",
        "What the answers to requests for robots.txt mean.",
        stacked=True,
    ),
    Panel("timeseries", 8, "Time to the first byte", quantiles(FIRST_BYTE) | {mean(FIRST_BYTE): "mean"}, "s"),
    Panel(
        "timeseries",
        8,
        "Pauses beyond the promise",
        quantiles("crawler_pause_excess_seconds"),
        "s",
        "How much longer than promised hosts were left alone before a request.",
    ),
    Panel(
        "timeseries",
        8,
        "DNS",
        {rate("crawler_dns_questions_total"): "questions"}
        | {expression: f"failed: {name}" for expression, name in by("reason", "crawler_dns_failures_total").items()},
        "reqps",
    ),
    Panel(
        "timeseries",
        8,
        "Commit lag",
        {"crawler_commit_lag_seconds@": "{{instance}}"},
        "s",
        "Since everything was durable for the last time.",
    ),
    Panel(
        "timeseries",
        8,
        "Time of a commit",
        quantiles("crawler_commit_seconds"),
        "s",
        "From its begin until it is durable.",
    ),
    Panel(
        "timeseries", 8, "Store sizes", {"sum by (store) (crawler_store_bytes@)": "{{store}}"}, "bytes", stacked=True
    ),
    Panel(
        "timeseries",
        8,
        "Memory",
        {
            "process_resident_memory_bytes@": "{{instance}}",
            "min(crawler_memory_limit_bytes@)": "limit",
        },
        "bytes",
    ),
    Panel(
        "timeseries",
        8,
        "Disk",
        {
            "crawler_disk_free_bytes@": "free, {{instance}}",
            "max(crawler_disk_min_free_bytes@)": "least",
            "max(crawler_disk_size_bytes@)": "size",
        },
        "bytes",
        "Below the second line the crawl pauses.",
    ),
    Panel(
        "timeseries", 8, "Descriptors", {"process_open_fds@": "{{instance}}", "min(process_max_fds@)": "limit"}, "short"
    ),
    Panel(
        "timeseries",
        8,
        "Processor and loop",
        {"crawler_cpu_share@": "CPU, {{instance}}", "crawler_loop_lag_seconds@": "loop late by (s), {{instance}}"},
        text="One core is 1. A late loop lets pauses grow longer, never shorter.",
    ),
    Panel(
        "timeseries",
        8,
        "Loop holds",
        {"rate(crawler_loop_holds_total@[5m])": "{{instance}} {{worker}}"},
        text="Times a second that the event loop was held for 50 ms or more.",
    ),
    Panel(
        "timeseries",
        8,
        "Share of time that the loop was held",
        {"rate(crawler_loop_held_seconds_total@[5m])": "{{instance}} {{worker}}"},
        "percentunit",
        "Holds of 50 ms or more.",
    ),
    Panel(
        "timeseries",
        8,
        "Uploads that wait",
        {"sum(crawler_upload_waiting_bytes@)": "closed, not at ARCHIVE_URL yet"},
        "bytes",
        "Only of a crawl with ARCHIVE_URL.",
    ),
    Panel(
        "timeseries",
        8,
        "Uploads",
        {rate("crawler_uploaded_bytes_total"): "sent"},
        "Bps",
        "Only of a crawl with ARCHIVE_URL.",
    ),
    Panel(
        "timeseries",
        8,
        "Uploads refused for",
        {"max(crawler_upload_refused_seconds@)": "since the first refusal"},
        "s",
        "Only of a crawl with ARCHIVE_URL.",
    ),
    Panel(
        "timeseries",
        12,
        "Workers: pages per second",
        {"crawler_worker_pages_per_second@": "{{worker}} {{machine}}"},
        text="Only of a fleet.",
        stacked=True,
    ),
    Panel(
        "timeseries",
        12,
        "Workers: since their last word",
        {"crawler_worker_silent_seconds@": "{{worker}} {{machine}}"},
        "s",
        "Only of a fleet. Beyond its lease others take over.",
    ),
    Panel("table", 16, "Versions", {"crawler_build_info@": ""}),
    Panel(
        "stat",
        4,
        "Errors of the program",
        {in_a_day("crawler_own_errors_total"): ""},
        text="In a day. Must stay 0.",
        alarm="red",
    ),
    Panel(
        "stat",
        4,
        "Commits that failed",
        {in_a_day("crawler_commit_failures_total"): ""},
        text="In a day. They are made again.",
        alarm="orange",
    ),
)


def places(panels: tuple[Panel, ...]) -> Iterator[dict[str, int]]:
    """Where each lies: row by row from the left; a row is as high as its first panel."""
    x, y, height = 0, 0, 0
    for panel in panels:
        if x + panel.columns > GRID_COLUMNS:
            x, y = 0, y + height
        height = HEIGHTS[panel.kind] if x == 0 else height
        yield {"x": x, "y": y, "w": panel.columns, "h": HEIGHTS[panel.kind]}
        x += panel.columns


def targets(panel: Panel) -> Iterator[dict[str, Any]]:
    """What a panel asks Prometheus."""
    form = {"instant": True, "format": "table"} if panel.kind == "table" else {"range": True}
    for place, (expression, legend) in enumerate(panel.lines.items()):
        asked = expression.replace("@", SELECTED)
        yield {"datasource": SOURCE, "expr": asked, "legendFormat": legend, "refId": chr(ord("A") + place), **form}


def defaults(panel: Panel) -> dict[str, Any]:
    """How its values are drawn."""
    found: dict[str, Any] = {"unit": panel.unit, "custom": {}}
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        fill = 40 if panel.stacked else 10
        found["custom"] = {"lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "stacking": stacking}
        found["min"] = 0
    if panel.alarm:
        steps = [{"color": "green", "value": None}, {"color": panel.alarm, "value": 1}]
        found["thresholds"] = {"mode": "absolute", "steps": steps}
    return found


OPTIONS: dict[str, dict[str, Any]] = {
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "area",
    },
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True},
}


def variable(label: str, selected: str) -> dict[str, Any]:
    """A choice at the top: all values of the label, among those that are ``selected`` already."""
    return {
        "name": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values(crawler_queued_urls{selected}, {label})", "refId": "A"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def board() -> dict[str, Any]:
    """The dashboard, in the form that Grafana imports."""
    chosen = {"name": "datasource", "type": "datasource", "query": "prometheus", "current": {}}
    starts = {
        "name": "Starts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "blue",
        "expr": f"changes(process_start_time_seconds{SELECTED}[1m]) > 0",
        "titleFormat": "Started",
    }
    panels = [
        {
            "id": number,
            "type": panel.kind,
            "title": panel.title,
            "description": panel.text,
            "datasource": SOURCE,
            "gridPos": place,
            "fieldConfig": {"defaults": defaults(panel), "overrides": []},
            "options": OPTIONS[panel.kind],
            "targets": list(targets(panel)),
        }
        for number, (panel, place) in enumerate(zip(PANELS, places(PANELS), strict=True), start=1)
    ]
    return {
        "uid": "polite-crawler",
        "title": "Polite crawler",
        "tags": ["crawler"],
        "description": "A crawl, from the /metrics of WATCH_PORT.",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [chosen, variable("job", ""), variable("instance", '{job=~"$job"}')]},
        "annotations": {"list": [starts]},
        "panels": panels,
    }


def text() -> str:
    """The whole file."""
    return json.dumps(board(), indent=1) + "\n"


if __name__ == "__main__":
    BOARD.write_text(text())
