"""A call fails once between two steps, and the crawl is as if it had not: here some; ``fault_table`` tries all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
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
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Alone]]:
    """Of each step one for all tests."""
    folder = tmp_path_factory.mktemp("alone")
    with small_web(folder / "web") as web:

        @cache
        def of(step: str) -> Alone:
            pages, places = undisturbed(web, folder, step)
            return Alone(web, pages, faults_of(places, 1))

        yield of


@pytest.mark.parametrize(
    ("step", "words", "when"),
    [
        pytest.param("whole", "posix.fdatasync", BEFORE, id="archive-not-durable"),
        pytest.param("whole", "pwrite stores/atomic_files.py:write_at < stores/archive", AFTER, id="record-written"),
        pytest.param("whole", "fsync stores/archive/archive.py:WarcFiles._finish", BEFORE, id="full-file-not-durable"),
        pytest.param("whole", "posix.rename stores/archive/archive.py", BEFORE, id="full-file-not-renamed"),
        pytest.param("whole", "posix.rename stores/archive/archive.py", AFTER, id="full-file-renamed"),
        pytest.param("whole", "posix.open stores/archive/archive.py", BEFORE, id="no-new-file"),
        pytest.param("whole", "Rdict.write", BEFORE, id="frontier-not-written"),
        pytest.param("whole", "Rdict.flush_wal", BEFORE, id="frontier-not-durable"),
        pytest.param("whole", "Rdict.put", BEFORE, id="frontier-not-made"),
        pytest.param("whole", "posix.write stores/index", BEFORE, id="index-not-written"),
        pytest.param("whole", "posix.write stores/logs", BEFORE, id="log-not-written"),
        pytest.param("whole", "< stores/crawl_dir.py:write_facts", BEFORE, id="status-not-written"),
        pytest.param("whole", "CrawlDir.has_removed", BEFORE, id="own-file-not-read-at-the-start"),
        pytest.param("whole", "HostsFile._read_if_changed", BEFORE, id="hosts-file-not-read"),
        pytest.param("recover", "warc_reader.py:member_at", BEFORE, id="recover-record-not-read"),
        pytest.param("recover", "Rdict.put recovery/", BEFORE, id="recover-place-not-kept"),
    ],
)
def test_a_crawl_goes_on_after_a_fault(
    alone: Callable[[str], Alone], tmp_path: Path, step: str, words: str, when: str
) -> None:
    """By itself or by the same command: every page archived as often, nothing left, no traceback."""
    web, pages, faults = alone(step)
    fault = next(each for each in faults if words in each.place and each.when == when)

    row = disturbed(web, tmp_path / "disturbed", step, fault, pages)

    assert (row.met, row.wrong) == (True, [])
