"""An index and WARC files in Common Crawl's form and naming, served over loopback HTTP: imported, then only deltas."""

from __future__ import annotations

import gzip
import http.server
import io
import json
import re
import subprocess
import sys
import threading
from base64 import b32encode
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha1
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawlerproject.batch.commoncrawl_index import Distant, Filter, ForeignCapture, read_captures
from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.index_rows import surt_key
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.stores.archive.capture_index import Captures
from crawlerproject.stores.archive.warc_reader import member_at
from tests.commands.running import archive, archive_of, scrapy
from tests.crawls.archive.pywb_server import TOOLS
from tests.foreign_archives import DATE, SHAPES, Page
from tests.warc_samples import STARTED_AT, exchange
from tests.web import zygote
from tests.web.running import RunningWeb, crawl_command, measured, small_settings, synthetic_web

SEGMENT = "crawl-data/CC-MAIN-2026-40/segments/1790000000000.1"
WARC = f"{SEGMENT}/warc/CC-MAIN-20260901000000-20260901030000-00000.warc.gz"
FETCHED = datetime(2026, 9, 1, tzinfo=UTC)
#: Of honest.test; the last is none of ours, and one record is not what the index says.
PAGES = ("/weekly", "/monthly", "/fixed")
QUICK = {"PACE_IP_SECONDS": "0", "PACE_MIN_SECONDS": "0.02", "PACE_START_SECONDS": "0.02"}


class Import(NamedTuple):
    """A web, its captures by another crawler, and what was imported."""

    web: RunningWeb
    folder: Path
    base: str
    asked: list[str]  # of the archive's server: method, path, range
    output: str
    status: int


class Ranges(http.server.BaseHTTPRequestHandler):
    """Files by byte range, as a bucket serves them."""

    files: dict[str, bytes]
    asked: list[str]

    def do_GET(self) -> None:
        self._answer(self.files.get(self.path))

    do_HEAD = do_GET

    def _answer(self, whole: bytes | None) -> None:
        span = self.headers.get("Range", "")
        self.asked.append(f"{self.command} {self.path} {span}")
        if whole is None:
            self.send_error(404)
            return
        data, status = whole, 200
        if span:
            first, _, last = span.removeprefix("bytes=").partition("-")
            data, status = whole[int(first) : int(last) + 1], 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Quiet."""


def captures(port: int) -> tuple[bytes, list[dict[str, object]]]:
    """A WARC as Common Crawl writes it (1.0, bodies decoded, X-Crawler- headers), and the rows of its index."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True, warc_version="1.0")
    rows: list[dict[str, object]] = []
    for path in (*PAGES, "/elsewhere"):
        host = "honest.test" if path in PAGES else "other-site.test"
        url = f"http://{host}:{port}{path}"
        body = f"<html><title>{path}</title><p>as another crawler saw it".encode()
        headers = [("Content-Type", "text/html"), ("X-Crawler-Content-Encoding", "gzip")]
        head = StatusAndHeaders("200 OK", [*headers, ("Content-Length", str(len(body)))], protocol="HTTP/1.1")
        start = out.tell()
        moment = {"WARC-Date": FETCHED.strftime("%Y-%m-%dT%H:%M:%SZ")}
        record = writer.create_warc_record(
            url, "response", io.BytesIO(body), http_headers=head, warc_headers_dict=moment
        )
        writer.write_record(record)
        digest = b32encode(sha1(body).digest()).decode()
        rows.append(
            {
                "url_surtkey": surt_key(url), "url": url, "fetch_time": FETCHED, "fetch_status": 200,
                "content_digest": digest, "content_languages": "eng" if path != "/fixed" else "eng,deu",
                "warc_filename": WARC, "warc_record_offset": start, "warc_record_length": out.tell() - start,
            }
        )  # fmt: skip
    return out.getvalue(), rows


