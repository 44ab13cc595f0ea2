"""WebSub with a hub in a process of its own: asked, verified, pushed, crawled; judged by the logs of both servers."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from crawlerproject.extensions.http_listener import MAX_CONNECTIONS
from crawlerproject.rules.feeds.feeds import MAX_BYTES
from crawlerproject.stores.logs.request_log import read_log
from tests.web.hub import ask
from tests.web.ports import free_port
from tests.web.profiles.pushed import CLOSED_HUB
from tests.web.running import PROJECT, RunningWeb, crawl_command, small_settings, start, synthetic_web, wait_for
from tests.web.waiting import wait_until

DEADLINE_SECONDS = 60.0
HUB_ADDRESS = "127.0.0.200"
QUICK = {"PACE_IP_SECONDS": "0", "PACE_MIN_SECONDS": "0.02", "PACE_START_SECONDS": "0.02"}
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


@contextlib.contextmanager
def crawling(web: RunningWeb, folder: Path, port: int, *, recrawl: bool = False) -> Iterator[Pushed]:
    """A crawl that hubs can reach, from the moment when it listens, has been verified and has read what there is."""
    settings = small_settings(web) | QUICK | {"WEBSUB_PORT": str(port)}
    command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
    if recrawl:
        command[command.index(f"seeds={web.folder / 'seeds.txt'}")] = "mode=recrawl"
    log = folder / ("again.log" if recrawl else "crawl.log")
    with log.open("wb") as output:
        process = start(command, output)
    try:
        wait_until(lambda: "Hubs push to " in log.read_text())
        topic = f"http://news.test:{web.port}/feed.atom"
        question = wait_until(lambda: lines(web.folder / "hub.jsonl", did="verified", topic=topic))[0]
        assert question["good"], question
        wait_until(lambda: lines(web.folder / "server.jsonl", path="/entry/1"))
        reach = (web.folder / "hub").read_text().replace("hub.test", HUB_ADDRESS)
        yield Pushed(web.folder, folder / "crawl", web.port, question["callback"], reach + "/")
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_SECONDS) == 0, log.read_text()[-3000:]
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pushed]:
    """A crawl that has nothing left to do but to wait for pushes."""
    folder = tmp_path_factory.mktemp("pushed")
    with servers(folder) as web, crawling(web, folder, free_port()) as crawl:
        yield crawl


def test_a_recrawl_goes_to_a_known_page_at_once_when_it_is_pushed(tmp_path: Path) -> None:
    """The subscription outlives the first run: the hub is not asked again. What was visited a moment ago is not due,
    until the hub says that it changed; entries that the push names beside it, and are new, are crawled too.
    """
    port = free_port()
    with servers(tmp_path) as web:
        with crawling(web, tmp_path, port):
            pass
        with crawling(web, tmp_path, port, recrawl=True) as again:
            before = again.asked()
            told = again.publish("/entry/1", "/entry/2")
            wait_until(lambda: "/entry/2" in again.asked() and again.asked().count("/entry/1") == 2)
        posts = lines(web.folder / "hub.jsonl", did="asked", method="POST", path="/")
        subscriptions = [row for row in posts if row["form"].get("hub.topic") == again.topic]

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

    posts = {row["path"] for row in lines(pushed.folder / "hub.jsonl", did="asked", method="POST") if "form" in row}
    assert posts == {"/", "/moved/"}


def test_a_hub_that_names_another_is_followed(pushed: Pushed) -> None:
    """308: the same form at the new address, once, and there the subscription is verified; the log has both."""
    topic = f"http://moved.test:{pushed.port}/feed.atom"
    question = wait_until(lambda: lines(pushed.folder / "hub.jsonl", did="verified", topic=topic))

    posts = [row for row in lines(pushed.folder / "hub.jsonl", did="asked", method="POST") if topic in str(row["form"])]
    assert [row["path"] for row in posts] == ["/moved/", "/"]
    assert posts[0]["form"] == posts[1]["form"]
    assert [row["good"] for row in question] == [True]
    rows = wait_until(
        lambda: [r for r in read_log(pushed.crawl / "log") if r["via"] == topic and r["method"] == "POST"]
    )
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
    rows = wait_until(lambda: [r for r in read_log(pushed.crawl / "log") if str(r["url"]).endswith("/entry/pushed")])
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
        ({"hub.mode": "unsubscribe"}, "intent 'unsubscribe' is none of ours"),
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
        large.sendall(post(pushed, MAX_BYTES + 1))
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
            held[-1].sendall(post(pushed, MAX_BYTES - 1) + b"x" * 1000)
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


def hung_up(connection: socket.socket) -> bool:
    """Whether the other side has closed it."""
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
