"""Every metric that a crawl can show, with its labels: what dashboards and alerts may ask for."""

from __future__ import annotations

import logging
import re
from collections.abc import Container
from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.frontier.hosts.host import HELD
from crawlerproject.reasons import Reason
from crawlerproject.reports.metrics import BY_LABEL, STATES, crawl_metrics, metrics
from crawlerproject.rules.robots.policy import RobotsVerdict
from tests.watch.test_fleet_summary import status


class _Matching(Container[object]):
    """All words of a form."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __contains__(self, word: object) -> bool:
        return re.fullmatch(self._form, str(word)) is not None


_ANY = _Matching(".*")
LABELS: dict[str, Container[object]] = {
    "reason": {*map(str, Reason), *HELD},
    "verdict": {verdict.value for verdict in RobotsVerdict},
    "kind": {"exact", "canonical", "near"},
    "cause": {"length", "disconnect", "time"},
    "event": {"verified", "pushed", "asked", "refused", "queued", "announced"},
    "level": set(logging.getLevelNamesMapping()),
    "code": _Matching(r"[1-9]\d\d"),
    "class": _Matching("[1-9]xx"),
    "state": set(STATES),
    "store": {"frontier", "warc", "index", "log"},
    "le": _Matching(r"\d+\.\d+|\+Inf"),
    # The operator's own words, and those of what is installed: one a process.
    **dict.fromkeys(("worker", "machine", "crawl", "version", "python", "scrapy", "reader"), _ANY),
}
"""All words that a label may have, whatever the web sends: Prometheus keeps a series of each for as long as it keeps
anything."""


@cache
def exposed() -> dict[str, frozenset[str]]:
    """Name of a sample -> names of its labels, of a crawl in which everything has happened once."""
    worker = {
        "name": "local-1", "running": True, "paused": "", "pages": 1, "pages_per_second": 1.0,
        "reported_seconds_ago": 0.5, "partitions": 3,
    }  # fmt: skip
    said = status(
        stats={f"{prefix}connect-timeout": 1 for prefix in BY_LABEL},
        uploads={"error": "no", "failing_since": 0.0, "time": 0.0},
        held_hosts={"paused": 1},
        fleet={"absent": "", "crawl": "web", "held": 3, "partitions": 6},
        workers=[worker],
    )
    said["each"] = {"local-1": said}
    text = metrics(lambda: said)().decode()
    text += crawl_metrics(said, {"running": True, "queued": 1, "poison": 0, "workers": [worker]}, 9.0)
    return {
        sample.name: frozenset(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
