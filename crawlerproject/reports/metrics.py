"""The state of a running crawl as Prometheus reads it. docs/grafana.json is a dashboard of these."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from crawlerproject.errors import STORE_FORGOT
from crawlerproject.reasons import ANSWERED

Status = Mapping[str, Any]
Lives = Mapping[str, Status]
Table = Mapping[str, tuple[str, str]]
Values = Callable[[Status], Mapping[str, Any]]
Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)

WORKER = "worker"
"""The label of whose process counted. A sum over processes would fall as one of them restarts, which Prometheus
takes for a new start of all of them."""
BY_LABEL = {
    "pages/": ("crawler_attempts", "Attempts by what became of them, robots.txt included", "reason"),
    "refused/": ("crawler_refused", "URLs refused, when found or when their turn came", "reason"),
    "rests/": ("crawler_backoffs", "Answers and failures after which their host rests", "reason"),
    "spared/": (
        "crawler_spared_requests",
        "Requests that failed by our own network or limits, and will be sent again",
        "reason",
    ),
    "robots/": ("crawler_robots_answers", "Requests for robots.txt by what their answer means", "verdict"),
    "requisites/": ("crawler_requisite_attempts", "Attempts at what pages need to be seen", "reason"),
    "embeds/": ("crawler_embed_attempts", "Attempts at what pages in the browser asked for", "reason"),
    "duplicates/": ("crawler_duplicates", "Pages compared with others by what was found", "kind"),
    "truncated/": ("crawler_truncated_answers", "Answers that were cut by what cut them", "cause"),
    "websub/": ("crawler_websub_messages", "Messages to and of hubs by what became of them", "event"),
    "recrawl/": ("crawler_recrawl_urls", "URLs that come back by how they do", "event"),
    "log_count/": ("crawler_log_records", "Records of the log", "level"),
}
"""Statistics that become a counter with the last part of their key as a label, whose values are a few words."""

COUNTERS = {
    "bytes/received": ("crawler_received_bytes", "Bytes on the wire"),
    "pace/guard_refused": ("crawler_pace_guard_refused", "Requests that the pace guard did not send; must stay 0"),
    "network/outages": ("crawler_network_outages", "Times that no host was reached any more"),
    "errors/ours": ("crawler_own_errors", "Errors of the program itself"),
    "loop/holds": ("crawler_loop_holds", "Times that the event loop was held for 50 ms or more"),
    "loop/held_seconds": ("crawler_loop_held_seconds", "The sum of these"),
    "reading/html": ("crawler_pages_read_apart", "Pages that another process read"),
    "reading/failed": ("crawler_reading_failures", "Files that it could not read in its time and memory"),
    "render/pages": ("crawler_rendered_pages", "Pages that the browser was given"),
    "render/requests": ("crawler_render_requests", "What they asked the web for"),
    "render/from_cache": ("crawler_render_cache_hits", "What they got without a request"),
    "render/blocked": ("crawler_render_blocked_requests", "What they asked for and did not get"),
    "render/short_of_turns": ("crawler_render_short_pages", "Pages that waited too long for their hosts' turns"),
    "render/browsers": ("crawler_browser_starts", "Starts of the browser"),
}
"""Statistics that are one counter each."""

SUMS = {
    "short_pauses": ("crawler_short_pauses", "Pauses shorter than promised; must stay 0"),
    "promised_pause_seconds": ("crawler_promised_pause_seconds", "Pauses promised before requests that were sent"),
    "commit_failures": ("crawler_commit_failures", "Commits that disk or network did not take; they are made again"),
}

_PAGES = {"pages": ("crawler_pages", "Answers that are pages: robots.txt and what pages need to be seen are left out")}

_DNS = {"questions": ("crawler_dns_questions", "Questions to DNS servers")}

OF_ALL_STARTS = {
    "pages": ("crawler_whole_crawl_pages", "Pages since the crawl's first start"),
    "bytes": ("crawler_whole_crawl_received_bytes", "Bytes on the wire since the crawl's first start"),
    "errors": ("crawler_whole_crawl_errors", "Attempts without an answer since the crawl's first start"),
}

_COUNTED: tuple[tuple[Table, Values], ...] = (
    (COUNTERS, lambda status: status["stats"]),
    (SUMS, lambda status: status),
    (_PAGES, lambda status: status["progress"]),
    # As committed: what a crash forgets has not been counted. An earlier version does not log it.
    (OF_ALL_STARTS, lambda status: status.get("committed_totals") or status["totals"]),
    (_DNS, lambda status: status.get("dns", {})),
)
"""Each table with the part of a status that has its keys."""

HISTOGRAMS = {
    "first_byte_seconds": ("crawler_first_byte_seconds", "From the request sent to the first byte of its answer"),
    "pause_excess_seconds": (
        "crawler_pause_excess_seconds",
        "How much longer than promised a host was left alone before a request",
    ),
    "commit_seconds": ("crawler_commit_seconds", "From a commit's begin until it is durable"),
}

STATES = ("in_flight", "ready", "waiting", "in_line", "looked_up", "resting", "on_disk")

KNOWN_AT_TIMES = {
    "eta_seconds": ("crawler_left_seconds", "What the queue takes, at the slower of promised pace and own rate"),
    "ceiling_per_second": ("crawler_allowed_answers_per_second", "What politeness allows now, to all hosts with work"),
}

LEVELS = {
    "lag_seconds": ("crawler_loop_lag_seconds", "How late the loop's tick comes"),
    "cpu_share": ("crawler_cpu_share", "CPU time per second of one core"),
    "commit_lag_seconds": ("crawler_commit_lag_seconds", "Since everything was durable for the last time"),
    "uncommitted": ("crawler_uncommitted_ends", "Ends of requests that the next commit makes durable"),
    "max_in_flight": ("crawler_in_flight_limit", "FRONTIER_MAX_IN_FLIGHT"),
    "given_up_hosts": (
        "crawler_given_up_hosts",
        "Hosts that failed and are left alone, for a day at least or until the next start",
    ),
    "least_pause_margin_seconds": (
        "crawler_least_pause_margin_seconds",
        "By how much the pause nearest to its promise was longer; below 0 it was shorter",
    ),
}
"""Of the status itself; what it does not say, or says as None, is left out."""

MACHINE = {
    "rss_bytes": ("crawler_resident_memory_bytes", "Of all workers on this machine"),
    "disk_free_bytes": ("crawler_disk_free_bytes", "Free on the disk of the crawl's folder"),
    "disk_bytes": ("crawler_disk_size_bytes", "Size of the disk of the crawl's folder"),
    "disk_min_free_bytes": ("crawler_disk_min_free_bytes", "DISK_MIN_FREE_BYTES: with less the crawl pauses"),
    "memory_bytes": (
        "crawler_memory_limit_bytes",
        "Memory of the machine; of unit or container where these have less",
    ),
}

UPLOADS = {
    "waiting_files": ("crawler_upload_waiting_files", "Closed files that are not at ARCHIVE_URL yet"),
    "waiting_bytes": ("crawler_upload_waiting_bytes", "Their size"),
}
UPLOADED = {
    "sent_files": ("crawler_uploaded_files", "Files that ARCHIVE_URL took since the process that sends them began"),
    "sent_bytes": ("crawler_uploaded_bytes", "Bytes that were sent there"),
    "sent_again": ("crawler_uploaded_again", "Files that were not there as they were sent, and were sent again"),
}

OF_ALL = {
    "queued": ("crawler_all_queued_urls", "URLs not yet decided, all workers'"),
    "poison": ("crawler_poison_pages", "Pages over which the process died, set aside"),
}

OF_WORKERS = {
    "partitions": ("crawler_worker_partitions", "Partitions of hosts that the worker holds"),
    "pages_per_second": ("crawler_worker_pages_per_second", "Lately"),
    "reported_seconds_ago": ("crawler_worker_silent_seconds", "Since its last word; beyond its lease others take over"),
}


class _Families(Collector):
    def __init__(self, families: Callable[[], Iterator[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """The figures of this moment."""
        return self._families()


def metrics(status: Callable[[], Status]) -> Callable[[], bytes]:
    """Who gives the text of the metrics of this process; ``status`` is asked each time.

    A status of several workers has under ``each`` what each of them says, by name.
    """
    registry = CollectorRegistry()
    registry.register(_Families(lambda: _crawl(status(), time.time())))
    ProcessCollector(registry=registry)  # process_resident_memory_bytes, process_cpu_seconds_total and their like
    return lambda: generate_latest(registry)


def crawl_metrics(status: Status, facts: Mapping[str, Any], now: float) -> str:
    """The metrics of a crawl seen from outside.

    ``status``: what its processes on this machine say (as for ``metrics``), empty when none is at work; ``facts``: what
    ``scrapy status --json`` says of it. ``now`` in epoch seconds.
    """

    def families() -> Iterator[Metric]:
        workers = facts.get("workers", [])
        yield GaugeMetricFamily("crawler_running", "1 while a process is at work on it", value=bool(facts["running"]))
        yield from _crawl(dict(status) | {"workers": workers}, now) if status else _at_rest(facts, now)
        yield from _gauges(OF_ALL, facts)

    registry = CollectorRegistry()
    registry.register(_Families(families))
    return generate_latest(registry).decode()


def _at_rest(facts: Mapping[str, Any], now: float) -> Iterator[Metric]:
    """Of a crawl that is not at work here: how it ended, its workers elsewhere, and what became of its archive."""
    yield _forgot([facts])
    yield from _workers(facts.get("workers", []))
    yield from _uploads(facts.get("uploads") or {}, now)
    yield from _uploaded({"": facts})


def _crawl(status: Status, now: float) -> Iterator[Metric]:
    if not status:
        return
    age = max(0.0, now - status["time"])
    yield GaugeMetricFamily("crawler_status_age_seconds", "Since the crawl's latest status, one a second", value=age)
    lives: Lives = status.get("each") or {"": status}
    yield _forgot([status, *lives.values()])
    yield from _partitions(status.get("fleet") or {})
    yield from _uploads(status.get("uploads") or {}, now)
    yield from _uploaded(lives)
    yield from _counted(lives)
    yield from _answers(lives)
    yield from _levels(status)
    if workers := status.get("workers"):
        yield from _workers(workers)


def _forgot(statuses: Iterable[Status]) -> Metric:
    ended = any(status.get("finish_reason") == STORE_FORGOT for status in statuses)
    return GaugeMetricFamily("crawler_store_forgot", "1 when it ended since Redis has lost something", value=ended)


def _partitions(place: Mapping[str, Any]) -> Iterator[Metric]:
    """Of a crawl whose workers share out its hosts in Redis."""
    if place.get("partitions"):
        for name, text, value in (
            ("crawler_partitions", "Parts into which the crawl's hosts are divided", place["partitions"]),
            ("crawler_partitions_held", "Of these, held by the workers on this machine", place["held"]),
        ):
            yield _levelled(name, text, "crawl", {place["crawl"]: value})


def _filled(family: Family, samples: Iterable[tuple[Sequence[str], float]]) -> Family:
    """With these labels' values and numbers."""
    for labels, number in samples:
        family.add_metric(labels, number)
    return family


