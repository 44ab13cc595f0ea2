"""The archive read by the programs of others: they must agree with our index on every record.

They live in ``.venv-tools`` (requirements-tools.txt), since they ask for other versions of what we use; ``make test``
makes it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from crawlerproject.reports.warc_check import check_file
from crawlerproject.stores.archive.capture_index import Captures
from tests.commands.running import scrapy
from tests.crawls.archive.pywb_server import TOOLS, ask, pywb_of
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

# One page of each of these hosts is a seed: every encoding, odd header, redirect, error, and repeated payload.
HOSTS = ("formats", "ugly", "redirects", "copies", "rules", "norobots", "plain1")

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")


class Line(NamedTuple):
    """What an index says of one capture."""

    key: str
    timestamp: str
    url: str
    mime: str
    status: str
    digest: str
    length: str
    offset: str
    filename: str


def lines_of(text: str) -> list[Line]:
    """CDXJ lines, ours or another's, in their order; "unk" is Common Crawl's word where others leave the type out."""
    lines = []
    for line in text.splitlines():
        key, timestamp, fields = line.split(" ", 2)
        values = {"mime": "unk"} | json.loads(fields)
        names = ("url", "mime", "status", "digest", "length", "offset", "filename")
        lines.append(Line(key, timestamp, *(str(values.get(name, "")).removeprefix("sha1:") for name in names)))
    return lines


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl in several files."""
    folder = tmp_path_factory.mktemp("tools")
    with synthetic_web(folder / "web") as web:
        seeds = folder / "seeds.txt"
        seeds.write_text("".join(f"http://{host}.test:{web.port}/\n" for host in HOSTS))
        settings = {**small_settings(web), "WARC_MAX_BYTES": "40000", "FETCH_MAX_BYTES": "100000"}
        command = crawl_command(seeds, folder / "crawl", web.folder / "hosts", settings, "host")
        spent = measured(command, folder / "log")
    assert spent.status == 0, (folder / "log").read_text()[-3000:]
    return folder / "crawl"


@pytest.fixture(scope="module")
def ours(crawled: Path) -> list[Line]:
    """Our index, every line of every file."""
    return lines_of("".join(path.read_text() for path in sorted((crawled / "index").glob("*.cdxj"))))


def warcs(crawled: Path) -> list[Path]:
    """The files, in order."""
    return sorted((crawled / "warc").iterdir())


def tool(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """A program of .venv-tools, run to its end."""
    return subprocess.run(
        [TOOLS / command[0], *command[1:]], capture_output=True, text=True, timeout=100, check=False
    )  # fmt: skip


def test_the_crawl_has_everything(ours: list[Line], crawled: Path) -> None:
    """The checks below rest on it: several files, many statuses, revisits, every encoding."""
    assert len(warcs(crawled)) > 3
    assert {"200", "204", "301", "302", "404", "410"} <= {line.status for line in ours}
    assert "warc/revisit" in {line.mime for line in ours}
    paths = {urlsplit(line.url).path for line in ours}
    assert {"/gzip", "/br", "/deflate", "/raw-deflate", "/chunked", "/latin-header", "/folded", "/lf-only"} <= paths


def test_scrapy_verify(crawled: Path) -> None:
    """Strict reading of every gzip member, both indexes, the frontier: all is well."""
    done = scrapy("verify", str(crawled))

    assert done.returncode == 0, done.stderr
    assert [flaw for path in warcs(crawled) for flaw in check_file(path).flaws] == []


def test_cdxj_indexer(crawled: Path, ours: list[Line]) -> None:
    """An index made by cdxj-indexer has the same lines: key, time, type, status, digest, length and place."""
    theirs = []
    for path in warcs(crawled):
        done = tool("cdxj-indexer", "--sort", path)
        assert done.returncode == 0, done.stderr
        theirs += lines_of(done.stdout)

    assert theirs == ours


def test_warcio_check(crawled: Path) -> None:
    """warcio's own check finds every digest right, and looks at as many records as there are."""
    for path in warcs(crawled):
        done = tool("warcio", "check", "--verbose", path)
        records = check_file(path).records
        assert done.returncode == 0, done.stdout
        assert "fail" not in done.stdout
        assert len(re.findall(r"(?m)^ *offset \d+ ", done.stdout)) == records.total(), done.stdout[:2000]


def test_fastwarc(crawled: Path, ours: list[Line]) -> None:
    """FastWARC finds the responses and revisits at our offsets, and their digests right."""
    found = set()
    for path in warcs(crawled):
        with path.open("rb") as stream:  # parsing takes the head away, of which the block's digest is made
            assert all(record.verify_block_digest() for record in ArchiveIterator(stream, parse_http=False))
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.response | WarcRecordType.revisit):
                assert record.record_type == WarcRecordType.revisit or record.verify_payload_digest()
                url, status = record.headers["WARC-Target-URI"], str(record.http_headers.status_code)
                found.add((path.name, str(record.stream_pos), url, status))

    assert found == {(line.filename, line.offset, line.url, line.status) for line in ours}


@pytest.fixture(scope="module")
def pywb(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """A running pywb that serves the WARC files through our index."""
    with pywb_of(crawled, tmp_path_factory.mktemp("pywb")) as server:
        yield server


def test_pywb_serves_our_index(pywb: tuple[str, int], ours: list[Line]) -> None:
    """pywb's own index server finds every capture of every host."""
    found = set()
    for host in sorted({urlsplit(line.url).netloc for line in ours}):
        for row in ask(pywb, f"/crawl/cdx?url=http://{host}/*&output=json")[1].splitlines():
            values = json.loads(row)
            found.add((values["url"], values["timestamp"], values["filename"], values["offset"]))

    assert found == {(line.url, line.timestamp, line.filename, line.offset) for line in ours}


def test_pywb_replays_the_same_bytes(pywb: tuple[str, int], crawled: Path, ours: list[Line]) -> None:
    """Every capture, whatever its status and encoding, comes back with its status and the stored body's bytes."""
    wrong = []
    for line in ours:
        status, body = ask(pywb, f"/crawl/{line.timestamp}id_/{line.url}")  # id_: nothing rewritten
        if (status, body) != (line.status, stored_body(crawled, line)):
            wrong.append((urlsplit(line.url).path, line.status, status))

    # A page that redirects to itself pywb refuses to replay, whoever archived it.
    assert wrong == [("/self", "302", "400")]


def stored_body(crawled: Path, line: Line) -> bytes:
    """The body as it lies in the WARC; of a revisit, that of the capture it refers to."""
    captures = Captures([crawled])
    (found,) = [
        each
        for each in captures.of_url(line.url)
        if str(each.row.offset) == line.offset and each.filename == line.filename
    ]
    member = captures.record(found)
    if member.kind == "revisit":
        original = captures.original(member)
        assert original is not None
        member = captures.record(original)
    return member.payload


def test_wacz_validate(crawled: Path, tmp_path: Path) -> None:
    """py-wacz finds nothing wrong with the crawl packed as one file."""
    packed = scrapy("wacz", str(crawled), "-o", str(tmp_path / "crawl.wacz"))
    done = tool("wacz", "validate", "-f", tmp_path / "crawl.wacz")

    assert packed.returncode == 0, packed.stderr
    assert (done.returncode, "Validation succeeded" in done.stdout) == (0, True), done.stdout
