"""Answers whose framing is the attack: what is not content is counted, bounded, and costs little."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlerproject.errors import FetchError
from crawlerproject.fetch.http1 import MAX_HEAD_BYTES, ResponseReader
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.http_messages import Wire
from tests.fetch.pools import GET, at, pool_with
from tests.fetch.servers import make_ca, run, server_tls
from tests.hostile.arena import NO_RULES, Asked, arena
from tests.hostile.ledger import pays
from tests.spending import slowness

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
READ_BYTES = 262_144  # what uvloop reads at a time
MAX_BYTES = 5 * 1024 * 1024


def read(*pieces: bytes) -> tuple[ResponseReader, float]:
    """An answer in reads of the usual size until it ends or is given up; the processor's seconds."""
    wire = b"".join(pieces)
    reader, began = ResponseReader(), time.process_time()
    for start in range(0, len(wire), READ_BYTES):
        if reader.feed(wire[start : start + READ_BYTES]):
            break
    return reader, (time.process_time() - began) / slowness()


@pytest.mark.parametrize(
    ("chunk", "content"),
    [
        (b"1\r\nx\r\n", MAX_HEAD_BYTES // 4),  # 5 bytes of framing for each of content
        (b"01\r\nx\r\n", MAX_HEAD_BYTES // 5),  # not written plainly
        (b"1;" + b"e" * 4000 + b"\r\nx\r\n", MAX_HEAD_BYTES // 4000),
        (b"5;" + b"e" * 95 + b"\r\nxxxxx\r\n", 5 * MAX_HEAD_BYTES // 96),
    ],
    ids=["one byte", "leading zero", "extensions", "short extensions"],
)
def test_framing_that_outgrows_its_content_ends_the_answer(chunk: bytes, content: int) -> None:
    """What came is kept and marked; no more was taken than 64 KiB of framing beyond the content's size."""
    reader, _ = read(CHUNKED, chunk * (40_000_000 // len(chunk)))

    assert (reader.truncated, reader.reusable) == ("length", False)
    assert "chunks" in reader.flaw
    assert 0.9 * content <= len(reader.body) <= 1.4 * content + 5
    assert reader.received_bytes <= MAX_HEAD_BYTES + len(reader.body) * 2 + len(chunk) + READ_BYTES


def test_ordinary_small_chunks_are_read_whole() -> None:
    """13,000 chunks of one byte, and any number of five bytes: servers that flush each word."""
    few, _ = read(CHUNKED, b"1\r\nx\r\n" * 13_000, b"0\r\n\r\n")
    many, seconds = read(CHUNKED, b"5\r\nxxxxx\r\n" * 1_000_000, b"0\r\n\r\n")

    assert (few.body, few.truncated, few.reusable) == (b"x" * 13_000, None, True)
    assert (len(many.body), many.truncated, many.reusable) == (5_000_000, None, True)
    assert seconds < 5  # 0.7 s where nothing else runs; it was 1.6


@pytest.mark.parametrize("step", [1, 7, 1000, 10_000_000])
def test_the_cut_is_the_same_however_the_bytes_were_split(step: int) -> None:
    """Short chunks are read in two ways, which must agree to the byte."""
    wire = CHUNKED + b"1\r\nx\r\n3;a\r\nxyz\r\n01\r\ny\r\n" * 3000
    reader = ResponseReader(max_head_bytes=2000)
    for start in range(0, len(wire), step):
        if reader.feed(wire[start : start + step]):
            break

    # Three chunks are 18 bytes of framing for 5 of content: 153 times, and almost once more.
    assert (reader.truncated, len(reader.body)) == ("length", 769)


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 100 C\r\n\r\n", b"HTTP/1.1 103 H\r\nA: " + b"x" * 60_000 + b"\r\n\r\n", b"\r\n"],
    ids=["1xx", "long 1xx", "blank lines"],
)
def test_floods_before_the_answer_are_an_error(head: bytes) -> None:
    """A hundred interim answers, or 64 KiB of what comes before the answer, are enough."""
    reader, began = ResponseReader(), time.process_time()
    with pytest.raises(FetchError) as failed:
        for _ in range(100):
            reader.feed(head * (READ_BYTES // len(head)))

    assert failed.value.reason is Reason.HEADER_TOO_LARGE
    assert reader.received_bytes <= 2 * READ_BYTES
    assert (time.process_time() - began) / slowness() < 1


@pytest.mark.parametrize("line", [b"a:\n", b" x\n", b"content-length: 1\n", b"\t\n"])
def test_thousands_of_tiny_header_lines_cost_little(line: bytes) -> None:
    """Names, folded lines, lengths: linear in what 64 KiB hold."""
    lines = line * ((MAX_HEAD_BYTES - 100) // len(line))
    reader, seconds = read(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nx: y\r\n", lines, b"\r\nx")

    assert reader.body == b"x"
    assert seconds < 0.5  # 0.02 s where nothing else runs


def test_trailers_are_bounded() -> None:
    """The body is whole before them; no more than a head's size of them is taken."""
    reader, _ = read(CHUNKED, b"1\r\nx\r\n0\r\n", b"a: b\r\n" * 1_000_000)

    assert (reader.body, reader.truncated, reader.reusable) == (b"x", None, False)
    assert reader.received_bytes <= MAX_HEAD_BYTES + 2 * READ_BYTES


@contextlib.contextmanager
def tiny_records(tls: ssl.SSLContext) -> Iterator[tuple[int, list[int]]]:
    """A server that puts every byte of an endless answer into a TLS record of its own; its port, what it sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    sent = [0]

    def serve() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as plain:
            plain.settimeout(20)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tunnel = tls.wrap_bio(incoming, outgoing, server_side=True)
            for step in (tunnel.do_handshake, lambda: tunnel.read(65536)):
                while True:
                    try:
                        step()
                        break
                    except ssl.SSLWantReadError:
                        plain.sendall(outgoing.read())
                        incoming.write(plain.recv(65536))
            tunnel.write(OK + b"Content-Length: 90000000\r\n\r\n")
            while sent[0] < 200_000_000:
                for _ in range(20_000):
                    tunnel.write(b"x")
                records = outgoing.read()
                plain.sendall(records)
                sent[0] += len(records)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1], sent
    finally:
        listener.close()
        thread.join(30)


def test_tls_records_of_one_byte_are_given_up(tmp_path: Path) -> None:
    """The reader sees content only: 23 bytes of TLS around each byte are counted below it."""
    ca = make_ca(tmp_path)

    async def fetch(port: int) -> Wire:
        pool = pool_with(ca[2])
        try:
            return await pool.fetch(at(port, tls=True), GET)
        finally:
            pool.close()

    with tiny_records(server_tls(tmp_path, ca, "site.test")) as (port, sent):
        wire = run(fetch(port))

    assert wire.truncated == "length"
    assert "TLS" in wire.flaw
    assert 0 < len(wire.body) < MAX_BYTES
    pays("an answer in TLS records of one byte", "the crawl", sent[0] / 1e6, "MB taken", at_most=30)


def test_hostile_framing_beside_an_innocent_host(tmp_path: Path) -> None:
    """Servers that send framing for ever are left soon, are in the log with their flaw, and hold nobody up."""
    floods = {
        "chunks.test": (CHUNKED, b"1\r\nx\r\n" * 10_000),
        "extensions.test": (CHUNKED, (b"1;" + b"e" * 4000 + b"\r\nx\r\n") * 15),
        "interim.test": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
        "trailers.test": (CHUNKED + b"3\r\n<p>\r\n0\r\n", b"a: b\r\n" * 10_000),
        "headers.test": (OK, b"a:\n" * 20_000),
    }
    sent = dict.fromkeys(floods, 0)

    async def talk(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/robots.txt":
            writer.write(NO_RULES)
            return
        first, more = floods[asked.host]
        writer.write(first)
        while sent[asked.host] < 100_000_000:
            writer.write(more)
            await writer.drain()
            sent[asked.host] += len(more)

    with arena(tmp_path) as web:
        seeds = [web.raw_site(name, talk) for name in floods]
        crawled = web.crawl(web.innocent(pages=25), *seeds)

        web.assert_undisturbed(least=25, during="answers of framing without end")
    pays("answers of framing without end", "the crawl", max(sent.values()) / 1e6, "MB taken", at_most=15)
    lines = [json.loads(line) for path in crawled.folder.glob("log/*.jsonl") for line in path.open()]
    ended = {row["host"].partition(":")[0]: row for row in lines if row["host"].partition(":")[0] in floods}
    assert {name: ended[name]["reason"] for name in floods} == {
        "chunks.test": "fetched",
        "extensions.test": "fetched",
        "interim.test": "header-too-large",
        "trailers.test": "fetched",
        "headers.test": "header-too-large",
    }
    assert {name for name in floods if ended[name]["truncated"] == "length"} == {"chunks.test", "extensions.test"}
    assert "chunks" in ended["chunks.test"]["error"]