def _workers(rows: Iterable[Mapping[str, Any]]) -> Iterator[Metric]:
    """What each worker wrote into its status last."""
    labels, named = ["worker", "machine"], [([row["name"], row.get("machine", "")], row) for row in rows]
    pages = CounterMetricFamily("crawler_worker_pages", "Pages since the worker's start", labels=labels)
    yield _filled(pages, ((who, row["pages"]) for who, row in named))
    paused = GaugeMetricFamily("crawler_worker_paused", "1 while it asks nothing at all", labels=labels)
    yield _filled(paused, ((who, bool(row["paused"])) for who, row in named))
    up = GaugeMetricFamily("crawler_worker_up", "0 when its process died; none when it ended in order", labels=labels)
    running = [(who, bool(row.get("running", True)), row.get("ended")) for who, row in named]
    yield _filled(up, ((who, runs) for who, runs, ended in running if runs or not ended))
    for key, (name, text) in OF_WORKERS.items():
        known = ((who, row[key]) for who, row in named if row.get(key) is not None)
        yield _filled(GaugeMetricFamily(name, text, labels=labels), known)
    yield GaugeMetricFamily("crawler_workers", "Workers that have joined and not left", value=len(named))


def _counted(lives: Lives) -> Iterator[Metric]:
    """What only grows: since the process began, or the whole crawl."""
    for prefix, (name, text, label) in BY_LABEL.items():
        yield _labelled(lives, name, text, label, partial(_below, prefix))
    yield _labelled(lives, "crawler_errors", "Attempts without an answer", "reason", _failed)
    for table, values in _COUNTED:
        yield from _counters(lives, table, values)
    dns = partial(_labelled, lives, "crawler_dns_failures", "Look-ups without an address", "reason")
    yield dns(lambda status: status.get("dns", {}).get("failures", {}))


