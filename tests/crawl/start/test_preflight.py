"""What an operator may give as seeds."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlerproject.crawl.start.preflight import (
    absolute_seeds,
    check_settings,
    check_supervised,
    raise_limit,
    seeds_with_options,
)
from crawlerproject.errors import OperatorError
from crawlerproject.runtime.unix_sockets import listening
from tests.crawl.sessions import settings_of


def test_a_list_that_is_longer_than_any_name_of_a_file() -> None:
    """Ten thousand URLs, as crawl.toml may have them: the system's complaint about such a name is no answer."""
    seeds = ",".join(f"http://host{number}.example/" for number in range(10_000))

    assert len(seeds_with_options(seeds, "any").addresses) == 10_000
    assert absolute_seeds(seeds) == seeds
    with pytest.raises(OperatorError, match="does not exist"):
        seeds_with_options("x" * 5_000, "any")


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


ENDLESS = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised", "said"),
    [
        (1024, 524_288, 3456, False),  # a login's: 1,000 requests, 2,000 idle connections, 256 of the store, others
        (1024, ENDLESS, 3456, False),
        (1024, 2048, 2048, False),  # fewer connections are kept
        (1024, 1024, None, True),
        (65_536, 524_288, None, False),
        (ENDLESS, ENDLESS, None, False),
    ],
)
def test_the_soft_limit_follows_the_crawl(
    soft: int, hard: int, raised: int | None, said: bool, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """Never lowered, never above the hard one."""
    found: list[int] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: found.append(limits[0]))

    raise_limit(settings_of())

    assert found == ([] if raised is None else [raised])
    assert ("FRONTIER_MAX_IN_FLIGHT=1000 may need 1456" in caplog.text) is said
