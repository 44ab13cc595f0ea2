"""Hosts on disk: taken up in their order, never asked sooner for it, never lost, counted once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rocksdict import Rdict

from crawlerproject.errors import StorageError
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import count_rows, place_of
from crawlerproject.stores import row_codec as tables
from crawlerproject.stores.protocols import DUE_FACT, IN_MEMORY, Changes, Due, FrontierStore
from crawlerproject.stores.rocks import rocks_tables
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.frontier.conftest import Bench, drain
from tests.stores.conformance import row
from tests.stores.memory_store import MemoryStore

HOSTS = 12


def _urls(hosts: int = HOSTS) -> list[str]:
    return [f"http://h{number:02d}.example/{page}" for number in range(hosts) for page in range(2)]


def _small(store: FrontierStore | None = None, **more: Any) -> Bench:
    return Bench(store or MemoryStore(), max_hosts_in_memory=3, **more)


def test_memory_has_no_more_hosts_than_it_may() -> None:
    """What finds no room is written at once, with its rows, and everything is fetched in the end."""
    bench = _small()

    bench.add(*_urls())

    assert len(bench.frontier.workbench.hosts) == 3
    assert bench.frontier.hosts.on_disk.counts.hosts == HOSTS - 3
    assert bench.frontier.hosts.waiting_urls == 2 * HOSTS
    assert sorted(drain(bench)) == sorted(_urls())
    assert bench.frontier.hosts.on_disk.counts.hosts == bench.frontier.hosts.on_disk.counts.rows == 0
    assert bench.store.due(9, Due(IN_MEMORY, "")) == []


def test_a_crawl_that_fits_asks_the_store_nothing_more() -> None:
    """No place is read or written but for the lists of hosts in memory, one each."""
    bench = Bench(MemoryStore())
    bench.add(*_urls())
    bench.commit()
    assert bench.store.due(99, Due(IN_MEMORY, "~")) == []
    assert len(bench.store.due(99, Due(IN_MEMORY, ""))) == HOSTS
    changes: list[Changes] = []
    apply = bench.store.apply

    def recorded(change: Changes) -> None:
        changes.append(change)
        apply(change)

    bench.store.apply = recorded  # type: ignore[assignment, method-assign]
    bench.through_robots()
    lease = bench.next()
    assert lease is not None
    bench.add("http://h03.example/more")
    assert not any(change.due for change in changes)


def test_links_for_a_host_on_disk_leave_it_there() -> None:
    """Rows, state and counts in one change; its place stays."""
    bench = _small()
    bench.add(*_urls())
    place = bench.store.due(99, Due(IN_MEMORY, "~"))[-1]
    bench.now += 100.0

    bench.add(f"http://{place.host}/new", f"http://{place.host}/newer")

    assert place.host not in bench.frontier.workbench.hosts
    assert bench.store.is_due(place)
    assert len(bench.store.head(place.host, 9)) == 4
    assert bench.frontier.hosts.waiting_urls == 2 * HOSTS + 2
    assert bench.frontier.hosts.on_disk.counts.rows == 2 * (HOSTS - 3) + 2


def test_what_was_promised_to_a_host_survives_the_disk() -> None:
    """Delay, floor, rest and next moment come back as they went."""
    bench = _small()
    bench.add("http://slow.example/1", "http://slow.example/2")
    bench.through_robots(b"User-agent: *\nCrawl-delay: 40\n")
    lease = bench.next()
    assert lease is not None
    bench.answer(lease, 429, retry_after_seconds=500.0)
    bench.commit()
    host = lease.host
    before = host.pack()
    free = host.next_free

    bench.add(*_urls())
    for _ in range(5):
        bench.now += 1.0
        bench.frontier.leasing.next(bench.now)

    assert "slow.example" not in bench.frontier.workbench.hosts
    stored = Host.unpack("slow.example", bench.store.host("slow.example") or b"")
    assert stored.next_free == free
    assert bench.store.is_due(place_of(stored))
    stored.on_disk = stored.rests_on_disk = False
    assert stored.pack() == before
    robots = bench.frontier.hosts.of("slow.example")
    assert (robots.next_free, robots.delay_seconds, robots.floor_seconds) == (free, 40.0, 40.0)


def test_a_start_takes_up_those_that_are_due_first() -> None:
    """What was on disk stays there until it is due, after a crash too; the counts are those of before."""
    first = _small()
    first.add(*_urls())
    hosts = dict(first.frontier.workbench.hosts)

    for clean in (True, False):
        again = _small(first.store, now=2000.0, clean=clean)
        assert again.frontier.workbench.hosts.keys() == hosts.keys()
        assert again.frontier.hosts.waiting_urls == 2 * HOSTS
        assert again.frontier.hosts.on_disk.counts.hosts == HOSTS - 3
        assert not again.frontier.hosts.loading
    assert sorted(drain(again)) == sorted(_urls())


def test_a_smaller_memory_than_before_is_kept_to() -> None:
    """What was in memory and finds no room at the next start goes to disk."""
    first = Bench(MemoryStore())
    first.add(*_urls())
    assert first.frontier.hosts.on_disk.counts.hosts == 0

    again = _small(first.store, now=2000.0)

    assert len(again.frontier.workbench.hosts) == 3
    assert again.frontier.hosts.on_disk.counts.hosts == HOSTS - 3
    assert again.frontier.hosts.waiting_urls == 2 * HOSTS
    assert sorted(drain(again)) == sorted(_urls())


@pytest.mark.parametrize("in_memory", [3, 1000])
def test_a_store_without_lists_gets_them(in_memory: int) -> None:
    """As of an older version, or copied from Redis: every queue is looked at once, links may come meanwhile."""
    first = Bench(MemoryStore())
    first.add(*_urls())
    store = first.store
    store.apply(Changes(due=[(place.host, place.at, None) for place in store.due(99, Due(IN_MEMORY, ""))]))
    store.apply(Changes(facts=[(DUE_FACT, b"")]))

    again = Bench(store, now=2000.0, load=False, max_hosts_in_memory=in_memory)
    assert again.frontier.hosts.loading
    more = ["http://h11.example/more", "http://h00.example/more", "http://new.example/"]
    again.frontier.load_some(1)
    again.add(*more)
    while again.frontier.load_some(2):
        pass

    assert again.frontier.hosts.waiting_urls == 2 * HOSTS + len(more)
    listed = store.due(99, Due(IN_MEMORY, ""))
    assert sorted(place.host for place in listed) == sorted(set(store.hosts_with_work()))
    assert sorted(drain(again)) == sorted([*_urls(), *more])


def test_lists_that_are_wrong_are_mended() -> None:
    """The rows are the truth: an entry without rows goes, and after a crash a host on no list is found."""
    first = _small()
    first.add(*_urls())
    store = first.store
    lost, gone = store.due(2, Due(IN_MEMORY, "~"))
    in_memory = store.due(1, Due(IN_MEMORY, ""))[0]
    state = Host.unpack(lost.host, store.host(lost.host) or b"")
    state.on_disk = False
    store.apply(Changes(due=[(lost.host, lost.at, None), (in_memory.host, IN_MEMORY, None)]))
    store.apply(Changes(hosts=[(lost.host, state.pack())], removed=store.head(gone.host, 9)))

    again = _small(store, now=2000.0, clean=False)
    expected = [url for url in _urls() if gone.host not in url]

    assert sorted(drain(again)) == sorted(expected)
    assert again.frontier.hosts.on_disk.counts.hosts == 0
    assert store.due(9, Due(IN_MEMORY, "")) == []


def test_a_host_given_up_is_tried_again_at_the_next_start() -> None:
    """It leaves memory, is on no disk's list of those that are due, and its rows wait for a start."""
    bench = _small()
    bench.add("http://dead.example/1")
    for _ in range(60):
        if bench.frontier.hosts.parked:
            break
        lease = bench.next()
        if lease is not None:
            bench.answer(lease, None)
            bench.commit()
        wake = bench.frontier.wake_at()
        bench.now = max(bench.now + 0.1, wake or 0.0)
    assert bench.frontier.hosts.parked == 1
    bench.now += 1e6
    bench.next()
    assert "dead.example" not in bench.frontier.workbench.hosts
    assert bench.frontier.hosts.waiting_urls == 0
    bench.add("http://dead.example/2")
    assert bench.frontier.hosts.waiting_urls == 0
    assert bench.next() is None

    again = _small(bench.store, now=bench.now + 10.0)
    assert again.frontier.hosts.waiting_urls == 2
    assert sorted(drain(again)) == ["http://dead.example/1", "http://dead.example/2"]


