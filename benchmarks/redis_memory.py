"""What a frontier of so many URLs takes in Redis, and what the bytes are.

    python -m benchmarks.redis_memory --urls 10_000_000 --hosts 20_000 --new 40

Two workers that skip the network crawl (as in ``redis_frontier``) until so many URLs are known. Then Redis is asked for
the size of its keys (MEMORY USAGE; hashes and sets are estimated from 5,000 fields), beside the whole.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.redis_frontier import PARTITIONS, Web, cpu_seconds, crawl, hold, hosts_of
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.keys import partition_keys
from crawlerproject.stores.redis.redis_store import RedisStore
from tests.stores.redis_servers import redis_server

_WORKERS = 2
_SAMPLES = 5_000
_AT_A_TIME = 1_000


def fill(url: str, number: int, given: argparse.Namespace) -> None:
    """One worker's half."""
    store = RedisStore(RedisLink(url), "bench", f"w{number}", PARTITIONS)
    ahead = hold(store, number, _WORKERS)
    web = Web(hosts_of(store, given.hosts // _WORKERS), given.new, number)
    first = 4 * len(web.hosts)
    crawl(ahead, web, (given.urls // _WORKERS - first) // given.new, store)
    store.close()


def sizes(link: RedisLink) -> tuple[Counter[str], Counter[str]]:
    """Bytes and number of things, by what they are."""
    taken, count = Counter[str](), Counter[str]()
    for number in range(PARTITIONS):
        keys = partition_keys("bench", number)
        hosts = sorted(link.call("SMEMBERS", [keys.work]))
        queues = [keys.queue_prefix.encode() + host for host in hosts]
        of_kinds: dict[str, list[str | bytes]] = {
            "known URLs and page records": [keys.pages], "queues": [*queues], "states of hosts": [keys.hosts],
            "hosts with work": [keys.work], "letters": [keys.inbox],
        }  # fmt: skip
        for kind, names in of_kinds.items():
            calls = [Call("MEMORY", ["USAGE", name], ["SAMPLES", _SAMPLES]) for name in names]
            taken[kind] += sum(size or 0 for size in link.many(calls))
        count["queues"] += len(queues)
        count["members of queues"] += sum(link.many([Call("ZCARD", [queue]) for queue in queues]))
        count["known URLs"] += link.call("HLEN", [keys.pages])
        count["hosts"] += link.call("HLEN", [keys.hosts])
    return taken, count


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redis_memory", description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--new", type=int, default=40, help="new URLs on each page, at most 42")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, redis_server(Path(name), "--appendonly", "no") as server:
        link = RedisLink(server.url)
        empty, began = link.call("INFO", [], "memory")["used_memory"], time.monotonic()
        processes = [multiprocessing.Process(target=fill, args=(server.url, n, given)) for n in range(_WORKERS)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        wall, memory = time.monotonic() - began, link.call("INFO", [], "memory")
        taken, count = sizes(link)
        whole, urls = memory["used_memory"] - empty, count["known URLs"]
        print(f"{urls:,} known URLs on {count['hosts']:,} hosts, {given.new} new on each page: {whole / 1e9:.2f} GB, "
              f"{whole / urls:.0f} bytes a URL; the process {memory['used_memory_rss'] / 1e9:.2f} GB")  # fmt: skip
        for kind, size in taken.most_common():
            print(f"  {kind}: {size / whole:.1%}, {size / urls:.1f} bytes a URL, {size / count['hosts']:,.0f} a host")
        print(f"  the rest: {1 - sum(taken.values()) / whole:.1%}")
        print(f"  {count['members of queues']:,} members in {count['queues']:,} queues")
        print(f"  filled in {wall:,.0f} s with {cpu_seconds(link):,.0f} s of Redis")
        link.close()


if __name__ == "__main__":
    main()
