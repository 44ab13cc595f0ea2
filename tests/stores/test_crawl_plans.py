"""Who holds which partitions: shares, moves, and the file."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.errors import OperatorError
from crawlerproject.rules.fleet_shares import partition_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import ALONE, alone, read_plan, shared_out, write_plan


def names(count: int) -> list[str]:
    """As ``scrapy fleet`` names its workers."""
    return [f"worker-{number}" for number in range(1, count + 1)]


@given(partitions=st.integers(1, 300), steps=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_shares_are_whole_and_even(partitions: int, steps: list[int]) -> None:
    """Whatever came before, every partition has one holder, and no worker has two more than another."""
    plan = alone(partitions)
    for count in steps:
        plan = shared_out(plan, names(count))
        held = [len(plan.held(name)) for name in names(count)]
        assert sum(held) == partitions
        assert max(held) - min(held) <= 1


@given(before=st.integers(1, 20), after=st.integers(1, 20))
def test_as_few_as_possible_move(before: int, after: int) -> None:
    """Of 256 partitions only those move that a worker has too many of, or that have lost their worker."""
    old = shared_out(alone(256), names(before))
    new = shared_out(old, names(after))
    moved = sum(old.workers[one] != new.workers[other] for one, other in zip(old.holders, new.holders, strict=True))
    kept = Counter({name: min(len(old.held(name)), len(new.held(name))) for name in names(min(before, after))})
    assert moved == 256 - kept.total()


def test_a_hosts_holder() -> None:
    """The hosts of a domain have one holder, which is their partition's."""
    plan = shared_out(alone(8), names(3))
    for host in ("www.example.org", "example.org:8080", "a.b.example.org"):
        assert plan.holder(host) == plan.holder("example.org")
        assert partition_of(host, 8) in plan.held(plan.holder(host))


def test_the_file(tmp_path: Path) -> None:
    """What was written is read; a crawl without the file has no plan; folders are the crawl's, or in it."""
    crawl = CrawlDir(tmp_path)
    assert read_plan(crawl) is None
    plan = shared_out(alone(16), names(3))
    write_plan(crawl, plan)
    assert read_plan(crawl) == plan
    assert plan.folders(crawl) == [tmp_path / name for name in names(3)]
    assert alone(16).folders(crawl) == [crawl]
    assert alone(16).alone
    assert not plan.alone
    assert alone(16).workers == (ALONE,)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "workers": ["a"], "holders": [1]}'])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    """One sentence that names the file."""
    crawl = CrawlDir(tmp_path)
    crawl.fleet_plan.write_text(text)
    with pytest.raises(OperatorError, match=r"fleet\.json"):
        read_plan(crawl)


def test_no_workers() -> None:
    """No workers, or one twice, is a mistake of the caller."""
    for workers in ([], ["a", "a"]):
        with pytest.raises(ValueError, match="each once"):
            shared_out(alone(4), workers)
