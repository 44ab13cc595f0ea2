"""What a worker remembers against what Redis knows, at a start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError, StoreForgot
from crawlerproject.stores.crawl_dir import CrawlDir, write_facts
from crawlerproject.stores.redis.forgetting import Answered, fact_of_worker, forgotten, recognise
from crawlerproject.stores.redis.journals import FORMAT, PartitionJournals
from crawlerproject.stores.redis.keys import fleet_keys, worker_keys
from crawlerproject.stores.redis.rejoining import Rejoining
from tests.stores.redis_crawls import opened
from tests.stores.redis_servers import RedisServer


@pytest.fixture
def store(server: RedisServer) -> Iterator[PartitionJournals]:
    """A crawl with one worker, which has written one batch."""
    made = opened(server.url, "w")
    made.append([], {"a": b"1"})
    yield made
    made.close()


def look(store: PartitionJournals, answered: Answered, *, accept: bool = False) -> Answered:
    """As the worker's next start does."""
    return recognise(store.link, store.crawl, "w", answered, accept=accept)


def test_what_redis_still_knows_is_recognised(store: PartitionJournals) -> None:
    """A crawl without an id, of an earlier version, is given one; then it is the same at every start."""
    first = look(store, Answered(began=True))
    assert look(store, first) == first == Answered(first.crawl_id, 1, 0, began=True)


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("everything", "knows nothing of the crawl"),
        ("the worker", "knows 0 of the 1 batches of worker 'w'"),
        ("a while", "knows 3 of the 5 reports"),
        ("another crawl", "holds another crawl of the name"),
    ],
)
@pytest.mark.parametrize("version_before", [False, True])
def test_what_redis_has_lost_stops_every_start(
    store: PartitionJournals, lost: str, words: str, version_before: bool
) -> None:
    """Until the operator accepts it; a folder that an earlier version left shows that Redis is empty, not more."""
    answered = Answered(began=True) if version_before else look(store, Answered(began=True))
    facts, state = fleet_keys(store.crawl).facts, worker_keys(store.crawl, "w").state
    if lost == "a while":
        store.link.call("HSET", [facts], "reports", 3)
        answered = answered._replace(reports=5 * (not version_before))
    elif lost == "the worker":
        store.link.call("DEL", [state])
    else:
        store.link.call("DEL", [facts, state] if lost == "everything" else [facts])
    if lost == "another crawl":
        store.link.call("HSET", [facts], "format", FORMAT, "id", "another")
    if version_before and lost != "everything":
        assert look(store, answered).began
        return

    for _ in range(2):
        with pytest.raises(StoreForgot, match=words):
            look(store, answered)
    with pytest.raises(StoreForgot, match=words):  # a worker that never was here finds the mark
        look(store, Answered())
    now = look(store, answered, accept=True)
    store.link.call("HSETNX", [facts], "format", FORMAT)  # as the store is opened
    assert look(store, now) == now
    assert look(store, Answered()).crawl_id == now.crawl_id


def test_a_mark_says_why(store: PartitionJournals) -> None:
    """In the words of the worker that has noticed."""
    answered = look(store, Answered())
    error = forgotten(store.link, store.crawl, "has lost the key of the house")
    with pytest.raises(StoreForgot) as found:
        look(store, answered)
    assert str(found.value) == str(error)


def test_what_one_worker_missed_counts_for_all_once_it_is_accepted(store: PartitionJournals) -> None:
    """Of a key that was thrown away only one may know: the crawl has another id then, the same for all that accept."""
    before = look(store, Answered())
    forgotten(store.link, store.crawl, "has lost a part of partition 8")
    first = look(store, before, accept=True)
    assert first.crawl_id != before.crawl_id
    assert look(store, before, accept=True) == first
    assert look(store, first, accept=True) == first


def test_who_is_given_up_is_not_waited_for_again(store: PartitionJournals) -> None:
    """Also by workers that begin later, and knew it to be at work."""
    first, second = (Rejoining(store.link, store.crawl, name) for name in ("w", "v"))
    first.begin(["v", "gone"], {0: (3, 9)})
    pending = first.look()
    assert pending is not None
    assert pending.missing == ["gone", "v"]
    first.give_up("gone")
    second.begin(["w", "gone"], {0: (2, 11), 1: (1, 1)})
    pending = second.look()
    assert pending is not None
    assert pending == ([], {0: "w", 1: "v"})
    for each, partition in ((first, 0), (second, 1)):
        each.settled([partition])
    assert first.look() is None


def test_no_archive_is_cut_to_what_redis_has_left(
    store: PartitionJournals, server: RedisServer, tmp_path: Path
) -> None:
    """What a worker's folder remembers decides: only when Redis knows as much is it asked what counts."""
    folder, known = CrawlDir(tmp_path), look(store, Answered(began=True))
    remembered = {"worker": "w", "crawl": store.crawl, "crawl_id": known.crawl_id, "serial": 1}
    write_facts(folder.worker, remembered)
    assert fact_of_worker(folder, server.url, "a") == b"1"
    for lost in ({"serial": 2}, {"crawl_id": "another"}):
        write_facts(folder.worker, remembered | lost)
        with pytest.raises(OperatorError, match="Redis has lost some"):
            fact_of_worker(folder, server.url, "a")
    write_facts(folder.worker, remembered)
    forgotten(store.link, store.crawl, "lacks something of another worker")
    with pytest.raises(OperatorError, match="Redis has lost some"):
        fact_of_worker(folder, server.url, "a")
