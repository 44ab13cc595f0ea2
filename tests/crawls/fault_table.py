"""``python -m tests.crawls.fault_table [STEP …]``: a fault between any two steps, then the crawl as if there was none.

Each step of a crawl's life is played on a small web once undisturbed, which lists the places where a call can fail.
Then once for each of these places: there one call fails, once, before it has done anything or after it has done all.
The crawl goes on by itself, or ends with a status and is started again by the same command. In the end each page is
archived as often as in the undisturbed crawl, ``verify`` finds nothing wrong, and nothing is left to do.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tests.crawls import faults
from tests.crawls.faults import AFTER, BEFORE, Fault
from tests.hostile.arena import SETTINGS, Arena, Asked, Make, answer, arena, page
from tests.stores.redis_servers import RedisServer
from tests.web import zygote
from tests.web.judge import judge_references, read_captures
from tests.web.running import crawl_command, one_pace
from tests.web.zygote import Process, direct

SITES, PAGES = 3, 8
#: What a page takes in the archive, about.
PAGE_BYTES = 1_500
#: Commits come often, and a WARC file is full after some ten pages.
HASTY = SETTINGS | one_pace(0.02) | {"COMMIT_SECONDS": "0.1", "WARC_MAX_BYTES": "10000", "CRAWLER_CONTACT": "a@b.test"}
#: Leases that run out soon, and requests that are shorter.
SHORT = {"FLEET_LEASE_SECONDS": "3", "FETCH_TIMEOUT_SECONDS": "2", "RENDER_TIMEOUT_SECONDS": "2"}
#: A command that met the fault may have to be given so often again; each end tells the operator what to mend.
MOST_STARTS = 3
_SECONDS = 90.0
_TAIL = 1500
Pages = dict[str, Counter[int]]
#: Which processes of a command are watched.
ITSELF, ALL = "itself", "all of them"


class Play:
    """One step's commands in a folder of its own; some of them are watched."""

    def __init__(self, web: Arena, folder: Path, fault: Fault | None) -> None:
        self.web, self.folder, self.fault = web, folder, fault
        self.crawl = folder / "crawl"
        self.starts: list[int] = []  # the statuses of what was watched
        self.output = ""
        self.state = list[str]()  # options that name the frontier's store, unless it is in the folder
        self.open = contextlib.ExitStack()  # what ends when the crawl has been judged
        (folder / "watch").mkdir(parents=True)

    def run(self, *command: str, watched: str = "") -> int:
        """A command of Scrapy's; its status. ``watched``: ITSELF, ALL of its processes, or the worker of this name."""
        module, more, folder = "scrapy", dict[str, str](), self.folder / "watch"
        if watched == ITSELF:
            module, more = faults.__name__, faults.environment(folder, self.fault)
        elif watched:
            more = faults.environment_of_all(folder, self.fault, watched.removeprefix(ALL))
        ended = zygote.run([sys.executable, "-m", module, *command], env=direct(**more), timeout=_SECONDS)
        self.output += (
            f"$ scrapy {' '.join(command[:3])} -> {ended.returncode}\n{ended.stdout[-_TAIL:]}{ended.stderr}\n"
        )
        return ended.returncode

    def until_done(self, *command: str, watched: str = ITSELF) -> None:
        """The watched command: where it fails, again without a fault. ``{try}`` in a word is the number of the try."""
        for number in range(MOST_STARTS):
            words = [word.replace("{try}", str(number)) for word in command]
            status = self.run(*words, watched="" if number else watched)
            self.starts.append(status)
            if not status:
                return
        raise AssertionError(f"still status {status} after {MOST_STARTS} starts: {self.output[-600:]}")

    def crawling(self, **settings: str) -> list[str]:
        """The words of ``scrapy crawl``."""
        seeds = self.web.folder / "seeds.txt"
        return crawl_command(seeds, self.crawl, self.web.folder / "hosts", HASTY | settings)[3:]

    def fleet(self, workers: int, **settings: str) -> list[str]:
        """The words of ``scrapy fleet``."""
        return ["fleet", *self.crawling(**settings)[2:], "--workers", str(workers)]

    def until_archived(self, pages: int) -> None:
        """Until this crawl's WARC files hold about so many."""
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            if sum(path.stat().st_size for path in self.crawl.rglob("*.warc.gz*")) >= pages * PAGE_BYTES:
                return
            time.sleep(0.005)

    def part(self, pages: int = 12, *, kill: bool = True) -> None:
        """Crawl until about so many pages are archived; then a kill, or an end in good order."""
        process = Process([sys.executable, "-m", "scrapy", *self.crawling()], env=direct())
        self.until_archived(pages)
        process.kill() if kill else process.terminate()
        process.wait()


