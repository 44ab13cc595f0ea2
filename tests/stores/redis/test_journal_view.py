"""A crawl whose workers keep their frontiers, seen by what Redis has of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Changes, Fingerprint, HostFact, PageRecord, QueuedPage
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journal_view import JournalView, crawl_in_redis
from crawlerproject.stores.redis.keys import fleet_keys, partition_keys
from crawlerproject.stores.rocks import journaled_store
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.row_codec import HASH_BYTES, host_prefix
from tests.stores.conformance import record
from tests.stores.conformance import row as plain_row
from tests.stores.journaled_crawls import LEASE_MS, PARTITIONS, journals, numbers
from tests.stores.redis_servers import RedisServer

HOSTS = [f"{name}.test" for name in "abcdefgh"]
GONE = "http://a.test"


def row(host: str, number: int) -> QueuedPage:
    """A queued page whose key tells its host, as that of every page does."""
    return plain_row(host, number, key=host_prefix(host)[:HASH_BYTES] + number.to_bytes(16, "big"))


def done(host: str) -> PageRecord:
    """Of the page of each host that was fetched."""
    return record(99)._replace(url=row(host, 99).url)


def worker(url: str, folder: Path, crawl: str, name: str = "one") -> JournaledStore:
    """One that holds every partition that is free."""
    store = JournaledStore(CrawlDir(folder / name).frontier, journals(url, name, crawl, crawl_id="this"))
    for partition in range(PARTITIONS):
        store.take(partition, LEASE_MS)
    return store


@pytest.fixture
def store(server: RedisServer, tmp_path: Path) -> Iterator[JournaledStore]:
    """A crawl of one worker, with a page that waits and one that is done on each host."""
    with closing(worker(server.url, tmp_path, f"crawl-{next(numbers)}")) as made:
        made.journals.link.call("HSET", [fleet_keys(made.journals.crawl).incarnations], "one", "life")
        made.apply(
            Changes(
                queued=[row(host, number) for number, host in enumerate(HOSTS)],
                pages=[(row(host, 99).key, done(host)) for host in HOSTS],
                hosts=[(host, b"state") for host in HOSTS],
                robots=[(f"http://{host}", b"text") for host in HOSTS],
                facts=[("warc", b"W"), (f"{HostFact.TRAPS}a.test", b"T")],
                fingerprints=[Fingerprint("a.test", 7, row("a.test", 99).key)],
            )
        )
        made.sync()
        yield made


def view_of(store: JournaledStore) -> JournalView:
    """What commands open."""
    view = crawl_in_redis(store.journals.link.place, store.journals.crawl, {"warc": b"+".join})
    assert isinstance(view, JournalView)
    return view


def copies(store: JournaledStore) -> int:
    """How many changes the copies of all partitions hold."""
    leases = [partition_keys(store.journals.crawl, partition).lease for partition in range(PARTITIONS)]
    return sum(int(store.journals.link.call("HGET", [lease], "copy") or 0) for lease in leases)


def read_meanwhile(view: JournalView, monkeypatch: pytest.MonkeyPatch, between: Callable[[], None]) -> None:
    """Do something once, after the view has learnt what there is and before it reads it."""
    learn, left = view._kept, [between]

    def learnt(partitions: Sequence[int]) -> Sequence[object]:
        found = learn(partitions)
        while left:
            left.pop()()
        return found

    monkeypatch.setattr(view, "_kept", learnt)


def test_what_comes_from_a_log_into_a_journal_meanwhile_is_read(
    store: JournaledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the view has looked into the one or the other."""
    in_logs = JournalView._in_logs

    def after_a_flush(view: JournalView, partition: int, last: int) -> Iterator[bytes]:
        store._flush()
        return in_logs(view, partition, last)

    monkeypatch.setattr(JournalView, "_in_logs", after_a_flush)
    with view_of(store) as view:
        assert sorted(page.url for _, page in view.pages()) == [done(host).url for host in HOSTS]


