"""A commit: the archive's bytes first, then one change of the frontier; and what is left when it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, unpack_open
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


def test_the_archive_is_durable_before_the_frontier_changes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power loss between them leaves bytes that no page claims, never a page without its bytes."""
    seen: list[int] = []
    sync = bench.session.archive.sync

    def watched() -> None:
        sync()
        seen.append(known(bench))

    monkeypatch.setattr(bench.session.archive, "sync", watched)
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
        broken.setattr(bench.session.archive, "sync", full)
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
    monkeypatch.setattr(bench.session.archive, "sync", lambda: bench.run.lose("taken"))

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
        monkeypatch.setattr(bench.session.archive, "sync", full)
        with pytest.raises(StorageError):
            await commits.commit(lambda: False)
        assert not waiting[0].done()

        async def later(*given: object) -> None:
            waiting.append(wait())

        monkeypatch.setattr(bench.session.archive, "sync", lambda: None)
        monkeypatch.setattr(bench.member, "deliver", later)
        await commits.commit(lambda: False)
        assert (await waiting[0], waiting[1].done()) == (True, False)
        commits.forget()
        assert await waiting[1] is False
        monkeypatch.setattr(bench.session.archive, "sync", lambda: bench.run.lose("taken"))
        lost = wait()
        await commits.commit(lambda: False)
        assert await lost is False

    asyncio.run(run())
    assert answers == [True, False, False]


def test_a_full_file_is_closed_after_a_commit(tmp_path: Path) -> None:
    """WARC_MAX_BYTES: its last capture is committed first."""
    bench = Bench(tmp_path, WARC_MAX_BYTES=2000)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=bytes(range(256)) * 20))
    commit(bench)
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=b"more"))
    bench.close()

    assert len(list(bench.folder.warc.glob("*.warc.gz"))) == 2
    assert not list(bench.folder.warc.glob("*.open"))


def test_refusals_are_counted_with_a_commit(bench: Bench) -> None:
    """By their reason, each once."""
    bench.add(f"{HOST}/film.mp4", f"{HOST}/{'x' * 3000}")
    commit(bench)
    commit(bench)

    refused = {name: count for name, count in bench.stats.items() if name.startswith("refused/")}
    assert sum(refused.values()) == 2


def test_a_fleets_part_of_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read before, deliver within, settle and take a turn after: in this order, and hosts may have come then."""
    done: list[str] = []
    member: Any = bench.member
    member.own_frontier = member.all_hosts = False

    def note(name: str, answer: bool | None = None) -> Any:
        async def call(*given: object) -> bool | None:
            done.append(name)
            return answer

        return call

    monkeypatch.setattr(member, "read", note("read"))
    monkeypatch.setattr(member, "deliver", note("deliver"))
    monkeypatch.setattr(member, "settle", lambda: done.append("settle"))
    monkeypatch.setattr(member, "turn", note("turn", True))

    assert commit(bench) is True
    assert done == ["read", "deliver", "settle", "turn"]
