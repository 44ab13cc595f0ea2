"""What innocent sites get beside a slow neighbour at their address, as shares of what their twins get alone.

    python -m tests.hostile.shared_addresses [process|local|redis ...]

Each crawl is real, of two workers where it is a fleet's, over real sockets. Sites and twins are asked at the same time,
so a busy machine slows both.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from tests.crawls.operator.spoken_to import crawling
from tests.hostile.arena import SETTINGS, Arena, arena
from tests.hostile.test_slow_neighbours import SLOW_SECONDS, slow
from tests.stores.redis_servers import redis_server
from tests.web.running import one_pace
from tests.web.waiting import wait_until
from tests.web.zygote import Process

LEAST_SHARE = 0.9
_SITES, _SLOW_HOSTS = 8, 3
_SECONDS = 90.0
_PACED = {**SETTINGS, **one_pace(0.5), "SCOPE_MAX_DEPTH": "100000", "PACE_IP_SECONDS": "0.1"}


@contextlib.contextmanager
def crawl_of(kind: str, web: Arena, seeds: list[str], settings: Mapping[str, str]) -> Iterator[list[Process]]:
    """The processes of a crawl of one process, or of a fleet of two workers (``local``, ``redis``)."""
    listed = web.folder / "seeds.txt"
    listed.write_text("\n".join(seeds) + "\n")
    given = ("-a", f"seeds={listed}", "-a", "scope=any", *(("--workers", "2") if kind == "local" else ()))
    command = "fleet" if kind == "local" else "crawl web"
    with contextlib.ExitStack() as stack:
        workers: list[dict[str, str]] = [{}]
        if kind == "redis":
            server = stack.enter_context(redis_server(web.folder / "redis"))
            workers = [{"STATE_URL": server.url, "FLEET_WORKER": name} for name in ("one", "two")]
        yield [
            stack.enter_context(crawling(web, *given, settings={**settings, **each}, command=command))
            for each in workers
        ]


def shares(kind: str, folder: Path) -> list[float]:
    """Of each innocent site, over a minute and a half from its twin's first page on."""
    with arena(folder) as web, contextlib.ExitStack() as stack:
        seeds: list[str] = []
        for number in range(_SITES):
            address = f"127.67.0.{number + 1}"
            seeds += [web.raw_site(f"h{n}.slow-{number}.test", slow(SLOW_SECONDS), address) for n in range(_SLOW_HOSTS)]
            seeds += [web.innocent(name=f"site-{number}.test", address=address)]
            seeds += [web.innocent(name=f"twin-{number}.test")]
        processes = stack.enter_context(crawl_of(kind, web, seeds, _PACED))
        twins = [f"twin-{number}.test" for number in range(_SITES)]
        wait_until(lambda: all(len(web.of(twin)) > 1 for twin in twins), "every twin is asked", seconds=60)
        began = time.time()
        time.sleep(_SECONDS)
        until = time.time()
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=60)
        for number in range(_SITES):
            visits = sorted(visit for visit in web.visits if visit.ip == f"127.67.0.{number + 1}")
            assert all(before.end <= visit.start for before, visit in pairwise(visits)), "two at once"
        asked = Counter(visit.host for visit in web.visits if began <= visit.start <= until)
        return [asked[f"site-{number}.test"] / asked[twin] for number, twin in enumerate(twins)]


def main() -> int:
    """Measure and print; whether each site got its nine tenths."""
    least = 1.0
    for kind in sys.argv[1:] or ("process", "local", "redis"):
        found = sorted(shares(kind, Path(tempfile.mkdtemp())))
        least = min(least, found[0])
        each = " ".join(f"{share:.0%}" for share in found)
        print(f"{kind:8} least {found[0]:6.1%}, mean {sum(found) / len(found):6.1%}, each {each}", flush=True)
    return 0 if least >= LEAST_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
