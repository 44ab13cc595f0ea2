"""Pieces of a WARC that is still written, beside what is made of it whole."""

from __future__ import annotations

import fcntl
import os
from contextlib import closing, nullcontext
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.follow_crawl import PATIENCE_SECONDS, Going, _committed, follow, looks
from crawlerproject.batch.process_warcs import ExtractOptions, is_done, pieces_end, process_warc
from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock, write_facts
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, OpenFile, pack_open
from crawlerproject.stores.rocks.frontier_folder import open_journaled
from tests.commands.running import archive, archive_of, write
from tests.stores.journaled_crawls import journals, take
from tests.stores.redis_servers import redis_server

WANTED = ExtractOptions()


def urls(out: Path, kind: str = "pages") -> list[str]:
    """Of all rows."""
    column = "url" if kind == "pages" else "source"
    return sorted(url for path in (out / kind).iterdir() for url in pq.read_table(path)[column].to_pylist())


def test_pieces_are_the_file(tmp_path: Path) -> None:
    """A longer one replaces one that was left half renamed; the rest of the closed file is the last."""
    crawl, out = CrawlDir(tmp_path), tmp_path / "out"
    made = archive_of(tmp_path)
    write(made, "http://a.test/1")
    made.flush()
    (written,) = crawl.open_warcs()
    warc, first = written.with_suffix(""), written.stat().st_size
    process_warc(warc, out, WANTED, committed=first)
    (out / "links" / f"{warc.name.removesuffix('.warc.gz')}.{0:012}-{first:012}.parquet").unlink()
    assert pieces_end(warc, out, first) == 0
    write(made, "http://a.test/2")
    made.flush()
    committed = written.stat().st_size
    write(made, "http://a.test/3")
    made.flush()  # and not committed

    process_warc(warc, out, WANTED, committed=committed)
    assert urls(out) == ["http://a.test/1", "http://a.test/2"]
    assert pieces_end(warc, out, committed) == committed
    assert pieces_end(warc, out, committed - 1) == 0  # the file has lost its end
    made.close()
    assert not is_done(warc, out, WANTED)
    process_warc(warc, out, WANTED)

    assert is_done(warc, out, WANTED)
    assert urls(out) == [f"http://a.test/{number}" for number in (1, 2, 3)]
    process_warc(warc, tmp_path / "whole", WANTED)
    assert urls(out, "links") == urls(tmp_path / "whole", "links")
    process_warc(warc, out, ExtractOptions(wet=True))  # which is made of whole files
    assert urls(out) == [f"http://a.test/{number}" for number in (1, 2, 3)]


def test_of_a_worker_over_redis_what_redis_has_counts(tmp_path: Path) -> None:
    """What only its own disk knows is cut off after a crash, so it is not in the tables before."""
    worker = CrawlDir(tmp_path / "crawl" / "w1")
    worker.make()
    worker.worker.write_text("{}")
    with (
        redis_server(tmp_path / "redis") as server,
        closing(open_journaled(worker, journals(server.url), rejoins=False)) as store,
    ):
        take(store)
        write(made := archive_of(worker), "http://a.test/1")
        made.flush()
        (written,) = worker.open_warcs()
        given, warc = written.stat().st_size, written.with_suffix("")
        for length in (given, given + 1):
            assert _committed(worker) == (None if length == given else (warc, given))
            store.apply(Changes(facts=[(ARCHIVE_FACT, pack_open(OpenFile(warc.name, length)))]))
            if length == given:
                store.sync()
        assert _committed(worker) == (warc, given)


def test_two_followers_do_not_take_the_same(tmp_path: Path) -> None:
    """The second is refused with a sentence."""
    archive(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    with (out / ".follow").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OperatorError, match="stop that one first"):
            list(follow(CrawlDir(tmp_path), out, WANTED, 1, lambda waiting: nullcontext(print)))


def test_looks_end_with_one_behind_the_end() -> None:
    """The end is noticed within a second, however seldom one looks; of what has ended there is one."""
    left, slept = iter([True, True, True, True, False, False]), list[float]()

    assert list(looks(lambda: next(left), 60.0, slept.append)) == [False, True]
    assert slept == [1.0, 1.0, 1.0]
    assert list(looks(lambda: False, 60.0, slept.append)) == [True]


def test_a_killed_crawl_is_waited_for_and_one_that_has_ended_is_not(tmp_path: Path) -> None:
    """For a minute; so is a killed follower, by what comes behind it."""
    crawl, now = CrawlDir(tmp_path), [0.0]
    going, tables = (Going(crawl, tables=each, clock=lambda: now[0]) for each in (False, True))
    write_facts(crawl.status, {"pid": 1})
    assert not going()  # killed long ago
    held = take_lock(crawl)
    assert going()
    os.close(held)
    now[0] = PATIENCE_SECONDS - 1
    assert going()
    now[0] += 2
    assert not going()
    write_facts(crawl.status, {"pid": 1, "ended": 5.0})
    crawl.processed.mkdir()
    with (crawl.processed / ".follow").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tables()
        assert not going()
    assert tables()
    assert not list(follow(crawl, crawl.processed, WANTED, 1, lambda waiting: nullcontext(print)))
    assert not tables()
