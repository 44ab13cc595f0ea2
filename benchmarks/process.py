"""How fast pages become text, ours beside trafilatura and resiliparse, on the same pages and one core each.

``python -m benchmarks.process [--pages 1500] [--peers PYTHON]``: reads HTML of the Debian package debian-handbook,
in all its languages. The peers' Python has ``trafilatura`` and ``resiliparse`` (``requirements-bench.txt``); without it
they are left out. Ours is measured twice: text, title and links alone, and the whole step from WARC to Parquet with
languages.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from itertools import islice
from pathlib import Path

from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.rules.archive.http_messages import Wire, payload_digest
from crawlerproject.rules.archive.warc_records import Context, capture, warcinfo
from crawlerproject.rules.page.extract import read_page

MANUAL = Path("/usr/share/doc/debian-handbook/html")
PEERS = Path(".venv-bench/bin/python")
_PEER = """
import pathlib, sys, time
pages = [pathlib.Path(line.strip()).read_text() for line in sys.stdin]
name = sys.argv[1]
if name == "trafilatura":
    from trafilatura import extract
    read = lambda page: extract(page, include_comments=False)
else:
    from resiliparse.extract.html2text import extract_plain_text
    main = name.endswith("main")
    read = lambda page: extract_plain_text(page, main_content=main)
read(pages[0])
began = time.process_time()
total = sum(len(read(page) or "") for page in pages)
print(time.process_time() - began, total)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--peers", type=Path, default=PEERS)
    given = parser.parse_args()
    files = list(islice(sorted(MANUAL.rglob("*.html"), key=lambda path: (path.name, path.parent)), given.pages))
    bodies = [path.read_bytes() for path in files]
    size = sum(map(len, bodies)) / len(bodies)
    print(f"{len(bodies):,} pages of {size / 1024:.1f} KB on average; CPU time of one core")
    began = time.process_time()
    characters = 0
    for body in bodies:
        characters += len(read_page(body, url="http://handbook.test/", content_type="text/html; charset=utf-8").text)
    show("ours: text, title, links", time.process_time() - began, len(bodies), characters)
    whole(bodies)
    if given.peers.exists():
        for name in ("trafilatura", "resiliparse", "resiliparse main"):
            command = [str(given.peers), "-c", _PEER, name]
            made = subprocess.run(command, input="\n".join(map(str, files)), capture_output=True, text=True, check=True)
            seconds, found = made.stdout.split()
            show(f"{name}: text", float(seconds), len(bodies), int(found))


def whole(bodies: list[bytes]) -> None:
    """From WARC to Parquet, languages, links and all."""
    with tempfile.TemporaryDirectory() as folder:
        warc = Path(folder, "pages.warc.gz")
        with warc.open("wb") as out:
            out.write(warcinfo([], filename=warc.name, record_id="<urn:uuid:0>", now=1.8e9))
            for number, body in enumerate(bodies):
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
                exchange = Wire(
                    b"GET / HTTP/1.1\r\n\r\n", head, body, 200, protocols=(), started_at=1.8e9, ended_at=1.8e9
                )
                ids = [f"<urn:uuid:{number}-{part}>" for part in range(3)]
                url = f"http://handbook.test/{number}"
                made = capture(exchange, Context(url), payload_digest(body), warcinfo_id="<urn:uuid:0>", ids=ids)
                out.write(made.members)
        began = time.process_time()
        process_warc(warc, Path(folder, "out"), ExtractOptions())
        show("ours: scrapy process, all of it", time.process_time() - began, len(bodies), None)


def show(name: str, seconds: float, pages: int, characters: int | None) -> None:
    """One line."""
    kept = "" if characters is None else f", {characters / pages:,.0f} characters a page"
    print(f"{name:34} {1000 * seconds / pages:7.2f} ms a page, {pages / seconds:7,.0f} pages/s{kept}", flush=True)


if __name__ == "__main__":
    main()
