"""Decides how the workers of a fleet share a crawl: its hosts, by partitions, and the sums that it may spend.

Of a sum (pages, bytes, renders) each worker is granted a part at a time and spends no more than it was granted; what
all are granted is never more than the sum. The parts get smaller towards the end, and a worker gives back what it
cannot use when another has none.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from crawlerproject.rules.url.domains import registered_domain


class QuotaRequest(NamedTuple):
    """What a worker says of one sum. Amounts are over all its starts."""

    kind: str  # of the sum: pages, bytes, renders
    most: int  # that the crawl may spend
    committed: int  # by this worker; whatever happens it has spent so much
    used: int  # committed, or on its way; a sum of bytes may be more than was granted
    wants: bool  # more than it was granted
    gives: bool  # back what is not used
    least: int = 1  # of what it is granted at a time, while there is so much
    largest: int = 1_000_000


class Share(NamedTuple):
    """What a worker is answered."""

    granted: int  # to it, over all its starts
    committed: int  # by all workers, as last reported
    wanted: bool  # another has none and wants some


SUM_FACTS = {"pages": "totals", "bytes": "totals", "renders": "renders"}
"""The worker's fact, committed with what it counts, that says how much of each sum it has spent."""
_PLACES = {"pages": 0, "bytes": 1}  # in ``totals``


def spent(kind: str, fact: bytes | None) -> int:
    """How much of a sum a worker has spent, by its fact of that sum."""
    if fact is None:
        return 0
    sums = json.loads(fact)
    return int(sums[_PLACES[kind]] if kind in _PLACES else sums)


def part(left: int, workers: int, least: int, largest: int) -> int:
    """How much of what is ``left`` one of some workers is granted at a time: half of an equal part."""
    return max(0, min(left, largest, max(least, left // (2 * max(1, workers)))))


@lru_cache(maxsize=65_536)  # as many as rules/url/domains.py keeps domains
def partition_of(host: str, partitions: int) -> int:
    """The partition, 0 up to ``partitions`` - 1, of a host key.

    All hosts of one registered domain (public suffix list, private suffixes included) share a partition, whatever
    the number of workers is, so that its holder decides alone for the whole site.
    """
    return xxh3_64_intdigest(registered_domain(host).encode("utf-8", "surrogatepass")) % partitions


def partitions_wanted(partitions: int, workers: int, rank: int) -> int:
    """A worker's share, given how many workers' names come before its own: what cannot be shared goes to the first.

    All shares together are exactly all partitions, so no worker looks for one that it cannot have.
    """
    each, left = divmod(partitions, max(1, workers))
    return each + (rank < left)
