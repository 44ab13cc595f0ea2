"""One line in ADDONS of a fresh project: the same frontier, politeness and WARC output, for a spider of its own.

Spiders that are not ours: tests/addon.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.logs.request_log import read_log
from tests.web import zygote
from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, PROJECT, RunningWeb, small_settings, synthetic_web

PYTHON_BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (PROJECT / "docs" / "addon.md").read_text(), re.DOTALL | re.MULTILINE
)
# The documentation's example, as it stands there; its class is what is crawled with.
SPIDER = next(block for block in PYTHON_BLOCKS if "class TitlesSpider" in block)
BROKEN = """
from crawlerproject.spiders.web import WebSpider


class BrokenSpider(WebSpider):
    name = "broken"

    def extract(self, response):
        raise RuntimeError("the reader is broken")
"""
ADDON = '\nADDONS = {"crawlerproject.addon.PoliteCrawl": 100}\nCOMMANDS_MODULE = "crawlerproject.commands"\n'


def scrapy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command in that folder, with this project on the path."""
    return zygote.run(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=folder,
        env=zygote.direct(PYTHONPATH=str(PROJECT)),
        timeout=100,
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``scrapy startproject`` and one line (and one more for the commands)."""
    home = tmp_path_factory.mktemp("addon")
    assert scrapy(home, "startproject", "other").returncode == 0
    settings = home / "other" / "other" / "settings.py"
    settings.write_text(settings.read_text() + ADDON)
    (home / "other" / "other" / "spiders" / "titles.py").write_text(SPIDER)
    (home / "other" / "other" / "spiders" / "broken.py").write_text(BROKEN)
    return home / "other"


def options(web: RunningWeb, folder: Path) -> list[str]:
    """Settings of a crawl of the synthetic web."""
    given = {
        **IDENTITY, **small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8", "CRAWL_DIR": str(folder),
        "FETCH_HOSTS_FILE": str(web.folder / "hosts"), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
    }  # fmt: skip
    return [part for name, value in given.items() for part in ("-s", f"{name}={value}")]


def test_a_spider_of_another_project(project: Path, tmp_path: Path) -> None:
    """Its items come out as ever; its pages are archived, each once, at the promised pace, robots.txt obeyed.

    A page that broke off is asked for once more, and the callback sees both answers.
    """
    with synthetic_web(tmp_path / "web") as web:
        items, crawl = tmp_path / "titles.jsonl", tmp_path / "crawl"
        seeds = ["-a", f"seeds={web.folder / 'seeds.txt'}", "-a", "scope=any"]

        ended = scrapy(project, "crawl", "titles", *seeds, "-O", str(items), *options(web, crawl))

        assert ended.returncode == 0, ended.stderr[-2000:]
        assert "Traceback" not in ended.stderr, ended.stderr[ended.stderr.index("Traceback") - 500 :][:3000]
        verdict = judge_folder(web.folder, crawl, host_seconds=0.25, ip_seconds=0.5)
    assert verdict.faults == []
    again = tmp_path / "again.jsonl"  # and without the web, from what is archived
    reparsed = scrapy(project, "reparse", "titles", str(crawl), "-O", str(again))
    assert reparsed.returncode == 0, reparsed.stderr[-2000:]
    live, later = Counter(items.read_text().splitlines()), Counter(again.read_text().splitlines())
    assert later <= live
    twice = {urlsplit(json.loads(line)["url"]).path for line in live - later}
    assert twice <= {"/short-body", "/bad-chunk"}
    found = {row["url"]: row["title"] for row in map(json.loads, items.read_text().splitlines())}
    assert found[f"http://plain1.test:{web.port}/"] == "plain1.test/"
    for path in (crawl / "warc").glob("*.warc.gz"):
        assert check_file(path).flaws == []


def test_without_a_contact_it_does_not_start(project: Path, tmp_path: Path) -> None:
    """A crawl of public addresses needs a way to reach its operator, whoever starts it."""
    where = ["-s", f"CRAWL_DIR={tmp_path / 'crawl'}"]

    ended = scrapy(project, "crawl", "titles", "-a", "seeds=https://a.invalid/", *where)

    assert ended.returncode != 0
    assert "needs a way to reach you" in ended.stderr


def test_many_errors_of_the_program_stop_the_crawl(project: Path, tmp_path: Path) -> None:
    """A reader that always fails: the crawl stops with its own exit status, the tracebacks are kept apart."""
    with synthetic_web(tmp_path / "web") as web:
        where = ["-a", f"seeds=http://plain1.test:{web.port}/", "-s", "OWN_ERRORS_MAX_IN_A_ROW=3"]

        ended = scrapy(project, "crawl", "broken", *where, *options(web, tmp_path / "crawl"))

    assert ended.returncode == 70
    assert "3 errors of our own in a row: the crawl stops" in ended.stderr
    assert "'finish_reason': 'errors_in_a_row'" in ended.stderr
    kept = (tmp_path / "crawl" / "log" / "errors.log").read_text()
    assert kept.count("RuntimeError: the reader is broken") >= 3
    assert len(list(read_log(tmp_path / "crawl" / "log"))) >= 3  # and what the web did is in the request log
