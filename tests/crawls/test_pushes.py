"""WebSub with a hub in a process of its own: asked, verified, pushed, crawled; judged by the logs of both servers.

Pushed to is a crawl of one process, and a fleet of either kind, of which hubs reach one worker.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from crawlerproject.extensions.http_listener import MAX_CONNECTIONS
from crawlerproject.rules.feeds.feeds import MAX_FEED_BYTES
from crawlerproject.stores.logs.request_log import read_log
from crawlerproject.stores.redis.journal_view import crawl_in_redis
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import LEASE_SECONDS, PARTITIONS, Workers, workers
from tests.crawls.fleet.local_fleets import LocalFleetRun
from tests.stores.redis_servers import redis_server
from tests.web.hub import ask
from tests.web.ports import free_port
from tests.web.profiles.pushed import CLOSED_HUB
from tests.web.running import PROJECT, RunningWeb, crawl_command, small_settings, start, synthetic_web, wait_for
from tests.web.waiting import wait_until

DEADLINE_SECONDS = 60.0
HUB_ADDRESS = "127.0.0.200"
#: A push is answered when what it brought is committed.
QUICK = {
    "PACE_IP_SECONDS": "0",
    "PACE_MIN_SECONDS": "0.02",
    "PACE_START_SECONDS": "0.02",
    "COMMIT_SECONDS": "0.2",
}
_LISTENS = "Hubs push to 127.0.0.1"
#: What a push with each flaw is told.
FLAWS = {
    "signature": (403, "the signature is not the hub's"),
    "unsigned": (403, "there is no signature"),
    "topic": (403, "unknown topic"),
    "type": (415, "no feed (text/html)"),
}


class Pushed(NamedTuple):
    """A crawl that hubs push to, and the servers around it."""

    folder: Path  # of the web and the hub
    crawl: Path
    port: int  # of the web
    callback: str
    hub: str  # where to reach it
    fleet: Workers | None = None  # those that are in Redis

    @property
    def topic(self) -> str:
        """The feed that is pushed."""
        return f"http://news.test:{self.port}/feed.atom"

    def publish(self, *paths: str, flaw: str = "") -> dict[str, Any]:
        """Put these entries into the feed and tell the hub; what it was answered when it pushed."""
        (self.folder / "entries").write_text("\n".join(paths))
        before = len(lines(self.folder / "hub.jsonl", did="pushed"))
        form = {"hub.mode": "publish", "hub.url": self.topic, "flaw": flaw}
        assert ask("POST", self.hub, {}, urlencode(form).encode())[0] == 202
        return wait_until(lambda: lines(self.folder / "hub.jsonl", did="pushed")[before:])[0]

    def rows(self, **wanted: object) -> list[dict[str, Any]]:
        """What the crawl's request log has, that of any worker's."""
        logs = [log for log in (self.crawl / "log", *self.crawl.glob("*/log")) if log.is_dir()]
        return [row for log in logs for row in read_log(log) if wanted.items() <= row.items()]

    def asked(self) -> list[str]:
        """Paths that the crawl asked news.test for, in order."""
        return [row["path"] for row in lines(self.folder / "server.jsonl", host="news.test")]


def lines(log: Path, **wanted: object) -> list[dict[str, Any]]:
    """The rows of a server's log that have these values."""
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [row for row in rows if wanted.items() <= row.items()]


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[RunningWeb]:
    """The web of feeds, and the hub that they name."""
    with synthetic_web(folder / "web", "--profile", "pushed") as web:
        (web.folder / "entries").write_text("/entry/1")
        with (web.folder / "hosts").open("a") as hosts:
            hosts.write(f"{HUB_ADDRESS}\thub.test {CLOSED_HUB}\n")
        command = [sys.executable, "-m", "tests.web.hub", "--folder", str(web.folder), "--address", HUB_ADDRESS]
        hub = subprocess.Popen(command, cwd=PROJECT)
        try:
            wait_for(web.folder / "hub", hub)
            yield web
        finally:
            hub.terminate()
            hub.wait()


class Said:
    """What the processes of a crawl have said since it was made."""

    def __init__(self, *logs: Path) -> None:
        self._logs = {log: log.stat().st_size if log.exists() else 0 for log in logs}
        self.fleet: Workers | None = None

    def __call__(self) -> str:
        """All of it."""
        return "".join(log.read_text()[before:] for log, before in self._logs.items() if log.exists())


