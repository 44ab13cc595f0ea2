"""Packed rows come back, whatever they are, and what rows say twice takes no room."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import PageRecord, QueuedPage
from crawlerproject.stores.rocks.row_packing import Row, compressed, pack_changes, pack_rows, unpack_rows
from crawlerproject.stores.row_codec import (
    HASH_BYTES,
    PAGE_KEY_BYTES,
    PAGES,
    PAYLOADS,
    PRINTS,
    QUEUE,
    SEEN,
    TABLES,
    host_fingerprint_key,
    host_prefix,
    pack_queued,
    pack_record,
    queue_key,
)
from tests.stores.journaled_crawls import applied

URLS = [
    f"https://{host}/{path}"
    for host in ("a.example", "b.example:8080", "xn--bcher-kva.test")
    for path in ("", "page?sid=0123456789abcdef0123456789abcdef", "p%41ge", "a/long/path/of/words.html", "page")
]


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Of one page, as a crawl has them and as none has."""
    page = parse(draw(st.sampled_from(URLS)))
    key = draw(st.sampled_from([page.key, bytes(24), page.key[:8] + page.key[:7:-1]]))
    note = draw(st.sampled_from(["", "note", "\xfc\udc80"]))
    host = draw(st.sampled_from([page.host, "other.example"]))
    arrival = draw(st.integers(0, 2**64 - 1))
    queued = QueuedPage(host, key, page.url + note, 3, arrival, 2, "LR", page.url, 1, 8, note)
    digest = draw(st.sampled_from([b"", bytes(20), b"d" * 20]))
    record = PageRecord(page.url, "fetched" + note, 200, 1.7e9, digest, note, "", b"history"[: len(note)])
    decided: list[Row] = [(PAGES, key, pack_record(record)), (SEEN, key, b"")]
    match draw(st.integers(0, 4)):
        case 0:
            return [(QUEUE, queue_key(queued), pack_queued(queued)), (SEEN, key, b"")]
        case 1:
            return [(QUEUE, queue_key(queued), None)]
        case 2:
            return [*decided, (PRINTS, host_fingerprint_key(host, draw(st.integers(0, 9))), key)]
        case 3:
            url = draw(st.sampled_from([page.url, "https://elsewhere.example/"]))
            return [*decided, (PAYLOADS, digest, bytes(16) + b"2026-11-28T20:00:00Z " + url.encode())]
        case _:
            prefix = draw(st.sampled_from([b"", host_prefix(host)])) + draw(st.binary(max_size=30))
            return [(draw(st.sampled_from(TABLES)), prefix, draw(st.none() | st.binary(max_size=60)))]


@given(st.lists(rows(), max_size=12))
def test_packed_rows_come_back(some: list[list[Row]]) -> None:
    """In columns or one by one; only that a page is known may follow from its being queued or decided."""
    flat = [row for each in some for row in each]
    implied = {value[:PAGE_KEY_BYTES] for table, _, value in flat if table == QUEUE and value is not None}
    implied |= {key for table, key, value in flat if table == PAGES and value is not None}
    expected = applied(flat)

    changes = pack_changes(some)
    for packed in (pack_rows(flat), b"".join(changes), compressed(changes * 2)[-1] if some else b""):
        found = applied(unpack_rows(packed))
        assert {row for row in found.items() ^ expected.items() if row[0][0] != SEEN} == set()
        assert {key for table, key in found.keys() ^ expected.keys() if table == SEEN} <= implied


def test_changes_are_packed_with_the_first() -> None:
    """The others are places in the journal."""
    first: Row = ("hosts", b"a.example", b"state")
    assert [len(each) > 0 for each in pack_changes([[first], [first], []])] == [True, False, False]
    assert pack_changes([]) == []
    assert list(unpack_rows(b"")) == list(unpack_rows(pack_rows([]))) == []


def test_what_follows_from_a_url_is_not_written_with_each_change() -> None:
    """The digest of its host stands in the place in the queue, that of the URL nowhere."""
    page = parse(URLS[0])
    row = QueuedPage(page.host, page.key, page.url, 1, 1_700_000_000_000_000, 3, "LLL", "")
    text = pack_changes([[(QUEUE, queue_key(row), pack_queued(row))]])[0]
    assert [text.count(part) for part in (page.key[:HASH_BYTES], page.key[HASH_BYTES:])] == [1, 0]


def test_a_page_takes_little_but_what_is_chance() -> None:
    """Its key, its host, its place in the queue and the page of a fingerprint take next to nothing."""
    chance, queued, decided = random.Random(1), list[Row](), list[Row]()
    for number in range(1000):
        page = parse(f"https://www.a.example/articles/{number}.html")
        row = QueuedPage(page.host, page.key, page.url, 1, 1_700_000_000_000_000 + number, 3, "LLL", URLS[0])
        queued += [(QUEUE, queue_key(row), pack_queued(row)), (SEEN, page.key, b"")]
        record = PageRecord(page.url, "fetched", 200, 1.7e9, chance.randbytes(20))
        decided += [(PAGES, page.key, pack_record(record)), (SEEN, page.key, b"")]
        decided.append((PRINTS, host_fingerprint_key(page.host, chance.getrandbits(64)), page.key))
    assert len(pack_rows(queued)) < 8 * 1000
    assert len(pack_rows(decided)) < (20 + 8 + 5) * 1000
