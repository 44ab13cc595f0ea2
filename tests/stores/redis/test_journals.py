"""Journals, copies and inboxes of partitions: only their holder adds to them, each change once, and none is missing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any
from uuid import UUID

import pytest
from redis import Redis

from crawlerproject.errors import LeaseLost, OperatorError, StorageError, StoreForgot
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.protocols import Posted
from crawlerproject.stores.redis import journals as journals_of_redis
from crawlerproject.stores.redis.connection import Call
from crawlerproject.stores.redis.copies import copy_key
from crawlerproject.stores.redis.journals import LISTENER, Mail, PartitionJournals
from crawlerproject.stores.redis.keys import FORGOT, fleet_keys, worker_keys
from crawlerproject.stores.redis.worker_log import Append, log_keys, pack_entry
from tests.stores.journaled_crawls import LEASE_MS, PARTITIONS, changes_in_redis, journals, keys_of
from tests.stores.redis_servers import RedisServer

MINE = Append(0, 1, [b"first", b"second"])
OUTBOX = b"another outbox.."


@pytest.fixture(params=["server", "cluster"])
def url(request: pytest.FixtureRequest) -> str:
    """Of one server, and of one of three in a cluster."""
    found: Any = request.getfixturevalue(request.param)
    return str((found[0] if request.param == "cluster" else found).url)


@pytest.fixture
def mine(url: str) -> Iterator[PartitionJournals]:
    """A new crawl, all of it held."""
    made = journals(url)
    for partition in range(PARTITIONS):
        assert made.acquire(partition, LEASE_MS)
        made.opened(partition)
    yield made
    made.close()


@pytest.fixture
def rival(url: str, mine: PartitionJournals) -> Iterator[PartitionJournals]:
    """Another worker of it."""
    with closing(journals(url, "two", mine.crawl)) as made:
        yield made


def end_lease(mine: PartitionJournals, partition: int) -> None:
    """Its time is over."""
    mine.link.call("HSET", [mine._keys[partition].lease], "until", 1)


def journal(mine: PartitionJournals, partition: int) -> list[bytes]:
    """All of it, with what logs have for it."""
    return changes_in_redis(mine, partition)


def unpacked(change: bytes) -> bytes:
    """What it was before it was packed into a journal."""
    return zlib.decompress(change) if change.startswith(b"\x78") else change


def failing(mine: PartitionJournals, monkeypatch: pytest.MonkeyPatch, *, after: int, before: bool = False) -> None:
    """So many round trips are answered; that of the next one, or it itself, is lost."""
    at_once = mine.link._at_once
    left = [after]

    def called(calls: Sequence[Call], **how: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and before:
            raise StorageError("lost")
        answer = at_once(calls, **how)
        if left[0] < 0:
            monkeypatch.setattr(mine.link, "_at_once", at_once)
            raise StorageError("lost")
        return answer

    monkeypatch.setattr(mine.link, "_at_once", called)


def test_each_change_is_added_once(mine: PartitionJournals) -> None:
    """However often it is given, alone or with later ones; facts come with it."""
    for _ in range(2):
        mine.append([MINE], {"warc": b"1"})
    mine.append([Append(0, 2, [b"second", b"third"]), Append(3, 1, [b"other"])], {"warc": b"2"})
    assert journal(mine, 0) == [b"first", b"second", b"third"]
    assert journal(mine, 3) == [b"other"]
    assert mine.facts() == {"warc": b"2"}
    assert mine.serial == 3


def test_a_change_that_lacks_one_before_it_is_refused(mine: PartitionJournals) -> None:
    """Redis has lost that one: all workers stop."""
    mine.append([MINE], {})
    mine.flush()
    mine.append([Append(0, 4, [b"fourth"])], {})
    with pytest.raises(StoreForgot, match="partition 0"):
        mine.flush()
    assert mine.link.call("LLEN", [mine._keys[0].journal]) == 2
    assert mine.link.call("HGET", [fleet_keys(mine.crawl).facts], FORGOT)


def test_a_lease_that_redis_has_lost_is_no_other_workers(mine: PartitionJournals) -> None:
    """The server of one partition came back empty, or as it was before the lease: nothing is decided there any more.

    In a cluster that is noticed when the log is written, or as leases are renewed.
    """
    before = mine.link.call("HGET", [mine._ledgers[0]], 0)
    mine.release([0])
    mine.acquire(0, LEASE_MS)
    for known in (before, None):
        mine.link.call("HDEL", [mine._ledgers[0]], 0)
        if known is not None:
            mine.link.call("HSET", [mine._ledgers[0]], 0, known)
            if mine.link.cluster:
                continue
        with pytest.raises(StoreForgot, match="partition 0"):
            mine.append([MINE], {})
            mine.flush()
        assert mine.link.cluster or not mine.serial


def test_a_worker_that_redis_does_not_know_has_been_forgotten(mine: PartitionJournals) -> None:
    """Or one of which it knows less than it has answered for."""
    mine.append([MINE], {})
    mine.link.call("HSET", [worker_keys(mine.crawl, "one").state], "serial", 0)
    mine.serial = 2
    with pytest.raises(StoreForgot, match="knows 0 of the 2 changes"):
        mine.append([], {"warc": b"1"})
    mine.link.call("DEL", [worker_keys(mine.crawl, "one").state])
    with pytest.raises(StoreForgot):
        mine.append([], {"warc": b"1"})


def test_none_but_the_holder_adds(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """A worker that lost one of its partitions gives nothing of the change, not even its facts."""
    end_lease(mine, 0)
    taken = rival.acquire(0, LEASE_MS)
    assert taken is not None
    assert not taken.granted.clean
    with pytest.raises(LeaseLost):
        mine.append([Append(1, 1, [b"one"]), MINE], {"warc": b"1"})
    assert (journal(mine, 0), journal(mine, 1), mine.facts()) == ([], [], {})
    with pytest.raises(LeaseLost):
        mine.opened(0)
    rival.append([MINE], {})
    assert journal(mine, 0) == [b"first", b"second"]


def test_none_but_the_last_life_of_a_worker_gives_facts(url: str, mine: PartitionJournals) -> None:
    """A process that goes by the same name and was away for long is refused, whatever it has to say."""
    with closing(journals(url, "one", mine.crawl)) as later:
        with pytest.raises(LeaseLost, match="another process"):
            mine.append([], {"warc": b"late"})
        later.append([], {"warc": b"1"})
        assert later.facts() == {"warc": b"1"}


@pytest.mark.parametrize("before", [False, True])
def test_a_lost_answer_changes_nothing(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch, *, before: bool
) -> None:
    """Wherever in the change it is lost: given again, with more, all of it is there once."""
    for first in (1, 3):
        given = [Append(p, first, [b"%d" % first]) for p in range(PARTITIONS)]
        with monkeypatch.context() as patch:
            failing(mine, patch, after=0, before=before)
            with pytest.raises(StorageError):
                mine.append(given, {"warc": b"%d" % first})
        more = [each._replace(changes=[*each.changes, b"more"]) for each in given]
        mine.append(more, {"warc": b"%d" % (first + 1)})
        for partition in range(PARTITIONS):
            assert journal(mine, partition)[first - 1 :] == [b"%d" % first, b"more"]
        assert mine.facts() == {"warc": b"%d" % (first + 1)}


def test_a_try_that_comes_late_sets_nothing_back(mine: PartitionJournals) -> None:
    """Of a change that was given again meanwhile, with more; a connection that sends it twice has it decided once."""
    first, more = Append(0, 1, [b"1"]), Append(0, 1, [b"1", b"2"])
    late, call = mine._decide([first], {"warc": b"1"}, pack_entry([first])), mine.link.call
    mine.append([more], {"warc": b"2"})
    mine.link.many([late])
    assert (journal(mine, 0), mine.facts()) == ([b"1", b"2"], {"warc": b"2"})
    third = Append(0, 3, [b"3"])
    twice = mine._decide([third], {"warc": b"3"}, pack_entry([third]))
    answers = [call(twice.name, twice.keys, *twice.arguments) for _ in range(2)]
    assert answers == [[b"ok", 2]] * 2
    assert call("LLEN", [log_keys(mine.crawl, "one").log]) == 2
    assert (journal(mine, 0), mine.facts()) == ([b"1", b"2", b"3"], {"warc": b"3"})


@pytest.mark.parametrize("before", [False, True])
def test_what_a_log_has_is_written_once(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch, *, before: bool
) -> None:
    """Wherever an answer is lost as it goes into the journals, though more comes before it is tried again."""
    numbers = range(1, 10, 3)
    for after, first in enumerate(numbers):  # nothing is lost of the last
        mine.append([Append(p, first, [b"%d" % first]) for p in range(PARTITIONS)], {})
        with monkeypatch.context() as patch:
            if after < 2:
                failing(mine, patch, after=after, before=before)
                with pytest.raises(StorageError):
                    mine.flush()
        mine.append([Append(p, first + 1, [b"a", b"b"]) for p in range(PARTITIONS)], {})
        mine.flush()
        assert mine.link.call("LLEN", [log_keys(mine.crawl, "one").log]) == 0
    for partition in range(PARTITIONS):
        each = [unpacked(change) for change in journal(mine, partition)]
        assert len(each) == 9
        assert b"".join(each) == b"1ab4ab7ab"
        end_lease(mine, partition)
        taken = rival.acquire(partition, LEASE_MS)
        assert taken is not None
        assert (taken.journal, taken.bytes) == (9, sum(map(len, journal(mine, partition))))


def test_what_another_has_written_of_a_log_is_not_written_again(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the worker that took the partition, or by the next process; nor by one that holds it anew."""
    mine.append([Append(0, 1, [b"1"]), Append(1, 1, [b"x"])], {})
    end_lease(mine, 0)
    assert rival.acquire(0, LEASE_MS)
    rival.append([Append(0, 2, [b"2"])], {})
    mine.flush()
    rival.release([0])
    assert mine.acquire(0, LEASE_MS)
    mine.append([Append(0, 3, [b"3"])], {})
    assert mine.acquire(0, LEASE_MS)  # as after an answer that was lost
    mine.append([Append(0, 4, [b"4"])], {})
    assert [unpacked(each) for each in journal(mine, 0)] == [b"1", b"2", b"3", b"4"]
    with closing(journals(mine.link.place, "one", mine.crawl)) as later:
        mine._came += 1
        with pytest.raises(LeaseLost):
            mine.append([], {"late": b"1"})
        assert later.acquire(0, LEASE_MS)
        later.append([Append(0, 5, [b"5"])], {})
        mine.flush()  # a process that was away: it takes nothing from the log of the next
        assert [unpacked(each) for each in journal(mine, 0)] == [b"1", b"2", b"3", b"4", b"5"]
        later.flush()
        assert [unpacked(each) for each in journal(mine, 0)] == [b"1", b"2", b"3", b"4", b"5"]
        assert [unpacked(each) for each in journal(mine, 1)] == [b"x"]


