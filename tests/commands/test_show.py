"""``scrapy show``: the stored bytes of a capture."""

import gzip
import subprocess
import sys
from pathlib import Path

from tests.commands.running import archive_of, write
from tests.warc_samples import PAGE, exchange
from tests.web.running import PROJECT

PACKED = gzip.compress(PAGE, mtime=0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(
    PACKED
)


def show(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    """``scrapy show``, its output as bytes."""
    command = [sys.executable, "-m", "scrapy", "show", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, timeout=60, check=False)


def test_head_and_body(tmp_path: Path) -> None:
    """The head as stored; the body unpacked, or with --raw exactly as stored."""
    made = archive_of(tmp_path)
    write(made, "http://a.example.com/", exchange(PACKED, HEAD))
    made.close()

    unpacked = show("http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}")
    raw = show("--raw", "http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}", "--time", "2026")

    assert (unpacked.stdout, unpacked.stderr, unpacked.returncode) == (HEAD + PAGE, b"", 0)
    assert raw.stdout == HEAD + PACKED


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    """No capture: exit status 1. An index that names a missing file: one sentence, exit status 2."""
    made = archive_of(tmp_path)
    write(made, "http://a.example.com/")
    made.close()

    absent = show("http://b.example.com/", "-s", f"CRAWL_DIR={tmp_path}")
    (warc,) = (tmp_path / "warc").iterdir()
    warc.rename(warc.with_name("other.warc.gz"))
    missing = show("http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}")

    assert (absent.returncode, absent.stdout) == (1, b"")
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert missing.stderr.decode() == f"The index names {warc.name}, which is missing in {warc.parent}.\n"
