"""``python -m benchmarks.warc_writer [--pages 1500]``: CPU and bytes of one capture, ours, warcio's and wget's.

The same real pages (Debian's handbook and PostgreSQL's manual) as request, response and metadata records. Ours and
warcio's are written from memory. wget's is what ``--warc-file`` adds to fetching the pages from a server on loopback
(request and response records; it writes no metadata record for each): two runs, with and without, and the difference.
Each figure is the least of three runs: other programs only ever add.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from benchmarks.real_pages.site import PACKAGES, install
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.warc_records import Context, capture
from crawlerproject.stores.archive.archive import Archive, WarcFiles, WarcSeries, new_record_ids
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.web.ports import free_port
from tests.web.running import measured, start

_RUNS = 3
_LISTENS_SECONDS = 10.0
_REQUEST = (
    "GET {path} HTTP/1.1\r\nHost: docs.example.org\r\nUser-Agent: Bench/1.0 (+https://example.org/bot)\r\n"
    "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n"
)
_HEAD = [
    ("Server", "nginx/1.22.1"),
    ("Date", "Sat, 21 Nov 2026 16:00:00 GMT"),
    ("Content-Type", "text/html"),
    ("Last-Modified", "Mon, 02 Mar 2026 11:22:33 GMT"),
    ("Connection", "keep-alive"),
    ("ETag", '"65e2f0a9-4a3f"'),
    ("Accept-Ranges", "bytes"),
]
_SOFTWARE = [("software", "crawlerproject bench")]


class Sample:
    """One page as all writers get it."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = "/" + str(path.relative_to(root))
        self.url = f"http://docs.example.org{self.path}"
        self.body = path.read_bytes()
        self.headers = [*_HEAD[:3], ("Content-Length", str(len(self.body))), *_HEAD[3:]]
        self.request = _REQUEST.format(path=self.path).encode()
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        self.head = f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode()

    @property
    def exchange(self) -> Wire:
        now = 1.7e9
        return Wire(self.request, self.head, self.body, 200, ip="192.0.2.7", started_at=now, ended_at=now + 0.1)

    @property
    def context(self) -> Context:
        return Context(self.url, "http://docs.example.org/", "LL", 5.0, 5.2, self.body[:1024])


def samples(pages: int, root: Path) -> list[Sample]:
    """Real pages, copied below ``root`` for wget's server."""
    handbook, manual = PACKAGES["debian-handbook"] / "en-US", PACKAGES["postgresql-doc-15"]
    paths = [*sorted(handbook.glob("*.html")), *sorted(manual.glob("*.html"))]
    chosen = random.Random(1).sample(paths, min(pages, len(paths)))
    for path in chosen:
        shutil.copy(path, root / f"{path.parent.name}-{path.name}")
    return [Sample(path, root) for path in sorted(root.iterdir())]


def ours(pages: list[Sample], folder: Path) -> None:
    """Records and file."""
    files = WarcFiles(folder, WarcSeries("bench", "host", 10**9, _SOFTWARE), time.time)
    for page in pages:
        digest, ids = payload_digest(page.exchange.body), new_record_ids(3)
        made = capture(page.exchange, page.context, digest, warcinfo_id=files.warcinfo_id, ids=ids)
        files.append(made.members)
    files.sync()
    files.close()


def ours_indexed(pages: list[Sample], folder: Path) -> None:
    """Records, file, and the sorted CDXJ of the closed file."""
    series = WarcSeries("bench", "host", 10**9, _SOFTWARE)
    archive = Archive(CrawlDir(folder), None, series, keep_days=1, clock=time.time)
    for page in pages:
        archive.write(page.exchange, page.context)
    archive.warc.sync()
    archive.close()


