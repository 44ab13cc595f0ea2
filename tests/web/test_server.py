"""The synthetic web's server: exact bytes, pauses of its own, and a log that a judge can rely on."""

from __future__ import annotations

import gzip
import json
import socket

from tests.web.client import Client
from tests.web.judge import Visit, read_visits
from tests.web.profiles.ugly import HOPELESS, READABLE
from tests.web.waiting import wait_until


def test_every_expected_page_answers(client: Client) -> None:
    """What must be archived is really served: no expected address is unknown to the server."""
    for url in sorted(client.world.expected()):
        assert client.raw(url), url


def test_ugly_answers_are_sent_byte_for_byte(client: Client) -> None:
    """The server does not mend what is meant to be broken."""
    for host, table in (("ugly.test", READABLE), ("broken.test", HOPELESS)):
        for name, answer in table.items():
            assert client.raw(client.world.url(host, f"/{name}")) == b"".join(answer.pieces)


def test_encoded_page_decodes(client: Client) -> None:
    """The gzip page is gzip."""
    body = client.raw(client.world.url("formats.test", "/gzip")).split(b"\r\n\r\n", 1)[1]
    assert b"coded page" in gzip.decompress(body)


def test_busy_host_refuses_once(client: Client) -> None:
    """A 429 with Retry-After comes first, the page afterwards."""
    url = client.world.url("busy.test", "/limited")
    statuses = [client.status(url) for _ in range(3)]
    assert statuses[-1] == 200
    assert statuses.count(429) <= 1


def test_trap_never_ends(client: Client) -> None:
    """Any page of the calendar links to a next one."""
    assert b"/calendar/100000" in client.raw(client.world.url("trap.test", "/calendar/99999"))


def test_log_has_one_line_a_request(client: Client) -> None:
    """Start, end, host, address, path, status and bytes of what was just asked."""
    answer = client.raw(client.world.url("slow.test", "/1"))
    row = json.loads((client.folder / "server.jsonl").read_text().splitlines()[-1])
    site = client.world.sites["slow.test"]
    assert (row["host"], row["ip"], row["path"], row["status"]) == ("slow.test", site.ip, "/1", 200)
    assert row["bytes"] == len(answer)
    assert row["end"] - row["start"] >= 0.8


def test_requests_on_one_connection_are_answered_in_order(client: Client) -> None:
    """Keep-alive and pipelining: two requests in one packet, two answers, never at once in the log."""
    site = client.world.sites["plain1.test"]
    request = f"GET /gone.html HTTP/1.1\r\nHost: {site.host}:{client.world.port}\r\n\r\n".encode()
    whole = b"".join(site.pages["/gone.html"].answer.pieces)
    received = b""

    def logged() -> list[Visit]:
        return [visit for visit in read_visits(client.folder / "server.jsonl") if visit.path == "/gone.html"]

    before = len(logged())
    with socket.create_connection((site.ip, client.world.port), 10) as connection:
        connection.sendall(request * 2)
        while len(received) < 2 * len(whole):
            received += connection.recv(65536)
    assert received == whole * 2
    wait_until(lambda: len(logged()) == before + 2, "logged")  # after the answer has left
    first, second = logged()[before:]
    assert first.end <= second.start


def test_unknown_host_and_path(client: Client) -> None:
    """What is not there is a 404."""
    assert client.status(client.world.url("plain1.test", "/missing.html")) == 404
