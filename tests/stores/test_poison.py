"""stores/poison: what is being read is known after kill -9, and what is held against pages adds up."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.poison import Poison, ReadingMark, Suspect, poison_of, write_poison
from crawlerproject.stores.protocols import QueuedPage

PROJECT = Path(__file__).resolve().parents[2]
DIES = """
import os, sys
from pathlib import Path
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.poison import Poison
from crawlerproject.stores.protocols import QueuedPage
address = parse(sys.argv[2])
poison = Poison(Path(sys.argv[1]), 1.0)
with poison.reading(QueuedPage(address.host, address.key, address.url, 1, 1, 0, "", "")):
    os.kill(os.getpid(), 9)
"""


def row_of(url: str) -> QueuedPage:
    """A queue's row."""
    address = parse(url)
    return QueuedPage(address.host, address.key, address.url, 1, 1, 0, "", "")


def die(folder: Path, url: str) -> None:
    """A process that is killed while it reads a page."""
    ended = subprocess.run([sys.executable, "-c", DIES, folder, url], cwd=PROJECT, check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize("url", ["http://a.test/", "http://a.test/" + "x" * 9_000, "http://a.test/%F0%9F%92%80?ü"])
def test_two_ends_over_one_page_make_it_poison(tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str) -> None:
    """The first is a suspicion that survives; the second is the verdict, said once."""
    row = row_of(url)

    die(tmp_path, url)
    with caplog.at_level(logging.WARNING):
        first = Poison(tmp_path, 100.0)
    assert first.suspects[row.key].ends == 1
    assert not first.is_poison(row.key)
    first.close()
    assert Poison(tmp_path, 101.0).suspects[row.key].ends == 1  # an end is counted once

    die(tmp_path, url)
    caplog.clear()
    second = Poison(tmp_path, 200.0)
    assert second.is_poison(row.key)
    assert len(caplog.records) == 1
    assert url[:20] in caplog.records[0].getMessage()
    assert poison_of(tmp_path)[row.key].last_at == 200.0


def test_what_ended_in_good_order_is_not_held_against_a_page(tmp_path: Path) -> None:
    """Read to its end, or with an exception: the process lives."""
    poison = Poison(tmp_path, 1.0)
    with poison.reading(row_of("http://a.test/")):
        pass
    with pytest.raises(ValueError, match="ours"), poison.reading(row_of("http://a.test/")):
        raise ValueError("ours")
    poison.close()

    assert Poison(tmp_path, 2.0).suspects == {}
    assert not CrawlDir(tmp_path).poison.exists()


def test_a_short_url_after_a_long_one_is_itself(tmp_path: Path) -> None:
    """The mark is overwritten, never cut."""
    mark = ReadingMark(tmp_path)
    for url in ("http://long.test/" + "x" * 500, "http://b.test/"):
        mark.reading(row_of(url))

    assert ReadingMark(tmp_path).left() == (row_of("http://b.test/").key, "http://b.test/")
    mark.clear()
    assert ReadingMark(tmp_path).left() is None


def test_an_acquittal_is_stored(tmp_path: Path) -> None:
    """The page was read to its end: the next end over it is the first again."""
    die(tmp_path, "http://a.test/")
    poison = Poison(tmp_path, 1.0)
    poison.acquit(row_of("http://a.test/").key)
    poison.close()
    die(tmp_path, "http://a.test/")

    assert not Poison(tmp_path, 2.0).is_poison(row_of("http://a.test/").key)


def test_workers_of_one_machine_add_up(tmp_path: Path) -> None:
    """A page that went from a worker that died to another is poison after that one's end."""
    key = row_of("http://a.test/").key
    for name in ("w-1", "w-2"):
        (tmp_path / name).mkdir()
        die(tmp_path / name, "http://a.test/")
        siblings = list(tmp_path.iterdir())
        assert Poison(tmp_path / name, 1.0, siblings=siblings).is_poison(key) == (name == "w-2")
    assert Poison(tmp_path / "w-1", 2.0, siblings=siblings).is_poison(key)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"pages": [{}]}', b'{"pages": [{"key": "xy"}]}'])
def test_a_damaged_list_is_said_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    """What it held is forgotten: two more ends find the page again."""
    CrawlDir(tmp_path).poison.write_bytes(damage)

    assert Poison(tmp_path, 1.0).suspects == {}
    assert "cannot be read" in caplog.text


def test_a_damaged_mark_is_no_page(tmp_path: Path) -> None:
    """Another length, or bytes of nobody's."""
    CrawlDir(tmp_path).reading_mark.write_bytes(os.urandom(100))
    Poison(tmp_path, 1.0).close()
    CrawlDir(tmp_path).reading_mark.write_bytes(b"\xff" * 4096)

    assert Poison(tmp_path, 1.0).suspects == {}


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    """Whatever the URL holds."""
    pages = {os.urandom(24): Suspect("http://a.test/\ud83d?\u202e\n", 2, 3.5), os.urandom(24): Suspect("x", 1, 0.0)}
    pages = {key: suspect._replace(url=suspect.url.replace("\ud83d", "?")) for key, suspect in pages.items()}
    write_poison(CrawlDir(tmp_path).poison, pages)

    assert poison_of(tmp_path) == pages
