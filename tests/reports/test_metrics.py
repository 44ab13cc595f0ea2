"""What Prometheus reads of a crawl of several workers: a counter falls only where its process began anew."""

from __future__ import annotations

import ast
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.reports.metrics import BY_LABEL, COUNTERS, crawl_metrics, metrics
from crawlerproject.watch.fleet_summary import of_all
from tests.reports.exposed import LABELS, exposed
from tests.watch.test_fleet_summary import status
from tests.web.running import PROJECT

_KINDS = ("counter", "histogram")
Sample = tuple[str, frozenset[tuple[str, str]]]


def said(**workers: dict[str, Any]) -> dict[str, Any]:
    """The status of these workers at work, by name, as the page of the first says it."""
    first, *others = workers.values()
    return of_all(first, others) | {"each": workers}


def worker(count: int) -> dict[str, Any]:
    """In whose process everything was counted so often."""
    classes = {"bounds": [1.0], "counts": [count, 0], "sum": float(count)}
    return status(
        {"pages": count},
        stats=dict.fromkeys([*COUNTERS, *(f"{prefix}a" for prefix in BY_LABEL)], count),
        statuses={"200": count},
        short_pauses=count,
        commit_failures=count,
        promised_pause_seconds=float(count),
        dns={"questions": count, "failures": {"dns-failed": count}, "names": 1},
        uploads={"sent_files": count, "sent_bytes": count, "sent_again": count, "time": 0.0},
        totals={"pages": count, "bytes": count, "errors": count, "since": 1.0},
        **dict.fromkeys(("first_byte_seconds", "pause_excess_seconds", "commit_seconds"), classes),
    )


def counted(text: str) -> dict[Sample, float]:
    """What only grows."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        if family.type in _KINDS
        for sample in family.samples
        if not sample.name.startswith("process_")
    }


def test_no_counter_falls_because_another_worker_begins_anew() -> None:
    """Prometheus takes a fall for a new start from 0: a sum would count all of the others' errors once more."""
    before = counted(metrics(lambda: said(one=worker(5), two=worker(3)))().decode())
    anew = counted(metrics(lambda: said(one=worker(5), two=worker(0)))().decode())
    gone = counted(metrics(lambda: said(one=worker(5)))().decode())

    assert len(before) > 60
    assert all(value <= anew[sample] or ("worker", "two") in sample[1] for sample, value in before.items())
    assert all(value <= gone[sample] for sample, value in before.items() if ("worker", "two") not in sample[1])
    assert {sample for sample in before if ("worker", "two") not in sample[1]} == gone.keys()


def test_what_is_asked_from_outside_is_by_worker_as_well() -> None:
    """``scrapy status --metrics`` has no memory of those that were."""
    facts = {"running": True, "queued": 1, "poison": 0}
    assert (
        counted(crawl_metrics(said(one=worker(5)), facts, 9.0)).items()
        >= {
            ("crawler_pages_total", frozenset({("worker", "one")})): 5.0,
            ("crawler_uploaded_files_total", frozenset({("worker", "one")})): 5.0,
        }.items()
    )


def test_a_crawl_of_one_process_has_no_worker() -> None:
    """Its counters are as they always were."""
    found = counted(metrics(lambda: worker(5))().decode())
    assert found["crawler_pages_total", frozenset()] == 5
    assert found["crawler_commit_seconds_count", frozenset()] == 5
    assert found["crawler_uploaded_files_total", frozenset()] == 5


def test_what_a_crash_forgets_was_not_counted_for_the_whole_crawl() -> None:
    """Pages that are not committed are asked for again by the next process, and counted by it."""
    known = status(committed_totals={"pages": 7, "bytes": 70, "errors": 1, "since": 100.0})
    found = counted(metrics(lambda: known)().decode())
    assert found["crawler_whole_crawl_pages_total", frozenset()] == 7
    assert found["crawler_whole_crawl_received_bytes_total", frozenset()] == 70


_WRITING = ("inc_value", "set_value", "max_value", "min_value")
#: What a statistic's key may end in, as the code has it: each is a word of LABELS.
_WORDS = {
    "reason",
    "result.reason",
    "Reason.FOREIGN_ENTRY",
    "robots_verdict(None if result.walled else result.status).value",
    "found.kind",
    "wire.truncated",
}


def keys_that_are_made() -> set[tuple[str, str]]:
    """Beginning and end of each statistic's key that the code puts together."""
    made = {
        node.args[0]
        for path in (PROJECT / "crawlerproject").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _WRITING
    }
    return {
        (ast.unparse(ast.JoinedStr(key.values[:-1]))[2:-1], ast.unparse(key.values[-1].value))
        for key in made
        if isinstance(key, ast.JoinedStr) and isinstance(key.values[-1], ast.FormattedValue)
    }


def test_labels_are_made_of_few_words() -> None:
    """Every label has its words, and no statistic that becomes a label ends in anything else."""
    assert {label for labels in exposed().values() for label in labels} <= LABELS.keys()

    made = {(begin, end) for begin, end in keys_that_are_made() if begin in BY_LABEL or begin.startswith("{")}
    assert len(made) >= 7
    assert {end for _, end in made} <= _WORDS
