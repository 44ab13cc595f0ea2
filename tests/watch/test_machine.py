"""Memory and disk of this very process."""

from __future__ import annotations

import shutil
from pathlib import Path

from crawlerproject.watch.machine import machine_facts


def test_it_says_what_is_there(tmp_path: Path) -> None:
    """The process has some memory of what it may have; the disk is the folder's."""
    facts = machine_facts(tmp_path, 5)

    assert 1_000_000 < facts["rss_bytes"] < facts["memory_bytes"]
    assert facts["disk_bytes"] == shutil.disk_usage(tmp_path).total
    assert 0 < facts["disk_free_bytes"] <= facts["disk_bytes"]
    assert facts["disk_min_free_bytes"] == 5


def test_a_folder_that_is_gone_ends_no_look(tmp_path: Path) -> None:
    """What the crawl says of it is its own business."""
    assert machine_facts(tmp_path / "gone", 5)["disk_bytes"] == 0