class Started(NamedTuple):
    """What a run of a crawl needs: ``recrawl``: of the pages that the run before has left."""

    web: RunningWeb
    folder: Path
    settings: dict[str, str]
    recrawl: bool = False


@contextlib.contextmanager
def alone(given: Started, _: str) -> Iterator[Said]:
    """One process."""
    web, log = given.web, given.folder / "crawl.log"
    command = crawl_command(web.folder / "seeds.txt", given.folder / "crawl", web.folder / "hosts", given.settings)
    if given.recrawl:
        command[command.index(f"seeds={web.folder / 'seeds.txt'}")] = "mode=recrawl"
    said = Said(log)
    with log.open("ab") as output:
        process = start(command, output)
    try:
        yield said
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 0, said()[-3000:]
    finally:
        process.kill()


def held(fleet: Workers) -> dict[str, int]:
    """How many partitions each worker says that it holds."""
    with crawl_in_redis(fleet.settings["STATE_URL"], "web") as view:
        return {worker.name: worker.info.get("partitions", 0) for worker in view.workers()}


@contextlib.contextmanager
def in_redis(given: Started, state_url: str) -> Iterator[Said]:
    """Two workers, the first of which is there first."""
    folder, names = given.folder / "crawl", ("w1", "w2")
    said, of_first = Said(*(folder / f"{name}.log" for name in names)), Said(folder / "w1.log")
    with workers(given.web, folder, state_url, given.settings) as fleet:
        fleet.recrawl = given.recrawl
        fleet.start("w1")
        wait_until(lambda: _LISTENS in of_first(), seconds=DEADLINE_SECONDS)
        fleet.start("w2")
        # Both at work: hubs reach the first of two, which has not all hosts.
        wait_until(lambda: all(held(fleet).get(name) for name in names), seconds=DEADLINE_SECONDS)
        said.fleet = fleet
        yield said
        for name in names:
            fleet.signal(name, signal.SIGCONT)  # a test may have failed that had stopped it
            fleet.signal(name, signal.SIGINT)
        fleet.wait(DEADLINE_SECONDS)


@contextlib.contextmanager
def without_a_server(given: Started, _: str) -> Iterator[Said]:
    """Two workers and their supervisor, as the operator starts them."""
    fleet = LocalFleetRun(given.web, given.folder / "crawl", 2, given.settings)
    if given.recrawl:
        fleet.command[fleet.command.index(f"seeds={given.web.folder / 'seeds.txt'}")] = "mode=recrawl"
    said = Said(fleet.log, *(fleet.folder / f"{name}.log" for name in fleet.names))
    fleet.start()
    try:
        yield said
        assert scrapy("stop", folder=fleet.folder).returncode == 0
        assert fleet.wait(DEADLINE_SECONDS) == 0, said()[-3000:]
    finally:
        fleet.close()


@contextlib.contextmanager
def crawling(run: AbstractContextManager[Said], given: Started) -> Iterator[Pushed]:
    """A crawl that hubs can reach, from the moment when it listens, has been verified and has read what there is."""
    web = given.web
    with run as said:
        wait_until(lambda: _LISTENS in said(), seconds=DEADLINE_SECONDS)
        topic = f"http://news.test:{web.port}/feed.atom"
        question = wait_until(lambda: lines(web.folder / "hub.jsonl", did="verified", topic=topic))[0]
        assert question["good"], question
        wait_until(lambda: lines(web.folder / "server.jsonl", path="/entry/1"))
        reach = (web.folder / "hub").read_text().replace("hub.test", HUB_ADDRESS)
        yield Pushed(web.folder, given.folder / "crawl", web.port, question["callback"], reach + "/", said.fleet)
    assert said().count(_LISTENS) == 1
    assert "Traceback" not in said()


class Kind(NamedTuple):
    """Of a crawl."""

    run: Callable[[Started, str], AbstractContextManager[Said]]
    again: bool  # what is pushed to is a recrawl, whose first run has left the subscriptions


KINDS = {
    "alone": Kind(alone, again=False),
    "alone, again": Kind(alone, again=True),
    "redis": Kind(in_redis, again=True),
    "local": Kind(without_a_server, again=True),
}


