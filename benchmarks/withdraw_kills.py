"""``python -m benchmarks.withdraw_kills [--kills 20] [--seed 1]``: kill -9 in the middle of erasures and uploads.

A crawl of three hosts in several WARC files, processed, loaded, exported, and uploaded to a server of S3 (moto's), in
every other round with the only copies there. ``scrapy withdraw HOST --erase`` is killed at a moment of its choice and
started again until it ends. After each death warcio and cdxj-indexer read every file that is there; at the end py-wacz
packs and validates them, too, all other records are as they were, and no byte of what was erased is in the folder or
in the bucket: neither its text, packed or not, nor a slice of its records as they lay in their files.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq

from crawlerproject.rules.archive.warc_members import TOMBSTONE, Member
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.warc_reader import members
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, PageRecord, pack_open
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.commands.running import archive_of, write
from tests.stores.uploads.s3_servers import BUCKET, KEYS, S3Server, s3_server
from tests.warc_samples import STARTED_AT, exchange

_TOOLS = Path(".venv-tools/bin").absolute()
_GONE = "h1.example.com"
_SECRET = b"s3cr3t-of-the-owner"
_PAGES, _BODY_BYTES, _FILE_BYTES = 120, 40_000, 900_000
_SLICE_BYTES = 64


def main() -> None:
    """Print what came of it; status 1 when something is not as it must be."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=20)
    asked.add_argument("--seed", type=int, default=1)
    options = asked.parse_args()
    chance, server = random.Random(options.seed), s3_server()
    os.environ.update(KEYS, AWS_ENDPOINT_URL=server.url)
    kills = starts = rounds = 0
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        pristine = _crawl(CrawlDir(place) / "pristine", chance)
        before = [record for record in _records(pristine) if _GONE not in record.url]
        slices = _slices(pristine)
        longest = 0.0  # seconds of the shortest run that was not killed
        while kills < options.kills or rounds < 2:
            folder = CrawlDir(shutil.copytree(pristine, Path(place) / f"round-{rounds}"))
            keep, prefix = rounds % 2 == 0, f"round-{rounds}"
            _scrapy("upload", str(folder), "-s", f"ARCHIVE_URL=s3://{BUCKET}/{prefix}", f"-sARCHIVE_KEEP_LOCAL={keep}")
            while True:
                starts += 1
                after = chance.uniform(0.4, 1.0) * longest if longest and kills < options.kills else None
                began = time.monotonic()
                status = _erase(folder, keep, after)
                problems += _read_by_others(folder)
                if status == 0:
                    longest = min(longest or 600.0, time.monotonic() - began)
                    break
                kills += 1
            problems += _judged(folder, server, prefix, before, slices)
            rounds += 1
            print(f"round {rounds}: {kills} kills in {starts} starts, {len(problems)} problems", flush=True)
            shutil.rmtree(folder)
    print(*problems, sep="\n")
    print(
        f"{kills} kills in {starts} starts of {rounds} erasures, {len(slices)} records each: {len(problems)} problems"
    )
    sys.exit(1 if problems else 0)