def cdxj(rows: list[dict[str, object]]) -> bytes:
    """The same index as lines."""
    lines = []
    for row in rows:
        fields = {
            "url": row["url"], "mime": "text/html", "status": "200", "digest": row["content_digest"],
            "length": str(row["warc_record_length"]), "offset": str(row["warc_record_offset"]), "filename": WARC,
        }  # fmt: skip
        lines.append(f"{row['url_surtkey']} 20260901000000 {json.dumps(fields)}\n")
    return "".join(sorted(lines)).encode()


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Import]:
    """Imported from the columnar index over HTTP, with records; one row's offset is wrong."""
    folder = tmp_path_factory.mktemp("commoncrawl")
    with synthetic_web(folder / "web", "--profile", "changing") as web:
        warc, rows = captures(web.port)
        table = "cc-index/table/cc-main/warc/crawl=CC-MAIN-2026-40/subset=warc/part-00000.gz.parquet"
        wrong = [dict(row) for row in rows]
        wrong[1]["warc_record_offset"] = int(str(rows[1]["warc_record_offset"])) + 7
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(wrong), buffer)
        files = {
            f"/{WARC}": warc,
            f"/{table}": buffer.getvalue(),
            "/cc-index-table.paths.gz": gzip.compress(f"{table}\n".encode()),
            "/index.cdxj.gz": gzip.compress(cdxj(rows)),
        }
        asked: list[str] = []
        handler = type("Handler", (Ranges,), {"files": files, "asked": asked})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}/"
        done = commoncrawl(
            folder / "crawl", base, "cc-index-table.paths.gz", "--domain", "honest.test", "--fetch-records"
        )
        yield Import(web, folder / "crawl", base, asked, done.stdout + done.stderr, done.returncode)
        server.shutdown()