def _below(prefix: str, status: Status) -> dict[str, float]:
    stats = status["stats"]
    return {key.removeprefix(prefix): value for key, value in stats.items() if key.startswith(prefix)}


def _failed(status: Status) -> dict[str, float]:
    return {reason: count for reason, count in _below("pages/", status).items() if reason not in ANSWERED}


def _counters(lives: Lives, table: Table, values: Values) -> Iterator[Metric]:
    for key, (name, text) in table.items():
        family = CounterMetricFamily(name, text, labels=_whose(lives))
        yield _filled(family, ((_of(worker), values(status).get(key) or 0) for worker, status in lives.items()))


def _labelled(lives: Lives, name: str, text: str, label: str, values: Values) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label, *_whose(lives)])
    each = ((worker, values(status).items()) for worker, status in lives.items())
    return _filled(family, (([value, *_of(worker)], count) for worker, counts in each for value, count in counts))


def _whose(lives: Lives) -> list[str]:
    return [] if "" in lives else [WORKER]


def _of(worker: str) -> list[str]:
    return [worker] if worker else []


def _gauges(table: Table, values: Mapping[str, Any]) -> Iterator[Metric]:
    """What ``values`` say; what they do not is left out."""
    for key, (name, text) in table.items():
        if values.get(key) is not None:
            yield GaugeMetricFamily(name, text, value=values[key])