@pytest.mark.parametrize("copied", [False, True])
def test_it_answers_as_the_workers_frontier_does(
    store: JournaledStore, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a log alone, and by journals, copies and what was changed since; what Redis has not been given is not seen."""
    if copied:
        monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
        store._flush()
        store.copy_some()
        assert copies(store) > 0
    store.apply(Changes(removed=[row("b.test", 1)], queued=[row("a.test", 50)], hosts=[("c.test", b"later")]))
    store.sync()
    store.apply(Changes(queued=[row("a.test", 60)]))

    with view_of(store) as view:
        assert [page.arrival for page in view.queue("a.test")] == [0, 50]
        assert (view.host("c.test"), view.robots(GONE)) == (b"later", b"text")
        assert view.known([row("a.test", 50).key, row("a.test", 60).key], ["a.test"] * 2) == [True, False]
        assert view.known([row("h.test", 7).key]) == [True]
        assert view.page(row("d.test", 99).key, "d.test") == view.page(row("d.test", 99).key) == done("d.test")
        assert sorted(page.url for _, page in view.pages()) == [done(host).url for host in HOSTS]
        assert [host for host, _ in view.hosts()] == HOSTS
        assert list(view.facts(HostFact.TRAPS)) == [(f"{HostFact.TRAPS}a.test", b"T")]
        assert (view.fact_of("one", "warc"), view.fact("warc"), view.fact("none")) == (b"W", b"W", None)
        assert (view.workers_ever(), view.workers()) == (["one"], [])


def test_a_question_about_a_host_reads_its_partition_alone(store: JournaledStore) -> None:
    """The others' need not be there."""
    crawl, link = store.journals.crawl, store.journals.link
    store._flush()
    link.call("DEL", [partition_keys(crawl, partition_of("a.test", PARTITIONS)).journal])

    with view_of(store) as view:
        other = next(host for host in HOSTS if view.partition(host) != view.partition("a.test"))
        assert view.host(other) == b"state"
        with pytest.raises(StorageError, match="has lost a part of partition"):
            view.host("a.test")


def test_a_partition_that_is_copied_while_it_is_read_is_read_again(
    store: JournaledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal was cut then, and the copy of before is gone."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    store._flush()
    store.copy_some()

    def copy_again() -> None:
        store.apply(Changes(removed=[row("a.test", 0)], queued=[row("a.test", 50)]))
        store.sync()
        store._flush()
        before = copies(store)
        store.copy_some()
        assert copies(store) > before

    with view_of(store) as view:
        read_meanwhile(view, monkeypatch, copy_again)
        assert [page.arrival for page in view.queue("a.test")] == [50]


def test_frontiers_of_this_machine_answer_for_what_is_whole_there(
    store: JournaledStore, server: RedisServer, tmp_path: Path
) -> None:
    """Redis need not have it; it answers for what another worker holds by now, also where the folder has more."""
    link, crawl, moved = store.journals.link, store.journals.crawl, partition_of("a.test", PARTITIONS)
    folders = [CrawlDir(tmp_path / name) for name in ("one", "two")]
    store.journals.release([moved])
    with closing(worker(server.url, tmp_path, crawl, "two")) as other:
        other.apply(Changes(hosts=[("a.test", b"moved")]))
        other.sync()
    for partition in {*range(PARTITIONS)} - {moved}:
        link.call("DEL", [partition_keys(crawl, partition).journal])

    with crawl_in_redis(server.url, crawl, folders=folders) as view:
        assert dict(view.hosts()) == {host: b"moved" if host == "a.test" else b"state" for host in HOSTS}
        assert sorted(page.url for _, page in view.pages()) == [done(host).url for host in HOSTS]
        assert view.known([row(host, 99).key for host in HOSTS], HOSTS) == [True] * 8
        assert view.known([row("a.test", 99).key, row("a.test", 1).key]) == [True, False]
    for partition in range(PARTITIONS):
        link.call("HSET", [partition_keys(crawl, partition).lease], "crawl", "another")
    with crawl_in_redis(server.url, crawl, folders=folders) as view, pytest.raises(StorageError, match="has lost"):
        list(view.hosts())


def test_robots_texts_of_an_erased_site_leave_redis_and_every_frontier(
    store: JournaledStore, server: RedisServer, tmp_path: Path
) -> None:
    """While a worker holds the partition it says so; then the next holder has all but the text, also this worker."""
    crawl, gone = store.journals.crawl, partition_of("a.test", PARTITIONS)
    with view_of(store) as view:
        assert not view.forget_robots(lambda origin: origin == GONE)
        assert view.robots(GONE)
    store.journals.release(list(store.journals.held))  # as a worker ends: its frontier stays as it is
    store.close()

    with view_of(store) as view:
        assert view.forget_robots(lambda origin: origin == GONE)

    link = RedisLink(server.url)
    assert link.call("LLEN", [partition_keys(crawl, gone).journal]) == 0
    with crawl_in_redis(server.url, crawl) as view:
        assert [view.robots(f"http://{host}") for host in HOSTS] == [None, *[b"text"] * 7]
    with closing(worker(server.url, tmp_path, crawl)) as again:
        assert [again.robots(f"http://{host}") for host in HOSTS] == [None, *[b"text"] * 7]
        assert [page.arrival for page in again.queue("a.test")] == [0]
        again.apply(Changes(hosts=[("a.test", b"later")]))
        again.sync()
        with crawl_in_redis(server.url, crawl) as view:
            assert view.host("a.test") == b"later"
