"""What ``make crawl`` runs: a crawl, then ten lines on it and three that tell where to look.

SEEDS in the environment (a file, or URLs separated by commas) is crawled for real; without it the
synthetic web that ships with the project is started on loopback and crawled. WORKERS in the environment
makes it a crawl of so many workers: ``scrapy fleet`` in place of ``scrapy crawl``. The arguments are passed
to Scrapy, whose exit status is passed back. Ctrl-C reaches Scrapy once for each time it is
pressed: the first ends the crawl in good order, the second at once.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
SPIDER = "web"
REFUSED = 2  # Scrapy's exit status for what the operator must mend before a crawl can start
DEMO_DIR = Path("crawls/demo")
DEMO_WEB_DIR = Path("crawls/demo-web")
DEMO_LOCK = Path("crawls/.demo.lock")
READY_SECONDS = 30.0  # the server listens within one second; a busy machine may take longer
POLL_SECONDS = 0.05

# The demonstration's pace: the quickest preset, since the sites are ours and on this machine.
DEMO_SETTINGS = {
    "PACE_PRESET": "mirror",
    "SCOPE_MAX_DEPTH": "8",
    "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
    # Some of its sites fail on purpose. With longer waits the last 40 of 55 seconds were theirs, for four requests: one
    # takes connections and never speaks TLS, one is parked and probed.
    "FETCH_CONNECT_TIMEOUT_SECONDS": "1",
    "BACKOFF_START_SECONDS": "1",
    "BACKOFF_MAX_SECONDS": "2",
    "HOST_MAX_FAILURES": "3",
    "FRONTIER_MAX_REST_SECONDS": "15",
}


def main(arguments: list[str]) -> int:
    """Crawl; the exit status is Scrapy's."""
    os.chdir(ROOT)
    extra = arguments[1:] if arguments[:1] == ["--"] else arguments
    seeds = os.environ.get("SEEDS", "").strip()
    return crawl_seeds(seeds, extra) if seeds else crawl_demo(extra)


def crawl_seeds(seeds: str, extra: Sequence[str]) -> int:
    """The real thing."""
    status = run_scrapy(seeds, {}, extra)
    if status != REFUSED:  # its sentence is the last thing on the screen, not what an earlier crawl has done
        report(crawl_dir(extra, default=Path("crawls") / SPIDER), summed_up=shows_itself(extra))
    return status


def crawl_demo(extra: Sequence[str]) -> int:
    """Start the synthetic web, crawl it into a fresh folder, stop it."""
    DEMO_LOCK.parent.mkdir(exist_ok=True)
    with DEMO_LOCK.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("A demonstration crawl is already running in this folder; wait for its end.", file=sys.stderr)
            return 1
        put_aside([DEMO_DIR, DEMO_WEB_DIR])
        with synthetic_web(DEMO_WEB_DIR):
            settings = DEMO_SETTINGS | {
                "CRAWL_DIR": str(DEMO_DIR),
                "FETCH_HOSTS_FILE": str(DEMO_WEB_DIR / "hosts"),
                "NEVERCRAWL_FILE": str(DEMO_WEB_DIR / "nevercrawl.txt"),
            }
            status = run_scrapy(str(DEMO_WEB_DIR / "seeds.txt"), settings, extra)
        if status != REFUSED:
            report(crawl_dir(extra, default=DEMO_DIR), summed_up=shows_itself(extra))
    return status


def put_aside(folders: Sequence[Path]) -> None:
    """Rename what an earlier demonstration left to the next free number: nothing is ever deleted."""
    if not any(folder.exists() for folder in folders):
        return
    number = 1
    while any(numbered(folder, number).exists() for folder in folders):
        number += 1
    for folder in folders:
        if folder.exists():
            folder.rename(numbered(folder, number))


def numbered(folder: Path, number: int) -> Path:
    """``crawls/demo`` and 3 give ``crawls/demo-3``."""
    return folder.with_name(f"{folder.name}-{number}")