def commoncrawl(folder: Path, base: str, source: str, *more: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    arguments = ["commoncrawl", base + source, "--base", base, "--pause", "0", *more, "-s", f"CRAWL_DIR={folder}"]
    command = [sys.executable, "-m", "scrapy", *arguments]
    return zygote.run(command)


def test_records_come_by_byte_range_and_false_ones_are_refused(imported: Import) -> None:
    """Only spans of the WARC are asked for; a span that is no record is named and left out, the page is known still."""
    spans = [line for line in imported.asked if WARC in line]

    assert imported.status == 1
    assert "3 pages are newly known, 0 were known before, 2 records taken" in imported.output
    assert "/monthly" in imported.output
    assert "is not one whole record" in imported.output
    assert len(spans) == 3
    assert all("bytes=" in line for line in spans)


def test_the_records_are_in_our_archive_with_their_origin(imported: Import) -> None:
    """Byte for byte, indexed, each followed by a record that says where it is from."""
    (warc,) = (imported.folder / "warc").glob("import-*.warc.gz")
    rows = [json.loads(line.split(b" ", 2)[2]) for line in index_of(imported, warc).read_bytes().splitlines()]

    assert sorted(row["url"].rpartition("/")[2] for row in rows) == ["fixed", "weekly"]
    for row in rows:
        record = member_at(warc, int(row["offset"]), int(row["length"]))
        assert isinstance(record, Member)
        assert b"as another crawler saw it" in record.payload
    assert gzip.decompress(warc.read_bytes()).count(f"origin: {imported.base}{WARC}".encode()) == 2


def index_of(imported: Import, warc: Path) -> Path:
    """Its CDXJ."""
    return imported.folder / "index" / f"{warc.name.removesuffix('.warc.gz')}.cdxj"


def test_importing_again_changes_nothing(imported: Import) -> None:
    """From the other form of the index: all of it is known."""
    again = commoncrawl(imported.folder, imported.base, "index.cdxj.gz", "--prefix", "http://honest.test")

    assert again.returncode == 0, again.stderr
    assert "0 pages are newly known, 3 were known before" in again.stdout


def test_only_deltas_are_fetched_afterwards(imported: Import) -> None:
    """A crawl asks for what the index did not have; a recrawl asks for the rest, if it has changed since."""
    log = imported.web.folder / "server.jsonl"
    (imported.web.folder / "seeds.txt").write_text(f"http://honest.test:{imported.web.port}/\n")
    command = crawl_command(
        imported.web.folder / "seeds.txt", imported.folder, imported.web.folder / "hosts",
        small_settings(imported.web) | QUICK | {"RECRAWL_FULL_FETCH_SHARE": "0"}, scope="host",
    )  # fmt: skip

    first = measured(command, imported.folder.with_suffix(".log"))
    crawled = [json.loads(line) for line in log.read_text().splitlines()]
    command[command.index(f"seeds={imported.web.folder / 'seeds.txt'}")] = "mode=recrawl"
    second = measured(command, imported.folder.with_suffix(".log"))
    again = [json.loads(line) for line in log.read_text().splitlines()][len(crawled) :]

    assert (first.status, second.status) == (0, 0), imported.folder.with_suffix(".log").read_text()[-2000:]
    assert {row["path"] for row in crawled} == {"/robots.txt", "/", "/daily"}
    asked = {row["path"]: (row["status"], bool(row.get("conditional"))) for row in again}
    assert asked["/fixed"] == (304, True)
    assert asked["/weekly"] == (200, True)
    texts = [gzip.decompress(path.read_bytes()).decode("latin-1") for path in (imported.folder / "warc").iterdir()]
    theirs = [text for text in texts if f"origin: {imported.base}" in text]
    (refers,) = [text for text in texts if "server-not-modified" in text and "/fixed\r\n" in text]
    ids = re.findall(r"WARC-Refers-To: (\S+)", refers)
    assert ids
    assert all(f"WARC-Record-ID: {one}" in theirs[0] for one in ids)


@pytest.mark.parametrize(
    ("name", "data", "word"),
    [
        ("other.parquet", b"PAR1 not", "is no Parquet file"),
        ("lines.cdxj", b"<html>\n" * 20, "unknown schema"),
        ("broken.cdxj.gz", b"\x1f\x8b broken", "broken gzip"),
        ("none.cdxj", None, "cannot be read"),
    ],
)
def test_what_is_no_index_is_refused(tmp_path: Path, name: str, data: bytes | None, word: str) -> None:
    """A sentence; the crawl's folder stays as it was."""
    if data is not None:
        (tmp_path / name).write_bytes(data)

    with pytest.raises(OperatorError, match=word):
        list(read_captures(str(tmp_path / name), Distant("", "test", 0.0), Filter()))


def read(path: Path, **wanted: Any) -> list[ForeignCapture]:
    """The captures of an index file."""
    return list(read_captures(str(path), Distant("", "test", 0.0), Filter(**wanted)))


@pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")
@pytest.mark.parametrize("tool", [["cdxj-indexer"], ["cdxj-indexer", "-s"], ["cdx-indexer", "-j"]], ids=" ".join)
def test_the_indexes_of_other_programs(tmp_path: Path, tool: list[str]) -> None:
    """cdxj-indexer writes ``sha1:`` before its digests, pywb's does not: the same captures as from our own index."""
    folder = archive(tmp_path)
    assert scrapy("index", str(folder)).returncode == 0
    warcs = [str(path) for path in (folder / "warc").glob("*.warc.gz")]
    made = subprocess.run([TOOLS / tool[0], *tool[1:], *warcs], capture_output=True, timeout=60, check=True)
    (tmp_path / "theirs.cdxj").write_bytes(made.stdout)
    assert (b'"sha1:' in made.stdout) == (tool[0] == "cdxj-indexer")

    theirs = read(tmp_path / "theirs.cdxj")
    done = scrapy(
        "commoncrawl", str(tmp_path / "theirs.cdxj"), "--fetch-records", "--base", str(folder / "warc"),
        "-s", f"CRAWL_DIR={tmp_path / 'new'}",
    )  # fmt: skip

    assert sorted(theirs) == sorted(capture for path in (folder / "index").glob("*.cdxj") for capture in read(path))
    assert all(len(capture.digest) == 20 for capture in theirs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 pages are newly known, 0 were known before, 3 records taken" in done.stdout


def test_digests_that_are_none_of_ours(tmp_path: Path) -> None:
    """Other algorithms, ``-`` and no digest: the page is known, its payload is not; lines without a status are kept."""
    digests = ["sha256:" + "ab" * 32, "md5:" + "ab" * 16, "-", "", None, 3, "sha1:" + "ab" * 20]
    fields: list[dict[str, object]] = [{"digest": digest} for digest in digests]
    fields += [{}, {"digest": "-", "status": "-", "length": "-"}, {"status": None}]
    lines = ["!OpenWayback-CDXJ 1.0", '!meta 0 {"software": "other"}']
    for number, more in enumerate(fields):
        line = {"url": f"http://a.test/{number}", "status": "200", "length": "9", "offset": "0", "filename": "x"} | more
        lines.append(f"test,a)/{number} 20260901000000 {json.dumps(line)}")
    (tmp_path / "odd.cdxj").write_text("\n".join(lines) + "\n")

    captures = read(tmp_path / "odd.cdxj", status=None)

    assert [capture.digest for capture in captures] == [b""] * 6 + [bytes.fromhex("ab" * 20)] + [b""] * 3
    assert [capture.status for capture in captures[-2:]] == [0, 0]
    assert len(read(tmp_path / "odd.cdxj")) == 8


def with_revisits(folder: Path) -> Path:
    """A crawl that found one body at two addresses, one page unchanged later, and one that repeats what is lost."""
    moments = iter(STARTED_AT + 60 * minute for minute in range(100))
    made = archive_of(folder / "theirs")

    def captured(name: str, body: bytes, original: Original | None = None) -> Original:
        at, url = next(moments), f"http://a.test/{name}"
        what = exchange(body, started_at=at, ended_at=at)
        written = made.write(what, Context(url, sample=body), original=original)
        return original or Original(written.record_id, url, written.date)

    both = captured("z-original", b"<p>found twice")
    captured("a-copy", b"<p>found twice", both)
    same = captured("unchanged", b"<p>the same next time")
    captured("unchanged", b"<p>the same next time", same)
    captured("changed", b"<p>at first")
    captured("changed", b"<p>and then")
    captured("zz-lost", b"<p>gone", Original("<urn:uuid:00000000-0000-4000-8000-000000000001>", "http://b.test/", DATE))
    made.close()
    return folder / "theirs"


@pytest.mark.parametrize("at_a_time", [1, 2, 1000])
def test_a_revisit_is_followed_to_its_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_a_time: int) -> None:
    """In whatever order and pieces the lines come. What cannot be had is refused in each run; the rest is whole."""
    monkeypatch.setattr("crawlerproject.batch.commoncrawl_import._AT_A_TIME", at_a_time)
    theirs, ours = with_revisits(tmp_path), tmp_path / "ours"
    (index,) = (theirs / "index").glob("*.cdxj")
    lost = [line for line in index.read_text().splitlines(keepends=True) if "zz-lost" in line]
    part = tmp_path / "part.cdxj"
    part.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if line not in lost))
    more = ["--fetch-records", "--base", str(theirs / "warc"), "-s", f"CRAWL_DIR={ours}"]

    first = scrapy("commoncrawl", str(part), *more)
    verified = scrapy("verify", str(ours))
    again = scrapy("commoncrawl", str(part), *more)
    failed = [scrapy("commoncrawl", str(index), *more) for _ in range(2)]

    assert (first.returncode, first.stderr) == (0, "")
    assert verified.returncode == 0, verified.stderr
    assert " 4 answered pages of the frontier: all is well" in verified.stdout
    assert (again.returncode, again.stderr) == (0, "")
    assert "0 pages are newly known, 6 were known before, 0 records taken" in again.stdout
    captures = Captures([ours])
    bodies = {}
    for name in ("a-copy", "z-original", "unchanged", "changed"):
        member = captures.record(captures.of_url(f"http://a.test/{name}")[-1])
        original = captures.original(member) if member.kind == "revisit" else None
        bodies[name] = (captures.record(original) if original is not None else member).body
    assert bodies == {
        "a-copy": b"<p>found twice", "z-original": b"<p>found twice", "unchanged": b"<p>the same next time",
        "changed": b"<p>and then",
    }  # fmt: skip
    assert [done.returncode for done in failed] == [1, 1]
    for done in failed:
        assert (
            done.stderr == "Refused: http://a.test/zz-lost: its last capture repeats one that the index does not name\n"
        )


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.placed])
def test_records_of_every_shape_are_taken(tmp_path: Path, name: str) -> None:
    """As gzip members of their own; verify finds nothing, and the body is what it was."""
    theirs = tmp_path / "theirs"
    (theirs / "warc").mkdir(parents=True)
    wanted = [Page(f"http://a.test/{number}", b"<title>%d</title>" % number) for number in range(3)]
    (theirs / "warc" / f"x{SHAPES[name].suffix}").write_bytes(SHAPES[name].make(wanted))
    assert scrapy("index", str(theirs)).returncode == 0
    more = ["--fetch-records", "--base", str(theirs / "warc"), "-s", f"CRAWL_DIR={tmp_path / 'ours'}"]
    (index,) = (theirs / "index").glob("*.cdxj")

    done = [scrapy("commoncrawl", str(index), *more) for _ in range(2)]
    verified = scrapy("verify", str(tmp_path / "ours"))

    assert [(each.returncode, each.stderr) for each in done] == [(0, ""), (0, "")]
    assert "3 pages are newly known, 0 were known before, 3 records taken" in done[0].stdout
    assert "0 records taken" in done[1].stdout
    assert verified.returncode == 0, verified.stderr
    captures = Captures([tmp_path / "ours"])
    assert [captures.record(captures.of_url(page.url)[0]).body for page in wanted] == [page.body for page in wanted]
