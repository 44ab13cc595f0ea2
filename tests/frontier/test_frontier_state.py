"""frontier/recent: what is remembered is what was added, and not much more than twice the bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.frontier.frontier_state import RecentKeys


@given(st.lists(st.lists(st.binary(min_size=1, max_size=2), max_size=5)))
def test_nothing_is_known_that_was_not_added(batches: list[list[bytes]]) -> None:
    """Whatever the order: no key is made up, and the last ones are there."""
    recent = RecentKeys(most=8)
    added: set[bytes] = set()
    for keys in batches:
        recent.add(keys)
        added.update(keys)
        assert all(key in recent for key in keys)

    assert all(key in added for key in (bytes([one, two]) for one in range(256) for two in (0, 7)) if key in recent)


def test_old_keys_are_forgotten() -> None:
    """After two more generations a key is asked of the store again."""
    recent = RecentKeys(most=10)
    for number in range(40):
        recent.add([number.to_bytes(4, "big")])

    assert (39).to_bytes(4, "big") in recent
    assert (0).to_bytes(4, "big") not in recent
