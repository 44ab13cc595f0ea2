"""Crawl folders of every released version, stopped by ``kill -9`` on their way, and continued by this one.

``scripts/old_folder.py`` makes one from a checkout.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject import __version__
from crawlerproject.stores.crawl_dir import FORMATS, CrawlDir, read_facts
from tests.commands.crawled import ask, scrapy
from tests.web import fixed
from tests.web.fixed import SITES, archived_once, fixed_web, url
from tests.web.waiting import busyness
from tests.web.zygote import Process, direct

FOLDERS = Path(__file__).resolve().parents[1] / "fixtures" / "folders"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in FOLDERS.glob("*.tar.xz"))
_SECONDS = 60.0


class Continued(NamedTuple):
    """A folder as it was, and what became of it."""

    folder: CrawlDir
    asked: list[str]
    log: str
    page_before: str  # what lookup said of a page that was archived before
    written_by: str  # the version that the folder says wrote it


@pytest.fixture(scope="module", params=VERSIONS)
def continued(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Continued]:
    """Looked at first, then continued to the end."""
    home = tmp_path_factory.mktemp("old")
    shutil.unpack_archive(FOLDERS / f"{request.param}.tar.xz", home)
    folder = CrawlDir(home / request.param)
    written_by = read_facts(folder.formats).get("version", "1.4.0 or earlier")
    before = scrapy("lookup", url(SITES[0], "/1"), folder=folder)
    assert before.returncode == 0, before.stderr
    with fixed_web(home) as web, (home / "log").open("wb") as log:
        options = ["-a", f"seeds={url(SITES[0])}", *fixed.settings(web, folder)]
        with Process([sys.executable, "-m", "scrapy", "crawl", "web", *options], log, env=direct()) as crawl:
            status = crawl.wait(_SECONDS * busyness())
        said = (home / "log").read_text()
        assert status == 0, said
        yield Continued(folder, list(web.asked), said, before.stdout, written_by)


def captures(folder: CrawlDir) -> Counter[str]:
    """How often each address was archived."""
    lines = [line for path in folder.index.glob("*.cdxj") for line in path.read_text().splitlines()]
    return Counter(json.loads(line.split(" ", 2)[2])["url"] for line in lines)


def test_a_folder_of_any_version_goes_on(continued: Continued) -> None:
    """All that was queued is fetched, and what was archived is not fetched again; commands read what is old and new."""
    found = captures(continued.folder)
    pages = {address: count for address, count in found.items() if not address.endswith("/robots.txt")}

    assert pages == dict.fromkeys(archived_once(), 1)
    assert url(SITES[0]) not in continued.asked
    assert "/1" in continued.page_before
    assert "Traceback" not in continued.log
    of_another = f"This folder was written by version {continued.written_by}" in continued.log
    assert of_another == (continued.written_by != __version__)
    assert read_facts(continued.folder.formats) == {"version": __version__, **FORMATS}
    for command in ("verify", "audit"):
        done = scrapy(command, str(continued.folder))
        assert done.returncode == 0, done.stdout + done.stderr
    requests = ask(continued.folder, "requests", f"{SITES[0]}:{fixed.PORT}")
    logged = {visit["url"] for visit in requests}
    assert {address for address in pages if SITES[0] in address} <= logged


def released() -> list[str]:
    """The versions that the changelog names, the newest first."""
    changelog = (FOLDERS.parents[2] / "CHANGELOG.md").read_text()
    return [line.split()[1] for line in changelog.splitlines() if line.startswith("## ") and " – " in line]


def test_there_is_a_folder_of_each_release() -> None:
    """The changelog says which there were."""
    assert set(VERSIONS) >= set(released()[1:])
