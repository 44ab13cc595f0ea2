"""A commit: the archive's bytes first, then one change of the frontier; and what is left when it fails."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.errors import StorageError
from crawlerproject.stores.protocols import ARCHIVE_FACT, unpack_open
from tests.crawl.sessions import HOST, Bench, page_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session in which one page has ended, and another waits."""
    bench = Bench(tmp_path)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now))
    return bench


def commit(bench: Bench) -> bool:
    """One commit, as the loop makes it."""
    return asyncio.run(bench.session.commits.commit(lambda: False))


def known(bench: Bench) -> int:
    """How many pages the store knows."""
    return sum(1 for _ in bench.store.pages())


def full_file(folder: Path) -> Bench:
    """As ``bench``, and the archive's file has reached its size."""
    bench = Bench(folder, WARC_MAX_BYTES=2000)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=bytes(range(256)) * 20))
    return bench


def archived(bench: Bench) -> list[str]:
    """The URLs of all responses in closed files, sorted."""
    urls: list[str] = []
    for path in bench.folder.warc.glob("*.warc.gz"):
        with path.open("rb") as stream:
            records = ArchiveIterator(stream)
            urls += [r.rec_headers["WARC-Target-URI"] for r in records if r.rec_type in ("response", "revisit")]
    return sorted(urls)


def test_the_archive_is_durable_before_the_frontier_changes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power loss between them leaves bytes that no page claims, never a page without its bytes."""
    seen: list[int] = []
    sync = bench.session.archive.warc.sync

    def watched() -> None:
        sync()
        seen.append(known(bench))

    monkeypatch.setattr(bench.session.archive.warc, "sync", watched)
    commit(bench)

    assert seen == [0]
    assert known(bench) > 0


def test_the_committed_length_covers_what_is_committed(bench: Bench) -> None:
    """The open file's name and length go with the pages."""
    commit(bench)
    state = bench.session.archive.warc.state()

    assert state is not None
    assert unpack_open(bench.store.fact(ARCHIVE_FACT)) == state


def test_nothing_new_is_no_commit(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle crawl does not write once a second."""
    commit(bench)
    monkeypatch.setattr(bench.store, "apply", None)

    assert commit(bench) is False


def test_a_disk_that_is_full_changes_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was to be committed goes with the next commit."""

    def full() -> None:
        raise StorageError("no room")

    with monkeypatch.context() as broken:
        broken.setattr(bench.session.archive.warc, "sync", full)
        with pytest.raises(StorageError):
            commit(bench)
        with pytest.raises(StorageError):
            bench.commit()
    assert known(bench) == 0

    commit(bench)
    assert known(bench) > 0


def test_a_store_that_is_full_takes_it_later(bench: Bench) -> None:
    """The frontier keeps what could not be applied."""
    bench.store.full = "no room"
    with pytest.raises(StorageError):
        commit(bench)
    bench.store.full = ""
    commit(bench)

    assert known(bench) > 0


def test_a_loss_in_between_commits_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some state of a host may be half of what it is to be: the next session knows better."""
    monkeypatch.setattr(bench.session.archive.warc, "sync", lambda: bench.run.lose("taken"))

    assert commit(bench) is False
    assert known(bench) == 0


def test_what_waits_to_be_durable_hears_of_the_commit_that_it_is_in(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of one that had begun before, nor of one that failed; False when the session ends without it."""
    commits, answers = bench.session.commits, list[bool]()

    def full() -> None:
        raise StorageError("no room")

    async def run() -> None:
        def wait() -> asyncio.Future[bool]:
            made = commits.durable()
            made.add_done_callback(lambda future: answers.append(future.result()))
            return made

        waiting = [wait()]
        monkeypatch.setattr(bench.session.archive.warc, "sync", full)
        with pytest.raises(StorageError):
            await commits.commit(lambda: False)
        assert not waiting[0].done()

        async def later() -> None:
            waiting.append(wait())

        loop = asyncio.get_running_loop()

        def during() -> None:
            asyncio.run_coroutine_threadsafe(later(), loop).result()

        monkeypatch.setattr(bench.session.archive.warc, "sync", during)
        await commits.commit(lambda: False)
        assert (await waiting[0], waiting[1].done()) == (True, False)
        commits.discard_uncommitted()
        assert await waiting[1] is False
        monkeypatch.setattr(bench.session.archive.warc, "sync", lambda: bench.run.lose("taken"))
        lost = wait()
        await commits.commit(lambda: False)
        assert await lost is False

    asyncio.run(run())
    assert answers == [True, False, False]


def test_a_full_file_is_closed_after_a_commit(tmp_path: Path) -> None:
    """WARC_MAX_BYTES: its last capture is committed first."""
    bench = full_file(tmp_path)
    commit(bench)
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=b"more"))
    bench.close()

    assert len(list(bench.folder.warc.glob("*.warc.gz"))) == 2
    assert not list(bench.folder.warc.glob("*.open"))


