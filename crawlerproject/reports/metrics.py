"""The state of a running crawl as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

# Statistics that become a counter with the last part of their key as label ``reason``.
_BY_REASON = {
    "pages/": ("crawler_attempts", "Attempts by what became of them, robots.txt included"),
    "refused/": ("crawler_refused", "URLs refused, when found or when their turn came"),
}
_COUNTERS = {
    "bytes/received": ("crawler_received_bytes", "Bytes on the wire"),
    "pace/guard_refused": ("crawler_pace_guard_refused", "Requests that the pace guard did not send; must stay 0"),
    "errors/ours": ("crawler_own_errors", "Errors of the program itself"),
}
_GAUGES = {
    "queued_urls": ("crawler_queued_urls", "URLs known and not yet decided"),
}
_STATES = ("in_flight", "ready", "waiting", "resting", "on_disk")


class _Crawl(Collector):
    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        status = self._status()
        if not status:
            return
        progress, stats = status["progress"], status["stats"]
        for prefix, (name, text) in _BY_REASON.items():
            family = CounterMetricFamily(name, text, labels=["reason"])
            for key, value in stats.items():
                if key.startswith(prefix):
                    family.add_metric([key.removeprefix(prefix)], value)
            yield family
        for key, (name, text) in _COUNTERS.items():
            yield CounterMetricFamily(name, text, value=stats.get(key, 0))
        for key, (name, text) in _GAUGES.items():
            yield GaugeMetricFamily(name, text, value=progress[key])
        hosts = GaugeMetricFamily("crawler_hosts", "Hosts with work by what they do", labels=["state"])
        for state in _STATES:
            hosts.add_metric([state], progress[f"hosts_{state}"])
        yield hosts
        yield GaugeMetricFamily(
            "crawler_paused", "1 while the crawl pauses for want of room", value=bool(progress["paused"])
        )
        yield GaugeMetricFamily(
            "crawler_loop_lag_seconds", "How late the loop's beat comes", value=status["lag_seconds"]
        )
        yield GaugeMetricFamily("crawler_cpu_share", "CPU time per second of one core", value=status["cpu_share"])


def metrics(status: Callable[[], Mapping[str, Any]]) -> Callable[[], bytes]:
    """Who gives the text of the metrics; ``status`` is asked each time."""
    registry = CollectorRegistry()
    registry.register(_Crawl(status))
    return lambda: generate_latest(registry)