def site(web: Arena, number: int) -> Make:
    """Pages that link to each other and to the next site; a redirect, a dead link, a payload that all sites have."""

    def make(asked: Asked) -> bytes | None:
        path = asked.path
        if path == "/":
            links = (
                *(f"/{near}" for near in range(PAGES - 2)),
                "/gone",
                "/to",
                web.url(f"s{(number + 1) % SITES}.test"),
            )
            return page(*links, text=f"front {number} " + f"of{number} " * 40)
        if path.strip("/").isdigit():
            words = " ".join(f"{path[1:]}x{number if path != '/3' else ''}y{place}" for place in range(60))
            return page("/", f"/{(int(path[1:]) + 1) % PAGES}", text=words)
        return answer("", "302 Found", Location="/1") if path == "/to" else None

    return make


# --- The steps -----------------------------------------------------------------------------------


def whole(play: Play) -> None:
    """Start, commits, full WARC files, the end."""
    play.until_done(*play.crawling())


def restart(play: Play) -> None:
    """The start after a kill: what is not committed is cut off and queued again."""
    play.part()
    play.until_done(*play.crawling())


def recover(play: Play) -> None:
    """A frontier that is lost is made again from the archive."""
    play.run(*play.crawling())
    shutil.rmtree(play.crawl / "frontier")
    play.until_done("recover", str(play.crawl))
    play.run(*play.crawling())


def backup(play: Play) -> None:
    """A backup of a crawl that has ended; the crawl is restored from it. Each try has a new folder, as it demands."""
    play.run(*play.crawling())
    settings = ["-s", f"CRAWL_DIR={play.crawl}"]
    play.until_done("state", "backup", str(play.folder / "backup-{try}"), *settings)
    shutil.rmtree(play.crawl / "frontier")
    assert not play.run("state", "restore", str(play.folder / f"backup-{len(play.starts) - 1}"), *settings)


def restore(play: Play) -> None:
    """A crawl that is restored while calls fail."""
    play.run(*play.crawling())
    copy = play.folder / "backup"
    settings = ["-s", f"CRAWL_DIR={play.crawl}"]
    assert not play.run("state", "backup", str(copy), *settings)
    shutil.rmtree(play.crawl / "frontier")
    play.until_done("state", "restore", str(copy), *settings)


def upload(play: Play) -> None:
    """What is closed goes to another place beside the crawl, and is removed here."""
    there = play.folder / "there"
    there.mkdir()
    settings = {"ARCHIVE_URL": there.as_uri(), "ARCHIVE_KEEP_LOCAL": "True"}
    play.until_done(*play.crawling(**settings), watched=ALL)
    play.run("upload", str(play.crawl), "-s", f"ARCHIVE_URL={there.as_uri()}")
    here, sent = (sorted(p.name for p in folder.rglob("*.warc.gz")) for folder in (play.crawl, there))
    assert here == sent, (here, sent)


def split(play: Play) -> None:
    """A crawl of one process becomes a fleet of three in its middle."""
    play.part()
    play.until_done(*play.fleet(3), watched=ALL)


def joined(play: Play) -> None:
    """A fleet of three is ended, and goes on as one process."""
    play.part()
    play.run(*play.fleet(3, CLOSESPIDER_PAGECOUNT="8"))
    play.until_done(*play.crawling())


def worker(play: Play) -> None:
    """One of two workers of a local fleet."""
    play.until_done(*play.fleet(2), watched="worker-1")


def shared(play: Play) -> None:
    """A worker on a Redis: another joins, takes half of what it holds, and leaves in good order."""
    settings = on_redis(play) | one_pace(0.1)
    w2 = Process([sys.executable, "-m", "scrapy", *play.crawling(**settings, FLEET_WORKER="w2")], env=direct())
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(play.until_done, *play.crawling(**settings, FLEET_WORKER="w1"))
        play.until_archived(20)
        w2.terminate()
        first.result()
    assert not w2.wait(_SECONDS)
    play.run(*play.crawling(**settings, FLEET_WORKER="w2"))


def copied(play: Play) -> None:
    """A frontier is copied into a Redis in the middle of its crawl, and goes on there."""
    settings = on_redis(play)
    play.part(kill=False)
    play.until_done("state", "copy", str(play.crawl), settings["STATE_URL"], "-s", "FLEET_PARTITIONS=6")
    shutil.rmtree(play.crawl / "frontier")  # it is as it was when it was copied
    play.run(*play.crawling(**settings, FLEET_WORKER="w1"))


def on_redis(play: Play) -> dict[str, str]:
    """A server that runs until the crawl is judged, and the settings of workers that share it."""
    server = RedisServer(play.folder / "redis").start()
    play.open.callback(server.stop)
    play.state = ["-s", f"STATE_URL={server.url}"]
    return {"STATE_URL": server.url, "FLEET_PARTITIONS": "6", **SHORT}


STEPS: Mapping[str, Callable[[Play], None]] = {
    each.__name__: each
    for each in (whole, restart, recover, backup, restore, upload, split, joined, worker, shared, copied)
}


# --- The table -----------------------------------------------------------------------------------