def test_the_loop_does_not_wait_for_the_disk_while_a_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fsync and rename is made in a thread, and the loop goes on meanwhile."""
    bench, names = full_file(tmp_path), list[str]()

    def watch(owner: Any, name: str) -> None:
        call = getattr(owner, name)

        def watched(*given: Any) -> Any:
            names.append(name)
            assert threading.current_thread() is not threading.main_thread()
            return call(*given)

        monkeypatch.setattr(owner, name, watched)

    for name in ("fsync", "fdatasync", "rename"):
        watch(os, name)
    watch(bench.store, "sync")
    commit(bench)

    assert {"fsync", "fdatasync", "sync"} <= set(names)
    assert len(list(bench.folder.warc.glob("*.warc.gz"))) == 1


def test_a_page_that_ends_while_a_file_is_closed_is_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed file holds nothing that is not committed: so a crash leaves no page in it twice."""
    bench = full_file(tmp_path)
    late, roll = page_of(bench.page_lease(), bench.now, body=b"more"), bench.session.archive.warc.roll_if_full
    ends = late.lease

    async def during() -> None:
        def rolled() -> str | None:
            loop.call_soon_threadsafe(bench.session.pages.finish, late)
            loop.call_soon_threadsafe(done.set)
            assert done.wait(10)
            assert not ends.ended
            return roll()

        loop, done = asyncio.get_running_loop(), threading.Event()
        monkeypatch.setattr(bench.session.archive.warc, "roll_if_full", rolled)
        await bench.session.commits.commit(lambda: False)

    asyncio.run(during())
    assert ends.ended
    state = bench.session.archive.warc.state()
    assert state is not None
    closed = next(bench.folder.warc.glob("*.warc.gz"))
    fact = unpack_open(bench.store.fact(ARCHIVE_FACT))
    assert fact is not None
    assert (fact.filename, fact.length) == (closed.name, closed.stat().st_size)
    assert state.filename != closed.name
    commit(bench)
    assert unpack_open(bench.store.fact(ARCHIVE_FACT)) == bench.session.archive.warc.state()


@pytest.mark.parametrize("step", ["sync", "apply", "roll_if_full", "begin_file"])
def test_a_full_file_whose_closing_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whichever step fails, once: what ends meanwhile is archived once, and the next commits go on."""
    bench = full_file(tmp_path)
    late, archive = page_of(bench.page_lease(), bench.now, body=b"more"), bench.session.archive
    calls: list[str] = []

    def watch(owner: Any, name: str, fails_at: int) -> None:
        call = getattr(owner, name)

        def watched(*given: Any) -> Any:
            calls.append(name)
            if name == "sync" and calls.count(name) == 2:
                bench.session.pages.finish(late)
                assert not late.lease.ended
            if name == step and calls.count(name) == fails_at:
                raise StorageError("no room")
            return call(*given)

        monkeypatch.setattr(owner, name, watched)

    for owner, name, fails_at in (
        (archive.warc, "sync", 2),  # the first is of the commit before
        (bench.store, "apply", 2),
        (archive.warc, "roll_if_full", 1),
        (archive.warc, "begin_file", 1),
    ):
        watch(owner, name, fails_at)
    with pytest.raises(StorageError):
        commit(bench)
    bench.session.write_again(bench.now)
    commit(bench)

    assert late.lease.ended
    bench.close()
    assert not list(bench.folder.warc.glob("*.open"))
    assert archived(bench) == [f"{HOST}/one", f"{HOST}/robots.txt", f"{HOST}/two"]


def test_refusals_are_counted_with_a_commit(bench: Bench) -> None:
    """By their reason, each once."""
    bench.add(f"{HOST}/film.mp4", f"{HOST}/{'x' * 3000}")
    commit(bench)
    commit(bench)

    refused = {name: count for name, count in bench.stats.items() if name.startswith("refused/")}
    assert sum(refused.values()) == 2


def test_a_fleets_part_of_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read before, settle and take a turn after: in this order, and hosts may have come then."""
    done: list[str] = []
    role: Any = bench.role
    role.keeps_hosts = role.all_hosts = False

    def note(name: str, answer: bool | None = None) -> Any:
        async def call(*given: object) -> bool | None:
            done.append(name)
            return answer

        return call

    monkeypatch.setattr(role, "read_messages", note("read"))
    monkeypatch.setattr(role.exchange, "settle", lambda: done.append("settle"))
    monkeypatch.setattr(role, "after_commit", note("turn", True))

    assert commit(bench) is True
    assert done == ["read", "settle", "turn"]
