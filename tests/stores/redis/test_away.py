"""A Redis that is away, full, read-only, too old or secret: one sentence each, nothing half-done, and it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from crawlerproject.errors import OperatorError, StorageError, StoreForgot
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.membership import RedisFleet, Report
from tests.fetch.servers import make_ca, server_tls
from tests.stores.redis_crawls import LEASE_MS, PARTITIONS, add, added, opened
from tests.stores.redis_servers import Front, RedisServer, old_program, redis_server
from tests.web.ports import free_port


def test_a_server_that_throws_keys_away_is_refused(server: RedisServer) -> None:
    """With an eviction policy pages would vanish: refused at start, in one sentence."""
    link = RedisLink(server.url)
    link.call("CONFIG", [], "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(OperatorError, match="noeviction"):
            RedisLink(server.url)
    finally:
        link.call("CONFIG", [], "SET", "maxmemory-policy", "noeviction")
        link.close()


def test_a_full_server_changes_nothing_and_works_again_with_room(store: PartitionJournals) -> None:
    """maxmemory reached: StorageError in words, nothing half-done; the same change succeeds with room."""
    store.link.call("CONFIG", [], "SET", "maxmemory", "1")
    try:
        with pytest.raises(StorageError, match="no memory left"):
            add(store, 1)
    finally:
        store.link.call("CONFIG", [], "SET", "maxmemory", "0")
    assert added(store) == []
    add(store, 1)
    assert added(store) == [b"1"]


def test_a_master_that_may_not_write_without_replicas_is_waited_for(store: PartitionJournals) -> None:
    """What keeps two masters from being written to after a failover: StorageError, nothing half-done."""
    store.link.call("CONFIG", [], "SET", "min-replicas-to-write", "1")
    try:
        with pytest.raises(StorageError, match="has too few replicas at hand"):
            add(store, 1)
    finally:
        store.link.call("CONFIG", [], "SET", "min-replicas-to-write", "0")
    assert added(store) == []
    add(store, 1)
    assert added(store) == [b"1"]


def test_a_missing_password_is_said(server: RedisServer, store: PartitionJournals) -> None:
    """NOAUTH at start is the operator's; the password is not shown when it is wrong."""
    store.link.call("CONFIG", [], "SET", "requirepass", "sesame")
    try:
        with pytest.raises(OperatorError, match="password"):
            RedisLink(server.url)
        with pytest.raises(OperatorError) as refused:
            RedisLink(server.url.replace("redis://", "redis://:secret@"))
        assert "secret" not in str(refused.value)
    finally:
        link = RedisLink(server.url.replace("redis://", "redis://:sesame@"))
        link.call("CONFIG", [], "SET", "requirepass", "")
        link.close()


def test_nobody_there_is_said() -> None:
    """No server, and no URL: one sentence each."""
    with pytest.raises(OperatorError, match="cannot be used"):
        RedisLink("redis://127.0.0.1:1/0")
    with pytest.raises(OperatorError, match="cannot be read"):
        RedisLink("nonsense://x")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="nobody packs Redis 6.2 for this Python")
def test_a_redis_of_before_7_is_refused(tmp_path: Path) -> None:
    """A real one of 6.2."""
    wrong = pytest.raises(OperatorError, match=r"is Redis 6\.2\.5; use version 7\.0 or later\.$")
    with redis_server(tmp_path, program=old_program()) as old, wrong:
        RedisLink(old.url)


@pytest.fixture
def secret_server(tmp_path: Path) -> Iterator[tuple[RedisServer, int, str]]:
    """A server with TLS on a second port, that port, and the file of the authority that vouches for it."""
    ca = make_ca(tmp_path)
    server_tls(tmp_path, ca, "127.0.0.1", 5)
    [pem] = tmp_path.glob("127.0.0.1*.pem")
    port = free_port()
    options = ("--tls-port", str(port), "--tls-cert-file", str(pem), "--tls-key-file", str(pem))
    with redis_server(tmp_path / "redis", *options, "--tls-ca-cert-file", ca[2], "--tls-auth-clients", "no") as server:
        yield server, port, ca[2]