def warcios(pages: list[Sample], folder: Path) -> None:
    """The usual library, as its manual shows it; gzip level 9 is fixed in it."""
    folder.mkdir()
    with (folder / "bench.warc.gz").open("wb") as stream:
        writer = WARCWriter(stream, gzip=True, warc_version="1.1")
        for page in pages:
            response = writer.create_warc_record(
                page.url, "response", payload=io.BytesIO(page.body), length=len(page.body),
                http_headers=StatusAndHeaders("200 OK", page.headers, protocol="HTTP/1.1"),
                warc_headers_dict={"WARC-IP-Address": "192.0.2.7"},
            )  # fmt: skip
            lines = [line.split(": ", 1) for line in page.request.decode().split("\r\n")[1:] if line]
            first = StatusAndHeaders(f"{page.path} HTTP/1.1", lines, protocol="GET", is_http_request=True)
            request = writer.create_warc_record(page.url, "request", http_headers=first)
            writer.write_request_response_pair(request, response)
            fields = f"via: {page.context.via}\r\nhopsFromSeed: LL\r\nfetchTimeMs: 100\r\n".encode()
            kind = "application/warc-fields"
            metadata = writer.create_warc_record(
                page.url, "metadata", payload=io.BytesIO(fields), length=len(fields), warc_content_type=kind
            )
            writer.write_record(metadata)


def in_process(write: Callable[[list[Sample], Path], None], pages: list[Sample], scratch: Path) -> tuple[float, int]:
    """Milliseconds of CPU a capture and bytes on disk a capture."""
    spent = []
    for run in range(_RUNS):
        folder = scratch / f"{write.__name__}{run}"
        began = time.process_time()
        write(pages, folder)
        spent.append(time.process_time() - began)
    return min(spent) / len(pages) * 1e3, _warc_bytes(folder) // len(pages)


def _warc_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.warc.gz"))


@contextlib.contextmanager
def served(root: Path) -> Iterator[int]:
    """A plain server of the folder; its port."""
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    process = start(command, None, root)
    try:
        until = time.monotonic() + _LISTENS_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if time.monotonic() > until:
                sys.exit("the server did not start")
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def wgets(pages: list[Sample], root: Path, scratch: Path) -> tuple[float, int]:
    """What --warc-file adds: milliseconds of CPU a page, and bytes on disk a page."""
    folder = scratch / "wget"
    folder.mkdir()
    with served(root) as port:
        (folder / "urls").write_text("".join(f"http://127.0.0.1:{port}{page.path}\n" for page in pages))
        plain = ["wget", "-q", "--no-config", "-O", "/dev/null", "-i", "urls"]
        with_warc = [*plain, f"--warc-file={folder}/bench"]
        cpu = [
            min(measured(command, folder / "log", folder).cpu_seconds for _ in range(_RUNS))
            for command in (plain, with_warc)
        ]
    return (cpu[1] - cpu[0]) / len(pages) * 1e3, _warc_bytes(folder) // len(pages)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warc_writer", description=__doc__)
    parser.add_argument("--pages", type=int, default=1500, help="how many (default 1500)")
    given = parser.parse_args()
    install()
    with tempfile.TemporaryDirectory(prefix="warc-writer-") as name:
        scratch, root = Path(name), Path(name) / "root"
        root.mkdir()
        pages = samples(given.pages, root)
        raw = sum(len(page.body) for page in pages) // len(pages)
        print(f"{len(pages)} pages, {raw:,} bytes of HTML each on average")
        print("| writer | ms of CPU a capture | bytes a capture |\n|---|---|---|")
        rows: list[tuple[str, Callable[[], tuple[float, int]]]] = [
            ("ours", lambda: in_process(ours, pages, scratch)),
            ("ours with its CDXJ", lambda: in_process(ours_indexed, pages, scratch)),
            ("warcio's WARCWriter", lambda: in_process(warcios, pages, scratch)),
        ]
        if shutil.which("wget"):
            rows.append(("wget --warc-file (no metadata records)", lambda: wgets(pages, root, scratch)))
        for title, measure in rows:
            milliseconds, size = measure()
            print(f"| {title} | {milliseconds:.3f} | {size:,} |", flush=True)


if __name__ == "__main__":
    main()
