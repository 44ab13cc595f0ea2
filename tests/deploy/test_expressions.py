"""What dashboard and rules ask has an answer: a real Prometheus, and a real crawl in good order."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.alerts.crawl import WatchedCrawl, ended
from benchmarks.alerts.expressions import NOT_OF_A_FINE_CRAWL, of_the_board, of_the_rules, unanswered
from benchmarks.alerts.prometheus import PROGRAM, prometheus
from benchmarks.alerts.scenarios import SCENARIOS
from benchmarks.alerts.web import serving
from tests.web.waiting import wait_until


def test_everything_is_asked() -> None:
    """Nothing of Grafana's own is left in it, and what a fine crawl has nothing of is asked for."""
    board, rules = list(of_the_board()), list(of_the_rules())
    assert len(board) > 50
    assert len(rules) > 30
    assert not [expression for expression in board if "$" in expression or "label_values" in expression]
    assert [part for part in NOT_OF_A_FINE_CRAWL if not any(part in asked for asked in board + rules)] == []


@pytest.mark.skipif(not PROGRAM.exists(), reason="no Prometheus: make alerts brings it")
def test_a_fine_crawl_answers(tmp_path: Path) -> None:
    """Every expression but those of troubles, uploads and fleets; make bench-alerts has crawls with all of these."""
    with serving() as web, ended(WatchedCrawl(tmp_path, "fine", SCENARIOS["fine"].way, web)) as crawl:
        crawl.start()
        with prometheus(tmp_path, {"fine": crawl}) as watching:
            left = ["all"]

            def answered() -> bool:
                left[:] = unanswered(watching, "fine", NOT_OF_A_FINE_CRAWL)
                return not left

            try:
                wait_until(answered, "answered", process=crawl.process)
            finally:
                assert left == []