@contextmanager
def synthetic_web(folder: Path) -> Iterator[None]:
    """The server for as long as the block lasts."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.web", "--port", "0", "--folder", str(folder)]
    # A session of its own: a Ctrl-C on the terminal must not take the web away from under the crawl.
    server = subprocess.Popen(command, start_new_session=True)
    try:
        wait_ready(server, folder / "ready")
        yield
    finally:
        server.terminate()
        server.wait()


def wait_ready(server: subprocess.Popen[bytes], ready: Path) -> None:
    """Wait until the server says that it listens."""
    deadline = time.monotonic() + READY_SECONDS
    while not ready.exists():
        if server.poll() is not None:
            sys.exit(f"The synthetic web did not start (exit status {server.returncode}).")
        if time.monotonic() > deadline:
            sys.exit(f"The synthetic web was not ready within {READY_SECONDS:.0f} s.")
        time.sleep(POLL_SECONDS)


def run_scrapy(seeds: str, settings: dict[str, str], extra: Sequence[str]) -> int:
    """Run the crawl and give back its exit status, as a shell would."""
    workers = os.environ.get("WORKERS", "").strip()
    kind = ["fleet", "--workers", workers] if workers else ["crawl", SPIDER]
    command = [sys.executable, "-m", "scrapy", *kind, "-a", f"seeds={seeds}"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    # A process group of its own, so that a terminal's Ctrl-C comes to us alone and we hand on exactly one.
    scrapy = subprocess.Popen([*command, *extra], process_group=0)
    with handing_on_signals(scrapy):
        status = scrapy.wait()
    return status if status >= 0 else 128 - status


@contextmanager
def handing_on_signals(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass each of our signals on once; a closed terminal ends the crawl as a kill would: in good order."""
    names = {signal.SIGINT: signal.SIGINT, signal.SIGTERM: signal.SIGTERM, signal.SIGHUP: signal.SIGTERM}

    def hand_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(names[signal.Signals(number)])

    before = {number: signal.signal(number, hand_on) for number in names}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def crawl_dir(extra: Sequence[str], default: Path) -> Path:
    """The folder that the arguments set with ``-s CRAWL_DIR=…``, the last one winning as in Scrapy."""
    folder = default
    for before, argument in zip(["", *extra], extra, strict=False):
        value = argument.removeprefix("--set=").removeprefix("-s") if before not in {"-s", "--set"} else argument
        if value.startswith("CRAWL_DIR=") and (value != argument or before in {"-s", "--set"}):
            folder = Path(value.removeprefix("CRAWL_DIR="))
    return folder


def report(folder: Path, *, summed_up: bool = False) -> None:
    """Say what was done, unless the crawl has, and where to look; nothing when the crawl never started."""
    if not any(folder.glob("log")) and not any(folder.glob("*/log")):
        return
    from crawlerproject.reports.summary import summarise
    from crawlerproject.rules.printable import printable_line
    from crawlerproject.stores.crawl_dir import CrawlDir
    from crawlerproject.terminal import guard_streams

    guard_streams()
    if not summed_up:
        print("\n" + "\n".join(map(printable_line, summarise(CrawlDir(folder)).lines())))
    print("\n" + "\n".join(map(printable_line, where_to_look(folder))), flush=True)


def where_to_look(folder: Path) -> list[str]:
    """Three commands that answer about the crawl in ``folder``, to be typed where ``make`` is."""
    scrapy = Path(sys.executable).with_name("scrapy")
    if scrapy.is_relative_to(ROOT):
        scrapy = scrapy.relative_to(ROOT)
    crawl = "" if folder == Path("crawls") / SPIDER else f" -s {shlex.quote(f'CRAWL_DIR={folder}')}"
    asked = {"How it stands": "status", "Why a URL": "why URL", "A page of it": "report report.html"}
    return [f"{what:<14} {shlex.quote(str(scrapy))} {command}{crawl}" for what, command in asked.items()]


def shows_itself(extra: Sequence[str]) -> bool:
    """Whether the crawl has a terminal, where it ends with its own summary."""
    logs = any("LOG_FILE=" in argument or argument.startswith("--logfile") for argument in extra)
    return sys.stderr.isatty() and not logs


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
