"""The store on disk keeps the contract, and its promises about crashes, locks, versions and full disks."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from rocksdict import DBCompactionStyle, Options, Rdict, WriteBatch

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.stores.protocols import Box, Changes, Fingerprint, Near, QueuedPage
from crawlerproject.stores.rocks import rocks_store, rocks_tables, rocks_texts
from crawlerproject.stores.rocks.rocks_queues import QueueHeadCache
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.row_codec import queue_key
from tests.stores.conformance import ContentContract, DueContract, MessageContract, StoreContract, key_of, record, row
from tests.stores.memory_store import MemoryStore

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksStore]:
    """A new store in a new folder."""
    made = RocksStore(tmp_path / "crawl" / "frontier")
    yield made
    made.close()


class TestRocksStore(StoreContract, ContentContract, DueContract, MessageContract):
    """The contract, on disk."""


def test_everything_is_there_after_opening_again(tmp_path: Path) -> None:
    """Queue, known keys, records, states and facts survive an orderly end."""
    first = RocksStore(tmp_path)
    rows = [row("a", number) for number in range(10)]
    first.apply(Changes(queued=rows, hosts=[("a", b"h")], robots=[("https://a", b"r")], facts=[("warc", b"9")]))
    first.apply(Changes(removed=rows[:4], pages=[(page.key, record(page.arrival)) for page in rows[:4]]))
    first.close()
    first.close()
    again = RocksStore(tmp_path)
    assert again.head("a", 99) == rows[4:]
    assert list(again.hosts_with_work()) == ["a"]
    assert again.known([page.key for page in rows]) == [True] * 10
    assert again.page(rows[3].key) == record(3)
    assert (again.host("a"), again.robots("https://a"), again.fact("warc")) == (b"h", b"r", b"9")
    again.close()


def _by_levels(
    cache_bytes: int, options_now: Callable[[int], dict[str, Options]] = rocks_tables.table_options
) -> dict[str, Options]:
    """Options of the tables as earlier versions had them."""
    made = options_now(cache_bytes)
    for table in made.values():
        table.set_compaction_style(DBCompactionStyle.level())
        table.set_level_zero_file_num_compaction_trigger(4)
        table.set_write_buffer_size(1 << 16)
    return made


def test_a_folder_that_was_merged_by_levels_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of earlier versions, whose files lie in several levels; and the other way round."""
    rows = [row(f"host-{number % 5}", number) for number in range(3000)]
    with monkeypatch.context() as patch:
        patch.setattr(rocks_tables, "table_options", _by_levels)
        with closing(RocksStore(tmp_path)) as first:
            first.apply(Changes(queued=rows[:1000]))
            first._tables.queue.compact_range(None, None)
            first.apply(Changes(queued=rows[1000:2000], removed=rows[:500]))
            first._tables.queue.flush()
            first._tables.seen.compact_range(None, None)
    with closing(RocksStore(tmp_path)) as later:
        assert {page for number in range(5) for page in later.head(f"host-{number}", 9999)} == {*rows[500:2000]}
        later.apply(Changes(queued=rows[2000:], removed=rows[500:600]))
        assert all(later.known([page.key for page in rows]))
        later._tables.queue.compact_range(None, None)
        later._tables.seen.compact_range(None, None)
    monkeypatch.setattr(rocks_tables, "table_options", _by_levels)
    with closing(RocksStore(tmp_path)) as back:
        assert {page for number in range(5) for page in back.head(f"host-{number}", 9999)} == {*rows[600:]}
        assert all(back.known([page.key for page in rows]))


WRITER = """
import sys
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.rocks_queues import QueueHeadCache
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.row_codec import queue_key
from tests.stores.conformance import record, row
store = RocksStore(sys.argv[1])
start = int(store.fact("done") or b"-1") + 1
for number in range(start, start + 1_000_000):
    queued = [row(f"host-{number % 7}", number * 10 + part) for part in range(10)]
    store.apply(Changes(queued=queued))
    done = Changes(removed=queued[:3], pages=[(page.key, record(number)) for page in queued[:3]])
    done.facts.append(("done", b"%d" % number))
    store.apply(done)
    print(number, flush=True)
    if number % 20 == 0:
        store.sync()
"""


