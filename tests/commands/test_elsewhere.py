"""Commands on an archive at another place: a real S3 server, or what it has taken from a crawl's folder."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from crawlerproject.batch.process_warcs import ExtractOptions, outputs, process_warc
from crawlerproject.inspection.pywb import ranges_served
from crawlerproject.stores.archive.warc_reader import next_member
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.uploads import distant
from crawlerproject.stores.uploads.distant import DistantPath, distant_crawl
from tests.commands.running import Done, crawl, scrapy
from tests.crawls.archive.pywb_server import ask, pywb_of
from tests.stores.uploads.s3_servers import BUCKET, KEYS, SECRET, SERVER, Proxy, S3Server, error, proxied, s3_server

pytestmark = pytest.mark.skipif(not SERVER.exists(), reason="make test makes .venv-tools")


class Placed(NamedTuple):
    """A crawl whose WARC files and indexes are at ``url`` alone, and the same before."""

    folder: CrawlDir
    before: CrawlDir
    url: str
    urls: list[str]
    proxy: Proxy
    server: S3Server


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    """Uploaded by the command, once; a client is made once, too."""
    place = tmp_path_factory.mktemp("elsewhere")
    before = CrawlDir(place / "before")
    urls = crawl(before)
    folder = CrawlDir(place / "crawl")
    shutil.copytree(before, folder)
    server = s3_server()
    with proxied(server.port) as proxy, pytest.MonkeyPatch.context() as patch:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": proxy.url}.items():
            patch.setenv(name, value)
        distant._files.cache_clear()
        url = f"s3://{BUCKET}/placed"
        done = scrapy("upload", str(folder), "-s", f"ARCHIVE_URL={url}", "-s", "ARCHIVE_KEEP_LOCAL=False")
        assert done.returncode == 0, done.stderr
        assert not list(folder.warc.iterdir())
        yield Placed(folder, before, url, urls, proxy, server)
        distant._files.cache_clear()


def same(placed: Placed, *arguments: str, places: tuple[str, ...] = ()) -> Done:
    """A command on the folder as it was, on what is left of it, and on the other place: the same answer."""
    expected = scrapy(*arguments, "-s", f"CRAWL_DIR={placed.before}")
    for where in places or (str(placed.folder), placed.url):
        done = scrapy(*arguments, "-s", f"CRAWL_DIR={where}")
        assert (done.output, done.returncode) == (expected.output, expected.returncode), (where, done.stderr)
    return expected


def test_lookup_and_show_read_ranges(placed: Placed) -> None:
    """Of one record, not of the file."""
    assert same(placed, "lookup", placed.urls[4]).stdout
    placed.proxy.asked.clear()
    assert b"<p>4</p>" in same(placed, "show", placed.urls[4]).output
    assert same(placed, "lookup", "http://nowhere.example.com/").returncode == 1
    assert {asked.method for asked in placed.proxy.asked} <= {"GET", "HEAD"}


def test_verify_reads_all_of_it(placed: Placed) -> None:
    """With the frontier where there is one: no page is without its capture. The place alone has none."""
    folder = scrapy("verify", str(placed.folder))
    assert folder.returncode == 0, folder.stderr
    assert "20 captures, 20 answered pages of the frontier: all is well" in folder.stdout
    there = scrapy("verify", placed.url)
    assert there.returncode == 0, there.stderr
    assert "20 captures: all is well" in there.stdout


def test_process_and_wacz_stream(placed: Placed, tmp_path: Path) -> None:
    """The same rows and the same archive within; results of a place go into a folder that is named."""
    (warc,) = placed.before.closed_warcs()
    expected = outputs(warc, tmp_path / "before", ExtractOptions())
    process_warc(warc, tmp_path / "before", ExtractOptions())
    done = scrapy("process", placed.url, "--out", str(tmp_path / "there"), "--workers", "1")
    assert done.returncode == 0, done.stderr
    for path in expected:
        assert (tmp_path / "there" / path.relative_to(tmp_path / "before")).read_bytes() == path.read_bytes()
    for number, where in enumerate((placed.folder, placed.url)):
        packed = scrapy("wacz", str(where), "-o", str(tmp_path / f"{number}.wacz"))
        assert packed.returncode == 0, packed.stderr
        with zipfile.ZipFile(tmp_path / f"{number}.wacz") as archive:
            assert archive.read(f"archive/{warc.name}") == warc.read_bytes()
    assert "give --out DIR" in scrapy("process", placed.url).stderr


def test_a_lost_frontier_is_made_again_from_there(placed: Placed, tmp_path: Path) -> None:
    """``scrapy recover`` reads what was removed here."""
    copy = CrawlDir(shutil.copytree(placed.folder, tmp_path / "copy"))
    shutil.rmtree(copy.frontier)
    copy.crawl_file.write_text('seeds = ["http://h0.example.com/0"]\nscope = "any"\n')
    done = scrapy("recover", str(copy))
    assert "The new frontier knows 20 pages" in done.stdout, done.stderr
    verified = scrapy("verify", str(copy))
    assert verified.returncode == 0, verified.stderr


def test_what_is_not_there_or_refused_is_one_sentence(placed: Placed) -> None:
    """No traceback, and no key."""
    nothing = scrapy("lookup", "http://a.test/", "-s", f"CRAWL_DIR={placed.url}-no")
    assert nothing.returncode == 2
    assert "holds no crawl" in nothing.stderr
    keyed = scrapy("verify", f"s3://me:{SECRET}@{BUCKET}/x")
    assert keyed.returncode == 2
    placed.proxy.fault.before = lambda asked: error(403, "AccessDenied")  # type: ignore[method-assign]
    try:
        distant._files.cache_clear()
        refused = scrapy("verify", placed.url)
    finally:
        del placed.proxy.fault.before
    assert refused.returncode == 2
    for done in (nothing, keyed, refused):
        assert "Traceback" not in done.stderr
        assert SECRET not in done.stderr
        assert done.stderr.count("\n") == 1


def test_names_that_lead_elsewhere_do_not_exist(placed: Placed) -> None:
    """A server may list what it likes."""
    for name in ("warc/../../../etc/x.warc.gz", "warc/a\x1b[2J.warc.gz", "warc//twice.warc.gz", "warc/good.warc.gz"):
        placed.server.files.call_s3("put_object", Bucket=BUCKET, Key=f"hostile/{name}", Body=b"x")
    crawl = distant_crawl(f"s3://{BUCKET}/hostile")
    assert [path.name for path in crawl.closed_warcs()] == ["good.warc.gz"]
    assert all(path.parent == crawl.warc for path in crawl.closed_warcs())


def test_nothing_is_written_there(placed: Placed) -> None:
    """Through these paths."""
    path = DistantPath(placed.url) / "x"
    with pytest.raises(OSError, match="only read"):
        path.open("wb")
    assert not path.exists()


def test_a_good_record_behind_damage_is_found(placed: Placed) -> None:
    """As in a file that is here."""
    (here,) = placed.before.closed_warcs()
    there = DistantPath(placed.url) / "warc" / here.name
    assert next_member(there, 1) == next_member(here, 1)


def test_replay_shows_what_is_there(placed: Placed, tmp_path: Path) -> None:
    """Of the place alone, and of the folder whose files went there: by a real pywb, which asks a server of ours.

    The records come in ranges; the WARC file never comes whole.
    """
    for name, where in (("there", placed.url), ("left", str(placed.folder))):
        told = tmp_path / name
        told.mkdir()
        placed.proxy.asked.clear()
        with pywb_of(where, told) as server:
            status, body = ask(server, f"/crawl/20261121id_/{placed.urls[4]}")
            assert (status, b"<p>4</p>" in body) == ("200", True)
            assert ask(server, "/crawl/20261121id_/http://nowhere.example.com/")[0] == "404"
        assert {asked.method for asked in placed.proxy.asked} <= {"GET", "HEAD"}


def test_what_serves_ranges_gives_nothing_else(placed: Placed) -> None:
    """Only under its own address, only what was named, as much as was asked for."""
    (warc,) = placed.before.closed_warcs()
    whole = warc.read_bytes()
    with ranges_served() as files:
        url = files.address(DistantPath(placed.url) / "warc" / warc.name)
        home = url.rpartition("/")[0]
        assert _asked(url, "bytes=10-19") == (206, whole[10:20])
        assert _asked(url, "bytes=10-") == (206, whole[10:])
        assert _asked(url, f"bytes={len(whole)}-") == (416, b"")
        assert _asked(f"{home}/other.warc.gz") == (404, b"")
        assert _asked(f"{home}x/{warc.name}") == (404, b"")
        assert _asked(files.address(DistantPath(placed.url) / "warc" / "gone.warc.gz")) == (404, b"")


def _asked(url: str, wanted: str = "bytes=0-") -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": wanted}), timeout=60) as found:
            return found.status, found.read()
    except urllib.error.HTTPError as refused:
        return refused.code, b""