@pytest.fixture(scope="module", params=["alone", "redis", "local"])
def pushed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushed]:
    """A crawl that has nothing left to do but to wait for pushes."""
    folder, kind = tmp_path_factory.mktemp("pushed"), KINDS[request.param]
    shared = redis_server(folder / "redis") if request.param == "redis" else contextlib.nullcontext()
    with servers(folder) as web, shared as server:
        state_url = "" if server is None else server.url
        settings = small_settings(web) | QUICK | {"WEBSUB_PORT": str(free_port())}
        given = Started(web, folder, settings)
        if kind.again:
            with crawling(kind.run(given, state_url), given):
                pass
            given = given._replace(recrawl=True)
        with crawling(kind.run(given, state_url), given) as crawl:
            yield crawl


@pytest.mark.parametrize("pushed", [name for name, kind in KINDS.items() if kind.again], indirect=True)
def test_a_recrawl_goes_to_a_known_page_at_once_when_it_is_pushed(pushed: Pushed) -> None:
    """The subscription outlives the first run: the hub is not asked again. What was visited a moment ago is not due,
    until the hub says that it changed; entries that the push names beside it, and are new, are crawled too.
    """
    before = pushed.asked()
    told = pushed.publish("/entry/1", "/entry/2")
    wait_until(lambda: "/entry/2" in pushed.asked() and pushed.asked().count("/entry/1") == 2)
    posts = lines(pushed.folder / "hub.jsonl", did="asked", method="POST", path="/")
    subscriptions = [row for row in posts if row["form"].get("hub.topic") == pushed.topic]

    assert told["status"] == 202
    assert before.count("/entry/1") == 1
    assert len(subscriptions) == 1


def test_the_hub_is_asked_like_any_host(pushed: Pushed) -> None:
    """Its robots.txt first, then one signed-for subscription at the address that the feed names."""
    asked = lines(pushed.folder / "hub.jsonl", did="asked")

    assert asked[0]["path"] == "/robots.txt"
    first = next(row for row in asked if row["method"] == "POST" and row["form"].get("hub.topic") == pushed.topic)
    assert first["path"] == "/"
    assert first["form"]["hub.mode"] == "subscribe"
    assert len(first["form"]["hub.secret"]) == 64
    assert first["agent"].startswith("TestBed")


def test_hubs_that_must_not_be_asked_are_not(pushed: Pushed) -> None:
    """One that its robots.txt forbids, and one that a feed names for a stranger's topic."""
    wait_until(lambda: lines(pushed.folder / "server.jsonl", host="thief.test", path="/feed.atom"))
    wait_until(lambda: lines(pushed.folder / "server.jsonl", host="closed.test", path="/feed.atom"))
    pushed.publish("/entry/1", "/entry/later")
    wait_until(lambda: "/entry/later" in pushed.asked())

    def posts() -> set[str]:
        asked = lines(pushed.folder / "hub.jsonl", did="asked", method="POST")
        return {row["path"] for row in asked if "form" in row}

    wait_until(lambda: "/moved/" in posts())
    assert posts() == {"/", "/moved/"}


def test_a_hub_that_names_another_is_followed(pushed: Pushed) -> None:
    """308: the same form at the new address, once, and there the subscription is verified; the log has both."""
    topic = f"http://moved.test:{pushed.port}/feed.atom"
    question = wait_until(lambda: lines(pushed.folder / "hub.jsonl", did="verified", topic=topic))

    posts = [row for row in lines(pushed.folder / "hub.jsonl", did="asked", method="POST") if topic in str(row["form"])]
    assert [row["path"] for row in posts] == ["/moved/", "/"]
    assert posts[0]["form"] == posts[1]["form"]
    assert [row["good"] for row in question] == [True]
    wait_until(lambda: len(pushed.rows(via=topic, method="POST")) >= len(posts))
    rows = pushed.rows(via=topic, method="POST")
    assert [(row["status"], row["reason"], row["hop"]) for row in rows] == [
        (308, "redirect", ""),
        (202, "subscribed", "R"),
    ]


