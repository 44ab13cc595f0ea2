"""Rows survive packing, whatever the web puts into them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.stores.protocols import PageRecord, QueuedPage
from crawlerproject.stores.row_codec import (
    host_end,
    host_of,
    host_prefix,
    pack_queued,
    pack_record,
    place_after,
    queue_key,
    unpack_queued,
    unpack_record,
)

HOSTS = st.text("abz.-0:[]", min_size=1, max_size=12)
TEXTS = st.text(st.characters(codec=None), max_size=20)
U16, U32, U64 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
KEYS = st.binary(min_size=24, max_size=24)
ROWS = st.builds(QueuedPage, HOSTS, KEYS, TEXTS, st.integers(0, 255), U64, U32, TEXTS, TEXTS, U16, U16, TEXTS)
RECORDS = st.builds(
    PageRecord,
    TEXTS,
    TEXTS,
    U16,
    st.floats(allow_nan=False),
    st.binary(max_size=20),
    TEXTS,
    TEXTS,
    st.binary(max_size=60),
)


@given(ROWS)
def test_a_queued_page_survives(page: QueuedPage) -> None:
    """Every field, lone surrogates included, comes back from key and value."""
    key = queue_key(page)
    assert unpack_queued(host_of(key), key, pack_queued(page)) == page


@given(RECORDS)
def test_a_record_survives(record: PageRecord) -> None:
    """Every field comes back."""
    assert unpack_record(pack_record(record)) == record


@given(ROWS, ROWS)
def test_byte_order_is_queue_order(one: QueuedPage, other: QueuedPage) -> None:
    """Within a host keys sort as (priority, arrival); rows of other hosts lie outside its bounds."""
    other_same_host = other._replace(host=one.host)
    places = (one.priority, one.arrival), (other.priority, other.arrival)
    assert (queue_key(one) < queue_key(other_same_host)) == (places[0] < places[1])
    assert (place_after(host_prefix(one.host), *places[0]) < queue_key(other_same_host)) == (places[0] < places[1])
    prefix = host_prefix(one.host)
    assert prefix <= queue_key(one) < host_end(prefix)
    assert (prefix <= queue_key(other) < host_end(prefix)) == (other.host == one.host)
