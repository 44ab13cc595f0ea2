"""What must hold of a crawl by several workers, however they were disturbed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Protocol

from crawlerproject.reports.warc_check import check_file
from tests.commands.crawled import scrapy
from tests.web.judge import judge_folder, read_visits
from tests.web.running import RunningWeb

# Of the requests that the server saw the logs lack those of which a kill left no line.
_LOGGED_SHARE = 0.9
# A kill costs what was not committed: so many of all pages are asked for once more, and one page so often.
_AGAIN_SHARE, _MOST_TIMES = 0.15, 3


def audited(web: RunningWeb, crawl: Path) -> None:
    """One ``scrapy audit`` over all workers: no pause of any host or address was cut short, whichever asked."""
    done = scrapy("audit", "--json", str(crawl))

    assert done.returncode == 0, done.stdout + done.stderr
    seen = len(read_visits(web.folder / "server.jsonl"))
    assert json.loads(done.stdout)["requests"] >= seen * _LOGGED_SHARE


def seldom_asked_again(web: RunningWeb) -> None:
    """Most pages were asked once: a kill or a stop costs what was not committed, not more."""
    visits = read_visits(web.folder / "server.jsonl")
    asked = Counter((visit.host, visit.path) for visit in visits if visit.status == 200)

    assert max(asked.values()) <= _MOST_TIMES
    assert asked.total() - len(asked) < _AGAIN_SHARE * len(asked)


class Fleet(Protocol):
    """That has crawled."""

    folder: Path

    @property
    def folders(self) -> list[Path]:
        """Of its workers."""

    def output(self, name: str) -> str:
        """What a worker has said."""


class Crawled(Protocol):
    """A finished crawl."""

    @property
    def web(self) -> RunningWeb:
        """What was crawled."""

    @property
    def fleet(self) -> Fleet:
        """Who has."""


class OneCrawler:
    """What holds of a fleet of either kind: a module with a fixture ``crawled`` has these tests as its own."""

    def test_nothing_is_missing_twice_or_too_soon(self, crawled: Crawled) -> None:
        """The archive holds every page once; every pause was kept per host and per IP address."""
        folders = crawled.fleet.folders
        verdict = judge_folder(crawled.web.folder, None, workers=folders, host_seconds=0.25, ip_seconds=0.5, log=False)

        assert verdict.faults == []

    def test_every_file_is_whole(self, crawled: Crawled) -> None:
        """What a kill left torn was cut when its worker came back under its name, or by recover; all are closed."""
        for folder in crawled.fleet.folders:
            for path in (folder / "warc").iterdir():
                assert path.name.endswith(".warc.gz")
                assert check_file(path).flaws == []
                assert (folder / "index" / path.name.replace(".warc.gz", ".cdxj")).stat().st_size > 0

    def test_one_audit_covers_all_workers(self, crawled: Crawled) -> None:
        """The folder of the fleet: no pause of any host or address was cut short, whichever worker asked."""
        audited(crawled.web, crawled.fleet.folder)

    def test_pages_are_asked_again_only_where_a_worker_lost_them(self, crawled: Crawled) -> None:
        """Most pages were asked once: a kill or a stop costs what was not committed, not more."""
        seldom_asked_again(crawled.web)

    def test_nothing_of_ours_failed(self, crawled: Crawled) -> None:
        """What was away is said in sentences; the guard above the network had nothing to refuse."""
        for folder in crawled.fleet.folders:
            output = crawled.fleet.output(folder.name)
            assert "Traceback" not in output
            assert "guard_refused" not in output
