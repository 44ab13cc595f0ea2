"""What a queue in Redis is made of: rows and bundles hold the same."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.redis.redis_queues import (
    bundled,
    count_of,
    in_order,
    is_bundle,
    place_of,
    place_of_member,
    rows_of,
    single,
)
from tests.stores.conformance import row

_texts = st.text(max_size=20)
_pages = st.builds(
    lambda number, priority, **more: row("a.test", number, priority, **more),
    st.integers(0, 2**53), st.integers(0, 255), url=_texts, hops=_texts, via=_texts, note=_texts,
    flags=st.integers(0, 63), tries=st.integers(0, 99),
)  # fmt: skip


def queue(pages: list[QueuedPage]) -> list[bytes]:
    """All members of a queue, in Redis' order."""
    bundles, rest = bundled(sorted(pages, key=place_of))
    return sorted([*bundles, *map(single, rest)])


@given(st.lists(_pages, max_size=80, unique_by=lambda page: page.arrival))
def test_rows_come_out_as_they_went_in(pages: list[QueuedPage]) -> None:
    """Whatever is in them, in order, bundled or not."""
    members = queue(pages)

    assert list(in_order("a.test", iter(members))) == sorted(pages, key=place_of)
    assert sum(map(count_of, members)) == len(pages)


def test_bundles_that_overlap_are_read_in_order() -> None:
    """Links that came at the same time with other priorities, and rows that were put in between later."""
    chance = random.Random(8)
    pages = [row("a.test", number, chance.randrange(3)) for number in range(500)]
    some = chance.sample(pages, 250)
    members = sorted([*queue(some), *queue([page for page in pages if page not in some])])

    assert list(in_order("a.test", iter(members))) == sorted(pages, key=place_of)


def test_a_member_stands_where_its_first_row_does() -> None:
    """Few rows are not worth a bundle; one of many is small, and can be told from a row at the same place."""
    pages: list[Any] = [row("a.test", number, url=f"https://a.test/articles/{number}") for number in range(40)]
    bundles, rest = bundled(pages[:35])

    assert ([count_of(each) for each in bundles], rest) == ([32], pages[32:35])
    assert rows_of("a.test", bundles[0]) == pages[:32]
    assert place_of_member(bundles[0]) == place_of(pages[0]) == place_of_member(single(pages[0]))
    assert is_bundle(bundles[0]) and not is_bundle(single(pages[0]))
    assert len(bundles[0]) < 0.5 * sum(len(single(page)) for page in pages[:32])
    assert bundled(pages[:3]) == ([], pages[:3])
