"""Copies of partitions at the place of the archive: what dies, what is away, what is damaged there, what stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from crawlerproject.errors import LeaseLost, TargetError
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis import copies
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.copies import CopySize, copy_key
from crawlerproject.stores.redis.copy_place import CopyDamaged, CopyPlace, copies_url, placed
from crawlerproject.stores.redis.journal_view import crawl_in_redis
from crawlerproject.stores.redis.keys import ledger_key, partition_keys
from crawlerproject.stores.rocks import giving_store, journaled_store
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.stores.conformance import row
from tests.stores.journaled_crawls import LEASE_MS, end_lease, host_in, opened, rows_here, rows_in_redis, take
from tests.stores.redis.dying_copies import CRAWL
from tests.stores.redis_servers import RedisServer, redis_server
from tests.stores.uploads.s3_servers import BUCKET, KEYS, PROJECT, SERVER, Cut, Once, error, proxied, s3_server

HOST = host_in(0)
needs_s3 = pytest.mark.skipif(not SERVER.exists(), reason="make test makes .venv-tools")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One server for the module."""
    with redis_server(tmp_path_factory.mktemp("redis"), "--appendfsync", "no") as started:
        yield started


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that copies go to; a journal that has anything is copied."""
    monkeypatch.setattr(journaled_store, "_LEAST_COPIED_BYTES", 0)
    monkeypatch.setattr(giving_store, "_LOG_BYTES", 0)
    return tmp_path / "place"


@pytest.fixture
def store(server: RedisServer, tmp_path: Path, place: Path) -> Iterator[JournaledStore]:
    """A worker of a new crawl that holds one partition, with a row and a copy."""
    with closing(opened(tmp_path, server.url, place_url=place.as_uri())) as made:
        take(made, 0)
        give(made, 0)
        yield made


def give(store: JournaledStore, number: int) -> None:
    """One more row, which is copied."""
    store.apply(Changes(queued=[row(HOST, number)]))
    store.sync()
    while store.copy_some():
        pass


def named(store: JournaledStore) -> list[str]:
    """The objects of the partition's copy."""
    link, crawl = store.journals.link, store.journals.crawl
    number = int(link.call("HGET", [partition_keys(crawl, 0).lease], "copy") or 0)
    found = [placed(entry) for entry in link.call("LRANGE", [copy_key(crawl, 0, number)], 0, -1)]
    return [each.address for each in found if each is not None]


def there(place: Path) -> list[str]:
    """All objects at the place."""
    return sorted(path.as_uri() for path in place.rglob("*") if path.is_file())


def rival_of(store: JournaledStore, server: RedisServer, folder: Path, url: str = "") -> JournaledStore:
    """Another worker, after the lease of the first has ended."""
    end_lease(store, 0)
    return opened(folder, server.url, "two", store.journals.crawl, place_url=url)


@needs_s3
def test_nothing_is_lost_wherever_a_worker_dies(server: RedisServer, tmp_path: Path) -> None:
    """``kill -9`` at every step, with a real server of S3; what the dead have left there goes."""
    s3 = s3_server()
    prefix = uuid4().hex
    environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": s3.url}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.stores.redis.dying_copies", server.url, tmp_path, f"s3://{BUCKET}/{prefix}"],
        cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert [int(deaths) > 5 for deaths in ended.stdout.split()] == [True, True]
    with closing(RedisLink(server.url)) as link:
        number = int(link.call("HGET", [partition_keys(CRAWL, 0).lease], "copy"))
        entries = link.call("LRANGE", [copy_key(CRAWL, 0, number)], 0, -1)
        assert link.call("ZCARD", [partition_keys(CRAWL, 0).unnamed]) == 0
    addresses = {found.address for entry in entries if (found := placed(entry)) is not None}
    assert {f"s3://{BUCKET}/{prefix}/{name}" for name in s3.under(prefix)} == addresses


