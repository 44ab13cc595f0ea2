"""The walk of one URL, as docs/architecture.md tells it, against a crawl that is traced."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.hostile.arena import SETTINGS, arena
from tests.web.running import crawl_command
from tests.web.zygote import PROJECT, direct

DOC = PROJECT / "docs" / "architecture.md"


def told() -> set[str]:
    """The files that the section names."""
    section = DOC.read_text().partition("## The walk of one URL")[2].partition("\n## ")[0]
    return set(re.findall(r"`([a-z_0-9]+/[a-z_0-9/]+\.py|items\.py)`", section)) - {"tests/crawls/test_walk.py"}


def test_a_url_enters_the_files_of_its_walk(tmp_path: Path) -> None:
    """A crawl of three pages, the whole process traced."""
    files, seeds = tmp_path / "entered", tmp_path / "seeds.txt"
    with arena(tmp_path / "web") as web:
        seeds.write_text(web.innocent(pages=3) + "\n")
        command = crawl_command(seeds, tmp_path / "crawl", web.folder / "hosts", SETTINGS | {"COMMIT_SECONDS": "0.1"})
        traced = [sys.executable, "-m", "tests.crawls.entered", str(files), *command[3:]]
        ended = subprocess.run(
            traced, cwd=PROJECT, env=direct(), capture_output=True, text=True, timeout=120, check=False
        )

    assert ended.returncode == 0, ended.stderr[-2000:]
    entered = set(files.read_text().split())
    assert len(told()) >= 40  # the section was found
    assert told() - entered == set()