def _uploads(uploads: Mapping[str, Any], now: float) -> Iterator[Metric]:
    """Where the archive goes to another place."""
    if not uploads:
        return
    yield from _gauges(UPLOADS, dict.fromkeys(UPLOADS, 0) | dict(uploads))
    since = uploads.get("failing_since") if uploads.get("error") else None
    yield GaugeMetricFamily("crawler_upload_refused", "1 while that place refuses", value=bool(uploads.get("error")))
    yield GaugeMetricFamily(
        "crawler_upload_refused_seconds", "For how long it has refused", value=max(0.0, now - since) if since else 0.0
    )
    if (written_at := uploads.get("time")) is not None:
        yield GaugeMetricFamily(
            "crawler_upload_silent_seconds",
            "Since the latest status of the process that sends them, written every five seconds when all is well",
            value=max(0.0, now - written_at),
        )
    yield GaugeMetricFamily(
        "crawler_upload_problems", "Files that cannot be mended from here", value=len(uploads.get("problems") or ())
    )


def _uploaded(lives: Lives) -> Iterator[Metric]:
    """What was sent there."""
    sending = {worker: status for worker, status in lives.items() if status.get("uploads")}
    if sending:
        yield from _counters(sending, UPLOADED, lambda status: status["uploads"])


def _answers(lives: Lives) -> Iterator[Metric]:
    """What servers answered, and how they were treated."""
    answers = CounterMetricFamily("crawler_answers", "Answers by HTTP status", labels=["code", "class", *_whose(lives)])
    each = ((worker, status["statuses"].items()) for worker, status in lives.items())
    yield _filled(
        answers, (([code, f"{code[0]}xx", *_of(who)], count) for who, counts in each for code, count in counts)
    )
    for key, (name, text) in HISTOGRAMS.items():
        family = HistogramMetricFamily(name, text, labels=_whose(lives))
        for worker, status in lives.items():
            if classes := status.get(key):  # an earlier version does not say them all
                bounds = [*map(str, classes["bounds"]), "+Inf"]
                buckets = list(zip(bounds, map(float, accumulate(classes["counts"])), strict=True))
                family.add_metric(_of(worker), buckets, classes["sum"])
        yield family


def _levels(status: Status) -> Iterator[Metric]:
    """What is so at this moment."""
    progress = status["progress"]
    yield InfoMetricFamily("crawler_build", "Versions", value=status["build"])
    yield GaugeMetricFamily("crawler_queued_urls", "URLs known and not yet decided", value=progress["queued_urls"])
    hosts = {state: progress.get(f"hosts_{state}", 0) for state in STATES}
    yield _levelled("crawler_hosts", "Hosts with work by what they do", "state", hosts)
    yield _levelled("crawler_held_hosts", "Hosts with work that are not asked", "reason", status.get("held_hosts", {}))
    yield _levelled("crawler_store_bytes", "On the crawl's own disk", "store", status.get("stores", {}))
    yield GaugeMetricFamily("crawler_paused", "1 while nothing is asked at all", value=bool(progress["paused"]))
    yield from _gauges(KNOWN_AT_TIMES, progress)
    yield from _gauges(MACHINE, status["machine"])
    yield from _gauges(LEVELS, status)
    longest = status["stats"].get("loop/longest_hold_seconds", 0.0)
    yield GaugeMetricFamily("crawler_loop_longest_hold_seconds", "The longest since the start", value=longest)
    yield GaugeMetricFamily(
        "crawler_dns_cached_names", "Names whose answer is known", value=status.get("dns", {}).get("names", 0)
    )


def _levelled(name: str, text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    return _filled(GaugeMetricFamily(name, text, labels=[label]), (([value], level) for value, level in values.items()))
