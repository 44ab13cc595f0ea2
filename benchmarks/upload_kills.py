"""``python -m benchmarks.upload_kills [--rounds 20] [--seed 1]``: kill -9 in the middle of uploads to a real S3 server.

A folder with closed WARC files goes to a server of S3 (moto's) by the process that a crawl starts. It is killed as a
request of its choice is on its way, before or after the server has seen it, and started again. At each death every
file must lie here or there, whole; at the end all are there, once, and nothing is left half done. Prints what was sent
against what there was to send: what a death costs.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.uploads.upload_journal import Journal
from tests.stores.uploads.folders import archived, crawl_folder, local, nothing_lost
from tests.stores.uploads.s3_servers import BUCKET, KEYS, Answer, Asked, Cut, Fault, Proxy, proxied, s3_server

_FILES = 3
_FILE_BYTES = 17_000_000  # three parts
_REQUESTS = 20
"""Of a run, after which it is killed at the latest; all of it takes some eighty."""
_SENDS = ("PUT", "POST", "PATCH")
_WAYS = {"keep_local": False, "read_back": False, "bytes_per_second": 0}


class Outcome(NamedTuple):
    """What came of it."""

    kills: int
    starts: int
    wanted_bytes: int
    sent_bytes: int
    problems: list[str]


class Place(NamedTuple):
    """A server, and an archive's place there."""

    port: int
    url: str
    environment: Callable[[int], dict[str, str]]  # of a process that asks it through this port
    there: Callable[[], dict[str, bytes]]  # what is below the place
    unfinished: Callable[[], list[str]]  # files of which only parts lie there


def in_s3() -> Place:
    """moto's server."""
    server = s3_server()
    return Place(
        server.port,
        f"s3://{BUCKET}/kills",
        lambda port: KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"},
        lambda: server.under("kills"),
        lambda: server.unfinished("kills"),
    )


class _Killing(Fault):
    """Kills the process at its ``turn``-th request."""

    def __init__(self, process: subprocess.Popen[bytes], turn: int, *, seen: bool) -> None:
        self._process, self._left, self._seen = process, turn, seen
        self._due = False

    def before(self, asked: Asked) -> Answer | Asked:
        self._left -= 1
        if self._left == 0 and not self._seen:
            self._kill()
        return asked

    def after(self, asked: Asked, answer: Answer) -> Answer:
        if self._left == 0:
            self._kill()
        return answer

    def _kill(self) -> None:
        self._process.kill()
        raise Cut


def run(rounds: int, seed: int, home: Path, *, files: int = _FILES, place: Place | None = None) -> Outcome:
    """As many kills, then one run to the end; ``home`` is for the crawl's folder."""
    chance, place = random.Random(seed), place or in_s3()
    folder = crawl_folder(home / "made")
    wanted, killed, starts = _closed(folder, files, chance), 0, 0
    problems: list[str] = []
    with proxied(place.port) as proxy:
        while killed < rounds:
            starts += 1
            proxy.fault = Fault()
            process = _started(folder, place, proxy)
            proxy.fault = _Killing(process, chance.randint(2, _REQUESTS), seen=chance.random() < 0.5)
            if process.wait() == 0:  # everything was there before its turn came: the crawl has closed more files
                wanted |= _closed(folder, files, chance)
                continue
            killed += 1
            try:
                nothing_lost(wanted, folder, place.there())
            except AssertionError as lost:
                problems.append(f"after kill {killed}: {str(lost).splitlines()[0]} is lost")
        proxy.fault = Fault()
        starts += 1
        if status := _started(folder, place, proxy).wait():
            problems.append(f"the last run ended with status {status}")
        problems += _left(wanted, folder, place)
        sent = sum(len(asked.body) for asked in proxy.asked if asked.method in _SENDS)
    return Outcome(killed, starts, sum(map(len, wanted.values())), sent, problems)


def _closed(folder: CrawlDir, files: int, chance: random.Random) -> dict[str, bytes]:
    """Close so many more files; all that lies here."""
    for _ in range(files):
        stem = f"crawl-20261121{chance.randrange(10**9):09d}-00020-vm"
        (folder.warc / f"{stem}.warc.gz").write_bytes(chance.randbytes(_FILE_BYTES))
        (folder.index / f"{stem}.cdxj").write_text(f"{stem}\n")
    return local(folder)


def _started(folder: CrawlDir, place: Place, proxy: Proxy) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "crawlerproject.stores.uploads.upload_process", str(folder), place.url]
    process = subprocess.Popen(
        [*command, orjson.dumps(_WAYS).decode()],
        env={**os.environ, **place.environment(proxy.port)},
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(b"e")  # the crawl has ended
    process.stdin.flush()
    return process


def _left(wanted: dict[str, bytes], folder: CrawlDir, place: Place) -> list[str]:
    there = place.there()
    problems = [] if archived(there) == wanted else ["what is there is not what was here"]
    if place.unfinished():
        problems.append("parts of files are left there")
    if list(folder.warc.iterdir()):
        problems.append("WARC files are left here")
    if unsettled := [name for name, known in Journal(folder) if known.stage not in ("confirmed", "removed")]:
        problems.append(f"{unsettled} are not confirmed")
    return problems


def main() -> int:
    """Run, and say what was found; 1 when something was lost or doubled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return say(run(given.rounds, given.seed, Path(folder)))


def say(found: Outcome) -> int:
    """Print what came of it; 1 when something was lost or doubled."""
    print(
        f"{found.kills} kills in {found.starts} starts; {found.wanted_bytes:,} bytes to send, {found.sent_bytes:,} sent"
    )
    for problem in found.problems:
        print(problem)
    print(f"{len(found.problems)} problems")
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