class Row(NamedTuple):
    """One fault, and what is wrong after it."""

    step: str
    fault: Fault
    met: bool  # the call came, and failed
    starts: list[int]
    wrong: list[str]


def archives(crawl: Path) -> list[Path]:
    """The archive's folders of all workers that ever were."""
    return sorted({path.parent for path in crawl.rglob("*.warc.gz*") if "torn" not in path.parts})


def wrongs(play: Play, alone: Pages) -> list[str]:
    """What differs from the undisturbed crawl."""
    found, wrong = read_captures(*archives(play.crawl)), list[str]()
    for url in sorted(found.keys() | alone.keys()):
        if found.get(url) != alone.get(url):
            wrong.append(f"{url}: {dict(found.get(url, {}))}, undisturbed {dict(alone.get(url, {}))}")
    wrong += judge_references(*archives(play.crawl)).faults
    if play.run("verify", str(play.crawl), *play.state):
        wrong.append("verify: " + play.output.rpartition("$ scrapy verify")[2][-600:])
    play.run("status", "-s", f"CRAWL_DIR={play.crawl}", *play.state, "--json")
    said = play.output.rpartition("$ scrapy status")[2].partition("\n")[2]
    state, _ = json.JSONDecoder().raw_decode(said[said.index("{") :])
    if left := {name: state.get(name) for name in ("queued", "in_flight") if state.get(name)}:
        wrong.append(f"left: {left}")
    return wrong


@contextlib.contextmanager
def small_web(folder: Path) -> Iterator[Arena]:
    """The sites, and their seeds in a file."""
    with arena(folder) as web:
        fronts = [web.site(f"s{number}.test", site(web, number)) for number in range(SITES)]
        (folder / "seeds.txt").write_text("\n".join(fronts) + "\n")
        yield web


def undisturbed(web: Arena, folder: Path, step: str) -> tuple[Pages, Counter[str]]:
    """(captures, places) of a step that meets no fault."""
    play = Play(web, folder / step, None)
    with play.open:
        STEPS[step](play)
        alone = read_captures(*archives(play.crawl))
        wrong = wrongs(play, alone)
    assert wrong == [], (wrong, play.output[-_TAIL:])
    return alone, faults.places(play.folder / "watch")


def disturbed(web: Arena, folder: Path, step: str, fault: Fault, alone: Pages) -> Row:
    """A step that meets this fault."""
    folder.mkdir(parents=True)
    play = Play(web, folder / "play", fault)
    try:
        with play.open:
            STEPS[step](play)
            wrong = wrongs(play, alone)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        wrong = [f"{type(error).__name__}: {error}"]
    if "Traceback" in play.output:
        wrong.append("a traceback in the log")
    row = Row(step, fault, faults.failed(play.folder / "watch"), play.starts, wrong)
    if wrong:
        (folder / "output.txt").write_text(play.output)
    else:
        shutil.rmtree(folder)
    return row


def faults_of(places: Counter[str], hits: int) -> list[Fault]:
    """Each place at its first call and in its middle, the busiest first; a file not opened has no answer to lose."""
    made = []
    for place, count in places.most_common():
        whens = (BEFORE,) if ".open " in place else (BEFORE, AFTER)
        made += [Fault(place, hit, when) for hit in sorted({1, (count + 1) // 2})[:hits] for when in whens]
    return made


def main() -> None:
    """Print the table; status 1 when a fault has changed what a crawl leaves."""
    parser = argparse.ArgumentParser(prog="python -m tests.crawls.fault_table", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)} (default: all)")
    parser.add_argument("--hits", type=int, default=2, help="calls of a place that fail, each in a crawl of its own")
    parser.add_argument("--only", default="", help="places that contain these words")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    os.environ.setdefault("PYTEST_VERSION", "")  # processes are forked off one that has imported the crawler
    bad = 0
    print(
        "| step | places | faults | met | the crawl went on | started again | differs |\n|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        base = given.keep or Path(scratch)
        with small_web(base / "web") as web, ThreadPoolExecutor(given.jobs) as pool:
            for step in given.steps or STEPS:
                alone, places = undisturbed(web, base / "alone", step)
                todo = [fault for fault in faults_of(places, given.hits) if given.only in fault.place]
                runs = [
                    pool.submit(disturbed, web, base / step / str(number), step, fault, alone)
                    for number, fault in enumerate(todo)
                ]
                rows = []
                for run in as_completed(runs):
                    rows.append(row := run.result())
                    if row.wrong:
                        print(f"  {row.fault}: starts {row.starts}\n    " + "\n    ".join(row.wrong[:6]), flush=True)
                met = [row for row in rows if row.met]
                wrong = [row for row in rows if row.wrong]
                on = sum(row.starts == [0] for row in met)
                print(
                    f"| {step} | {len(places)} | {len(rows)} | {len(met)} | {on} | {len(met) - on} | {len(wrong)} |",
                    flush=True,
                )
                bad += len(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
