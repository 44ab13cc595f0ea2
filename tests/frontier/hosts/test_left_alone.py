"""Hosts that did not answer: by the hour in which each is probed once more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.frontier.hosts.table import ParkedHosts

HOUR = 3600.0


@given(st.dictionaries(st.from_regex(r"[a-z0-9.-]{1,20}(:[0-9]{1,5})?", fullmatch=True), st.integers(0, 10**7)))
def test_each_is_named_once_within_the_hour_after_its_moment(moments: dict[str, int]) -> None:
    """Law: none is lost, none is early."""
    alone, found = ParkedHosts(), list[str]()
    for host, at in moments.items():
        alone.add(host, at)
    for now in sorted({*moments.values(), 10**7 + HOUR}):
        while (name := alone.due(now)) is not None:
            assert moments[name] <= now
            found.append(name)
            alone.drop()
        assert all(moments[name] > now - HOUR for name in moments.keys() - found)
    assert sorted(found) == sorted(moments)


def test_one_that_is_not_dropped_is_named_again() -> None:
    """A store that could not be read forgets no host."""
    alone = ParkedHosts()
    alone.add("a.example", 10.0)
    alone.add("b.example:8080", 20.0)

    assert alone.due(HOUR) == alone.due(HOUR) == "b.example:8080"
    alone.drop()
    assert alone.due(HOUR) == "a.example"
    alone.drop()
    assert alone.due(1e12) is None
