"""``scrapy replay``: an archive in a browser, as it was."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.inspection.pywb import ADDRESS, COLLECTION, ReplayIndex, find_wayback, port_of, wayback
from crawlerproject.operator_command import OperatorCommand, named_archives, option
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.terminal import say

_PORT = 8080  # pywb's own
# A running crawl writes its index about once a second; a look at much takes a tenth of a core at most.
_LOOK_SECONDS, _REST = 1.0, 10


class Command(OperatorCommand):
    """Starts pywb on an index that follows the crawl's, and ends with it."""

    arguments = "[FOLDER] [--port N]"
    summary = "Show an archive in a browser, with pywb on this machine"
    details = (
        "Serve what a crawl has archived (default: CRAWL_DIR) on loopback with pywb, also while the crawl runs. "
        "Prints the address; Ctrl-C ends it. pywb is looked for in REPLAY_COMMAND, .venv-tools and the PATH. FOLDER "
        "may be the address to which the archive was uploaded. Example: scrapy replay crawls/web --port 8080"
    )

    options = (option("--port", type=int, default=_PORT, help=f"default: {_PORT}; 0: one that is free"),)

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Serve until a signal comes, or pywb ends."""
        archives = named_archives(args, self.settings)
        program = find_wayback(str(self.settings.get("REPLAY_COMMAND") or ""))
        port = port_of(opts.port)
        try:
            with (
                _interruptible(),
                tempfile.TemporaryDirectory(prefix="replay-") as folder,
                _distant_files(archives) as distant,
            ):
                index = ReplayIndex(Path(folder), distant)
                for name in index.refresh(archives.folders, archives.elsewhere):
                    say(f"{name} has no index and is left out; scrapy index makes it", error=True)
                with wayback(program, index, Path(folder), port) as process:
                    say(f"http://{ADDRESS}:{port}/{COLLECTION}/ shows {archives.crawl}; Ctrl-C ends it.")
                    sys.stdout.flush()
                    _follow(archives.crawl, index, process)
        except KeyboardInterrupt:
            return
        raise OperatorError(f"pywb ended by itself (exit status {process.returncode}).")


def _follow(crawl: CrawlDir, index: ReplayIndex, process: subprocess.Popen[bytes]) -> None:
    """Keep the index as the crawl's, as long as pywb lives."""
    rest = _LOOK_SECONDS
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(rest)
            return
        began = time.monotonic()
        with suppress(OperatorError, StorageError):  # a fleet's plan is just being written; the other side is away
            archives = archives_of(crawl)
            index.refresh(archives.folders, archives.elsewhere)
        rest = max(_LOOK_SECONDS, _REST * (time.monotonic() - began))


@contextmanager
def _distant_files(archives: Archives) -> Iterator[Callable[[Path], str | None]]:
    """What gives pywb the files that are at another place, while the block runs."""
    if archives.crawl.is_here and not any(folder.upload.is_dir() for folder in archives.folders):
        yield lambda path: None
        return
    from crawlerproject.inspection.range_server import ranges_served  # a crawl that is all here does without
    from crawlerproject.stores.uploads.distant import DistantPath

    with ranges_served() as server:
        yield lambda path: server.address(path) if isinstance(path, DistantPath) else None


@contextmanager
def _interruptible() -> Iterator[None]:
    """Whatever asks the process to end is a KeyboardInterrupt, also where a shell has it ignore Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