def _crawl(folder: CrawlDir, chance: random.Random) -> CrawlDir:
    """Pages of three hosts in turn, of noise that no two have in common."""
    folder.frontier.mkdir(parents=True)
    made, store, changes = archive_of(folder, max_bytes=_FILE_BYTES), RocksStore(folder.frontier), Changes()
    for number in range(_PAGES):
        url = f"http://h{number % 3}.example.com/{number}"
        word = _SECRET if _GONE in url else b"open"
        body = b"<title>%s</title>%s %s" % (word, word, chance.randbytes(_BODY_BYTES // 2).hex().encode())
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        written = write(made, url, exchange(body, head))
        changes.pages.append((parse(url).key, PageRecord(url, "fetched", 200, STARTED_AT, written.digest)))
        made.flush()
        made.warc.roll_if_full()
    changes.facts = [(ARCHIVE_FACT, pack_open(made.warc.state()))]
    store.apply(changes)
    made.close()
    store.close()
    for command in (["process", "--wet", "--wat", "--workers", "1"], ["load"], ["export"]):
        _scrapy(*command, str(folder))
    return folder


def _scrapy(*arguments: str) -> None:
    done = subprocess.run([sys.executable, "-m", "scrapy", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments}: {done.stderr}")


def _erase(folder: CrawlDir, keep: bool, kill_after: float | None) -> int:
    """The exit status; that of a kill after so many seconds."""
    never = folder.parent / "never.txt"
    command = [
        sys.executable, "-m", "scrapy", "withdraw", _GONE, "--why", "asked by their webmaster", "--erase",
        "-s", f"CRAWL_DIR={folder}", "-s", f"NEVERCRAWL_FILE={never}", "-s", "NEVERCRAWL_USER_FILE=",
        "-s", f"ARCHIVE_KEEP_LOCAL={keep}",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
        if process.returncode:
            raise RuntimeError(said)
        return process.returncode


def _read_by_others(folder: CrawlDir) -> list[str]:
    """What warcio and cdxj-indexer say against the files that are there."""
    problems = []
    for tool in (["warcio", "check"], ["cdxj-indexer"]):
        for path in folder.closed_warcs():
            done = subprocess.run([_TOOLS / tool[0], *tool[1:], path], capture_output=True, text=True, check=False)
            if done.returncode or "Traceback" in done.stderr:
                problems.append(f"{tool[0]}: {path.name}: {(done.stdout + done.stderr)[-300:]}")
    return problems


def _judged(folder: CrawlDir, server: S3Server, prefix: str, before: list[Member], slices: list[bytes]) -> list[str]:
    """What is not as it must be after an erasure that has ended."""
    there = server.under(prefix)
    problems = [f"upload of {name} has not ended" for name in server.unfinished(prefix)]
    here = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for where, files in (("folder", here), ("bucket", there)):
        for name, data in files.items():
            if any(_SECRET in shape for shape in _shapes(name, data)) or any(piece in data for piece in slices):
                problems.append(f"{name} in the {where} holds some of it")
    copy = CrawlDir(folder.parent / "copy")
    for name, data in {**there, **here}.items():
        if name.startswith(("warc/", "index/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(data)
    found = list(_records(copy))
    if [record for record in found if record.kind != TOMBSTONE] != before:
        problems.append("other records are not as they were")
    problems += _read_by_others(copy) + _indexed(copy) + _packed(copy)
    shutil.rmtree(copy)
    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "verify", str(folder)], capture_output=True, text=True, check=False
    )
    return problems + ([done.stderr] if done.returncode else [])


def _indexed(copy: CrawlDir) -> list[str]:
    """Whether cdxj-indexer's places and ours are the same."""
    problems = []
    for path in copy.closed_warcs():
        theirs = subprocess.run([_TOOLS / "cdxj-indexer", path], capture_output=True, text=True, check=True).stdout
        ours = (copy.index / f"{path.name.removesuffix('.warc.gz')}.cdxj").read_text()
        if _places(theirs) != _places(ours):
            problems.append(f"cdxj-indexer finds other places than ours in {path.name}")
    return problems


def _places(lines: str) -> list[tuple[str, str]]:
    fields = [json.loads(line.split(" ", 2)[2]) for line in lines.splitlines()]
    return sorted((found["url"], found["offset"]) for found in fields)


def _packed(copy: CrawlDir) -> list[str]:
    """Whether py-wacz packs and validates it."""
    target = copy / "all.wacz"
    calls: list[list[str | Path]] = [["create", "-o", target, *copy.closed_warcs()], ["validate", "-f", target]]
    for arguments in calls:
        done = subprocess.run([_TOOLS / "wacz", *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            return [f"wacz {arguments[0]}: {(done.stdout + done.stderr)[-300:]}"]
    return []


def _shapes(name: str, data: bytes) -> Iterator[bytes]:
    yield data
    with suppress(OSError, EOFError):
        yield gzip.decompress(data)
    if name.endswith(".parquet"):
        yield repr(pq.read_table(BytesIO(data)).to_pylist()).encode()


def _records(folder: CrawlDir) -> Iterator[Member]:
    found = (each for path in folder.closed_warcs() for each in members(path))
    return (each for each in found if isinstance(each, Member))


def _slices(folder: CrawlDir) -> list[bytes]:
    """Of each record that is to go some bytes from its middle, as they lie in its file."""
    return [piece for path in folder.closed_warcs() for piece in _of_file(path.read_bytes(), members(path))]


def _of_file(data: bytes, found: Iterable[object]) -> Iterator[bytes]:
    for each in found:
        if isinstance(each, Member) and each.kind == "response" and _GONE in each.url:
            middle = each.offset + each.length // 2
            yield data[middle : middle + _SLICE_BYTES]


if __name__ == "__main__":
    main()
