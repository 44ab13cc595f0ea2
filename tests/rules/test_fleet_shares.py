"""What each worker of a fleet gets: one partition per registered domain, spread evenly, the same for ever."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.fleet_shares import partition_of, partitions_wanted


def test_a_site_is_in_one_partition() -> None:
    """Subdomains, ports and schemes of one registered domain stay together."""
    names = ("example.co.uk", "www.example.co.uk", "a.b.example.co.uk:8443")
    assert len({partition_of(name, 4096) for name in names}) == 1


def test_private_suffixes_part_people() -> None:
    """Two people's sites under one provider are two sites."""
    assert partition_of("alice.github.io", 4096) != partition_of("bob.github.io", 4096)


def test_names_without_a_domain_are_their_own() -> None:
    """IP addresses, bare suffixes and local names have a partition too."""
    for name in ("127.0.0.1", "[::1]:80", "localhost", "co.uk", "plain1.test:8080"):
        assert 0 <= partition_of(name, 16) < 16


def test_the_number_never_changes() -> None:
    """What is stored is found again by any later version: written down here once."""
    assert [partition_of(name, 256) for name in ("example.org", "www.example.org", "10.0.0.1")] == [69, 69, 70]


def test_partitions_are_even() -> None:
    """20,000 domains over 256 partitions: none gets twice its share."""
    counts = Counter(partition_of(f"site{number}.example", 256) for number in range(20_000))
    assert len(counts) == 256
    assert max(counts.values()) < 2 * 20_000 / 256


@given(st.integers(1, 5000), st.integers(1, 2000))
def test_shares_are_equal_and_together_everything(partitions: int, workers: int) -> None:
    """None wants two more than another, and nothing is left over or wanted twice."""
    shares = [partitions_wanted(partitions, workers, rank) for rank in range(workers)]

    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1
