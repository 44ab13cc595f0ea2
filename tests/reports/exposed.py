"""Every metric that a crawl can show, with its labels: what dashboards and alerts may ask for."""

from __future__ import annotations

from functools import cache

from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.reports.metric_tables import BY_LABEL
from crawlerproject.reports.metrics import crawl_metrics, metrics
from tests.watch.test_whole import status


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
        workers=[worker],
    )
    text = metrics(lambda: said)().decode()
    text += crawl_metrics(said, {"running": True, "queued": 1, "poison": 0, "workers": [worker]}, 9.0)
    return {
        sample.name: frozenset(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
