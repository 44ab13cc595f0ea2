"""Messages on disk: what outlives a restart, what moves with a partition, and what older folders lack."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from rocksdict import Rdict, WriteBatch

from crawlerproject.errors import StorageError
from crawlerproject.stores import row_codec
from crawlerproject.stores.protocols import Applied, Box, Changes
from crawlerproject.stores.rocks import rocks_store, rocks_tables
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from crawlerproject.stores.row_codec import MESSAGE_ROW, READ_ROW, box_key, box_of
from tests.stores.conformance import row

MOST = 2**62


def test_each_start_has_an_outbox_of_its_own(tmp_path: Path) -> None:
    """What an earlier one left is still there, under its own number; that is never given again."""
    with closing(RocksStore(tmp_path)) as store:
        outbox = store.messages.outbox
        store.apply(Changes(messages=[(1, b"a"), (2, b"b")], read=[(Box(3, b"another outbox.."), 9)]))
        store.apply(Changes(delivered=[(Box(2, outbox), 2)]))
    with closing(RocksStore(tmp_path)) as store:
        mail = store.messages
        assert mail.outbox != outbox
        assert (mail.applied, mail.durable, mail.boxes()) == (Applied(), Applied(), [Box(1, outbox)])
        assert mail.read_up_to(Box(3, b"another outbox..")) == 9
        store.apply(Changes(messages=[(1, b"c")]))
        assert mail.of(Box(1, outbox), 0, MOST, MOST) == [(1, b"a")]
        assert mail.of(Box(1, mail.outbox), 0, MOST, MOST) == [(1, b"c")]


def test_a_frontier_put_back_from_a_backup_gives_no_number_again(tmp_path: Path) -> None:
    """Its messages were delivered since, and others after them: what it writes now is not taken for one of these."""
    with closing(RocksStore(tmp_path / "crawl")) as store:
        store.apply(Changes(messages=[(1, b"a")]))
    shutil.copytree(tmp_path / "crawl", tmp_path / "backup")
    sent = set[tuple[Box, int]]()
    for folder in ("crawl", "backup"):
        with closing(RocksStore(tmp_path / folder)) as store:
            store.apply(Changes(messages=[(1, b"of the crawl"), (1, b"of the backup")]))
            box = Box(1, store.messages.outbox)
            new = {(box, number) for number, _ in store.messages.of(box, 0, MOST, MOST)}
            assert len(new) == 2
            assert not new & sent
            sent |= new


def test_every_frontier_has_an_outbox_of_its_own(tmp_path: Path) -> None:
    """One that is made again numbers from 1 as well: it must not be taken for the one before."""
    outboxes = []
    for name in ("one", "two"):
        with closing(RocksStore(tmp_path / name)) as store:
            store.apply(Changes(messages=[(1, b"a")]))
            outboxes.append(store.messages.outbox)
    assert len(set(outboxes)) == 2


def test_a_refused_change_gives_its_numbers_to_the_same_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is repeated with more behind it: what an earlier try may have left on the disk is written over."""
    with closing(RocksStore(tmp_path)) as store:
        changes = Changes(messages=[(1, b"a")])
        with monkeypatch.context() as patch:
            patch.setattr(rocks_store, "RESERVE_BYTES", 1 << 62)
            with pytest.raises(StorageError):
                store.apply(changes)
        assert (store.messages.applied.last, store.messages.take_changed()) == (0, set())
        changes.messages.append((1, b"b"))
        store.apply(changes)
        assert store.messages.of(Box(1, store.messages.outbox), 0, MOST, MOST) == [(1, b"a"), (2, b"b")]


def test_a_partitions_rows_mean_the_same_in_another_frontier(tmp_path: Path) -> None:
    """Messages that wait for it and how far it was read, copied by their two prefixes; others stay."""
    with closing(RocksStore(tmp_path / "one")) as one, closing(RocksStore(tmp_path / "two")) as two:
        far = b"another outbox.."
        one.apply(Changes(messages=[(256, b"a"), (1, b"b"), (256, b"c"), (257, b"d")]))
        one.apply(Changes(read=[(Box(256, far), 4), (Box(1, far), 5), (Box(256, one.messages.outbox), 1)]))
        two.apply(Changes(messages=[(256, b"e")]))
        _copy(one, two, 256)
        mine, theirs = (Box(256, store.messages.outbox) for store in (one, two))

        assert set(two.messages.boxes()) == {mine, theirs}
        assert two.messages.of(mine, 0, MOST, MOST) == [(1, b"a"), (3, b"c")]
        assert two.messages.of(theirs, 0, MOST, MOST) == [(1, b"e")]
        assert [two.messages.read_up_to(box) for box in (Box(256, far), mine, Box(1, far))] == [4, 1, 0]
        assert one.messages.read_up_to(Box(1, far)) == 5
        assert two.messages.applied.last == 1


def _prefix(kind: int, partition: int) -> bytes:
    """What all rows of this kind and partition begin with: all before the outbox."""
    return box_key(kind, Box(partition, bytes(16)))[:-16]


def _copy(source: RocksStore, target: RocksStore, partition: int) -> None:
    batch = WriteBatch(raw_mode=True)
    for kind in (MESSAGE_ROW, READ_ROW):
        for key, value in _rows(source, _prefix(kind, partition)):
            assert box_of(key).partition == partition
            batch.put(key, value, target._tables.handles[row_codec.MESSAGES])
    target._tables.database.write(batch)


def _rows(store: RocksStore, prefix: bytes) -> Iterable[tuple[bytes, bytes]]:
    return store._tables.rows(row_codec.MESSAGES, prefix=prefix)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    """As one that could not be opened again for want of room: a StorageError, so that it is asked again later."""
    store = RocksStore(tmp_path)
    store.close()
    for ask in (store.messages.boxes, lambda: store.messages.read_up_to(Box(1, bytes(16)))):
        with pytest.raises(StorageError, match="closed"):
            ask()


def test_prefixes_are_of_one_partition() -> None:
    """Of one length, in the order of their numbers."""
    prefixes = [_prefix(MESSAGE_ROW, number) for number in (0, 1, 255, 256, 65_536)]
    assert sorted(prefixes) == prefixes
    assert {len(prefix) for prefix in prefixes} == {5}
    assert box_key(MESSAGE_ROW, Box(256, bytes(16))).startswith(prefixes[3])


def test_a_folder_without_the_table_gains_it(tmp_path: Path) -> None:
    """One of an earlier version goes on; before and after, it can be looked at."""
    old = {name: each for name, each in rocks_tables.table_options().items() if name != row_codec.MESSAGES}
    Rdict(str(tmp_path), rocks_tables.database_options(), old).close()
    with FrontierView(tmp_path) as view:
        assert view.head("a", 1) == []
    with closing(RocksStore(tmp_path)) as store:
        store.apply(Changes(queued=[row("a", 1)], messages=[(1, b"a")]))
        with FrontierView(tmp_path) as view:
            assert view.head("a", 1) == [row("a", 1)]
    with closing(RocksStore(tmp_path)) as store:
        assert [box.partition for box in store.messages.boxes()] == [1]
