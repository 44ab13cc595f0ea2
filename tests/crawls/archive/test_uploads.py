"""A crawl whose archive goes to a real S3 server beside it: the server refuses for a while, and the crawl goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.stores.archive.recovery import recover
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.protocols import ARCHIVE_FACT, unpack_open
from crawlerproject.stores.rocks.rocks_store import FrontierView
from tests.commands.running import Done, scrapy
from tests.hostile.arena import Asked, arena, page
from tests.stores.uploads.s3_servers import BUCKET, KEYS, SECRET, SERVER, Once, S3Server, error, proxied, s3_server

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="make test makes .venv-tools")

_PAGES = 12
_REFUSALS = 3


class Crawled(NamedTuple):
    """A crawl that has ended, and what is left of it where."""

    folder: CrawlDir
    log: str
    there: dict[str, bytes]
    status: Done


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Refused three times at first; WARC files are small, so that several are closed while it runs."""
    place = tmp_path_factory.mktemp("uploads")
    server = s3_server()
    with proxied(server.port) as proxy, pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": proxy.url}.items():
            patch.setenv(name, value)
        proxy.fault = Once(lambda asked: True, lambda asked: error(503, "ServiceUnavailable"), times=_REFUSALS)
        yield _crawled(place, server)


def _crawled(place: Path, server: S3Server) -> Crawled:
    settings = {
        "ARCHIVE_URL": f"s3://{BUCKET}/web",
        "ARCHIVE_KEEP_LOCAL": "False",
        "WARC_MAX_BYTES": "4000",
        "HTTP_PROXY": "",
    }
    with arena(place / "web") as web:
        seed = web.site("a.test", _numbered)
        done = web.crawl(seed, settings=settings)
        folder = CrawlDir(done.folder)
        status = scrapy("status", "-s", f"CRAWL_DIR={folder}")
    return Crawled(folder, done.log, server.under("web"), status)


def _numbered(asked: Asked) -> bytes | None:
    return page(
        *(f"/{number}" for number in range(_PAGES)), text=f"the page at {asked.path} has words of its own " * 20
    )


def test_all_of_it_is_there_and_nothing_is_here(crawled: Crawled) -> None:
    """The crawl has waited for its last file; of WARC files and indexes nothing is left."""
    kinds = {name.partition("/")[0] for name in crawled.there}
    assert {"warc", "index", "log"} <= kinds
    assert sum(name.startswith("warc/") for name in crawled.there) > 1
    assert list(crawled.folder.warc.iterdir()) == []
    assert [path for path in crawled.folder.index.rglob("*") if path.is_file()] == []
    assert f"The archive is at s3://{BUCKET}/web" in crawled.log


def test_it_says_that_it_was_refused(crawled: Crawled) -> None:
    """Once, and that it works again; the crawl ended well."""
    assert crawled.log.count("The archive waits, and the crawl goes on") == 1
    assert "503" in crawled.log.partition("The archive waits")[2].partition("\n")[0]
    assert f"The archive goes to s3://{BUCKET}/web again" in crawled.log
    assert crawled.status.returncode == 0
    assert f"Archive   to s3://{BUCKET}/web: 0 files (0 B) wait" in crawled.status.stdout


def test_no_key_is_said_or_kept(crawled: Crawled) -> None:
    """Not in the log, the folder, or what lies there."""
    here = b"".join(path.read_bytes() for path in crawled.folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in crawled.log.encode() + here + b"".join(crawled.there.values())
    assert SECRET not in crawled.status.stdout + crawled.status.stderr


def test_the_folder_goes_on_without_its_files(crawled: Crawled) -> None:
    """Its last committed file is at the other place: nothing is taken for lost, and nothing is fetched again."""
    journal = [json.loads(line) for line in crawled.folder.upload_journal.read_text().splitlines()]
    assert {line["stage"] for line in journal if line.get("file", "").startswith("warc/")} >= {"confirmed", "removed"}
    with FrontierView(crawled.folder.frontier) as view:
        committed = unpack_open(view.fact(ARCHIVE_FACT))
    assert committed is not None
    found = recover(crawled.folder.warc, committed, CdxjFiles(crawled.folder.index), lambda rows, kept: len(rows) or 1)
    assert found.messages == []


def test_the_pauses_are_proved_from_there(crawled: Crawled) -> None:
    """``scrapy audit`` reads the log as it was uploaded."""
    audited = scrapy("audit", f"s3://{BUCKET}/web", "--ip-seconds", "0")
    assert audited.returncode == 0, audited.stderr
    assert audited.stdout == scrapy("audit", str(crawled.folder), "--ip-seconds", "0").stdout
    assert "0 violations" in audited.stdout


def test_a_key_in_the_address_stops_the_start(tmp_path: Path) -> None:
    """One sentence, which does not repeat it; the same for a package that is missing."""
    for url in (f"s3://me:{SECRET}@bucket/x", f"az://box/x?sig={SECRET}"):
        done = scrapy("crawl", "web", "-a", "seeds=http://a.test/", "-s", f"CRAWL_DIR={tmp_path}",
                      "-s", "CRAWLER_CONTACT=a@example.org", "-s", f"ARCHIVE_URL={url}")  # fmt: skip
        assert done.returncode == 2
        assert "it has a key in it" in done.stderr
        assert SECRET not in done.stdout + done.stderr
    done = scrapy("upload", str(tmp_path), "-s", "ARCHIVE_URL=gs://bucket/x")
    assert done.returncode == 2
    assert "pip install gcsfs" in done.stderr
