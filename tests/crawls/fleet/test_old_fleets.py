"""Folders of fleets on one machine that earlier versions left by ``kill -9``: continued, backed up, migrated, put back.

``scripts/old_folder.py --fleet`` makes one from a checkout.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject import __version__
from crawlerproject.stores.crawl_dir import FORMATS, CrawlDir, read_facts
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from tests.commands.crawled import scrapy
from tests.crawls.test_old_folders import FOLDERS, captures, released
from tests.web import fixed
from tests.web.fixed import SITES, archived_once, fixed_web, url
from tests.web.waiting import busyness
from tests.web.zygote import Process, direct

FLEETS = FOLDERS.parent / "fleets"
VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in FLEETS.glob("*.tar.xz"))
WORKERS = ("worker-1", "worker-2")
_TABLES = ("", "queue", "seen", "pages", "hosts", "robots", "fingerprints", "payloads")
_SECONDS = 60.0


class Continued(NamedTuple):
    """A fleet's folder as it was, and what became of it."""

    folder: CrawlDir
    asked: list[str]
    log: str  # of the supervisor and all workers, since
    page_before: str  # what lookup said of a page that was archived before
    written_by: str


def unpacked(version: str, home: Path) -> CrawlDir:
    """The folder that this version left."""
    shutil.unpack_archive(FLEETS / f"{version}.tar.xz", home)
    return CrawlDir(home / version)


def workers(crawl: CrawlDir) -> list[CrawlDir]:
    """Their folders."""
    return [CrawlDir(crawl / name) for name in WORKERS]


def archived(crawl: CrawlDir) -> Counter[str]:
    """How often each page is in the indexes of all workers."""
    found = sum((captures(folder) for folder in workers(crawl)), Counter[str]())
    return Counter({address: count for address, count in found.items() if not address.endswith("/robots.txt")})


def gone_on(crawl: CrawlDir, home: Path) -> tuple[list[str], str]:
    """Continue it to the end; what the web was asked, and what supervisor and workers said."""
    before = {name: (crawl / f"{name}.log").stat().st_size for name in WORKERS}
    with fixed_web(home) as web, (home / "log").open("wb") as log:
        options = ["--workers", "2", "-a", f"seeds={url(SITES[0])}", *fixed.settings(web, crawl, **fixed.OF_FLEETS)]
        with Process([sys.executable, "-m", "scrapy", "fleet", *options], log, env=direct()) as fleet:
            status = fleet.wait(_SECONDS * busyness())
        said = (home / "log").read_text()
        said += "".join((crawl / f"{name}.log").read_text()[size:] for name, size in before.items())
        assert status == 0, said
        return list(web.asked), said


def good(crawl: CrawlDir) -> None:
    """Index, archive and frontiers agree, and every pause was kept, by the older version and by this one."""
    for command in ("verify", "audit"):
        done = scrapy(command, str(crawl))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module", params=VERSIONS)
def continued(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Continued]:
    """Looked at first, then continued by as many workers."""
    home = tmp_path_factory.mktemp("old-fleet")
    crawl = unpacked(request.param, home)
    written_by = str(read_facts(workers(crawl)[0].formats)["version"])
    before = scrapy("lookup", url(SITES[0], "/1"), folder=crawl)
    assert before.returncode == 0, before.stderr
    yield Continued(crawl, *gone_on(crawl, home), before.stdout, written_by)


def test_a_fleet_of_an_earlier_version_goes_on(continued: Continued) -> None:
    """Every page is archived once, whichever version did so, and none that was is asked again; commands read all."""
    crawl = continued.folder

    assert archived(crawl) == dict.fromkeys(archived_once(), 1)
    assert not {url(site) for site in SITES} & set(continued.asked)
    assert "/1" in continued.page_before
    assert "Traceback" not in continued.log
    said = continued.log.count(f"This folder was written by version {continued.written_by}")
    assert said == (len(WORKERS) if continued.written_by != __version__ else 0)
    assert [read_facts(folder.formats) for folder in workers(crawl)] == 2 * [{"version": __version__, **FORMATS}]
    good(crawl)


def rows(folder: CrawlDir) -> dict[str, dict[bytes, bytes]]:
    """Everything in a worker's frontier, but how its last process ended."""
    with closing(open_to_write(folder.frontier)) as store:
        return {
            table: {key: row for key, row in store.rows(table) if (table, key) != ("", CLEAN_FACT.encode())}
            for table in _TABLES
        }


def test_the_way_back_from_a_migration(tmp_path: Path) -> None:
    """Backed up, migrated, put back: frontiers and formats are as before, what was there is kept, and it goes on."""
    crawl, kept = unpacked(VERSIONS[0], tmp_path), CrawlDir(tmp_path / "kept")
    for folder in workers(crawl):
        (folder.warc / "a.warc.gz.open.0.torn").write_bytes(b"a tail")  # as versions before 1.1.0 left them
    formats = [folder.formats.read_bytes() for folder in workers(crawl)]
    archive = {path: path.read_bytes() for folder in workers(crawl) for path in folder.closed_warcs()}

    made = scrapy("state", "backup", str(kept), folder=crawl)
    migrated = scrapy("state", "migrate", folder=crawl)
    again = scrapy("state", "migrate", "--check", folder=crawl)
    back = scrapy("state", "restore", str(kept), folder=crawl)

    for done in (made, migrated, back):
        assert done.returncode == 0, done.stderr
    assert migrated.stdout.count("1 file moved") == len(WORKERS)
    assert "Nothing is to be migrated." in again.stdout
    assert [folder.formats.read_bytes() for folder in workers(crawl)] == formats
    for folder, then in zip(workers(crawl), workers(kept), strict=True):
        assert rows(folder) == rows(then)
        assert (folder.torn / "a.warc.gz.open.0.torn").read_bytes() == b"a tail"
        (before,) = folder.glob("frontier.damaged-*")
        assert f"The frontier that was there is kept in {before}" in back.stderr
    assert {path: path.read_bytes() for path in archive} == archive

    gone_on(crawl, tmp_path)
    assert archived(crawl) == dict.fromkeys(archived_once(), 1)
    good(crawl)


def test_there_is_a_fleet_of_each_release() -> None:
    """Since 1.5.0, but for the newest, which gets its folder right after it."""
    versions = released()

    assert set(VERSIONS) >= set(versions[1 : versions.index("1.5.0") + 1])
