"""Which partition of a shared frontier a host belongs to."""

from __future__ import annotations

from functools import lru_cache

from xxhash import xxh3_64_intdigest

from crawlerproject.rules.url.scope import registered_domain

# Host names whose partition is kept at hand; as many as rules/url/scope.py keeps domains.
_KEPT = 65_536


@lru_cache(maxsize=_KEPT)
def partition_of(host: str, partitions: int) -> int:
    """The partition, 0 up to ``partitions`` - 1, of a host key.

    All hosts of one registered domain (public suffix list, private suffixes included) share a partition, whatever
    the number of workers is, so that its holder decides alone for the whole site.
    """
    return xxh3_64_intdigest(registered_domain(host).encode("utf-8", "surrogatepass")) % partitions