def test_kill_9_loses_no_applied_change(tmp_path: Path) -> None:
    """After each of five kills in the middle of writing, all that was reported is there, and changes are whole."""
    for kills in range(5):
        reported = _write_and_kill(tmp_path, lines=40 + 37 * kills)
        store = RocksStore(tmp_path)
        done = int(store.fact("done") or b"-1")
        assert done >= reported
        left = {page.key for number in range(7) for page in store.head(f"host-{number}", 10**6)}
        pages = [[key_of(f"host-{number % 7}", number * 10 + part) for part in range(10)] for number in range(done + 1)]
        assert left >= {key for keys in pages for key in keys[3:]}
        assert left.isdisjoint(key for keys in pages for key in keys[:3])
        assert all(store.known([key for keys in pages for key in keys]))
        assert all(store.page(key) == record(number) for number, keys in enumerate(pages) for key in keys[:3])
        begun = len(left) - 7 * len(pages)
        assert begun in (0, 10)  # the one change after the last fact: whole or not at all
        store.apply(
            Changes(
                removed=[
                    page
                    for number in range(7)
                    for page in store.head(f"host-{number}", 10**6)
                    if page.arrival >= (done + 1) * 10
                ]
            )
        )
        store.close()


def _write_and_kill(folder: Path, lines: int) -> int:
    """Let a process write until it has reported so many changes, kill it; the last number that it reported."""
    command = [sys.executable, "-c", WRITER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        for _ in range(lines):
            last = writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        rest = writer.stdout.read().splitlines()
    return int(rest[-1] if rest else last)


def test_a_second_opening_is_refused(store: RocksStore) -> None:
    """In this process and in another: one clear sentence, and the first goes on unharmed."""
    with pytest.raises(OperatorError, match=r"crawl folder .*frontier is in use by a running crawl;"):
        RocksStore(store._folder)
    code = "import sys; from crawlerproject.stores.rocks.rocks_store import RocksStore; RocksStore(sys.argv[1])"
    other = subprocess.run(
        [sys.executable, "-c", code, store._folder], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "OperatorError: The crawl folder" in other.stderr
    assert "is in use by a running crawl;" in other.stderr
    store.apply(Changes(queued=[row("a", 1)]))
    assert store.head("a", 1) == [row("a", 1)]


def test_too_little_room_changes_nothing(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is written; the same change goes through when there is room."""
    changes = Changes(queued=[row("a", 1)])
    with monkeypatch.context() as patch:
        patch.setattr(rocks_store, "RESERVE_BYTES", 1 << 62)
        with pytest.raises(StorageError, match="MB free"):
            store.apply(changes)
        assert store.head("a", 1) == []
    store.apply(changes)
    assert store.head("a", 1) == changes.queued


FILE_LIMIT = """
import resource, sys
from crawlerproject.errors import StorageError
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.rocks.rocks_queues import QueueHeadCache
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.row_codec import queue_key
from tests.stores.conformance import row
store = RocksStore(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
done, refused = 0, 0
while done < 400:
    change = Changes(queued=[row("a", done * 10 + part, note="x" * 200) for part in range(10)])
    try:
        store.apply(change)
        done += 1
    except StorageError:
        refused += 1
        try:
            store.mend()
        except StorageError:
            refused += 1
        assert [page.arrival for page in store.head("a", 10**6)] == list(range(done * 10))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        store.mend()
        store.sync()  # without another change: a crawl that pauses makes none
        store.mend()
        assert [page.arrival for page in store.head("a", 10**6)] == list(range(done * 10))
store.sync()
assert len(store.head("a", 10**6)) == 4000
store.close()
store = RocksStore(sys.argv[1])
assert [page.arrival for page in store.head("a", 10**6)] == list(range(4000))
print(refused)
"""


def test_a_failed_write_changes_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    """The system refuses a write half way: StorageError, all earlier changes intact, and later it goes on."""
    run = subprocess.run(
        [sys.executable, "-c", FILE_LIMIT, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.stderr == ""
    assert int(run.stdout) == 2  # the write, and the opening of what can still be read


class _Reporting:
    """A database of which each write is reported as failed, once it is done."""

    def __init__(self, database: Rdict) -> None:
        self._database = database

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def write(self, batch: WriteBatch) -> None:
        """Write, then fail."""
        self._database.write(batch)
        raise Exception("IO error: the disk answered too late")


def test_a_write_that_was_done_counts_whatever_is_reported(store: RocksStore) -> None:
    """The store knows by its own sequence that all of it was written, says no error, and goes on."""
    first, second = row("a", 1), row("a", 2)
    store._tables.database = _Reporting(store._tables.database)  # type: ignore[assignment]
    store.apply(Changes(queued=[first]))
    assert store.known([first.key]) == [True]
    store.apply(Changes(queued=[second]))  # the database was opened again for it
    assert store.head("a", 9) == [first, second]


@pytest.mark.parametrize("most_read", [0, 59, 60, 100, 500])
def test_near_is_exact_however_much_is_known_of_the_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_read: int
) -> None:
    """Opened anew with few or many stored, and grown since: as comparing with every fingerprint would."""
    monkeypatch.setattr(rocks_texts, "MAX_READ", most_read)
    chance = random.Random(5)
    values = [chance.getrandbits(64) for _ in range(60)]
    values += [value ^ 1 << chance.randrange(64) ^ 1 << chance.randrange(64) for value in values]
    prints = [Fingerprint("a", value, at.to_bytes(24, "big")) for at, value in enumerate(values)]
    with closing(RocksStore(tmp_path)) as first:
        first.apply(Changes(fingerprints=prints[:60]))
    with closing(RocksStore(tmp_path)) as store:
        for stored in (60, 90, 120):
            store.apply(Changes(fingerprints=prints[60:stored]))
            for value in [*values, *[chance.getrandbits(64) for _ in range(60)]]:
                near = [made for made in prints[:stored] if (made.value ^ value).bit_count() <= 3]
                assert sorted(store.near("", value, 3)) == sorted(
                    Near((made.value ^ value).bit_count(), made.key) for made in near
                )


def test_sync_may_run_beside_everything_else(store: RocksStore) -> None:
    """Another thread makes durable while this one applies and reads."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def syncing() -> None:
        try:
            while not stop.is_set():
                store.sync()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=syncing)
    thread.start()
    for number in range(2000):
        store.apply(Changes(queued=[row("a", number)]))
    stop.set()
    thread.join()
    assert errors == []
    assert [page.arrival for page in store.head("a", 10**6)] == list(range(2000))


def test_beginnings_of_queues_are_bounded(store: RocksStore) -> None:
    """However many hosts are looked at, only of so many it is remembered where they begin, and none of them lies."""
    store._heads = ahead = QueueHeadCache(max_hosts=3)
    rows = [row(f"host-{number}", number) for number in range(9)]
    for page in rows:
        store.apply(Changes(queued=[page]))
    for _ in range(2):
        assert [store.head(page.host, 1) for page in rows] == [[page] for page in rows]
        assert [page.host for page in rows if page.host in ahead] == ["host-0", "host-1", "host-2"]


def test_a_beginning_that_is_not_there_is_looked_for_again(store: RocksStore) -> None:
    """What the tables say counts, whatever is remembered of them."""
    rows = [row("a", number) for number in range(9)]
    store.apply(Changes(queued=rows))
    store._heads.clear()
    assert store.head("a", 1) == rows[:1]
    store._heads.keep_rows("a", [])
    store._tables.queue.delete(queue_key(rows[0]))
    assert store.head("a", 3) == rows[1:4]


class _Spot(NamedTuple):
    host: int
    number: int
    priority: int


SPOTS = st.lists(st.builds(_Spot, st.integers(0, 3), st.integers(0, 9), st.integers(0, 2)), max_size=6)


class Comparison(RuleBasedStateMachine):
    """Whatever is done to both, the store on disk and the one in dictionaries answer alike."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = _new_folder()
        self.rocks = RocksStore(self.folder)
        self.model = MemoryStore()

    @rule(queued=SPOTS, removed=SPOTS, pages=SPOTS)
    def apply(self, queued: list[_Spot], removed: list[_Spot], pages: list[_Spot]) -> None:
        """Any change at all."""
        changes = Changes(
            queued=[self._row(spot) for spot in queued],
            removed=[gone for gone in map(self._row, removed) if gone in self.model.head(gone.host, 99)],
            pages=[(key_of(f"h{spot.host}", spot.number), record(spot.priority)) for spot in pages],
            hosts=[(f"h{spot.host}", bytes([spot.number])) for spot in pages],
        )
        self.rocks.apply(changes)
        self.model.apply(changes)

    def _row(self, spot: _Spot) -> QueuedPage:
        return row(f"h{spot.host}", spot.number, spot.priority)

    @rule(
        posted=st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=3)), max_size=4),
        read=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=3),
        gone=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), max_size=4),
    )
    def messages(
        self, posted: list[tuple[int, bytes]], read: list[tuple[int, int]], gone: list[tuple[int, int]]
    ) -> None:
        """Messages come and go; others' are read."""
        marks = [(Box(partition, b"another outbox.."), number) for partition, number in read]
        for store in (self.rocks, self.model):
            own = [(Box(partition, store.messages.outbox), number) for partition, number in gone]
            store.apply(Changes(messages=posted, read=marks, delivered=own))

    @rule(host=st.integers(0, 3), limit=st.integers(0, 5))
    def head(self, host: int, limit: int) -> None:
        """A head, which the store on disk remembers."""
        assert self.rocks.head(f"h{host}", limit) == self.model.head(f"h{host}", limit)

    @rule(spot=st.builds(_Spot, st.integers(0, 3), st.integers(0, 9), st.integers(0, 2)))
    def head_after(self, spot: _Spot) -> None:
        """A head from somewhere."""
        host, after = f"h{spot.host}", (spot.priority, spot.number)
        assert self.rocks.head(host, 4, after=after) == self.model.head(host, 4, after=after)

    @rule()
    def reopen(self) -> None:
        """An end and a new start."""
        self.rocks.close()
        self.rocks = RocksStore(self.folder)
        self.model.messages.begin()

    @rule(hosts=st.integers(0, 4), row_bytes=st.sampled_from((0, 1000)))
    def crowd(self, hosts: int, row_bytes: int) -> None:
        """Not all beginnings of queues find room any more."""
        self.rocks._heads = QueueHeadCache(hosts, row_bytes)

    @rule()
    def flush(self) -> None:
        """Rows go from memory into sorted files."""
        self.rocks._tables.queue.flush()
        self.rocks._tables.seen.flush()

    @invariant()
    def alike(self) -> None:
        """Known keys, records, states, and the set of hosts."""
        keys = [key_of(f"h{host}", number) for host in range(4) for number in range(10)]
        assert self.rocks.known(keys) == self.model.known(keys)
        assert [self.rocks.page(key) for key in keys] == [self.model.page(key) for key in keys]
        assert [self.rocks.host(f"h{n}") for n in range(4)] == [self.model.host(f"h{n}") for n in range(4)]
        assert sorted(self.rocks.hosts_with_work()) == sorted(self.model.hosts_with_work())
        assert self._mail(self.rocks) == self._mail(self.model)

    def _mail(self, store: RocksStore | MemoryStore) -> object:
        mail = store.messages
        marks = [mail.read_up_to(Box(partition, b"another outbox..")) for partition in range(4)]
        kept = sorted((box.partition, mail.of(box, 0, 99, 99)) for box in mail.boxes())  # outboxes differ by chance
        return mail.applied.last, bool(mail.boxes()), kept, marks

    def teardown(self) -> None:
        """Let the folder go, and remove it."""
        self.rocks.close()
        shutil.rmtree(self.folder)


def _new_folder() -> str:
    return tempfile.mkdtemp(prefix="frontier-model-")


TestComparison = Comparison.TestCase
TestComparison.settings = settings(max_examples=15, stateful_step_count=20)
