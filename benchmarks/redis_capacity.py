"""How many pages a second one Redis carries: measured, with several workers' real traffic replayed as fast as it goes.

    python -m benchmarks.redis_capacity --pages 20_000 --workers 4 --new 5

A worker's own work on a page takes more CPU than Redis', so on a small machine workers never fill a Redis. Therefore
each worker first crawls (as in ``redis_frontier``, network skipped) and every byte that it sends is kept. Then all of
them send these bytes again at the same time to one fresh Redis, each waiting for the answers of one round trip before
the next, as in a crawl. That the work was done again, and not refused, is checked: the same URLs are known at the end,
and no command failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pickle
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.redis_frontier import ACKNOWLEDGED, PARTITIONS, Web, cpu_seconds, crawl, hold, hosts_of
from crawlerproject.stores.redis import batch_scripts, scripts
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import partition_keys
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.redis_servers import RedisServer, redis_server


class RecordedLink(RedisLink):
    """Keeps what it sends."""

    def __init__(self, url: str) -> None:
        from redis.connection import Connection

        self.sent: list[bytes] = []
        self._packing = Connection()  # type: ignore[no-untyped-call]
        super().__init__(url)

    def _at_once(self, calls: Sequence[Call]) -> list[Any]:
        words = [
            (call.name, *call.keys, *call.arguments)
            if isinstance(call.name, str)
            else ("EVALSHA", call.name.sha, len(call.keys), *call.keys, *call.arguments)
            for call in calls
        ]
        packed = self._packing.pack_commands(words)  # type: ignore[no-untyped-call]
        self.sent.append(b"".join(packed))
        return super()._at_once(calls)


class Replayed(NamedTuple):
    """When a worker began and ended (monotonic), and its CPU."""

    began: float
    ended: float
    cpu_seconds: float


def record(url: str, number: int, given: argparse.Namespace, folder: Path) -> None:
    """One worker crawls; the bytes of each of its round trips, and how many of them only take the partitions."""
    link = RecordedLink(url)
    store = RedisStore(link, "bench", f"w{number}", PARTITIONS)
    ahead = hold(store, number, given.workers)
    before = len(link.sent)
    crawl(ahead, Web(hosts_of(store), given.new, number), given.pages, store)
    (folder / str(number)).write_bytes(pickle.dumps((before, link.sent)))
    store.close()


def replay(port: int, folder: Path, number: int, barrier: Any, results: Any) -> None:
    """One worker's bytes again."""
    before, sent = pickle.loads((folder / str(number)).read_bytes())
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for data in sent[:before]:
            _round_trip(sock, data)
        barrier.wait()
        began, began_cpu = time.monotonic(), time.process_time()
        for data in sent[before:]:
            _round_trip(sock, data)
        results.put(Replayed(began, time.monotonic(), time.process_time() - began_cpu))


_LAST_WORD = b"that is all"
_ECHO = b"*2\r\n$4\r\nECHO\r\n$11\r\n%s\r\n" % _LAST_WORD


def _round_trip(sock: socket.socket, data: bytes) -> None:
    sock.sendall(data + _ECHO)
    end = b""
    while not end.endswith(_LAST_WORD + b"\r\n"):
        received = sock.recv(1 << 20)
        assert received
        end = (end + received)[-32:]


def known_urls(link: RedisLink) -> int:
    """Of the whole crawl."""
    return sum(link.many([Call("HLEN", [partition_keys("bench", p).pages]) for p in range(PARTITIONS)]))


def run(processes: list[multiprocessing.Process]) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0


def replayed(server: RedisServer, folder: Path, given: argparse.Namespace, expected: int) -> None:
    """All workers' bytes at once, and what came of it."""
    link = RedisLink(server.url)
    for script in [*vars(scripts).values(), *vars(batch_scripts).values()]:
        if isinstance(script, scripts.Script):
            link.call("SCRIPT", ["LOAD"], script.text)
    results: multiprocessing.Queue[Replayed]
    barrier, results = multiprocessing.Barrier(given.workers + 1), multiprocessing.Queue()
    processes = [
        multiprocessing.Process(target=replay, args=(server.port, folder, number, barrier, results))
        for number in range(given.workers)
    ]
    for process in processes:
        process.start()
    barrier.wait()
    errors, cpu = link.call("INFO", [], "errorstats"), cpu_seconds(link)
    done = [results.get() for _ in processes]
    cpu = cpu_seconds(link) - cpu
    wall = max(each.ended for each in done) - min(each.began for each in done)
    assert known_urls(link) == expected
    assert link.call("INFO", [], "errorstats") == errors
    pages = given.pages * given.workers
    print(f"{given.new} of 50 links new, {given.workers} workers: {pages / wall:,.0f} pages/s through one Redis, "
          f"busy {cpu / wall:.0%} of the time with {cpu / pages * 1e6:.0f} µs a page")  # fmt: skip
    link.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_capacity", description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20_000, help="of each worker")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--new", type=int, default=5, help="new URLs on each page, at most 42")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with redis_server(folder / "first", *ACKNOWLEDGED) as server:
            workers = range(given.workers)
            run([multiprocessing.Process(target=record, args=(server.url, n, given, folder)) for n in workers])
            link = RedisLink(server.url)
            expected = known_urls(link)
            link.close()
        with redis_server(folder / "second", *ACKNOWLEDGED) as server:
            replayed(server, folder, given, expected)


if __name__ == "__main__":
    main()
