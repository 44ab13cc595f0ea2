"""One request at a time at an address, and a pause between two, whichever worker sends them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.fleet.local import address_table
from crawlerproject.fleet.local.address_table import AddressTable

DOMAIN = "site.test"


def test_an_address_is_one_workers_until_it_has_rested() -> None:
    """Its own next request waits as well."""
    table = AddressTable(0.5)
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.0) == 0.0
    assert table.reserve("b", "1.1.1.1", DOMAIN, 10.1) > 0
    assert table.reserve("b", "2.2.2.2", DOMAIN, 10.1) == 0.0
    table.rest("a", "1.1.1.1", 11.0)
    assert [round(table.reserve(worker, "1.1.1.1", DOMAIN, 11.2), 6) for worker in "ab"] == [0.3, 0.3]
    assert table.reserve("b", "1.1.1.1", DOMAIN, 11.5) == 0.0


def test_what_a_worker_does_not_have_it_cannot_give_back() -> None:
    """Another's reservation stands."""
    table = AddressTable(0.5)
    table.reserve("a", "1.1.1.1", DOMAIN, 10.0)
    table.rest("b", "1.1.1.1", 10.1)
    assert table.reserve("b", "1.1.1.1", DOMAIN, 20.0) > 0


def test_the_addresses_of_one_that_is_gone_rest_once() -> None:
    """From then on; a worker that is stopped keeps its own."""
    table = AddressTable(0.5)
    table.reserve("a", "1.1.1.1", DOMAIN, 10.0)
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.0) > 0
    table.gone("a", 1000.0)
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.4) > 0
    assert table.reserve("b", "1.1.1.1", DOMAIN, 1000.5) == 0.0


def test_after_a_start_every_address_rests_once() -> None:
    """What was asked of it before is unknown."""
    table = AddressTable(0.5, free_from=10.5)
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.0) == 0.5
    assert table.reserve("a", "1.1.1.1", DOMAIN, 10.5) == 0.0


def test_addresses_that_have_rested_are_forgotten() -> None:
    """Memory is of those that rest now."""
    table = AddressTable(0.5)
    for number in range(3 * address_table._SWEPT_AT):
        table.reserve("a", str(number), DOMAIN, float(number))
        table.rest("a", str(number), float(number))
    assert len(table._free_at) <= address_table._SWEPT_AT + 1


_EVENTS = st.tuples(st.sampled_from(["reserve", "rest", "gone"]), st.sampled_from("abc"), st.integers(0, 2))


@given(st.lists(_EVENTS), st.sampled_from([0.0, 2.5]))
def test_no_two_at_once_and_no_pause_too_short(events: list[tuple[str, str, int]], rest_seconds: float) -> None:
    """Whatever the workers do, a tick apart: between two grants of an address it was given back and has rested."""
    table, now = AddressTable(rest_seconds), 0.0
    holder: dict[int, str] = {}
    ended: dict[int, float] = {}
    for what, worker, address in events:
        now += 1.0
        if what == "reserve" and table.reserve(worker, str(address), DOMAIN, now) == 0.0:
            assert holder.get(address, worker) == worker
            if address not in holder:
                assert now >= ended.get(address, -9.0) + rest_seconds
            holder[address] = worker
        elif what == "rest":
            table.rest(worker, str(address), now)
            if holder.get(address) == worker:
                ended[address] = now
                del holder[address]
        elif what == "gone":
            table.gone(worker, now)
            for one in [one for one, name in holder.items() if name == worker]:
                ended[one] = now
                del holder[one]
