"""On Spark itself, where ``make bench-engines`` has made its environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.engines.archive import make
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import scrapy
from tests.web.running import PROJECT
from tests.web.zygote import direct

ENGINES = PROJECT / ".venv-engines" / "bin" / "python"

pytestmark = pytest.mark.skipif(not ENGINES.exists(), reason="make bench-engines makes .venv-engines, with Spark")


def on_spark(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the crawler's by that environment, with Spark in the same process."""
    command = [str(ENGINES), "-m", "scrapy", *arguments, "--engine", "spark", "--master", "local[1]"]
    return subprocess.run(command, cwd=PROJECT, env=direct(), capture_output=True, text=True, timeout=280, check=False)


def test_a_fleet_is_processed_as_by_the_local_engine(tmp_path: Path) -> None:
    """Every file byte for byte; a file that is damaged is named and its beginning counts, in both."""
    pages = [tmp_path / f"{number}.html" for number in range(4)]
    for page in pages:
        page.write_text(f"<title>{page.stem}</title><p>{page.stem} words</p><a href='/x'>x</a>")
    crawl = make(CrawlDir(tmp_path / "crawl"), pages, 10**9)
    damaged = CrawlDir(crawl / "worker-2").closed_warcs()[0]
    os.truncate(damaged, damaged.stat().st_size - 20)

    local = scrapy("process", str(crawl), "--out", str(tmp_path / "local"))
    spark = on_spark("process", str(crawl), "--out", str(tmp_path / "spark"))

    assert (local.returncode, spark.returncode) == (1, 1), spark.stderr
    for done in (local, spark):
        assert f"{damaged.name} is damaged at byte" in done.stderr
    made = [
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (tmp_path / "local", tmp_path / "spark")
    ]
    assert len(made[0]) == 4
    assert made[1] == made[0]
