"""What an operator may give as seeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlerproject.crawl.start.preflight import absolute_seeds, check_settings, check_supervised, seeds_and_scope
from crawlerproject.errors import OperatorError
from crawlerproject.runtime.unix_sockets import listening
from tests.crawl.sessions import settings_of


def test_a_list_that_is_longer_than_any_name_of_a_file() -> None:
    """Ten thousand URLs, as crawl.toml may have them: the system's complaint about such a name is no answer."""
    seeds = ",".join(f"http://host{number}.example/" for number in range(10_000))

    assert len(seeds_and_scope(seeds, "any")[0]) == 10_000
    assert absolute_seeds(seeds) == seeds
    with pytest.raises(OperatorError, match="does not exist"):
        seeds_and_scope("x" * 5_000, "any")


def test_a_local_fleets_worker_is_not_started_by_hand(tmp_path: Path) -> None:
    """Without a supervisor in the crawl's folder, or without a name that one gives; others need none."""
    worker = {"STATE_URL": "rocksdb:fleet", "FLEET_WORKER": "worker-1", "CRAWL_DIR": str(tmp_path)}
    with pytest.raises(OperatorError, match="is for workers that scrapy fleet starts, and none is at work"):
        check_supervised(Settings(worker))
    with listening(tmp_path / "supervisor.sock"):
        check_supervised(Settings(worker))
    check_supervised(Settings({**worker, "STATE_URL": "rocksdb:"}))
    with pytest.raises(OperatorError, match="run scrapy fleet"):
        check_settings(settings_of(**{**worker, "FLEET_WORKER": ""}))