def test_a_crawl_is_not_over_while_hosts_on_disk_have_a_turn_to_come() -> None:
    """Only rests longer than the patience end it, on disk as in memory."""
    bench = _small()
    bench.add(*_urls())
    assert not bench.frontier.only_rests(bench.now, 3600.0)
    rest = {}
    for _ in range(2_000):
        lease = bench.next()
        if lease is not None:
            bench.answer(lease, 429, retry_after_seconds=50_000.0)
            rest[lease.row.host] = lease.host.rest_until
        elif len(rest) == HOSTS:
            break
        bench.commit()
        bench.now += 0.2
    bench.commit()
    assert bench.frontier.hosts.on_disk.counts.hosts >= HOSTS - 4
    assert bench.frontier.hosts.on_disk.counts.resting == bench.frontier.hosts.on_disk.counts.hosts
    bench.now += 1.0  # their address has rested by now
    assert bench.next() is None
    assert bench.frontier.only_rests(bench.now, 3600.0)
    assert not bench.frontier.only_rests(bench.now, 60_000.0)


def test_without_room_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that refuses leaves memory, counts and lists as they were; later all goes on."""
    bench = _small()
    bench.add(*_urls())
    bench.through_robots()
    counts, hosts = bench.frontier.hosts.on_disk.counts, set(bench.frontier.workbench.hosts)
    urls = bench.frontier.hosts.waiting_urls

    def full(changes: Changes) -> None:
        raise StorageError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "apply", full)
        with pytest.raises(StorageError):
            bench.add("http://h11.example/x", "http://h00.example/x", "http://new.example/")
        for _ in range(5):
            with pytest.raises(StorageError):  # one was asked and must give way to those that never were
                bench.frontier.leasing.next(bench.now)
            bench.now += 1.0
        assert (bench.frontier.hosts.on_disk.counts, set(bench.frontier.workbench.hosts)) == (counts, hosts)
        assert not any(host.on_disk for host in bench.frontier.workbench.hosts.values())
        assert bench.frontier.hosts.waiting_urls == urls
    bench.frontier.admission.add_again(bench.now)
    assert bench.frontier.hosts.waiting_urls == urls + 3


def test_a_host_needed_in_memory_comes_off_the_disk() -> None:
    """As when another's robots.txt is there, or a rendered page asks it: listed as in memory, counted there."""
    bench = _small()
    bench.add(*_urls())
    place = bench.store.due(99, Due(IN_MEMORY, "~"))[-1]

    host = bench.frontier.hosts.of(place.host)

    assert bench.frontier.workbench.hosts[place.host] is host
    assert host.work
    assert not host.on_disk
    assert bench.store.is_due(Due(IN_MEMORY, place.host))
    assert not bench.store.is_due(place)
    assert bench.frontier.hosts.waiting_urls == 2 * HOSTS
    assert sorted(drain(bench)) == sorted(_urls())


