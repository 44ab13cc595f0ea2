"""What ``scrapy status`` says of a fleet's workers by what they have reported, wherever they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from crawlerproject.commands.status import _worker
from crawlerproject.inspection.crawl_progress import uploads_together
from crawlerproject.inspection.status_facts import ailment, worker_facts
from crawlerproject.reports.metrics import crawl_metrics
from crawlerproject.stores.redis.redis_crawl import ActiveWorker
from tests.commands.status_schema import SCHEMA, mistakes

HERE = ActiveWorker("m1", 0.4, {"partitions": 90, "pages": 70, "pages_per_second": 7.0, "machine": "one"})
AWAY = ActiveWorker(
    "m2", 1.2, {"partitions": 80, "pages": 50, "bytes": 9, "errors": 1, "pages_per_second": 5.0, "machine": "two"}
)
PAUSED = ActiveWorker("m3", 0.9, {"partitions": 86, "machine": "three", "paused": "no room on the disk"})
SILENT = ActiveWorker("m4", 300.0, {"partitions": 85, "pages": 3, "machine": "four"})
OLD = ActiveWorker("m5", 2.0, {"partitions": 1})  # of a version that said no more


def told(*workers: ActiveWorker) -> dict[str, Any]:
    """Of a machine where only the first has its folder."""
    progress = {"pages": 60, "bytes": 10, "errors": 0}
    here = [SimpleNamespace(folder=SimpleNamespace(name="m1"))]
    crawl: Any = SimpleNamespace(workers=here, status={"progress": progress, "pages_per_second": 6.0}, running=True)
    return worker_facts(crawl, workers)


def test_sums_are_those_of_all_machines() -> None:
    """What the folders here say, and what the others have reported."""
    facts = told(HERE, AWAY)

    assert {name: facts[name] for name in ("pages", "bytes", "errors", "pages_per_second", "running")} == {
        "pages": 110,
        "bytes": 19,
        "errors": 1,
        "pages_per_second": 11.0,
        "running": True,
    }


def test_each_worker_is_a_line() -> None:
    """Where it is and what it does; why it pauses; that it is silent, and what follows."""
    lines = [_worker(worker) for worker in told(HERE, AWAY, PAUSED, SILENT, OLD)["workers"]]

    assert lines == [
        "m1: 90 partitions, here, 70 pages, 7.0 pages/s, reported 0.4 s ago",
        "m2: 80 partitions, on two, 50 pages, 5.0 pages/s, reported 1.2 s ago",
        "m3: 86 partitions, on three, paused: no room on the disk, reported 0.9 s ago",
        "m4: on four, silent for 5 min 0 s; after its lease others have its partitions",
        "m5: 1 partition, on another machine, 0 pages, 0.0 pages/s, reported 2.0 s ago",
    ]


def test_workers_of_redis_are_as_the_schema_says() -> None:
    """Of this machine and of others, those of older versions too."""
    workers = told(HERE, AWAY, PAUSED, SILENT, OLD)["workers"]

    assert list(mistakes(workers, SCHEMA["properties"]["workers"])) == []
    assert list(mistakes([{**workers[0], "pages": True}], SCHEMA["properties"]["workers"])) != []


def test_a_silent_worker_is_an_ailment() -> None:
    """Of those that run; one that has ended says nothing any more, and one that has just begun nothing yet."""

    def look(*workers: tuple[bool, dict[str, float]]) -> Any:
        told = [SimpleNamespace(running=running, status=status) for running, status in workers]
        return SimpleNamespace(running=True, workers=told, status={}, now=1000.0)

    assert ailment(look((True, {"time": 941.0}), (False, {"time": 1.0}), (True, {}))) == ""
    assert ailment(look((True, {"time": 999.0}), (True, {"time": 900.0}))) == "has reported nothing for 1 min 40 s"


def test_what_became_of_the_archive_is_said_of_a_crawl_that_has_ended() -> None:
    """An upload that was refused at the end, and files that are lost there, are no news of a running crawl alone."""
    ended = uploads_together([{"time": 40.0, "error": "no", "waiting_files": 2, "problems": ["a"]}, {"time": 90.0}])
    text = crawl_metrics({}, {"running": False, "queued": 0, "poison": 0, "uploads": ended}, 100.0)
    families = text_string_to_metric_families(text)
    found = {family.name: family.samples[0].value for family in families if family.samples}

    assert (found["crawler_upload_refused"], found["crawler_upload_problems"]) == (1, 1)
    assert (found["crawler_upload_waiting_files"], found["crawler_upload_silent_seconds"]) == (2, 60)
    assert "crawler_upload_refused" not in crawl_metrics({}, {"running": False, "queued": 0, "poison": 0}, 100.0)


def test_metrics_are_those_of_all_workers() -> None:
    """As Prometheus parses them."""
    text = crawl_metrics({}, {**told(HERE, PAUSED, SILENT), "queued": 1234, "poison": 1}, 100.0)
    found = {
        (sample.name, sample.labels.get("worker", ""), sample.labels.get("machine", "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    assert found["crawler_workers", "", ""] == 3
    assert found["crawler_all_queued_urls", "", ""] == 1234
    assert (found["crawler_running", "", ""], found["crawler_poison_pages", "", ""]) == (1, 1)
    assert found["crawler_worker_pages_total", "m1", "one"] == 70
    assert found["crawler_worker_pages_per_second", "m1", "one"] == 7.0
    assert found["crawler_worker_partitions", "m4", "four"] == 85
    assert found["crawler_worker_silent_seconds", "m4", "four"] == 300.0
    assert [found["crawler_worker_paused", *who] for who in (("m1", "one"), ("m3", "three"))] == [0, 1]
