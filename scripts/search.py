"""What ``make search`` runs: a crawl whose pages are found from the first minute on, at a page on this machine.

Beside ``scripts/crawl.py``, whose variables and arguments it takes, run ``scrapy process --follow``, ``scrapy load
--follow``, ``scrapy search --serve`` at PORT (8771), ``scrapy replay`` where pywb is installed, and now and then
``scrapy rank``; what they say is in build/search.log. One that dies is begun again. When the crawl has ended and all
of it can be found, the page goes on. Ctrl-C ends the crawl in good order, then what follows it, and the page last; a
second one ends all of them at once. The exit status is the crawl's.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from crawl import DEMO_DIR, REFUSED, SPIDER, crawl_dir  # noqa: E402

from crawlerproject.errors import OperatorError  # noqa: E402
from crawlerproject.inspection.pywb import find_wayback  # noqa: E402
from crawlerproject.stores.crawl_dir import CrawlDir  # noqa: E402
from crawlerproject.stores.crawl_folders import archives_of  # noqa: E402

LOG = Path("build/search.log")
HOST, PORT = "127.0.0.1", 8771
LOOK_SECONDS = 0.5
MOST_STARTS = 5  # of one that dies
# Ranks are found out again after at least a minute, and in an eleventh of the time at most (ours).
RANK_SECONDS, RANK_REST = 60.0, 10.0
END_SECONDS = 60.0  # that a command may take to end


class Search:
    """The crawl and what runs beside it."""

    def __init__(self, folder: CrawlDir, crawl: list[str], port: int) -> None:
        self.interrupts = 0
        self._folder, self._crawl = folder, self._start(crawl)
        self._port, self._replay_port = port, free_port(0)
        self._parts: dict[str, subprocess.Popen[bytes]] = {}
        self._starts = dict.fromkeys(self._commands(), 0)
        self._ranked: set[Path] = set()
        self._rank_began = self._rank_next = 0.0  # monotonic
        self._said = False

    def run(self) -> int:
        """Until a signal comes, and all is in order; the crawl's exit status."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._interrupted)
        try:
            while not self._done():
                time.sleep(LOOK_SECONDS)
        finally:
            for part in (*self._parts.values(), self._crawl):  # those that are left: the page, or all of them
                end(part)
        status = self._crawl.wait()
        return status if status >= 0 else 128 - status

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self.interrupts += 1
        if self._crawl.poll() is None:
            self._crawl.send_signal(signal.SIGINT)

    def _done(self) -> bool:
        """A look at all of them, and what is to be done; whether nothing is left to do."""
        crawled = self._crawl.poll()
        if self.interrupts > 1 or crawled == REFUSED:
            return True
        if not self._begun():
            return crawled is not None
        self._keep("process", restart=crawled is None)
        self._keep("load", restart=crawled is None, again=self._parts["process"].poll() is None)
        if (self._folder.search / "meta.json").exists():
            self._keep("search", restart=True)
            if "replay" in self._starts:
                self._keep("replay", restart=False)
        if any(self._parts[name].poll() is None for name in ("process", "load")):
            self._rank()
            return False
        if self.interrupts or self._rank():
            return bool(self.interrupts)
        if not self._said:
            self._said = True
            print(f"\nAll that was crawled is found at http://{HOST}:{self._port}/; Ctrl-C ends it.", flush=True)
        return False

    def _begun(self) -> bool:
        """Whether this crawl, and none that was here before it, has archived something."""
        if self._parts:
            return True
        try:
            mine = self._crawl.poll() is not None or self._folder.locked()
            return mine and self._folder.is_dir() and archives_of(self._folder).has_archive()
        except OperatorError:  # a fleet's plan is just being written
            return False

    def _keep(self, name: str, *, restart: bool, again: bool = False) -> None:
        """Begin one that is not there yet; so often one that died, and ``again`` one that ended too early."""
        part = self._parts.get(name)
        status = None if part is None else part.poll()
        dead = (status == 0 and again) or (bool(status) and restart and self._starts[name] < MOST_STARTS)
        if part is None or dead:
            self._starts[name] += 1
            self._parts[name] = self._start(self._commands()[name], LOG)

    def _rank(self) -> bool:
        """Rank when there are new links and it is time; whether it is at work."""
        part, now = self._parts.get("rank"), time.monotonic()
        if part is not None and part.poll() is None:
            self._rank_next = now + max(RANK_SECONDS, RANK_REST * (now - self._rank_began))
            return True
        links = set((self._folder.processed / "links").glob("*.parquet"))
        if links == self._ranked or (self._parts["process"].poll() is None and now < self._rank_next):
            return False
        self._ranked, self._rank_began = links, now
        self._parts["rank"] = self._start(self._commands()["rank"], LOG)
        return True

    def _commands(self) -> dict[str, list[str]]:
        folder, scrapy = str(self._folder), [sys.executable, "-m", "scrapy"]
        replay = str(self._replay_port)
        serve = ["--serve", str(self._port), "--folder", folder, "--replay-port", replay]
        commands = {
            "process": [*scrapy, "process", folder, "--follow"],
            "load": [*scrapy, "load", folder, "--follow"],
            "rank": [*scrapy, "rank", folder],
            "search": [*scrapy, "search", *serve],
        }
        with suppress(OperatorError):  # the page says what shows archived copies
            find_wayback("")
            commands["replay"] = [*scrapy, "replay", folder, "--port", replay]
        return commands

    def _start(self, command: list[str], log: Path | None = None) -> subprocess.Popen[bytes]:
        # Groups of their own, so that a terminal's Ctrl-C comes to us alone.
        if log is None:
            return subprocess.Popen(command, process_group=0)
        with log.open("ab") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, process_group=0)


def end(part: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and wait; what does not end is killed."""
    if part.poll() is None:
        part.terminate()
        try:
            part.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(part.pid, signal.SIGKILL)


def free_port(wanted: int) -> int:
    """The port, or with 0 one that is free. Raises OSError."""
    with socket.create_server((HOST, wanted)) as server:
        return int(server.getsockname()[1])


def main(arguments: list[str]) -> int:
    """Crawl and search; the exit status is the crawl's."""
    os.chdir(ROOT)
    extra = arguments[1:] if arguments[:1] == ["--"] else arguments
    wanted = os.environ.get("PORT", "").strip() or str(PORT)
    try:
        port = free_port(int(wanted))
    except (OSError, OverflowError, ValueError) as error:
        print(f"The page cannot be at {HOST} port {wanted} ({error}); choose another with PORT=….", file=sys.stderr)
        return REFUSED
    seeds = os.environ.get("SEEDS", "").strip()
    folder = crawl_dir(extra, Path("crawls") / SPIDER if seeds else DEMO_DIR)
    LOG.parent.mkdir(exist_ok=True)
    print(f"http://{HOST}:{port}/ answers within the first minute; Ctrl-C ends all.", flush=True)
    return Search(CrawlDir(folder), [sys.executable, "scripts/crawl.py", "--", *extra], port).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