def test_rows_queued_behind_the_frontiers_back_are_counted() -> None:
    """Lost captures are fetched again at the next start, of hosts on disk, in memory and without work alike."""
    first = _small()
    first.add(*_urls())
    store = first.store
    on_disk, in_memory = store.due(99, Due(IN_MEMORY, "~"))[0].host, store.due(1, Due(IN_MEMORY, ""))[0].host
    changes = Changes(queued=[row(name, 7) for name in (on_disk, in_memory, "done.example")])
    count_rows(store, changes)
    store.apply(changes)

    again = _small(store, now=2000.0)

    assert again.frontier.hosts.waiting_urls == 2 * HOSTS + 3
    assert len(drain(again)) == 2 * HOSTS + 3


def test_the_folder_of_an_older_version_is_crawled_on_and_looked_at(tmp_path: Path) -> None:
    """It has no table of due hosts, and its hosts no place in one."""
    of_tables = rocks_tables.table_options()
    del of_tables[tables.DUE]
    Rdict(str(tmp_path), rocks_tables.database_options(), of_tables).close()
    older = Host("old.example", 5.0)
    older.rows = 1
    queued = Rdict(str(tmp_path), rocks_tables.database_options(), of_tables)
    queued.get_column_family(tables.HOSTS).put(b"old.example", older.pack())
    queued.close()
    with FrontierView(tmp_path) as view:
        assert [name for name, _ in view.hosts()] == ["old.example"]
    store = RocksStore(tmp_path)
    store.apply(Changes(queued=[row("old.example", 1)]))
    bench = Bench(store, now=2000.0)
    assert bench.frontier.hosts.waiting_urls == 1
    assert store.due(9, Due(IN_MEMORY, "")) == [Due(IN_MEMORY, "old.example")]
    store.close()


