"""The state of a running crawl as Prometheus reads it. docs/grafana.json is a dashboard of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from crawlerproject.reasons import ANSWERED

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
_KNOWN_AT_TIMES = {
    "eta_seconds": ("crawler_left_seconds", "What the queue takes at the promised pace"),
    "ceiling_per_second": ("crawler_allowed_answers_per_second", "What politeness allows now, to all hosts with work"),
}
_STATES = ("in_flight", "ready", "waiting", "in_line", "looked_up", "resting", "on_disk")
_OF_ALL_STARTS = {
    "pages": ("crawler_whole_crawl_pages", "Pages since the crawl's first start"),
    "bytes": ("crawler_whole_crawl_received_bytes", "Bytes on the wire since the crawl's first start"),
    "errors": ("crawler_whole_crawl_errors", "Attempts without an answer since the crawl's first start"),
}
_HISTOGRAMS = {
    "first_byte_seconds": ("crawler_first_byte_seconds", "From the request sent to the first byte of its answer"),
    "pause_excess_seconds": (
        "crawler_pause_excess_seconds",
        "How much longer than promised a host was left alone before a request",
    ),
}
_MACHINE = {
    "disk_free_bytes": ("crawler_disk_free_bytes", "Free on the disk of the crawl's folder"),
    "disk_bytes": ("crawler_disk_size_bytes", "Size of the disk of the crawl's folder"),
    "disk_min_free_bytes": ("crawler_disk_min_free_bytes", "DISK_MIN_FREE_BYTES: with less the crawl pauses"),
    "memory_bytes": ("crawler_memory_limit_bytes", "Memory of the machine, or of the container where it has less"),
}


_UPLOADS = {
    "waiting_files": ("crawler_upload_waiting_files", "Closed files that are not at ARCHIVE_URL yet"),
    "waiting_bytes": ("crawler_upload_waiting_bytes", "Their size"),
}
_UPLOADED = {
    "sent_files": ("crawler_uploaded_files", "Files that ARCHIVE_URL took since the process that sends them began"),
    "sent_bytes": ("crawler_uploaded_bytes", "Bytes that were sent there"),
    "sent_again": ("crawler_uploaded_again", "Files that were not there as they were sent, and were sent again"),
}


class _Crawl(Collector):
    def __init__(self, status: Callable[[], Mapping[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        status = self._status()
        if not status:
            return
        yield from _uploads(status.get("uploads") or {})
        yield from _counted(status)
        yield from _answers(status)
        yield from _levels(status)


def metrics(status: Callable[[], Mapping[str, Any]]) -> Callable[[], bytes]:
    """Who gives the text of the metrics; ``status`` is asked each time."""
    registry = CollectorRegistry()
    registry.register(_Crawl(status))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total and their like
    return lambda: generate_latest(registry)


_OF_WORKERS = {
    "partitions": ("crawler_worker_partitions", "Partitions of hosts that the worker holds"),
    "pages_per_second": ("crawler_worker_pages_per_second", "Lately"),
    "reported_seconds_ago": ("crawler_worker_silent_seconds", "Since its last word; beyond its lease others take over"),
}


class _Workers(Collector):
    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = facts

    def collect(self) -> Iterator[Metric]:
        """What each worker has said last, and what is left for all."""
        rows, labels = self._facts.get("workers", []), ["worker", "machine"]
        pages = CounterMetricFamily("crawler_worker_pages", "Pages since the worker's start", labels=labels)
        paused = GaugeMetricFamily("crawler_worker_paused", "1 while it asks nothing at all", labels=labels)
        for row in rows:
            pages.add_metric([row["name"], row.get("machine", "")], row["pages"])
            paused.add_metric([row["name"], row.get("machine", "")], bool(row["paused"]))
        yield pages
        yield paused
        for key, (name, text) in _OF_WORKERS.items():
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for row in rows:
                gauge.add_metric([row["name"], row.get("machine", "")], row[key] or 0.0)
            yield gauge
        yield GaugeMetricFamily("crawler_workers", "Workers that have joined and not left", value=len(rows))
        yield GaugeMetricFamily(
            "crawler_all_queued_urls", "URLs not yet decided, all workers'", value=self._facts["queued"]
        )


def worker_metrics(facts: Mapping[str, Any]) -> str:
    """The metrics of all workers of a crawl, by what ``scrapy status --json`` says of it."""
    registry = CollectorRegistry()
    registry.register(_Workers(facts))
    return generate_latest(registry).decode()


def _counted(status: Mapping[str, Any]) -> Iterator[Metric]:
    """What only grows: since the process began, or the whole crawl."""
    progress, stats = status["progress"], status["stats"]
    for prefix, (name, text) in _BY_REASON.items():
        yield _labelled(name, text, "reason", _below(stats, prefix))
    failed = {reason: count for reason, count in _below(stats, "pages/").items() if reason not in ANSWERED}
    yield _labelled("crawler_errors", "Attempts without an answer", "reason", failed)
    for key, (name, text) in _COUNTERS.items():
        yield CounterMetricFamily(name, text, value=stats.get(key, 0))
    yield CounterMetricFamily("crawler_pages", "Answers, robots.txt left out", value=progress["pages"])
    for key, (name, text) in _OF_ALL_STARTS.items():
        yield CounterMetricFamily(name, text, value=status["totals"][key])


def _uploads(said: Mapping[str, Any]) -> Iterator[Metric]:
    """Where the archive goes to another place."""
    if not said:
        return
    for key, (name, text) in _UPLOADS.items():
        yield GaugeMetricFamily(name, text, value=said.get(key) or 0)
    for key, (name, text) in _UPLOADED.items():
        yield CounterMetricFamily(name, text, value=said.get(key) or 0)
    yield GaugeMetricFamily("crawler_upload_refused", "1 while that place refuses", value=bool(said.get("error")))


def _answers(status: Mapping[str, Any]) -> Iterator[Metric]:
    """What servers answered, and how they were treated."""
    answers = CounterMetricFamily("crawler_answers", "Answers by HTTP status", labels=["code", "class"])
    for code, count in status["statuses"].items():
        answers.add_metric([code, f"{code[0]}xx"], count)
    yield answers
    for key, (name, text) in _HISTOGRAMS.items():
        classes = status[key]
        bounds = [*map(str, classes["bounds"]), "+Inf"]
        buckets = list(zip(bounds, map(float, accumulate(classes["counts"])), strict=True))
        yield HistogramMetricFamily(name, text, buckets=buckets, sum_value=classes["sum"])
    yield CounterMetricFamily(
        "crawler_short_pauses", "Pauses shorter than promised; must stay 0", value=status["short_pauses"]
    )


def _levels(status: Mapping[str, Any]) -> Iterator[Metric]:
    """What is so at this moment."""
    progress = status["progress"]
    yield InfoMetricFamily("crawler_build", "Versions", value=status["build"])
    yield GaugeMetricFamily("crawler_queued_urls", "URLs known and not yet decided", value=progress["queued_urls"])
    hosts = GaugeMetricFamily("crawler_hosts", "Hosts with work by what they do", labels=["state"])
    for state in _STATES:
        hosts.add_metric([state], progress[f"hosts_{state}"])
    yield hosts
    yield GaugeMetricFamily("crawler_paused", "1 while nothing is asked at all", value=bool(progress["paused"]))
    for key, (name, text) in _KNOWN_AT_TIMES.items():
        if progress[key] is not None:
            yield GaugeMetricFamily(name, text, value=progress[key])
    for key, (name, text) in _MACHINE.items():
        yield GaugeMetricFamily(name, text, value=status["machine"][key])
    yield GaugeMetricFamily("crawler_loop_lag_seconds", "How late the loop's tick comes", value=status["lag_seconds"])
    yield GaugeMetricFamily("crawler_cpu_share", "CPU time per second of one core", value=status["cpu_share"])


def _below(stats: Mapping[str, Any], prefix: str) -> dict[str, float]:
    return {key.removeprefix(prefix): value for key, value in stats.items() if key.startswith(prefix)}


def _labelled(name: str, text: str, label: str, values: Mapping[str, float]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
