"""Decides which of many fingerprints are near one: all are compared, one by one."""

from __future__ import annotations

from array import array

from crawlerproject import native

NEAR_BITS = 6
"""Of 64 bits, those in which two pages of one host may differ and still have the same text (NEAR_DUPLICATE_BITS). A
lower number misses duplicates, a higher one takes different pages for one: docs/near-duplicates.md has the figures."""


def near(values: array[int], value: int, bits: int) -> list[tuple[int, int]]:
    """(place, bits that differ) of each of ``values`` (type ``Q``) within ``bits`` of ``value``, in their order."""
    if not values:
        return []
    page = native.reader()
    return near_in_python(values, value, bits) if page is None else page.near(values, value, bits)


def near_in_python(values: array[int], value: int, bits: int) -> list[tuple[int, int]]:
    """As ``near``, without the extension: 10 µs for 10,000 of them."""
    import numpy as np

    differ = np.bitwise_count(np.frombuffer(values, np.uint64) ^ np.uint64(value))
    (places,) = (differ <= bits).nonzero()
    return [(place, int(differ[place])) for place in places.tolist()]
