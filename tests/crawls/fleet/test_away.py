"""Redis full, read-only and failed over while two workers crawl through TLS: they pause, say so, and go on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from redis import Redis

from crawlerproject.rules.fleet_shares import partition_of
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import Workers, workers
from tests.fetch.servers import make_ca, server_tls
from tests.stores.redis_servers import Front, RedisServer, redis_server
from tests.web.judge import judge_captures, judge_pauses, read_captures, read_visits
from tests.web.ports import free_port
from tests.web.running import RunningWeb, synthetic_web
from tests.web.waiting import wait_until

_HOSTS = ("plain1.test", "plain2.test", "plain3.test", "plain4.test")
_WAYS = ("ahead of", "behind")
_NAMES = ("w1", "w2")
_SECONDS = 30.0
# One machine's clock is three minutes behind and too fast, the other's a quarter of an hour ahead and too slow.
_MACHINES = {"w1": f"{-180 / 86400}+400", "w2": f"{900 / 86400}+-400"}
_PASSWORD = "sesame"
# Two workers on three partitions of which none is without a host: each has something to ask, whatever it draws.
_PARTITIONS = 3


class Crawled(NamedTuple):
    """A finished crawl of four hosts."""

    web: RunningWeb
    fleet: Workers


class Server(NamedTuple):
    """A Redis with TLS on a port of its own; replicas and we come without."""

    redis: RedisServer
    tls_port: int

    def say(self, *words: str) -> None:
        """A command."""
        with Redis(port=self.redis.port, password=_PASSWORD) as client:
            client.execute_command(*words)


def _has_said(fleet: Workers, name: str, words: str, since: int) -> bool:
    return words in fleet.output(name)[since:]


def until_all(fleet: Workers, words: str, since: dict[str, int]) -> dict[str, int]:
    """Until every worker has said it after so much of its output; how much it is by then."""
    for name in _NAMES:
        wait_until(partial(_has_said, fleet, name, words, since[name]), words, seconds=_SECONDS)
    return {name: len(fleet.output(name)) for name in _NAMES}


def disturb(fleet: Workers, master: Server, replica: Server, front: Front) -> None:
    """A server without room; a server that is suddenly a replica; a server that dies and has a successor."""
    at = dict.fromkeys(_NAMES, 0)
    master.say("CONFIG", "SET", "maxmemory", "1")
    at = until_all(fleet, "no memory left", at)
    master.say("CONFIG", "SET", "maxmemory", "0")
    at = until_all(fleet, "The crawl goes on.", at)

    master.say("REPLICAOF", "127.0.0.1", "1")  # nobody there: it keeps what it has
    at = until_all(fleet, "is read-only now", at)
    master.say("REPLICAOF", "NO", "ONE")
    at = until_all(fleet, "The crawl goes on.", at)

    replica.say("REPLICAOF", "127.0.0.1", str(master.redis.port))
    with Redis(port=master.redis.port, password=_PASSWORD) as client:
        wait_until(lambda: client.wait(1, 1000), "replicated", seconds=_SECONDS)
        client.client_pause(60_000, all=False)  # no write is answered for that the replica lacks
        wait_until(lambda: client.wait(1, 1000), "replicated", seconds=_SECONDS)
    master.redis.stop(kill=True)
    at = until_all(fleet, "does not answer", at)
    replica.say("REPLICAOF", "NO", "ONE")
    front.switch(replica.tls_port)
    until_all(fleet, "The crawl goes on.", at)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("fleet-away")
    ca = make_ca(folder)
    server_tls(folder, ca, "127.0.0.1")
    [pem] = folder.glob("127.0.0.1*.pem")
    ports = free_port(), free_port()
    fixed = ["--tls-cert-file", str(pem), "--tls-key-file", str(pem), "--tls-ca-cert-file", ca[2]]
    fixed += ["--tls-auth-clients", "no", "--masterauth", _PASSWORD, "--repl-diskless-sync-delay", "0"]
    with (
        redis_server(folder / "1", "--tls-port", str(ports[0]), *fixed) as first,
        redis_server(folder / "2", "--tls-port", str(ports[1]), *fixed) as second,
        synthetic_web(folder / "web") as web,
    ):
        for server in (first, second):
            with Redis(port=server.port) as client:
                client.config_set("requirepass", _PASSWORD)
        front = Front(ports[0])
        url = f"rediss://:{_PASSWORD}@127.0.0.1:{front.port}/0?ssl_ca_certs={ca[2]}"
        seeds = "".join(f"http://{host}:{web.port}/\n" for host in _HOSTS)
        (web.folder / "seeds.txt").write_text(seeds)
        with workers(web, folder / "crawl", url, {"FLEET_PARTITIONS": str(_PARTITIONS)}, scope="host") as fleet:
            fleet.start("w1", machine=_MACHINES["w1"])
            fleet.start("w2", machine=_MACHINES["w2"])
            fleet.until_archiving(_SECONDS, *_NAMES)
            disturb(fleet, Server(first, ports[0]), Server(second, ports[1]), front)
            fleet.wait()
            yield Crawled(web, fleet)
        front.close()
        second.stop(kill=True)  # in good order it would wait for whom it followed


def test_no_partition_is_without_a_host() -> None:
    """What this crawl stands on: both workers have something to ask."""
    assert {partition_of(host, _PARTITIONS) for host in _HOSTS} == set(range(_PARTITIONS))


def test_nothing_is_missing_twice_or_too_soon(crawled: Crawled) -> None:
    """Every page of the four hosts once (one is linked only from elsewhere), every pause kept."""
    visits = read_visits(crawled.web.folder / "server.jsonl")
    expected = (crawled.web.folder / "expected.txt").read_text().splitlines()
    ours = {url for url in expected if urlsplit(url).hostname in _HOSTS and not url.endswith("/landing.html")}
    captures = read_captures(*(folder / "warc" for folder in crawled.fleet.folders))

    assert len(ours) > 50
    assert judge_captures(captures, ours).faults == []
    assert judge_pauses(visits, host_seconds=0.25, ip_seconds=0.5).faults == []


def test_nobody_failed(crawled: Crawled) -> None:
    """All of it was said in sentences, without the password; the guard above the network had nothing to refuse."""
    for name in _NAMES:
        output = crawled.fleet.output(name)
        assert "Traceback" not in output
        assert _PASSWORD not in output
        assert "guard_refused" not in output


def test_a_clock_that_differs_is_said_and_does_not_count(crawled: Crawled) -> None:
    """One worker's machine is a quarter of an hour ahead: it says so, and keeps every pause all the same."""
    ahead, behind = ([_clock_apart(crawled.fleet.output(name), way) for name in _NAMES] for way in _WAYS)
    # To some seconds: a busy machine asks for the time now and hears of it later.
    assert ahead == [None, pytest.approx(900.0, abs=5.0)]
    assert behind[0] == pytest.approx(180.0, abs=5.0)


def _clock_apart(output: str, way: str) -> float | None:
    """By how many seconds this machine's clock was said to be ``ahead of`` or ``behind`` the store's, at first."""
    found = re.search(rf"clock is ([0-9.]+) s {way} the store's", output)
    return float(found[1]) if found else None


def test_the_logs_of_both_are_of_one_clock(crawled: Crawled) -> None:
    """The pauses between requests of different workers can be judged by them, of hosts and of addresses."""
    judged = scrapy("audit", str(crawled.fleet.folder))

    assert judged.returncode == 0, judged.stdout + judged.stderr
