"""Batches whose answer was lost: decided once, whether Redis had done the work or had not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from crawlerproject.errors import LeaseLost, StorageError
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.connection import Call
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.conformance import row

PAGES = [row("a", number) for number in (1, 2, 3)]


def cut_off(store: RedisStore, patch: pytest.MonkeyPatch, *, after: bool) -> None:
    """The link breaks before a batch is sent, or after Redis has done it."""
    many = store.link.many

    def broken(calls: Sequence[Call]) -> list[Any]:
        answers = many(calls) if after or not calls else []
        if not calls:
            return answers
        raise StorageError("the connection broke")

    patch.setattr(store.link, "many", broken)


@pytest.mark.parametrize("done", [True, False], ids=["done", "not done"])
def test_a_batch_whose_answer_was_lost_counts_once(store: RedisStore, done: bool) -> None:
    """The next batch settles what is in doubt first; the work that was in doubt may be sent again."""
    first, second = Changes(queued=PAGES[:1], facts=[("warc", b"1")]), Changes(queued=PAGES[1:2])
    serial = store.batches.serial
    with pytest.MonkeyPatch.context() as patch:
        cut_off(store, patch, after=done)
        with pytest.raises(StorageError, match="broke"):
            store.apply(first)

    store.sync()
    assert store.batches.serial == serial + done
    assert store.head("a", 9) == PAGES[:done]
    store.apply(first)
    store.apply(second)

    assert store.batches.serial == serial + done + 2
    assert store.head("a", 9) == PAGES[:2]
    assert store.fact("warc") == b"1"


def test_nothing_is_decided_for_a_partition_that_is_not_held(store: RedisStore) -> None:
    """No part of the batch is written."""
    serial = store.batches.serial
    store.held.clear()

    with pytest.raises(LeaseLost, match="is not held"):
        store.apply(Changes(queued=PAGES[:1], facts=[("warc", b"2")]))

    assert store.batches.serial == serial
    assert store.fact("warc") is None


def test_an_empty_batch_is_not_sent(store: RedisStore) -> None:
    """It has no number of its own."""
    serial = store.batches.serial
    store.apply(Changes())

    assert store.batches.serial == serial
    assert not store.batches.unfinished
