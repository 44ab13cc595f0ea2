"""``scrapy lookup``: what is archived of a URL, during a crawl and after it."""

import json
from pathlib import Path

from crawlerproject.rules.archive.http_messages import digest_text
from tests.commands.running import archive, archive_of, scrapy, write


def test_one_line_a_capture(tmp_path: Path) -> None:
    """Time, status, type, digest, file, offset and URL, in the order of time; the file still written included."""
    folder = archive(tmp_path)
    running = archive_of(folder, lambda: 1_790_000_500.0)
    written = write(running, "http://a.example.com/")
    running.flush()

    done = scrapy("lookup", "https://a.example.com/", "-s", f"CRAWL_DIR={folder}")

    first, second = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert second.split() == [
        "2026-09-21T14:13:20Z", "200", "text/html", digest_text(written.digest), written.filename, str(written.offset),
        "http://a.example.com/",
    ]  # fmt: skip
    assert first.split()[4] != written.filename
    running.abandon()


def test_the_index_as_it_is(tmp_path: Path) -> None:
    """``--cdxj`` prints the lines that other tools read."""
    folder = archive(tmp_path)
    (index,) = (folder / "index").glob("*.cdxj")

    done = scrapy("lookup", "--cdxj", "b.example.com/x?y=1", "-s", f"CRAWL_DIR={folder}")

    assert done.stdout in index.read_text()
    assert json.loads(done.stdout.split(" ", 2)[2])["url"] == "https://b.example.com/x?y=1"


def test_nothing_found(tmp_path: Path) -> None:
    """A sentence and exit status 1; a file without an index is named."""
    folder = archive(tmp_path)
    for index in (folder / "index").glob("*.cdxj"):
        index.unlink()

    done = scrapy("lookup", "http://a.example.com/", "-s", f"CRAWL_DIR={folder}")

    assert (done.returncode, done.stdout) == (1, "")
    assert "has no index and is left out" in done.stderr
    assert done.stderr.endswith("There is no capture of http://a.example.com/.\n")
