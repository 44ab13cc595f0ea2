"""``scrapy show``: the stored bytes of a capture."""

import gzip
from pathlib import Path

from tests.commands.running import archive_of, scrapy, write
from tests.warc_samples import PAGE, exchange

PACKED = gzip.compress(PAGE, mtime=0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(
    PACKED
)


def test_head_and_body(tmp_path: Path) -> None:
    """The head as stored; the body unpacked, or with --raw exactly as stored."""
    made = archive_of(tmp_path)
    write(made, "http://a.example.com/", exchange(PACKED, HEAD))
    made.close()

    unpacked = scrapy("show", "http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}")
    raw = scrapy("show", "--raw", "http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}", "--time", "2026")

    assert (unpacked.output, unpacked.stderr, unpacked.returncode) == (HEAD + PAGE, "", 0)
    assert raw.output == HEAD + PACKED


def test_what_cannot_be_shown(tmp_path: Path) -> None:
    """No capture: exit status 1. An index that names a missing file: one sentence, exit status 2."""
    made = archive_of(tmp_path)
    write(made, "http://a.example.com/")
    made.close()

    absent = scrapy("show", "http://b.example.com/", "-s", f"CRAWL_DIR={tmp_path}")
    (warc,) = (tmp_path / "warc").iterdir()
    warc.rename(warc.with_name("other.warc.gz"))
    missing = scrapy("show", "http://a.example.com/", "-s", f"CRAWL_DIR={tmp_path}")

    assert (absent.returncode, absent.stdout) == (1, "")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == f"The index names {warc.name}, which is missing in {warc.parent}.\n"
