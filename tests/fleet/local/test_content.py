"""What a supervisor answers about its workers' texts and sums, through a process of each that dies."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.errors import StorageError
from crawlerproject.fleet.local.local_fleet import LocalContent
from crawlerproject.fleet.local.supervisor_link import RUNNING, SupervisorLink, json_line
from crawlerproject.rules.fleet_shares import QuotaRequest
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import alone, shared_out, write_plan
from crawlerproject.stores.protocols import Changes, Fingerprint, NearText, PageRecord, Text
from crawlerproject.stores.rocks.rocks_store import RocksStore

_NAMES = ("worker-1", "worker-2")


class Link(SupervisorLink):
    """A worker's questions as they come out of the socket."""

    def __init__(self, content: LocalContent, worker: str) -> None:
        self._content, self._worker = content, worker

    async def ask(self, name: str, *said: Any) -> Any:
        """Through JSON and back."""
        asked = orjson.loads(json_line(said))
        return orjson.loads(json_line(self._content.answers[name](self._worker, *asked)))


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """A crawl of two workers, the first of which has fetched seven pages; one of these has a text."""
    folder = CrawlDir(tmp_path)
    write_plan(folder, shared_out(alone(4), _NAMES))
    for name in _NAMES:
        CrawlDir(folder / name).mkdir()
    with closing(RocksStore(CrawlDir(folder / "worker-1").frontier)) as store:
        record = PageRecord("http://a/", "fetched", 200, 0.0)
        facts = [("totals", orjson.dumps([7, 700, 0, 1.0])), ("renders", b"3")]
        store.apply(Changes(pages=[(b"1" * 24, record)], fingerprints=[Fingerprint("a", 5, b"1" * 24)], facts=facts))
    return folder


def test_texts_of_all_workers(folder: CrawlDir) -> None:
    """Those of earlier runs, and of either worker; a supervisor that dies loses none that it answered for."""
    big = 2**64 - 1
    for run in range(2):
        with closing(LocalContent(folder, _NAMES)) as content:
            one, two = (Link(content, name) for name in _NAMES)
            if not run:
                asyncio.run(one.texts([Text(big, b"2" * 24, "http://b/")], [], 3))
            near = asyncio.run(two.texts([], [4, big - 1, 0xFF00], 3))
            assert near == [[NearText(1, b"1" * 24, "http://a/")], [NearText(1, b"2" * 24, "http://b/")], []]
            assert asyncio.run(two.texts([], [4], 0)) == [[]]


def test_texts_that_came_while_others_held_the_hosts(folder: CrawlDir) -> None:
    """A plan that was written since: they are looked for in the frontiers."""
    LocalContent(folder, _NAMES).close()
    with closing(RocksStore(CrawlDir(folder / "worker-2").frontier)) as store:
        record = PageRecord("http://c/", "fetched", 200, 0.0)
        store.apply(Changes(pages=[(b"3" * 24, record)], fingerprints=[Fingerprint("c", 0xF0F0, b"3" * 24)]))
    os.utime(folder.fleet_plan, (1.0, 1.0))
    with closing(LocalContent(folder, _NAMES)) as content:
        found = asyncio.run(Link(content, "worker-1").texts([], [0xF0F0], 3))
    assert found == [[NearText(0, b"3" * 24, "http://c/")]]


def test_a_disk_that_refuses_texts_ends_no_worker(folder: CrawlDir, caplog: pytest.LogCaptureFixture) -> None:
    """StorageError at the worker, which adds them again; said once."""
    content = LocalContent(folder, _NAMES)
    link, made = Link(content, "worker-1"), [Text(9, b"9" * 24, "http://d/")]
    with pytest.MonkeyPatch.context() as patch:

        def refuse(*asked: object) -> None:
            raise StorageError("no room")

        patch.setattr(content._texts, "exchange", refuse)
        for _ in range(2):
            with pytest.raises(StorageError):
                asyncio.run(link.texts(made, [9], 3))
    assert asyncio.run(link.texts(made, [9], 0)) == [[NearText(0, b"9" * 24, "http://d/")]]
    content.close()
    assert [record.message for record in caplog.records if "no room" in record.message] == [
        "Texts are not compared across hosts: no room"
    ]


def test_sums_begin_at_what_is_committed(folder: CrawlDir) -> None:
    """What a worker that ended for good did not spend the others get."""
    now = [100.0]
    with closing(LocalContent(folder, _NAMES, clock=lambda: now[0])) as content:
        one, two = (Link(content, name) for name in _NAMES)

        def pages(link: Link, committed: int, used: int, *, gives: bool = False) -> tuple[int, int, bool]:
            claim = QuotaRequest("pages", 9, committed, used, wants=not gives, gives=gives, least=2)
            [share] = asyncio.run(link.shares([claim]))
            return share.granted, share.committed, share.wanted

        assert pages(two, 0, 0) == (2, 7, False)
        assert pages(one, 7, 7) == (7, 7, False)
        assert pages(two, 0, 1) == (2, 7, True)
        assert pages(two, 1, 1, gives=True) == (1, 8, True)
        assert pages(one, 7, 7) == (8, 8, False)
        content.ended("worker-1")
        assert pages(two, 1, 1) == (2, 8, False)
        now[0] = 160.0
        assert content.answers[RUNNING]("worker-1") == 60.0
