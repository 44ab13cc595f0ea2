"""``python -m benchmarks.kill_loop [--kills 30] [--web small|real]``: kill -9 at random moments, then compare.

Afterwards: the archived set equals that of an uninterrupted crawl, no address has two captures, every WARC passes
strict reading, and by the server's own log no host or address saw a pause below its promise across any restart.
``--recover``: after every kill the frontier is damaged or lost as well, and ``scrapy recover`` makes it again.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from benchmarks.kill_loop.webs import Target, real, small
from crawlerproject.reports.warc_check import check_file
from tests.web.judge import (
    Verdict,
    judge_captures,
    judge_pauses,
    judge_references,
    log_rows,
    read_attempts,
    read_captures,
    read_visits,
    show,
)
from tests.web.running import crawl_command, finish, many_files, measured, start
from tests.web.zygote import Process

_LEAST_LIFE_SECONDS = 1.0  # a start takes about this long: kills come from the opening of the stores on
_WITHOUT_INDEX_SHARE = 0.5  # of the times when the whole frontier is gone
_LOOK_SECONDS = 0.02  # at what a crawl has asked for so far
_TAIL = 2000  # characters of a crawl's output shown when it failed
Captures = dict[str, Counter[int]]


def command(target: Target, crawl_dir: Path, pace: float) -> list[str]:
    names = ("PACE_MIN_SECONDS", "PACE_START_SECONDS", "PACE_IP_SECONDS")
    settings = {"PACE_PRESET": "mirror", **dict.fromkeys(names, f"{pace:g}"), **target.settings}
    return crawl_command(target.folder / "seeds.txt", crawl_dir, target.folder / "hosts", settings, target.scope)


def undisturbed(target: Target, crawl_dir: Path, pace: float) -> tuple[Captures, int]:
    """(captures, bytes of the server's log) of one crawl that is left alone."""
    log, before = crawl_dir.with_suffix(".log"), _log_bytes(target)
    spent = measured(command(target, crawl_dir, pace), log)
    if spent.status:
        _give_up(log, spent.status)
    print(f"undisturbed: {spent.wall_seconds:.0f} s", flush=True)
    return read_captures(crawl_dir / "warc"), _log_bytes(target) - before


def killed(target: Target, crawl_dir: Path, alone_bytes: int, given: argparse.Namespace) -> int:
    """The same crawl, killed at random moments until it ends by itself; how often it was killed.

    No start asks for more than its share of what the undisturbed crawl did (``alone_bytes`` of the server's log), so
    that a quick machine has not done before the last kill.
    """
    chance = random.Random(given.seed)
    log, kills = crawl_dir.with_suffix(".log"), 0
    share = alone_bytes // (given.kills + 1)
    with log.open("wb") as output:
        while True:
            began = time.monotonic()
            process = start(command(target, crawl_dir, given.pace), output)
            if kills < given.kills:
                _live(process, target, began + chance.uniform(_LEAST_LIFE_SECONDS, given.longest), share)
            else:
                process.wait()
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += finish(process, began).status == -signal.SIGKILL
                if given.recover:
                    lose_frontier(crawl_dir, chance)
                    recover(crawl_dir, output)
                continue
            if process.returncode:
                _give_up(log, process.returncode)
            return kills


def _live(process: Process, target: Target, until: float, most_bytes: int) -> None:
    """Until that moment, or the server's log has grown by so much, or the process has ended."""
    before = _log_bytes(target)
    while process.poll() is None and time.monotonic() < until and _log_bytes(target) - before < most_bytes:
        time.sleep(_LOOK_SECONDS)


def _log_bytes(target: Target) -> int:
    return target.log.stat().st_size if target.log.exists() else 0


def lose_frontier(crawl_dir: Path, chance: random.Random) -> None:
    """One of the ways in which a disk loses it; at times the indexes as well."""
    frontier = crawl_dir / "frontier"
    if not (frontier / "CURRENT").exists():  # killed before it had one
        return
    tables = sorted(frontier.glob("*.sst"))
    ways = ("all", "CURRENT", "MANIFEST-*", chance.choice(tables).name if tables else "CURRENT")
    way = chance.choice(ways)
    if way == "all":
        shutil.rmtree(frontier)
        if chance.random() < _WITHOUT_INDEX_SHARE:
            shutil.rmtree(crawl_dir / "index", ignore_errors=True)
    elif way == "CURRENT":
        (frontier / way).unlink()
    else:
        for path in frontier.glob(way):
            os.truncate(path, path.stat().st_size // 2)


def recover(crawl_dir: Path, output: IO[bytes]) -> None:
    """``scrapy recover``; where nothing was archived yet there is nothing to recover, and the crawl begins again."""
    if not any((crawl_dir / "warc").glob("*.warc.gz*")):
        shutil.rmtree(crawl_dir / "frontier", ignore_errors=True)
        return
    command = [sys.executable, "-m", "scrapy", "recover", str(crawl_dir)]
    # A manifest that is cut short is an earlier one: at times only the comparison with the archive tells.
    ended = start(command, output).wait() and start([*command, "--frontier"], output).wait()
    if ended:
        _give_up(crawl_dir.with_suffix(".log"), ended)


def _give_up(log: Path, status: int) -> None:
    print(log.read_text(errors="replace")[-_TAIL:])
    sys.exit(f"the crawl ended with status {status}")


def judge(target: Target, crawl_dir: Path, alone: Captures, since: float, given: argparse.Namespace) -> Verdict:
    """The killed crawl against the undisturbed one, the expected set, strict reading and the server's log."""
    captures = read_captures(crawl_dir / "warc")
    verdict = judge_captures(captures, target.expected, aliases=target.aliases, **target.loose)
    spare = {url for urls in (*target.loose.values(), *target.aliases) for url in urls}
    endless = tuple(f"http://{host}" for host in target.loose.get("endless", ()))
    apart = captures.keys() ^ alone.keys()
    differing = sorted(url for url in apart - spare if not (endless and url.startswith(endless)))
    verdict.faults += [f"in one crawl only: {url}" for url in differing]
    for path in sorted((crawl_dir / "warc").iterdir()):
        verdict.faults += [f"{path.name}: {flaw}" for flaw in check_file(path).flaws]
        if path.suffix == ".open":
            verdict.faults.append(f"{path.name} was left open")
    verdict.add(judge_references(crawl_dir / "warc"))
    visits = [visit for visit in read_visits(target.log) if visit.start >= since]
    for url in sorted(url for url in target.expected if not captures.get(url)):
        known = ", ".join(str(row["reason"]) for row in log_rows(crawl_dir / "log") if row["url"] == url)
        wanted = urlsplit(url)
        asked = sum((visit.host, visit.path.partition("?")[0]) == (wanted.hostname, wanted.path) for visit in visits)
        verdict.faults.append(f"of {url} the log says: {known or 'nothing'}; the server was asked {asked} times for it")
    logged = read_attempts(crawl_dir / "log")
    promises = {"host_seconds": given.pace, "ip_seconds": given.pace, "floors": target.floors}
    verdict.add(judge_pauses(visits, **promises, logged=logged))
    again = len(visits) - sum(sum(found.values()) for found in captures.values())
    verdict.facts.append(f"{again} answers were lost to kills and asked for again, or had nothing to archive")
    return verdict


def compare(folder: Path, given: argparse.Namespace) -> Verdict:
    """Both crawls, then the verdict."""
    if given.web == "small":
        with small(folder / "first") as target:
            alone, alone_bytes = undisturbed(target, folder / "alone", given.pace)
            port = next(iter(target.expected)).split(":")[2].split("/")[0]
        with small(folder / "second", int(port)) as target:
            return _second(target, folder, alone, alone_bytes, given)
    with real(folder / "web", given.pages) as target:
        return _second(target, folder, *undisturbed(target, folder / "alone", given.pace), given)


def _second(target: Target, folder: Path, alone: Captures, alone_bytes: int, given: argparse.Namespace) -> Verdict:
    since = time.time()
    kills = killed(target, folder / "killed", alone_bytes, given)
    verdict = judge(target, folder / "killed", alone, since, given)
    verdict.facts.insert(0, f"killed {kills} times in {time.time() - since:.0f} s")
    if kills < given.kills:
        verdict.faults.append(f"the crawl ended after {kills} of {given.kills} kills: choose fewer")
    return verdict


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_loop", description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--web", choices=("small", "real"), default="real")
    parser.add_argument("--pages", type=int, help="real only: about how many (default all)")
    parser.add_argument("--pace", type=float, default=0.5, help="seconds promised to each host and address")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds that a start lives at most")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--recover", action="store_true", help="lose the frontier as well at every kill")
    parser.add_argument("--keep", type=Path, help="a folder to work in and leave behind (default: a temporary one)")
    given = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="kill-loop-") as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        sys.exit(show(compare(folder, given)))


if __name__ == "__main__":
    main()