def test_a_taker_that_wakes_late_takes_no_change_away(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it found in the log of one that holds the partition again comes into the journal before the rest of that."""
    at_once, left = rival.link._at_once, [3, 2]

    def called(calls: Sequence[Call], **how: Any) -> Any:
        if calls[0].name != "LRANGE" or len(left) < 2:
            return at_once(calls, **how)
        end_lease(mine, 0)
        assert mine.acquire(0, LEASE_MS)
        mine.append([Append(0, left.pop(), [b"2"])], {})
        answer = at_once(calls, **how)
        mine.append([Append(0, left.pop(), [b"3"])], {})
        return answer

    mine.append([Append(0, 1, [b"1"])], {})
    mine.flush()
    end_lease(mine, 0)
    monkeypatch.setattr(rival.link, "_at_once", called)
    assert rival.acquire(0, LEASE_MS)
    with pytest.raises(LeaseLost):
        rival.opened(0)
    mine.flush()
    assert [unpacked(each) for each in journal(mine, 0)] == [b"1", b"2", b"23"]


def test_what_was_decided_is_added_by_the_next_holder(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies within a change has given all of it or nothing."""
    given = [Append(partition, 1, [b"a", b"b"]) for partition in range(PARTITIONS)]
    failing(mine, monkeypatch, after=0)  # in a cluster it is decided, and written nowhere
    with pytest.raises(StorageError):
        mine.append(given, {"warc": b"1"})
    for partition in range(PARTITIONS):
        end_lease(mine, partition)
        taken = rival.acquire(partition, LEASE_MS)
        assert taken is not None
        assert taken.journal == 2
        assert list(rival.copies.stored(partition, taken)) == [b"a", b"b"]
    with pytest.raises(LeaseLost):
        mine.append([Append(0, 3, [b"c"])], {"warc": b"2"})
    assert mine.facts() == {"warc": b"1"}
    rival.append([Append(0, 3, [b"of the rival"])], {})
    end_lease(rival, 0)
    taken = mine.acquire(0, LEASE_MS)
    assert taken is not None
    assert list(mine.copies.stored(0, taken)) == [b"a", b"b", b"of the rival"]


def test_nothing_is_decided_about_a_partition_that_was_given_back(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the answer is lost; it may be given again, and taken."""
    failing(mine, monkeypatch, after=0)
    with pytest.raises(StorageError):
        mine.release([0])
    taken = rival.acquire(0, LEASE_MS)
    assert taken is not None
    assert taken.granted.clean
    with pytest.raises(LeaseLost):
        mine.append([MINE], {})
    mine.release([0])
    rival.release([0])
    assert mine.acquire(0, LEASE_MS)
    mine.append([MINE], {})
    assert journal(mine, 0) == MINE.changes


def test_what_was_decided_about_a_partition_that_was_lost_is_passed_over(
    mine: PartitionJournals, rival: PartitionJournals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a loss its rows come from a worker that has them; else such a gap is a loss."""
    mine.append([MINE], {})
    mine.flush()
    failing(mine, monkeypatch, after=0)
    with pytest.raises(StorageError):
        mine.append([Append(0, 3, [b"third"])], {})
    mine.link.call("HSET", [mine._ledgers[0]], 0, mine.held[0].to_bytes(8, "big") + bytes(16))
    end_lease(mine, 0)
    with pytest.raises(StoreForgot):
        rival.acquire(0, LEASE_MS)
    assert rival.acquire(0, LEASE_MS, latest=True) is not None
    assert rival.copies.opened_anew(0, 4, iter([b"rows"]), [(OUTBOX, 7)]) == 4
    assert rival.read_up_to([(0, OUTBOX)]) == [7]
    rival.append([Append(0, 5, [b"fifth"])], {})
    end_lease(rival, 0)
    taken = mine.acquire(0, LEASE_MS)
    assert taken is not None
    assert list(mine.copies.stored(0, taken)) == [b"rows", b"fifth"]


def copy(mine: PartitionJournals, number: int, *parts: bytes, whole: Callable[[], None] | None = None) -> int:
    """Of the first partition."""
    return mine.copies.copy(0, number, iter(parts), whole)


def test_a_copy_takes_the_place_of_the_changes_that_it_holds(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """Those that came while it was made stay; so do the keys of one copy, and of no other."""
    for some in (Append(0, 1, [b"1", b"2"]), Append(0, 3, [b"3"])):
        mine.append([some], {})
        mine.flush()
    assert copy(mine, 2, b"to 2", b"more", whole=lambda: mine.append([Append(0, 4, [b"4"])], {})) == 8
    assert copy(mine, 2, b"again") == 0
    end_lease(mine, 0)
    taken = rival.acquire(0, LEASE_MS)
    assert taken is not None
    assert (taken.journal, taken.copy, taken.size.bytes) == (4, 2, 8)
    assert [unpacked(each) for each in rival.copies.stored(0, taken)] == [b"to 2", b"more", b"3", b"4"]
    assert copy(rival, 4, b"to 4") == 4
    assert journal(mine, 0) == []
    assert mine.link.call("EXISTS", ["{" + f"{mine.crawl}.0" + "}:copy.2"]) == 0


def test_a_copy_that_was_never_whole_does_not_count(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """Nor does what a former holder still writes; the next copy removes it."""
    mine.append([Append(0, 1, [b"1", b"2"])], {})

    def broken() -> None:
        raise StorageError("before it is whole")

    with pytest.raises(StorageError):
        copy(mine, 1, b"half", whole=broken)

    def taken_over() -> Iterator[bytes]:
        yield b"of before"
        end_lease(mine, 0)
        assert rival.acquire(0, LEASE_MS)
        assert copy(rival, 2, b"the rival's") == 11
        yield b"later"

    with pytest.raises(LeaseLost):
        mine.copies.copy(0, 2, taken_over())
    end_lease(rival, 0)
    taken = mine.acquire(0, LEASE_MS)
    assert taken is not None
    assert list(mine.copies.stored(0, taken)) == [b"the rival's"]
    assert [mine.link.call("EXISTS", [copy_key(mine.crawl, 0, number)]) for number in (1, 2)] == [0, 1]


def test_a_part_that_redis_has_lost_is_missed(mine: PartitionJournals) -> None:
    """Of a copy, or of a journal."""
    for some in (Append(0, 1, [b"1"]), Append(0, 2, [b"2"])):
        mine.append([some], {})
        mine.flush()
    copy(mine, 1, b"copy")
    taken = mine.acquire(0, LEASE_MS)
    assert taken is not None
    assert [unpacked(each) for each in mine.copies.stored(0, taken)] == [b"copy", b"2"]
    for key in (mine._keys[0].journal, copy_key(mine.crawl, 0, 1)):
        mine.link.call("DEL", [key])
        with pytest.raises(StoreForgot):
            list(mine.copies.stored(0, taken))


def test_messages_leave_an_inbox_once(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """With the change that holds their effect, however often it is given; those that came since stay."""
    of_one = [Posted(OUTBOX, number, b"%d" % number, number - 1) for number in (1, 2, 3)]
    rival.post([(0, each) for each in of_one] + [(LISTENER, Posted(OUTBOX, 4, b"hub"))])
    assert mine.link.call("LRANGE", [fleet_keys(mine.crawl).hubs], 0, -1) == [b"hub"]
    [inbox] = mine.unread([0, 1], 2).values()
    assert (inbox.removed, inbox.messages) == (0, of_one[:2])
    for _ in range(2):
        mine.append([Append(0, 1, [b"effect"], 2, [(OUTBOX, 2)])], {})
    assert mine.read_up_to([(0, OUTBOX), (1, OUTBOX)]) == [2, 0]
    [inbox] = mine.unread([0], 9).values()
    assert (inbox.removed, inbox.messages) == (2, of_one[2:])


def test_a_commit_that_removes_messages_alone_is_no_change(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """The number of the next change is not taken."""
    mine.append([MINE], {})
    mine.flush()
    rival.post([(0, Posted(OUTBOX, 1, b"1"))])
    mine.append([Append(0, 3, [], 1, [(OUTBOX, 1)])], {})
    mine.flush()
    mine.append([Append(0, 3, [b"third"])], {})
    mine.flush()
    assert [unpacked(each) for each in journal(mine, 0)] == [b"", b"firstsecond", b"third"]


def test_a_message_that_comes_again_as_it_is_removed_holds_up_no_other(
    mine: PartitionJournals, rival: PartitionJournals
) -> None:
    """Its name is left without its row, and goes with what is read next."""
    of_rival = [(0, Posted(OUTBOX, number, b"%d" % number, number - 1)) for number in (1, 2)]
    rival.post(of_rival[:1])
    row, name = rival._posts(of_rival[:1])
    rival.link.many([row])
    mine.append([Append(0, 1, [b"effect"], 1, [(OUTBOX, 1)])], {})
    rival.link.many([name])
    rival.post(of_rival[1:])
    found = [mine.unread([0], 1)[0]]
    mine.append([Append(0, 2, [], found[0].removed + len(found[0].messages))], {})
    found.append(mine.unread([0], 1)[0])
    assert [(each.removed, [sent.packed for sent in each.messages]) for each in found] == [(2, []), (2, [b"2"])]


def test_a_message_without_effect_stays_as_often_as_it_came(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """Removed for what it lacked before it, it is read where it came again; then nothing is left of any."""
    second, first = Posted(OUTBOX, 2, b"2", 1), Posted(OUTBOX, 1, b"1")
    for each in (second, first, second):
        rival.post([(0, each)])
    assert mine.unread([0], 1)[0].messages == [second]
    mine.append([Append(0, 1, [], 1)], {})
    assert mine.unread([0], 9)[0].messages == [first, second]
    mine.append([Append(0, 1, [b"effect"], 3, [(OUTBOX, 2)])], {})
    left = mine.link.call("HKEYS", [mine._ledgers[0]])
    assert not [field for field in left if len(field) > 24 and field.startswith(b"0:")]


def test_messages_leave_a_long_inbox_as_quickly(server: RedisServer) -> None:
    """As one more comes into it: a worker commits many inboxes at once, and Redis does nothing else meanwhile."""
    with closing(journals(server.url)) as mine, server.client() as client:
        assert mine.acquire(0, LEASE_MS)
        mine.post([(0, Posted(OUTBOX, number, b"message")) for number in range(1, 20_001)])

        def took(what: Callable[[], None]) -> int:
            client.config_resetstat()
            what()
            return sum(each["usec"] for name, each in client.info("commandstats").items() if "eval" in name)

        came = took(lambda: mine.post([(0, Posted(OUTBOX, 20_001, b"message"))]))
        assert took(lambda: mine.append([Append(0, 1, [b"1"], 250, [(OUTBOX, 250)])], {})) < 20 * came + 20_000


def test_first_captures_are_bounded(mine: PartitionJournals, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each hash; the first that is known stays the first."""
    monkeypatch.setattr(journals_of_redis, "_MOST_ORIGINALS", 10)
    made = [bytes((7, number)) + bytes(18) for number in range(50)]
    record = f"<urn:uuid:{UUID(int=7)}>"
    given = [(digest, Original(record, f"http://a.test/{digest[1]}", "2026-01-01T00:00:00Z")) for digest in made]
    for some in (given[:25], given[25:]):
        mine.commit([], {"warc": b"1"}, Mail([], some, []))
    known = mine.originals(made)
    assert len(known) == 10
    others = [(digest, original._replace(url="http://b.test/")) for digest, original in given if digest in known]
    mine.set_originals(others)
    assert mine.originals(list(known)) == known
    mine.set_originals((digest, None) for digest in known)
    assert mine.originals(made) == {}


def test_a_full_server_takes_a_change_whole_or_not(server: RedisServer) -> None:
    """It is given again when there is room."""
    with closing(journals(server.url)) as mine, server.client() as client:
        assert mine.acquire(0, LEASE_MS)
        mine.append([Append(0, 1, [b"1"])], {})
        mine.post([(0, Posted(OUTBOX, 1, b"message"))])
        try:
            client.config_set("maxmemory", 1)
            with pytest.raises(StorageError, match="no memory left"):
                mine.append([Append(0, 2, [b"2"], 1, [(OUTBOX, 1)])], {"warc": b"1"})
            with pytest.raises(StorageError, match="no memory left"):  # with nothing to give, a crawl does not go on
                mine.reach()
            assert (journal(mine, 0), len(mine.unread([0], 9)), mine.facts()) == ([b"1"], 1, {})
        finally:
            client.config_set("maxmemory", 0)
        mine.reach()
        mine.append([Append(0, 2, [b"2"], 1, [(OUTBOX, 1)])], {"warc": b"1"})
        assert (journal(mine, 0), mine.unread([0], 9), mine.facts()) == ([b"1", b"2"], {}, {"warc": b"1"})


def test_another_format_is_refused(server: RedisServer) -> None:
    """One sentence says which."""
    with closing(journals(server.url)) as mine:
        mine.link.call("HSET", [fleet_keys(mine.crawl).facts], "format", 99)
        with pytest.raises(OperatorError, match="newer version"):
            journals(server.url, "two", mine.crawl)


def test_a_worker_that_ends_leaves_nothing(server: RedisServer) -> None:
    """Of its own name."""
    with closing(journals(server.url)) as mine, Redis(port=server.port) as client:
        mine.end()
        assert keys_of(client, mine.crawl, "state") == []


def test_outboxes_are_named_by_their_workers(mine: PartitionJournals, rival: PartitionJournals) -> None:
    """Each names its own in the place of those of before; one that ends, or is given up, leaves none."""

    def named() -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = mine.link.call("HGETALL", [fleet_keys(mine.crawl).outboxes])
        return found

    own, other = mine.worker.encode(), rival.worker.encode()
    mine.name_outboxes([b"first", b"second"])
    rival.name_outboxes([b"third"])
    mine.name_outboxes([b"second", b"fourth"])
    assert named() == {b"second": own, b"fourth": own, b"third": other}
    rival.name_outboxes((), mine.worker)
    assert named() == {b"third": other}
    rival.end()
    assert named() == {}