@needs_s3
def test_objects_are_read_as_they_were_put(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the server fails twice on the way; one that is missing, or another one, is said to be so."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with proxied(s3_server().port) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        place = CopyPlace(f"s3://{BUCKET}/{uuid4().hex}")
        proxy.fault = Once(lambda asked: asked.method == "PUT", lambda _: error(503, "SlowDown"), times=2)
        made = place.put(place.new_address("a/b", 7), [b"one", b"", b"two"])
        assert place.read(made) == [b"one", b"", b"two"]
        other = place.put(place.new_address("a/b", 7), [b"six", b"", b"two"])
        with pytest.raises(CopyDamaged, match="is damaged"):
            place.read(made._replace(address=other.address))
        place.remove(made.address)
        place.remove(made.address)
        with pytest.raises(CopyDamaged, match="is missing"):
            place.read(made)

        def cut(_: object) -> None:
            raise Cut

        proxy.fault = Once(lambda asked: True, cut, times=99)  # type: ignore[arg-type]
        for ask in (lambda: place.read(other), lambda: place.put(made.address, [b""])):
            with pytest.raises(TargetError) as caught:
                ask()
            assert not isinstance(caught.value, CopyDamaged)


def test_a_copy_is_extended_until_that_is_as_much(
    store: JournaledStore, server: RedisServer, tmp_path: Path, place: Path
) -> None:
    """Redis has names and no rows; another worker, and a command, read them; a whole copy replaces all."""
    link, crawl = store.journals.link, store.journals.crawl
    [first] = named(store)
    assert store._copied[0] == CopySize(store._copied[0].bytes, 0, there=True)
    store._copied[0] = store._copied[0]._replace(bytes=1 << 10)  # as if it were large
    for number in range(1, 4):
        give(store, number)
    assert named(store)[0] == first
    assert len(named(store)) == 4
    assert store._grown[0] == 0
    assert link.call("HGET", [ledger_key(crawl, 0, cluster=False)], 0)[16:] == bytes(8)
    assert link.call("LLEN", [partition_keys(crawl, 0).journal]) == 0
    assert rows_in_redis(store, 0) == rows_here(store, 0)
    with crawl_in_redis(server.url, crawl) as view:
        assert [each.arrival for each in view.queue(HOST)] == list(range(4))
    with closing(rival_of(store, server, tmp_path, place.as_uri())) as rival:
        take(rival, 0)
        assert rows_here(rival, 0) == rows_here(store, 0)
        added = store._copied[0].added
        assert rival._copied[0].added == added > 0
        give(rival, 4)
        assert len(named(rival)) == 1
        assert set(named(store)) < set(there(place))  # those of before stay for a while


def test_what_no_copy_names_goes(store: JournaledStore, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once its time is over; what cannot be removed, another time."""
    give(store, 1)
    assert len(there(place)) == 2
    monkeypatch.setattr(copies, "_KEPT_MS", -3_600_000)
    with monkeypatch.context() as patch:
        patch.setattr(CopyPlace, "remove", lambda *_: (_ for _ in ()).throw(TargetError("away")))
        give(store, 2)
    store.journals.copies.sweep(0, at_once=True)
    assert there(place) == named(store)


def test_a_place_that_is_away_takes_no_copy_and_loses_none(
    store: JournaledStore, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The journal goes on, which is said once; who cannot read a copy lets the partition go."""
    caplog.set_level("INFO")
    with monkeypatch.context() as patch:
        for name in ("put", "read"):
            patch.setattr(CopyPlace, name, lambda *_: (_ for _ in ()).throw(TargetError("away")))
        for number in range(1, 4):
            give(store, number)
            assert store._copied_next > 0
            store._copied_next = 0.0
        assert store._grown[0] > 0
        assert rows_here(store, 0)
        assert [each.levelname for each in caplog.records] == ["WARNING"]
        with closing(rival_of(store, server, tmp_path)) as rival:
            with pytest.raises(TargetError, match="away"):
                rival.take(0, LEASE_MS)
            assert rival.journals.held == {}
        take(store, 0)
        assert len(list(store.queue(HOST))) == 4
    give(store, 4)
    assert store._grown[0] == 0
    assert caplog.records[-1].levelname == "INFO"
    assert rows_in_redis(store, 0) == rows_here(store, 0)


def test_a_damaged_copy_is_made_anew_by_who_has_the_rows(
    store: JournaledStore, server: RedisServer, tmp_path: Path, place: Path
) -> None:
    """Who finds it says so and lets the partition go; commands say so as well."""
    store.journals.release([0])
    [path] = [path for path in place.rglob("*") if path.is_file()]
    path.write_bytes(b"\0" + path.read_bytes()[1:])
    crawl = store.journals.crawl
    with closing(opened(tmp_path, server.url, "two", crawl)) as rival:
        with pytest.raises(CopyDamaged, match="the worker that had the partition last"):
            rival.take(0, LEASE_MS)
        with crawl_in_redis(server.url, crawl) as view, pytest.raises(CopyDamaged, match="is damaged, a part of"):
            view.host(HOST)
        take(store, 0)
        assert rows_in_redis(store, 0) == rows_here(store, 0)
        assert len(list(store.queue(HOST))) == 1
        give(store, 1)
        end_lease(store, 0)
        take(rival, 0)
        assert rows_here(rival, 0) == rows_here(store, 0)


def test_the_place_may_come_and_go(store: JournaledStore, server: RedisServer, tmp_path: Path, place: Path) -> None:
    """Copies are where Redis says; the next one goes to where ARCHIVE_URL is then."""
    with closing(rival_of(store, server, tmp_path)) as rival:
        take(rival, 0)
        rival._copied[0] = CopySize(there=True)  # as if there were less in it
        give(rival, 1)
        assert named(rival) == []
        assert rows_in_redis(rival, 0) == rows_here(rival, 0)
        rival.journals.release([0])
    with closing(opened(tmp_path, server.url, "three", store.journals.crawl, place_url=place.as_uri())) as third:
        take(third, 0)
        assert not third._copied[0].there
        give(third, 2)
        assert len(named(third)) == 1
        assert len(list(third.queue(HOST))) == 3
        with pytest.raises(LeaseLost):  # what was taken away meanwhile cannot be copied
            store.journals.copies.copy(0, 9, iter([b"rows"]))


def test_a_folder_is_no_place_for_copies() -> None:
    """Other machines may not see it."""
    urls = {"": "", "None": "", "file:///mnt/archive": "", "s3://bucket/web/": "s3://bucket/web"}
    assert {url: copies_url(url) for url in urls} == urls
