"""What an operator can get wrong: one sentence, a non-zero exit, no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.web import zygote

PROJECT = Path(__file__).resolve().parents[3]


def crawl(*options: str, cwd: Path = PROJECT, spider: str = "web") -> subprocess.CompletedProcess[str]:
    """Run ``scrapy crawl web`` with options and wait for its end; elsewhere than in the project as scrapyd does."""
    command = [sys.executable, "-m", "scrapy", "crawl", spider, *options]
    environment = os.environ | {"SCRAPY_SETTINGS_MODULE": "crawlerproject.settings", "PYTHONPATH": str(PROJECT)}
    return zygote.run(command, cwd=cwd, env=environment)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "There are no seeds"),
        (["-a", "seeds="], "There are no seeds"),
        (["-a", "seeds=/no/such/seeds.txt"], "does not exist"),
        (["-a", "seeds=ftp://example.org/,mailto:me@example.org"], "No usable seed"),
        (["-a", "seeds=https://example.org/", "-a", "scope=planet"], "scope 'planet' is unknown"),
        (["-a", "seeds=https://example.org/", "-a", "depth=3"], "-a depth= is no argument of the spider web; it has"),
        (["-a", "seeds=https://example.org/"], "a way to reach you"),
        (["-a", "seeds=https://example.org/", "-s", "PACE_PRESET=furious"], "PACE_PRESET must be one of"),
        (["-a", "seeds=https://example.org/", "-s", "COMMIT_SECONDS=soon"], "COMMIT_SECONDS is 'soon'"),
        (["-a", "seeds=https://example.org/", "-s", "FETCH_MAX_BYTES=0"], "FETCH_MAX_BYTES is 0"),
        (["-a", "seeds=https://example.org/", "-s", "PACE_PER_IP=perhaps"], "PACE_PER_IP is 'perhaps'"),
        (["-a", "seeds=https://example.org/", "-s", "FETCH_ALLOW_NETWORKS=lan"], "FETCH_ALLOW_NETWORKS"),
        (
            ["-a", "seeds=http://a.test/", "-s", "CRAWLER_CONTACT=a@b.c", "-s", "NEAR_DUPLICATE_BITS=65"],
            "NEAR_DUPLICATE_BITS is 65; it must be from 0 to 64",
        ),
        (["-a", "seeds=https://example.org/", "-s", "CRAWL_DIR=README.md"], "The crawl folder README.md is a file"),
        (
            ["-a", "seeds=https://example.org/", "-s", "NEVERCRAWL_FILE=no/list.txt"],
            "no/list.txt cannot be read (No such",
        ),
        (["-a", "seeds=https://example.org/", "-s", "NEVERCRAWL_FILE=tests"], "/tests cannot be read (Is a directory)"),
        (["-a", "seeds=https://example.org/", "-s", "CRAWLER_NAME=my bot"], "CRAWLER_NAME is 'my bot'"),
        (
            ["-a", "seeds=https://example.org/", "-s", "CRAWLER_CONTACT=me@example.org", "-s", "CRAWL_DIR=/proc/crawl"],
            "crawl folder /proc/crawl cannot be made",
        ),
    ],
)
def test_bad_input_is_one_sentence(options: list[str], sentence: str, tmp_path: Path) -> None:
    """Each mistake stops the crawl before it starts, with what to mend."""
    where = [] if any("CRAWL_DIR" in option for option in options) else ["-s", f"CRAWL_DIR={tmp_path}"]

    ended = crawl(*options, *where)

    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "There are no seeds"),
        (["-a", "seeds=https://example.org/", "-s", "HOST_PACE_FILE=/nope"], "HOST_PACE_FILE /nope cannot be read"),
        (["-a", "seeds=https://example.org/", "-s", "WATCH_PORT=99999"], "WATCH_PORT is 99999"),
        (["-a", "seeds=https://example.org/", "-s", "LOG_LEVEL=FOO"], "LOG_LEVEL is 'FOO'"),
        (["-a", "seeds"], "Invalid -a value"),
        (["--spider", "wbe"], "There is no spider 'wbe'; there are plan, web."),
        (["--spider", "plan"], "There is no plan; make one with scrapy plan and give it with -a plan=FILE."),
    ],
)
def test_a_refusal_stands_in_the_log_file(options: list[str], sentence: str, tmp_path: Path) -> None:
    """Of a job that a daemon starts the operator sees no more than its log: one line, as the log writes them."""
    log = tmp_path / "job.log"
    log.write_text("an earlier line\n")

    spider = options[1] if options[:1] == ["--spider"] else "web"
    given = [] if spider != "web" else options

    ended = crawl(*given, "-s", f"CRAWL_DIR={tmp_path}/crawl", "-s", f"LOG_FILE={log}", spider=spider)

    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    earlier, line = log.read_text().splitlines()
    assert earlier == "an earlier line"
    assert re.match(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[crawlerproject\.commands\.spider_command\] ERROR: The crawl does not", line
    )
    assert sentence in line


def test_what_a_spider_in_a_file_sets_wrongly_is_one_sentence(tmp_path: Path) -> None:
    """Known only when it is made: ``runspider`` ends with status 2 and without a traceback all the same."""
    file = tmp_path / "fast.py"
    file.write_text(
        "import scrapy\n\n\nclass S(scrapy.Spider):\n    name, custom_settings = 's', {'PACE_PRESET': 'fast'}\n"
    )

    ended = zygote.run([sys.executable, "-m", "scrapy", "runspider", str(file)], cwd=PROJECT)

    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert "ERROR: The crawl does not start: PACE_PRESET must be one of" in ended.stderr.splitlines()[-1]


def test_a_list_that_is_not_where_the_crawl_runs_is_missed(tmp_path: Path) -> None:
    """The project's own NeverCrawl.txt is relative: elsewhere the crawl must not begin as if there were none."""
    options = ("-a", "seeds=https://example.org/", "-s", "CRAWLER_CONTACT=me@example.org")

    ended = crawl(*options, cwd=tmp_path)

    assert ended.returncode == 2
    assert f"NEVERCRAWL_FILE {tmp_path / 'NeverCrawl.txt'} cannot be read" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "crawls").exists()


def test_bad_seed_lines_are_reported_by_number(tmp_path: Path) -> None:
    """Lines that are no addresses are named and skipped; with none left the crawl stops."""
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("# ours\nhttp://[broken/\n\ngopher://old.example/\n")

    ended = crawl("-a", f"seeds={seeds}", "-s", f"CRAWL_DIR={tmp_path / 'crawl'}")

    assert ended.returncode == 2
    assert "line 2" in ended.stderr
    assert "line 4" in ended.stderr or "No usable seed" in ended.stderr


def test_a_newer_version_s_folder_is_left_alone(tmp_path: Path) -> None:
    """A frontier written by a later layout stops the start."""
    from crawlerproject.stores.protocols import Changes
    from crawlerproject.stores.rocks.rocks_store import RocksStore

    (tmp_path / "frontier").mkdir()
    store = RocksStore(tmp_path / "frontier")
    store.apply(Changes(facts=[("format", b"99")]))
    store.close()

    ended = crawl("-a", "seeds=https://example.org/", "-s", "CRAWLER_CONTACT=a@b.org", "-s", f"CRAWL_DIR={tmp_path}")

    assert ended.returncode != 0
    assert "newer version" in ended.stderr
    assert "Traceback" not in ended.stderr
