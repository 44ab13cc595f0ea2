"""``scrapy fleet`` before its workers begin."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlerproject.fleet.local import local_fleet
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from tests.commands.running import scrapy


def test_ctrl_c_while_hosts_move_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The move goes on with the next start, wherever it was (tests/fleet/repartition); the folder is free for it."""

    def pressed(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(local_fleet, "move", pressed)
    folder = tmp_path / "crawl"
    given = ["-a", "seeds=http://a.test/", "--workers", "2", "-s", f"CRAWL_DIR={folder}"]
    done = scrapy("fleet", *given, "-s", "CRAWLER_CONTACT=bot@example.org", "-s", "NEVERCRAWL_FILE=")

    assert done.returncode == 0
    assert "Stopped before the crawl began; the same command goes on where it was." in done.stderr
    assert "Traceback" not in done.stderr
    os.close(take_lock(CrawlDir(folder)))
