"""The rows of a partition: what changes them, a copy that is made meanwhile, and what is left when they go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.protocols import Box, Changes, Fingerprint, HostFact
from crawlerproject.stores.rocks import partition_rows
from crawlerproject.stores.rocks.partition_rows import (
    all_parts,
    all_rows,
    clear,
    facts_of,
    hosts_changed,
    hosts_of,
    put,
    read_marks,
    rows_changed,
    rows_removed,
)
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.row_packing import Row, pack_changes, pack_rows, unpack_rows
from crawlerproject.stores.row_codec import (
    FORMAT_FACT,
    MESSAGES,
    QUEUE,
    SEEN,
    TABLES,
    host_prefix,
    host_row_key,
    pack_queued,
    queue_key,
)
from tests.stores.conformance import row
from tests.stores.journaled_crawls import PARTITIONS, applied, decided, host_in

HOSTS = [host_in(0), host_in(0, 1), f"{host_in(0)}:8080", f"www.{host_in(0)}", "xn--bcher-kva.test", host_in(1)]
HERE, THERE = partition_of(HOSTS[0], PARTITIONS), partition_of(HOSTS[-1], PARTITIONS)
ELSEWHERE = 100
OUTBOX = b"another outbox.."


def page(host: str, number: int) -> bytes:
    """A key that begins as that of each page of the host."""
    return host_prefix(host)[:8] + number.to_bytes(16, "big")


@st.composite
def changes(draw: st.DrawFn) -> Changes:
    """What one moment may change, of all kinds."""
    host, number = draw(st.sampled_from(HOSTS)), draw(st.integers(0, 5))
    queued = row(host, number, key=page(host, number))
    packed = bytes([draw(st.integers(0, 255))])
    kind = draw(st.sampled_from(list(HostFact)))
    made = Changes(hosts=[(host, packed)])
    match draw(st.integers(0, 5)):
        case 0:
            made.queued.append(queued)
        case 1:
            made.removed.append(queued)
            made.pages.append((queued.key, decided(host, number)))
        case 2:
            other = draw(st.sampled_from(HOSTS))  # its robots.txt waits at the host
            made.queued.append(row(host, number, 0, key=page(other, ELSEWHERE + number)))
        case 3:
            made.robots.append((f"{draw(st.sampled_from(['http', 'https']))}://{host}", packed))
        case 4:
            made.fingerprints.append(Fingerprint(host, number, queued.key))
            made.read.append((Box(partition_of(host, PARTITIONS), OUTBOX), number))
        case _:
            made.facts += [(f"{kind}{host.partition(':')[0]}", packed), ("worker", packed)]
    return made


def journal(change: Changes) -> bytes:
    """What a change does to the rows of the partition, as its journal has it."""
    of_pages = [host_key(record.url) for _, record in change.pages]
    rows: list[tuple[str, Row]] = [
        (host, (MESSAGES, host_row_key(HERE, host), b"")) for host in hosts_changed(change, of_pages)
    ]
    rows += rows_removed(change)
    rows += [(row.host, (QUEUE, queue_key(row), pack_queued(row))) for row in change.queued]
    rows += rows_changed(change, of_pages)
    here = [each for host, each in rows if partition_of(host, PARTITIONS) == HERE]
    here += [each for number, each in read_marks(change) if number == HERE]
    return pack_changes([here])[0]


def apply(store: RocksStore, change: Changes) -> bytes:
    """To a frontier, as the store that journals does; what its journal gets."""
    store.apply(change)
    packed = journal(change)
    put(store._opened(), unpack_rows(packed))
    return packed


def asked(rows: dict[tuple[str, bytes], bytes]) -> dict[tuple[str, bytes], bytes]:
    """All but that robots.txt files are known: nothing asks whether one was ever queued at another host."""
    return {
        (table, key): value
        for (table, key), value in rows.items()
        if table != SEEN or int.from_bytes(key[8:], "big") < ELSEWHERE
    }


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksStore]:
    """A frontier."""
    with closing(RocksStore(tmp_path)) as made:
        yield made


def test_a_copy_made_meanwhile_and_the_changes_since_are_the_partition(store: RocksStore) -> None:
    """Changes come between any two rows of the copy; some that it has are in the journal as well."""
    tables = store._opened()

    @settings(max_examples=40, deadline=None)
    @given(before=st.lists(changes(), max_size=12), meanwhile=st.lists(changes(), max_size=12), at=st.integers(0, 3))
    def holds(before: list[Changes], meanwhile: list[Changes], at: int) -> None:
        for partition in range(PARTITIONS):
            clear(tables, partition)
        packed = [apply(store, change) for change in before]
        since = packed[max(0, len(packed) - at) :]
        coming, copied = iter(meanwhile), []
        for each in all_rows(tables, HERE):
            copied.append(each)
            if (change := next(coming, None)) is not None:
                since.append(apply(store, change))
        since += [apply(store, change) for change in coming]

        taken_over = applied([*copied, *(each for part in since for each in unpack_rows(part))])

        assert asked(taken_over) == asked(applied(all_rows(tables, HERE)))

    holds()


def filled(store: RocksStore) -> None:
    """Rows of each table, of two partitions."""
    for number, host in enumerate((HOSTS[0], HOSTS[2], HOSTS[-1])):
        change = Changes(
            queued=[row(host, number, key=page(host, number))],
            pages=[(page(host, 9), decided(host, 9))],
            hosts=[(host, b"state")],
            robots=[(f"http://{host}", b"text")],
            fingerprints=[Fingerprint(host, 7, page(host, 9))],
            facts=[(f"{kind}{host.partition(':')[0]}", b"fact") for kind in HostFact] + [("worker", b"fact")],
            read=[(Box(partition_of(host, PARTITIONS), OUTBOX), 3)],
        )
        store.apply(change)
        hosts = hosts_changed(change, [host])
        rows = [(MESSAGES, host_row_key(partition_of(each, PARTITIONS), each), b"") for each in hosts]
        put(store._opened(), rows)


def test_what_is_cleared_leaves_the_others(store: RocksStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """In many small writes too; a second time nothing is left to do; what is put back is as it was."""
    monkeypatch.setattr(partition_rows, "ROWS_AT_A_TIME", 3)
    monkeypatch.setattr(partition_rows, "_ROWS_OF_PART", 7)
    filled(store)
    tables = store._opened()
    here, there = list(all_rows(tables, HERE)), list(all_rows(tables, THERE))
    assert {table for table, _, _ in here} == {*TABLES} - {"payloads", "due"}
    for _ in range(2):
        clear(tables, HERE)
        assert list(all_rows(tables, HERE)) == []
        assert list(all_rows(tables, THERE)) == there
    assert store.fact("worker") == b"fact"
    for _ in range(2):
        put(tables, (each for part in [pack_rows(here[:5]), pack_rows(here[5:])] for each in unpack_rows(part)))
        assert list(all_rows(tables, HERE)) == here
    parts = list(all_parts(tables, HERE))
    assert len(parts) > 1
    assert {each for part in parts for each in unpack_rows(part)} == {*here}
    assert list(hosts_of(tables, HERE)) == [HOSTS[0], HOSTS[2]]


def test_facts_of_no_host_are_the_workers(store: RocksStore) -> None:
    """Wherever their names stand among those of hosts."""
    filled(store)
    names = [f"{kind[:-1]}" for kind in HostFact]
    store.apply(Changes(facts=[(name, b"own") for name in names]))
    assert facts_of(store._opened()).keys() - {FORMAT_FACT} == {"worker", *names}