def test_tls_is_spoken_and_the_server_proved(secret_server: tuple[RedisServer, int, str]) -> None:
    """rediss:// with the authority's file works; with an unknown authority, or without TLS, it is one sentence."""
    _, port, ca = secret_server
    store = opened(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={ca}")
    add(store, 1)
    assert added(store) == [b"1"]
    store.close()
    with pytest.raises(OperatorError, match=r"cannot be used .*certificate verify failed"):
        RedisLink(f"rediss://127.0.0.1:{port}/0")
    with pytest.raises(OperatorError, match=r"cannot be used"):
        RedisLink(f"redis://127.0.0.1:{port}/0")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer, Front]]:
    """A master, its replica, and the address of both."""
    at_once = ("--repl-diskless-sync-delay", "0")
    with redis_server(tmp_path / "1", *at_once) as master, redis_server(tmp_path / "2", *at_once) as replica:
        admin(replica, "REPLICAOF", "127.0.0.1", str(master.port))
        front = Front(master.port)
        yield master, replica, front
        front.close()
        replica.stop(kill=True)  # in good order it would wait for whom it followed


def until_replicated(store: PartitionJournals) -> None:
    """Until the replica has all that was written."""
    end = time.monotonic() + 20
    while not store.link.call("WAIT", [], 1, 1000):
        assert time.monotonic() < end


def test_a_failover_behind_one_address_goes_on(pair: tuple[RedisServer, RedisServer, Front]) -> None:
    """The master is killed: not answering. Its replica has the address: read-only. It is promoted: all is there."""
    master, replica, front = pair
    store = opened(f"redis://127.0.0.1:{front.port}/0")
    add(store, 1)
    until_replicated(store)
    master.stop(kill=True)
    with pytest.raises(StorageError, match="does not answer"):
        add(store, 2)
    front.switch(replica.port)
    with pytest.raises(StorageError, match="read-only now"):
        add(store, 2)
    with pytest.raises(OperatorError, match="read-only replica"):
        RedisLink(replica.url)
    admin(replica, "REPLICAOF", "NO", "ONE")
    add(store, 2)
    assert added(store) == [b"1", b"2"]
    assert store.renew(LEASE_MS) == []
    store.close()


def test_a_failover_that_loses_beats_is_noticed(pair: tuple[RedisServer, RedisServer, Front]) -> None:
    """The replica lacks the last batch: the worker writes nothing over it, and leaves a mark for the others."""
    master, replica, front = pair
    store = opened(f"redis://127.0.0.1:{front.port}/0")
    add(store, 1)
    until_replicated(store)
    admin(replica, "REPLICAOF", "NO", "ONE")
    add(store, 2)
    master.stop(kill=True)
    front.switch(replica.port)
    with pytest.raises(StoreForgot, match="knows 1 of the 2 changes"):
        add(store, 3)
    with pytest.raises(StoreForgot, match="knows 1 of the 2 changes"):
        RedisFleet(store.link, store.crawl, "two", LEASE_MS).begin("life", [], PARTITIONS)
    assert added(store) == [b"1"]
    store.close()


def test_what_a_new_master_threw_away_before_is_no_loss(pair: tuple[RedisServer, RedisServer, Front]) -> None:
    """It had other data then; what it throws away as the master is one."""
    master, replica, front = pair
    admin(replica, "REPLICAOF", "NO", "ONE")
    throw_away(replica)
    admin(replica, "REPLICAOF", "127.0.0.1", str(master.port))
    store = opened(f"redis://127.0.0.1:{front.port}/0")
    fleet, quiet = RedisFleet(store.link, store.crawl, "two", LEASE_MS), Report(False, 0, "{}")
    fleet.begin("life", [], PARTITIONS)
    until_replicated(store)
    master.stop(kill=True)
    front.switch(replica.port)
    admin(replica, "REPLICAOF", "NO", "ONE")
    assert fleet.report("life", quiet, PARTITIONS) is not None
    throw_away(replica)
    with pytest.raises(StoreForgot, match="keys away"):
        fleet.report("life", quiet, PARTITIONS)
    store.close()


def throw_away(server: RedisServer) -> None:
    """Keys of its own are evicted; its policy is what it was."""
    with Redis(port=server.port) as client:
        client.config_set("maxmemory", "3mb")
        client.config_set("maxmemory-policy", "volatile-ttl")
        for number in range(64):
            client.set(f"junk{number}", b"x" * 100_000, ex=1000)
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", "0")
        assert client.info("stats")["evicted_keys"]


def admin(server: RedisServer, *words: str) -> None:
    """A command to a server, whatever it is."""
    with Redis(port=server.port) as client:
        client.execute_command(*words)
