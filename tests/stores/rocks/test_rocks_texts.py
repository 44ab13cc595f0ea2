"""Texts of all workers of one machine on disk: the same answers as everywhere, and made again from the frontiers."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.stores.protocols import Changes, Fingerprint, NearText, PageRecord
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_texts import RocksTexts
from tests.stores.redis.test_texts import clusters, on_disk, text


def test_the_same_pages_get_the_same_marks_as_in_a_crawl_alone(tmp_path: Path) -> None:
    """In the same order, through a start in the middle."""
    pages, found = clusters(30, seed=7), list[Duplicate | None]()
    for part in (pages[:100], pages[100:]):
        with closing(RocksTexts(tmp_path / "texts")) as texts:
            for page in part:
                near = texts.exchange([], [page.value], 3)[0]
                found.append(Duplicate("near", near[0].url, near[0].bits) if near else None)
                if not near:
                    texts.exchange([page, page], [], 3)

    assert found == on_disk(pages, tmp_path / "alone")


def test_they_are_made_again_from_the_frontiers(tmp_path: Path) -> None:
    """Of several workers; what has no record is left out; the stamp says of what they are."""
    pages = list({page.value: page for page in clusters(10, seed=3)}.values())
    for number in range(2):
        with closing(RocksStore(tmp_path / f"frontier-{number}")) as store:
            mine = pages[number::2]
            prints = [Fingerprint(f"h{number}", page.value, page.key) for page in mine]
            records = [(page.key, PageRecord(page.url, "fetched", 200, 0.0)) for page in mine[1:]]
            store.apply(Changes(pages=records, fingerprints=prints))
    with closing(RocksTexts(tmp_path / "texts")) as texts:
        assert not texts.is_of(b"plan 1")
        assert texts.fill(b"plan 1", [tmp_path / "frontier-0", tmp_path / "frontier-1"]) == len(pages) - 2
        assert texts.is_of(b"plan 1")
        assert not texts.is_of(b"plan 2")
        found = texts.exchange([], [page.value for page in pages], 0)

    assert found[:2] == [[], []]
    assert found[2:] == [[NearText(0, page.key, page.url)] for page in pages[2:]]


def test_two_processes_cannot_have_them(tmp_path: Path) -> None:
    """OperatorError at the start."""
    with closing(RocksTexts(tmp_path / "texts")), pytest.raises(OperatorError):
        RocksTexts(tmp_path / "texts")


def test_after_an_error_they_are_opened_again(tmp_path: Path) -> None:
    """StorageError, and what is added once more is there."""
    one, two = (text(random.Random(seed).getrandbits(64), seed) for seed in (1, 2))
    texts = RocksTexts(tmp_path / "texts")
    texts.exchange([one], [], 3)
    texts.close()  # as a database whose write has failed
    with pytest.raises(StorageError):
        texts.exchange([two], [], 3)
    found = texts.exchange([two], [one.value, two.value], 3)
    texts.close()

    assert [near.url for some in found for near in some] == [one.url, two.url]
