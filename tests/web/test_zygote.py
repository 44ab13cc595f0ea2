"""Processes that are forked instead of started behave as started ones do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web import zygote

SCRAPY = [sys.executable, "-m", "scrapy"]
BOT_NAME = [*SCRAPY, "settings", "--get", "BOT_NAME"]


def test_folder_and_environment_are_its_own(tmp_path: Path) -> None:
    """Inside the project its settings count, elsewhere Scrapy's; the environment names others."""
    named = zygote.direct(SCRAPY_SETTINGS_MODULE="crawlerproject.settings", PYTHONPATH=str(zygote.PROJECT))

    assert zygote.run(BOT_NAME).stdout == "crawlerproject\n"
    assert zygote.run(BOT_NAME, cwd=tmp_path).stdout == "scrapybot\n"
    assert zygote.run(BOT_NAME, cwd=tmp_path, env=named).stdout == "crawlerproject\n"


def test_what_another_start_imported_of_the_crawler_is_unknown(tmp_path: Path) -> None:
    """Settings of the operator are read when the crawler is imported: by each process for itself."""
    (tmp_path / "polite-crawler").mkdir()
    name = [*SCRAPY, "settings", "--get", "CRAWLER_NAME"]
    before = zygote.run(name).stdout

    (tmp_path / "polite-crawler" / "settings.toml").write_text('CRAWLER_NAME = "Another"\n')

    assert before == "PoliteCrawler\n"
    assert zygote.run(name, env={**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}).stdout == "Another\n"


def test_exit_status_and_both_outputs() -> None:
    """As of any process, in text."""
    ended = zygote.run([*SCRAPY, "crawl"])

    assert ended.returncode == 2
    assert "Usage" in ended.stdout
    with pytest.raises(subprocess.CalledProcessError):
        zygote.run([*SCRAPY, "crawl"], check=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_signals_reach_it(number: signal.Signals) -> None:
    """Its status says which one ended it; a second one reaches nothing."""
    with zygote.Process([*SCRAPY, "shell", "--nolog"]) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.send_signal(number)

    process.send_signal(number)
    assert process.returncode in (-number, 0)
    assert process.peak_bytes > 0


def test_what_the_interpreter_would_read_is_a_real_start(tmp_path: Path) -> None:
    """A hash seed, another encoding: a fork would not know of them."""
    forked = zygote.run([*SCRAPY, "version"], env=zygote.direct())
    started = zygote.run([*SCRAPY, "version"], env=zygote.direct(PYTHONHASHSEED="1"))

    assert zygote._forks([*SCRAPY, "version"], zygote.direct())
    assert not zygote._forks([*SCRAPY, "version"], zygote.direct(PYTHONHASHSEED="1"))
    assert not zygote._forks([sys.executable, "-m", "tests.web"], zygote.direct())
    (tmp_path / "sitecustomize.py").touch()
    assert not zygote._forks([*SCRAPY, "version"], zygote.direct(PYTHONPATH=str(tmp_path)))
    assert forked.stdout == started.stdout
