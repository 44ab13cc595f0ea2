"""Every command on the folder of a fleet on one machine, compared with the same crawl as one process has it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts, take_lock, write_facts
from tests.commands.running import Done, scrapy
from tests.commands.split_crawls import PAUSED, WORKERS, Crawls, made
from tests.hostile.arena import arena


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawls]:
    """The crawl in its three forms."""
    with arena(tmp_path_factory.mktemp("fleet")) as web:
        yield made(web)


def ran(folder: CrawlDir, *arguments: str, status: int = 0) -> Done:
    """A command on a folder."""
    done = scrapy(*arguments, "-s", f"CRAWL_DIR={folder}")
    assert done.returncode == status, done.stdout + done.stderr
    return done


def asked(folder: CrawlDir, *arguments: str) -> Any:
    """What a command answers with ``--json``."""
    return json.loads(ran(folder, *arguments, "--json").stdout)


def same(crawls: Crawls, *arguments: str) -> Any:
    """What a command answers with ``--json``, of all three crawls alike."""
    one, *others = [asked(folder, *arguments) for folder in crawls[:3]]
    assert others == [one, one]
    return one


def test_hosts_are_those_of_all_workers(crawls: Crawls) -> None:
    """In one table, sorted as that of one process."""
    rows = same(crawls, "hosts", "--sort", "host")
    assert [row["host"] for row in rows] == sorted(row["host"] for row in rows)
    assert {row["state"] for row in rows} == {"done", "paused"}


def test_why_asks_the_holder_of_the_host(crawls: Crawls) -> None:
    """Of pages that were fetched, refused, missing, or wait, and of hosts."""
    url = crawls.url
    assert same(crawls, "why", url("ant.test", "/3"))["state"] == "done"
    assert same(crawls, "why", url("bee.test", "/private"))["reason"] == "robots"
    assert same(crawls, "why", url("cat.test", "/gone"))["last_attempt_status"] == 404
    assert same(crawls, "why", url(PAUSED))["reason"] == "paused"
    assert same(crawls, "why", url("elsewhere.test"))["state"] == "never-seen"
    assert same(crawls, "why", url("dog.test", "/3"), "--via", url("dog.test", "/2"))["state"] == "done"
    assert same(crawls, "why", f"eel.test:{crawls.port}")["state"] == "done"


def test_status_is_one_screen_for_all(crawls: Crawls) -> None:
    """Sums as of one process, and each worker."""
    one, fleet, again = [asked(folder, "status") for folder in crawls[:3]]
    workers = fleet.pop("workers")
    for said in (one, fleet, again):
        for name in ("folder", "said_seconds_ago"):
            said.pop(name)
    assert fleet == again == one
    assert [worker["name"] for worker in workers] == list(WORKERS)
    assert sum(worker["pages"] for worker in workers) == one["pages"]
    assert sum(worker["partitions"] for worker in workers) == 8
    assert "Worker    worker-2: 4 partitions, ended" in ran(crawls.fleet, "status").stdout
    assert "Worker" not in ran(crawls.again, "status").stdout


@pytest.fixture
def one_at_work(crawls: Crawls) -> Iterator[CrawlDir]:
    """The fleet as if its first worker ran, as this process, and the second had been killed."""
    first, second = (CrawlDir(crawls.fleet / name) for name in WORKERS)
    kept = {folder: read_facts(folder.status) for folder in (first, second)}
    running = kept[first] | {"ended": None, "pid": os.getpid()}
    killed = {name: value for name, value in kept[second].items() if name not in ("ended", "finish_reason")}
    write_facts(first.status, running)
    write_facts(second.status, killed)
    lock = take_lock(first)
    try:
        yield crawls.fleet
    finally:
        os.close(lock)
        for folder, status in kept.items():
            write_facts(folder.status, status)


def test_status_says_which_worker_is_down_or_paused(one_at_work: CrawlDir) -> None:
    """Beside one that runs, for people and for programs."""
    text = ran(one_at_work, "status").stdout
    assert "running with 1 of 2 workers" in text
    assert f"Worker    worker-1: 4 partitions, runs as process {os.getpid()}:" in text
    assert "Worker    worker-2: 4 partitions, not running; its last process did not end in good order" in text
    told = asked(one_at_work, "status")
    assert told["running"]
    assert [worker["running"] for worker in told["workers"]] == [True, False]

    first = CrawlDir(one_at_work / WORKERS[0])
    status = read_facts(first.status)
    status["progress"]["paused"] = "the disk is full"
    write_facts(first.status, status)
    assert "Worker    worker-1: 4 partitions, paused: the disk is full" in ran(one_at_work, "status").stdout
    write_facts(first.status, status | {"time": 1.0, "progress": {**status["progress"], "paused": ""}})
    assert "silent as process" in ran(one_at_work, "status").stdout


def test_a_folder_without_any_frontier_is_said_in_a_sentence(crawls: Crawls, tmp_path: Path) -> None:
    """A plan alone is no crawl yet."""
    (tmp_path / "fleet.json").write_bytes(crawls.fleet.fleet_plan.read_bytes())
    assert "has a frontier yet" in ran(CrawlDir(tmp_path), "hosts", status=2).stderr