def test_a_pushed_page_is_crawled(pushed: Pushed) -> None:
    """It is in no page and was in no feed; the server's log has it after the push, and the log says where from."""
    before = pushed.asked()
    told = pushed.publish("/entry/1", "/entry/pushed")
    wait_until(lambda: "/entry/pushed" in pushed.asked())

    assert told["status"] == 202
    assert "/entry/pushed" not in before
    assert pushed.asked().count("/feed.atom") == before.count("/feed.atom") + 1  # the hub's own; not the crawl's
    rows = wait_until(lambda: pushed.rows(url=f"http://news.test:{pushed.port}/entry/pushed"))
    assert (rows[0]["via"], rows[0]["reason"]) == (pushed.topic, "fetched")


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_push_with_a_flaw_is_refused_with_its_reason(pushed: Pushed, flaw: str) -> None:
    """The hub is told why, and nothing of it is crawled; a good push afterwards is."""
    told = pushed.publish("/entry/1", f"/entry/bad-{flaw}", flaw=flaw)
    pushed.publish("/entry/1", f"/entry/after-{flaw}")
    wait_until(lambda: f"/entry/after-{flaw}" in pushed.asked())

    status, why = FLAWS[flaw]
    assert told["status"] == status
    assert why in told["answer"]
    assert f"/entry/bad-{flaw}" not in pushed.asked()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"hub.topic": "http://news.test/other"}, "unknown topic"),
        ({"hub.mode": "unsubscribe"}, "intent 'unsubscribe' is unknown"),
        ({"hub.lease_seconds": "for ever"}, "a challenge and a lease in seconds are needed"),
        ({"hub.challenge": ""}, "a challenge and a lease in seconds are needed"),
    ],
)
def test_a_wrong_intent_is_not_confirmed(pushed: Pushed, change: dict[str, str], why: str) -> None:
    """404 and the reason instead of the challenge."""
    asked = {"hub.mode": "subscribe", "hub.topic": pushed.topic, "hub.challenge": "echo", "hub.lease_seconds": "60"}

    status, body = ask("GET", f"{pushed.callback}?{urlencode(asked | change)}")

    assert status == 404
    assert why in body.decode()


def post(pushed: Pushed, length: int) -> bytes:
    """The head of a push to a callback that exists."""
    path = pushed.callback.rpartition("/")[2]
    return b"POST /%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), length)


def test_strangers_find_nothing(pushed: Pushed) -> None:
    """Another path is nobody's; a body that is too large is not read; nothing but loopback listens."""
    base = pushed.callback.rpartition("/")[0]
    port = int(re.findall(r":(\d+)", base)[-1])

    assert ask("GET", f"{base}/guess?hub.mode=subscribe")[0] == 404
    assert ask("POST", f"{base}/guess", {}, b"<feed></feed>")[0] == 404
    with socket.create_connection(("127.0.0.1", port), timeout=10) as large:
        large.sendall(post(pushed, MAX_FEED_BYTES + 1))
        assert large.recv(100).startswith(b"HTTP/1.1 413 ")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=10)


def test_bodies_and_connections_are_bounded_in_total(pushed: Pushed) -> None:
    """Unknown callbacks are refused before the body; of bodies at once a fifth of the largest size finds no room; and
    of a hundred connections 64 are held. Afterwards pushes are taken in as before.
    """
    port = int(re.findall(r":(\d+)", pushed.callback.rpartition("/")[0])[-1])
    with contextlib.ExitStack() as stack:
        held = []
        for number in range(5):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)))
            held[-1].sendall(post(pushed, MAX_FEED_BYTES - 1) + b"x" * 1000)
            assert number < 4 or held[-1].recv(100).startswith(b"HTTP/1.1 503 ")
        stranger = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        stranger.sendall(b"POST /guess HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n")
        assert stranger.recv(100).startswith(b"HTTP/1.1 404 ")
        many = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(100)]
        for connection in many:
            connection.setblocking(False)
        wait_until(lambda: sum(hung_up(connection) for connection in many) >= 100 - MAX_CONNECTIONS)
    pushed.publish("/entry/1", "/entry/after-the-flood")
    wait_until(lambda: "/entry/after-the-flood" in pushed.asked())


@pytest.mark.parametrize("pushed", ["redis"], indirect=True)
def test_a_worker_that_lost_its_leases_listens_on(pushed: Pushed) -> None:
    """It was stopped for longer than they last, and joins again: hubs reach it as before, and the fleet waits."""
    fleet = pushed.fleet
    assert fleet is not None
    fleet.signal("w1", signal.SIGSTOP)
    wait_until(lambda: held(fleet)["w2"] == PARTITIONS)
    fleet.signal("w1", signal.SIGCONT)
    wait_until(lambda: "joins again" in fleet.output("w1"), seconds=DEADLINE_SECONDS)
    time.sleep(LEASE_SECONDS)  # for so many reports that a fleet with nothing to wait for would have ended
    told = wait_until(lambda: [told for told in [pushed.publish("/entry/1", "/entry/lost")] if told["status"] != 503])
    wait_until(lambda: "/entry/lost" in pushed.asked(), str(told))

    assert [each["status"] for each in told] == [202]


def hung_up(connection: socket.socket) -> bool:
    """Whether the other side has closed it."""
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
