"""What an operator may give as seeds."""

from __future__ import annotations

import pytest

from crawlerproject.crawl.start.preflight import absolute_seeds, seeds_and_scope
from crawlerproject.errors import OperatorError


def test_a_list_that_is_longer_than_any_name_of_a_file() -> None:
    """Ten thousand URLs, as crawl.toml may have them: the system's complaint about such a name is no answer."""
    seeds = ",".join(f"http://host{number}.example/" for number in range(10_000))

    assert len(seeds_and_scope(seeds, "any")[0]) == 10_000
    assert absolute_seeds(seeds) == seeds
    with pytest.raises(OperatorError, match="does not exist"):
        seeds_and_scope("x" * 5_000, "any")
