"""The network is gone for a while: no host is blamed, no try used up, and the crawl goes on by itself."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.logs.request_log import read_log
from tests.web.judge import read_captures
from tests.web.running import crawl_command, read_pages, small_settings, synthetic_web
from tests.web.waiting import wait_until
from tests.web.zygote import Process

HOSTS, PAGES = 8, 6
SETTINGS = {
    "SCOPE_MAX_URLS_PER_HOST": str(PAGES),
    "PACE_MIN_SECONDS": "0.3",
    "PACE_START_SECONDS": "0.3",
    # What a host is given that fails, were it the host: two failures, rests of hours, and the crawl would end.
    "HOST_MAX_FAILURES": "2",
    "BACKOFF_START_SECONDS": "3600",
    "BACKOFF_MAX_SECONDS": "7200",
}
GONE, BACK = "No host is reached any more", "without a network"
DEADLINE_SECONDS = 120.0


class Outage(NamedTuple):
    """A crawl whose web was gone in the middle."""

    log: str
    folder: Path
    paused: str  # what the status said meanwhile


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Outage:
    """Every connection is refused from some moment on, until the crawl has said so."""
    place = tmp_path_factory.mktemp("outage")
    log, folder, many = place / "crawl.log", place / "crawl", ("--profile", "broad", "--hosts", str(HOSTS))
    with synthetic_web(place / "web", *many) as web:
        settings = {**small_settings(web), **SETTINGS}
        with log.open("wb") as output:
            process = Process(crawl_command(web.folder / "seeds.txt", folder, web.folder / "hosts", settings), output)
        wait_until(lambda: read_pages(web.folder / "server.jsonl") > 3 * HOSTS, process=process, log=log)
    try:
        wait_until(lambda: GONE in log.read_text(), process=process, log=log)
        status = CrawlDir(folder).status
        wait_until(lambda: read_facts(status)["progress"]["paused"], process=process, log=log)
        meanwhile = read_facts(status)["progress"]["paused"]
        with synthetic_web(web.folder, *many, "--port", str(web.port)):
            wait_until(lambda: BACK in log.read_text(), process=process, log=log)
            assert process.wait(DEADLINE_SECONDS) == 0
    finally:
        process.kill()
    return Outage(log.read_text(), folder, meanwhile)


def test_it_is_said(outage: Outage) -> None:
    """In the log, and in the status while it lasts."""
    assert "is this machine's network up?" in outage.paused
    assert outage.log.count(GONE) == 1
    assert "Traceback" not in outage.log


def test_nothing_is_lost_and_nothing_blamed(outage: Outage) -> None:
    """Each host has all its pages, each once; no page has failed, and the failures that were spared count no try."""
    captures = read_captures(outage.folder / "warc")
    attempts = [*read_log(outage.folder / "log")]

    assert len(captures) >= HOSTS * (1 + PAGES)
    assert {sum(found.values()) for found in captures.values()} == {1}
    assert "is left alone until" not in outage.log
    assert [attempt for attempt in attempts if attempt["reason"] in ("connect-refused", "disconnected")] == []
