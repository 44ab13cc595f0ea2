"""``python -m benchmarks.start_up [--urls 10_000_000] [--hosts 100_000]``: from the command to the first fetch.

A frontier is filled, then a crawl is started on it three times: as it was left, with nothing of it in the operating
system's cache (root only), and after ``kill -9``. The moment of the first fetch is the server's.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.web.judge import read_visits
from tests.web.running import crawl_command, many_files, start, synthetic_web
from tests.web.zygote import Process

PACE_SECONDS = "0.1"  # after a kill every host waits its whole delay first: that is politeness, not start-up
_BATCH = 5_000  # rows stored at once
_RUN_SECONDS = 5.0  # of crawling before it is killed
_GIVE_UP_SECONDS = 120.0
_LOOK_SECONDS = 0.01
_DROP = Path("/proc/sys/vm/drop_caches")


def fill(folder: Path, hosts: list[str], urls: int) -> None:
    """A frontier with ``urls`` rows, host after host in turn, as links of many pages come."""
    store, rows, seconds = RocksStore(folder / "frontier"), list[QueuedPage](), time.monotonic()
    for number in range(urls):
        address = parse(f"http://{hosts[number % len(hosts)]}/p/{number // len(hosts)}")
        rows.append(QueuedPage(address.host, address.key, address.url, 1, number + 1, 2, "LL", ""))
        if len(rows) == _BATCH or number + 1 == urls:
            store.apply(Changes(queued=rows))
            rows = []
    store.close()
    print(f"{urls:,} URLs of {len(hosts):,} hosts stored in {time.monotonic() - seconds:.0f} s", flush=True)


def first_fetch(command: list[str], log: Path, output: Path) -> tuple[float, Process]:
    """Seconds from the command to the first request that the server saw, and the crawl, which goes on."""
    before, began = len(read_visits(log)) if log.exists() else 0, time.time()
    with output.open("wb") as text:
        process = start(command, text)
    while time.time() - began < _GIVE_UP_SECONDS and process.poll() is None:
        if log.exists() and log.read_bytes().count(b"\n") > before:
            return min(visit.start for visit in read_visits(log)[before:]) - began, process
        time.sleep(_LOOK_SECONDS)
    print(output.read_text()[-2000:])
    sys.exit("the crawl fetched nothing")


def forget_files() -> bool:
    """Empty the operating system's cache of files; False when that is not allowed."""
    subprocess.run(["sync"], check=True)
    try:
        _DROP.write_text("3")
    except OSError:
        return False
    return True


def main() -> None:
    """Fill, start, start cold, kill, start cold again."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start_up", description=__doc__)
    parser.add_argument("--urls", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    given = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="start-up-") as scratch:
        folder, web = Path(scratch), Path(scratch, "web")
        with synthetic_web(
            web, "--profile", "broad", "--hosts", str(given.hosts), "--response-seconds", "0.01"
        ) as running:
            seeds = [line.split("//")[1].split("/")[0] for line in (web / "seeds.txt").read_text().split()]
            fill(folder / "crawl", seeds, given.urls)
            (folder / "seed.txt").write_text(f"http://{seeds[0]}/\n")
            pace = {f"PACE_{name}_SECONDS": PACE_SECONDS for name in ("MIN", "MAX", "START", "IP")}
            settings = {"PACE_PRESET": "fixed5", "RENDER": "never", **pace}
            command = crawl_command(folder / "seed.txt", folder / "crawl", running.folder / "hosts", settings)
            for what, cold, kill in (("as it was left", False, False), ("cold", True, True), ("killed", True, False)):
                if cold and not forget_files():
                    print(f"{what}: not cold, only root may empty the system's cache")
                seconds, process = first_fetch(command, web / "server.jsonl", folder / "crawl.log")
                print(f"{what}: first fetch after {seconds:.2f} s", flush=True)
                if kill:
                    time.sleep(_RUN_SECONDS)
                    process.kill()
                else:
                    process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
