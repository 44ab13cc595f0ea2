"""The never-crawl file: read, re-read, lost and found."""

import logging
import os
from pathlib import Path

import pytest

from crawlerproject.stores.nevercrawl import NeverCrawlFile


def write(path: Path, text: str, at: int) -> None:
    """Write the file with a modification time of its own."""
    path.write_text(text, "utf-8")
    os.utime(path, (at, at))


def test_a_domain_added_while_running_is_seen_after_the_interval(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not looked at before the interval is over; then the change holds and is named."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    kept = NeverCrawlFile(path, 60)
    assert kept.current(0).excludes("a.test")
    write(path, "a.test\nb.test\n", 2)
    assert not kept.current(59.9).excludes("b.test")
    with caplog.at_level(logging.INFO):
        assert kept.current(60).excludes("b.test")
    assert "excluded from now on: b.test" in caplog.text


def test_a_removed_domain_is_free_again(tmp_path: Path) -> None:
    """The file is the truth."""
    path = tmp_path / "never.txt"
    write(path, "a.test\nb.test\n", 1)
    kept = NeverCrawlFile(path, 1)
    kept.current(0)
    write(path, "b.test\n", 2)
    assert not kept.current(1).excludes("a.test")


def test_a_vanished_file_keeps_the_last_good_list(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With one warning, not one a look; and it is read again when it is back."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    kept = NeverCrawlFile(path, 1)
    kept.current(0)
    path.unlink()
    for second in range(1, 5):
        assert kept.current(second).excludes("a.test")
    assert caplog.text.count("cannot be read") == 1
    write(path, "c.test\n", 3)
    assert kept.current(9).excludes("c.test")


def test_bad_lines_are_reported_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And skipped, octets that are no UTF-8 included."""
    path = tmp_path / "never.txt"
    path.write_bytes(b"a.test\nwhat is this\n\xff\xfe\n")
    assert NeverCrawlFile(path, 1).current(0).excludes("a.test")
    assert "line 2" in caplog.text
    assert "line 3" in caplog.text


def test_an_unchanged_file_is_not_parsed_again(tmp_path: Path) -> None:
    """The very same list object is returned."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    kept = NeverCrawlFile(path, 1)
    assert kept.current(0) is kept.current(100)


def test_no_path_is_no_list() -> None:
    """An empty setting switches the file off."""
    assert len(NeverCrawlFile("", 1).current(0)) == 0