def _rows_of(bench: Bench, *names: str) -> dict[str, int]:
    """By host, how many rows the store has."""
    return {name: len(bench.store.head(name, 99)) for name in names}


@pytest.mark.parametrize("most", [3, 100])
def test_hosts_of_a_partition_that_leaves_are_on_no_list(most: int) -> None:
    """Those on disk and those that were in memory; the others stay, and what waits is that of these alone."""
    bench = Bench(MemoryStore(), max_hosts_in_memory=most)
    bench.add(*_urls())
    bench.commit()
    hosts = bench.frontier.hosts
    names = [f"h{number:02d}.example" for number in range(HOSTS)]
    going = names[::2]
    assert bench.frontier.let_go(lambda name: name not in going) == []

    for _ in range(2):
        hosts.on_disk.depart(going)

    listed = {place.host for place in [*bench.store.due(99, Due(0, "")), *bench.store.due(99, Due(IN_MEMORY, "~"))]}
    assert not listed & {*going}
    assert not {*hosts.workbench.hosts} & {*going}
    assert hosts.waiting_urls == HOSTS
    assert hosts.on_disk.counts.rows <= HOSTS
    assert sorted(drain(bench)) == sorted(url for url in _urls() if url.split("/")[2] not in going)


def test_hosts_that_arrive_are_asked_when_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause that another worker has promised is shorter; a second time, after a full disk, changes nothing."""
    other = Bench(MemoryStore())
    other.add(*_urls())
    other.through_robots()
    lease = other.next()
    assert lease is not None
    other.answer(lease, 429, retry_after_seconds=500.0)
    other.commit()
    rests, free = lease.host.name, lease.host.next_free
    names = [f"h{number:02d}.example" for number in range(HOSTS)]
    waiting = sum(_rows_of(other, *names).values())

    bench = _small(now=other.now)
    rows = [each for name in names for each in other.store.head(name, 99)]
    states = [(name, packed) for name in names if (packed := other.store.host(name)) is not None]
    origins = [f"http://{name}" for name in names]
    robots = [(origin, packed) for origin in origins if (packed := other.store.robots(origin)) is not None]
    bench.store.apply(Changes(queued=rows, hosts=states, robots=robots))
    on_disk = bench.frontier.hosts.on_disk
    with monkeypatch.context() as patch:
        patch.setattr(bench.store, "apply", lambda _: (_ for _ in ()).throw(StorageError("full")))
        with pytest.raises(StorageError):
            on_disk.arrive(names, bench.now)
    on_disk.arrive([*names, "without.example"], bench.now)

    assert bench.frontier.hosts.waiting_urls == waiting
    assert on_disk.counts.hosts == HOSTS
    stored = Host.unpack(rests, bench.store.host(rests) or b"")
    assert (stored.on_disk, stored.next_free) == (True, free)
    assert bench.store.is_due(place_of(stored))
    fetched = drain(bench)
    assert sorted(fetched) == sorted({each.url for each in rows if "robots.txt" not in each.url})
    assert bench.now >= free


def test_a_host_that_is_in_memory_does_not_arrive() -> None:
    """A link to it was found before, while the disk was full: its clock there is what counts."""
    bench = _small()
    bench.add("http://h00.example/1")
    bench.commit()
    bench.frontier.hosts.on_disk.arrive(["h00.example"], bench.now)
    assert not bench.frontier.workbench.hosts["h00.example"].on_disk
    assert bench.frontier.hosts.waiting_urls == 1
