"""The never-crawl file: read, re-read, lost and found."""

import gzip
import logging
import os
from pathlib import Path

import pytest

from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, Listing, NeverCrawlFile, NeverCrawlLists


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


def test_a_packed_file_that_breaks_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It cannot be read: what was read last holds."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    kept = NeverCrawlFile(path, 1)
    kept.current(0)
    path.write_bytes(gzip.compress(b"b.test\n" * 100)[:-9])
    assert kept.current(1).excludes("a.test")
    assert "cannot be read (damaged gzip: " in caplog.text


def test_a_file_that_was_never_there_is_not_said_to_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """In another project and beside an installed wheel there is none to begin with."""
    assert not NeverCrawlFile(tmp_path / "never.txt", 1).current(0).excludes("a.test")
    assert "cannot be read (No such file or directory); there is none until it can be" in caplog.text


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


def test_both_lists_hold_and_one_may_come_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The second is not there at first, which is no word worth; a second after it came it is read."""
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    write(first, "a.test\n", 1)
    lists = NeverCrawlLists([first, second], 1)
    assert lists.current(0).excludes("a.test")
    assert "cannot be read" not in caplog.text
    assert lists.versions == {str(first): 1_000_000_000, str(second): None}

    write(second, "# why\nb.test\n", 2)

    assert not lists.current(0.9).excludes("b.test")
    assert lists.current(1).excludes("sub.b.test")
    assert lists.current(1).excludes("a.test")
    assert lists.listing("sub.b.test", 1) == Listing(second, 2, "b.test")
    assert lists.listing("c.test", 1) is None
    assert lists.versions[str(second)] == 2_000_000_000
    assert lists.current(2) is lists.current(3)


def test_the_setting_is_a_second() -> None:
    """A running crawl takes a change up within two: a check, and what is on its way meanwhile."""
    assert RELOAD_SECONDS == 1


def test_without_an_interval_a_file_is_read_once(tmp_path: Path) -> None:
    """For commands that ask once."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    kept = NeverCrawlLists([path])
    assert kept.current(0).excludes("a.test")
    write(path, "b.test\n", 2)
    assert kept.current(1e9).excludes("a.test")


def test_two_clocks_do_not_hide_a_change(tmp_path: Path) -> None:
    """A worker's guard may be ahead of its frontier, whose clock is Redis's."""
    path = tmp_path / "never.txt"
    write(path, "a.test\n", 1)
    lists = NeverCrawlLists([path], 1)
    lists.current(5000)
    write(path, "b.test\n", 2)
    assert lists.current(100).excludes("b.test")
    assert lists.current(5000) is lists.current(5000.9)
