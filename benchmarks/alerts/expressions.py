"""What the dashboard and the rules ask of Prometheus: each must have an answer from a crawl with cause to give one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.alerts.prometheus import RULES, Prometheus
from tests.web.running import PROJECT

BOARD = PROJECT / "docs" / "grafana.json"

#: What a crawl in good order has nothing of: a part of the expression -> why.
NOT_OF_A_FINE_CRAWL = {
    "crawler_errors_total": "every attempt has an answer",
    "crawler_backoffs_total": "no host has to rest",
    "crawler_refused_total": "every link may be followed",
    'class="5xx"': "no server fails",
    'code=~"403|429"': "it is welcome",
    'verdict="wait"': "every robots.txt can be had",
    "crawler_held_hosts": "no host is paused, and none has a limit",
    "crawler_dns_failures_total": "every name has an address",
    "crawler_upload": "its archive stays where it is",
    "crawler_worker_": "it is one process",
    "crawler_partitions": "it has all hosts",
    "changes(process_start_time_seconds": "it is started once",
}

_SELECTOR = re.compile(r"\b(?:(?:crawler|process)_\w+(?:\{[^}]*\})?|up\{[^}]*\})")
_LABEL_VALUES = re.compile(r"label_values\((.*), \w+\)")  # Grafana's own: all values of a label of these series


def of_the_board() -> Iterator[str]:
    """Every expression of the dashboard, in which everything is chosen; its choices and its marks as well."""
    board: dict[str, Any] = json.loads(BOARD.read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    found += [mark["expr"] for mark in board["annotations"]["list"]]
    for choice in board["templating"]["list"]:
        if choice["type"] == "query":
            found += _LABEL_VALUES.findall(choice["query"]["query"])
    return (expression.replace("$job", ".*").replace("$instance", ".*") for expression in found)


def of_the_rules() -> Iterator[str]:
    """Everything that the rules select. They themselves have an answer when they fire, no sooner."""
    lines = (line for line in RULES.read_text().splitlines() if not re.match(r" *(#|summary|runbook_url)", line))
    return iter(dict.fromkeys(_SELECTOR.findall("\n".join(lines))))


def unanswered(watching: Prometheus, crawl: str = "", known: Iterable[str] = ()) -> list[str]:
    """Expressions that had no number at any time of the watch, but for the ``known``; of one crawl, or of all."""
    asked = [*of_the_board(), *of_the_rules()]
    wanted = [expression for expression in asked if not any(part in expression for part in known)]
    return [expression for expression in wanted if not watching.numbers(_of(expression, crawl))]


def unmoved(watching: Prometheus) -> list[str]:
    """Metrics of the crawler that were 0 in all crawls at all times."""
    return [name for name in watching.names("crawler_") if not any(watching.numbers(name))]


def _of(expression: str, crawl: str) -> str:
    """Of one crawl alone: every selector of the rules and of the board gets its name."""
    if not crawl:
        return expression

    def narrowed(found: re.Match[str]) -> str:
        name, _, labels = found[0].partition("{")
        return f'{name}{{{labels.removesuffix("}")}{"," if labels else ""}crawl="{crawl}"}}'

    return _SELECTOR.sub(narrowed, expression)
