"""Two of the same command at once, and a disk without room: one sentence, and the same command goes on later."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir, lock_now
from tests.commands.running import URLS, archive, scrapy

RESULTS = {"load": "search", "export": "processed/export/opensearch", "rank": "processed/rank"}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of three pages, processed."""
    folder = archive(tmp_path_factory.mktemp("processed"), list(URLS))
    (warc,) = CrawlDir(folder).closed_warcs()
    process_warc(warc, folder / "processed", ExtractOptions())
    return folder


@contextmanager
def held(path: Path) -> Iterator[None]:
    """As another process holds a folder or a file in which it works."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        lock_now(descriptor)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def little_room(file_bytes: int) -> Iterator[None]:
    """No file of this process may become longer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(("command", "place"), [*RESULTS.items(), ("process", "processed")])
def test_the_second_is_refused_in_one_sentence(crawl: Path, command: str, place: str) -> None:
    """And works once the first has ended, however that ended."""
    folder = crawl / place
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder):
        refused = scrapy(command, str(crawl))

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"Another scrapy {command} is at work in {folder}; let it end first.\n"
    assert scrapy(command, str(crawl)).returncode == 0


def test_a_file_that_another_is_packing_is_left_to_it(crawl: Path, tmp_path: Path) -> None:
    """What a killed one left behind is no hindrance."""
    target = tmp_path / "a.wacz"
    half = tmp_path / "a.wacz.part"
    half.write_bytes(b"half")
    with held(half):
        refused = scrapy("wacz", str(crawl), "-o", str(target))

    assert refused.returncode == 2
    assert refused.stderr == f"Another scrapy wacz is writing {target}; let it end, or name another file.\n"
    assert half.read_bytes() == b"half"
    assert scrapy("wacz", str(crawl), "-o", str(target)).returncode == 0
    assert not half.exists()


@pytest.mark.parametrize("command", RESULTS)
def test_without_room_it_is_one_sentence_and_goes_on_later(crawl: Path, tmp_path: Path, command: str) -> None:
    """Nothing is taken for done that is not."""
    copy = tmp_path / "crawl"
    (copy / "warc").mkdir(parents=True)
    for kind in ("pages", "links"):
        shutil.copytree(crawl / "processed" / kind, copy / "processed" / kind)
    with little_room(500):
        refused = scrapy(command, str(copy))

    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    done = scrapy(command, str(copy))
    assert (done.returncode, done.stdout[:2]) == (0, "3 ")
