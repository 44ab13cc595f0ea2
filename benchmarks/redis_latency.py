"""``python -m benchmarks.redis_latency [--milliseconds 0,20,100]``: a fleet whose way to Redis is long.

Two workers crawl a broad web, each host at its own address, through a relay that delays what goes to Redis and what
comes back by half of the round trip each. Printed are requests a second by the server's log, and their ratio to those
without a delay; commands and bytes that Redis saw, CPU that it took.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stores.redis_servers import redis_server
from tests.web.judge import judge_pauses, read_visits
from tests.web.ports import free_port
from tests.web.running import crawl_command, measured, small_settings, synthetic_web

_CHUNK_BYTES = 1 << 16
_PAGES_A_HOST = 8  # robots.txt beside
_PACE_SECONDS = 0.5  # PACE_IP_SECONDS of the preset "mirror"


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    while data := await reader.read(_CHUNK_BYTES):
        loop.call_later(seconds, writer.write, data)
    loop.call_later(seconds, writer.close)


@contextmanager
def relay(port: int, seconds: float) -> Iterator[int]:
    """A port of this machine that leads to ``port``; there and back takes ``seconds`` more."""
    own, loop = free_port(), asyncio.new_event_loop()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        ways = _carry(reader, back, seconds / 2), _carry(there, writer, seconds / 2)
        await asyncio.gather(*ways, return_exceptions=True)

    loop.run_until_complete(asyncio.start_server(connected, "127.0.0.1", own))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield own
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def crawled(folder: Path, hosts: int, seconds: float) -> float:
    """Requests a second."""
    arguments = ("--profile", "broad", "--hosts", str(hosts), "--response-seconds", "0.01")
    with (
        redis_server(folder / "redis", "--appendfsync", "everysec") as redis,
        relay(redis.port, seconds) as port,
        synthetic_web(folder / "web", *arguments) as web,
    ):
        settings = {**small_settings(web), "SCOPE_MAX_URLS_PER_HOST": str(_PAGES_A_HOST)}
        settings |= {"STATE_URL": f"redis://127.0.0.1:{port}/0", "FLEET_PARTITIONS": "64"}
        command = crawl_command(web.folder / "seeds.txt", folder / "crawl", web.folder / "hosts", settings)
        at = command.index("crawl")
        spent = measured([*command[:at], "fleet", *command[at + 2 :], "--workers", "2"], folder / "log")
        if spent.status:
            sys.exit((folder / "log").read_text()[-3000:])
        with redis.client() as client:
            seen = client.info()
        visits = read_visits(web.folder / "server.jsonl")
    judged = judge_pauses(visits, host_seconds=_PACE_SECONDS / 2, ip_seconds=_PACE_SECONDS)
    rate = len(visits) / (max(visit.end for visit in visits) - visits[0].start)
    commands, octets = (
        sum(seen[name] for name in names) / len(visits)
        for names in (("total_commands_processed",), ("total_net_input_bytes", "total_net_output_bytes"))
    )
    redis_us = 1e6 * (seen["used_cpu_user"] + seen["used_cpu_sys"]) / len(visits)
    print(
        f"{1000 * seconds:>5g} ms: {rate:,.0f} requests a second of {len(visits):,}, {len(judged.faults)} too soon; "
        f"a request: {commands:.1f} commands, {octets:,.0f} bytes, {redis_us:.0f} µs of Redis, "
        f"{1000 * spent.cpu_seconds / len(visits):.2f} ms of workers",
        flush=True,
    )
    return rate


def main() -> None:
    """Each distance in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--milliseconds", default="0,20,100")
    parser.add_argument("--hosts", type=int, default=400)
    given = parser.parse_args()
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        for number, distance in enumerate(given.milliseconds.split(",")):
            rates.append(crawled(Path(folder) / str(number), given.hosts, float(distance) / 1000))
    print("of the first: " + ", ".join(f"{rate / rates[0]:.0%}" for rate in rates[1:]))


if __name__ == "__main__":
    main()
