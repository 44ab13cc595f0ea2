"""A call fails once between two steps, and the crawl is as if it had not: here some; ``fault_table`` tries all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crawls.fault_table import Pages, disturbed, faults_of, small_web, undisturbed
from tests.crawls.faults import AFTER, BEFORE, Fault
from tests.hostile.arena import Arena


class Alone(NamedTuple):
    """A crawl that met no fault: its web, what it archived, and the first call of each of its places."""

    web: Arena
    pages: Pages
    faults: list[Fault]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """One for all tests."""
    folder = tmp_path_factory.mktemp("alone")
    with small_web(folder / "web") as web:
        pages, places = undisturbed(web, folder, "whole")
        yield Alone(web, pages, faults_of(places, 1))


@pytest.mark.parametrize(
    ("words", "when"),
    [
        pytest.param("posix.fdatasync", BEFORE, id="archive-not-durable"),
        pytest.param("posix.pwrite stores/atomic_files.py:write_at < stores/archive", AFTER, id="record-written"),
        pytest.param("posix.fsync stores/archive/warc_writer.py:WarcFiles._finish", BEFORE, id="full-file-not-durable"),
        pytest.param("posix.rename stores/archive/warc_writer.py", BEFORE, id="full-file-not-renamed"),
        pytest.param("posix.rename stores/archive/warc_writer.py", AFTER, id="full-file-renamed"),
        pytest.param("posix.open stores/archive/warc_writer.py", BEFORE, id="no-new-file"),
        pytest.param("Rdict.write", BEFORE, id="frontier-not-written"),
        pytest.param("Rdict.flush_wal", BEFORE, id="frontier-not-durable"),
        pytest.param("Rdict.put", BEFORE, id="frontier-not-made"),
        pytest.param("posix.write stores/index", BEFORE, id="index-not-written"),
        pytest.param("posix.write stores/logs", BEFORE, id="log-not-written"),
        pytest.param("< stores/crawl_dir.py:write_facts", BEFORE, id="status-not-written"),
        pytest.param("CrawlDir.has_removed", BEFORE, id="own-file-not-read-at-the-start"),
        pytest.param("HostsFile._read_if_changed", BEFORE, id="hosts-file-not-read"),
    ],
)
def test_a_crawl_goes_on_after_a_fault(alone: Alone, tmp_path: Path, words: str, when: str) -> None:
    """By itself or by the same command: every page archived as often, nothing left, no traceback."""
    fault = next(each for each in alone.faults if words in each.place and each.when == when)

    row = disturbed(alone.web, tmp_path / "disturbed", "whole", fault, alone.pages)

    assert (row.met, row.wrong) == (True, [])
