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
from typing import TYPE_CHECKING

from scrapy.settings import Settings

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.inspection.crawl_view import about, title_of, view_of
from crawlerproject.inspection.pywb import (
    ADDRESS,
    COLLECTION,
    ReplayIndex,
    find_wayback,
    port_of,
    wayback,
    write_first_page,
)
from crawlerproject.operator_command import OperatorCommand, named_archives, option
from crawlerproject.reports.crawl_report import seed_addresses
from crawlerproject.reports.report_page import Linked, Title, replay_page
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.capture_index import Captures
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.stores.index.index_files import CDXJ_SUFFIX
from crawlerproject.terminal import say

if TYPE_CHECKING:
    from crawlerproject.batch.archive_contents import Contents

_PORT = 8080  # pywb's own
# A running crawl writes its index about once a second; a look at much takes a tenth of a core at most.
_LOOK_SECONDS, _REST = 1.0, 10
_PAGE_REST = 20


class Command(OperatorCommand):
    """Starts pywb on an index that follows the crawl's, and ends with it."""

    arguments = "[FOLDER] [--port N]"
    summary = "Show an archive in a browser, with pywb on this machine"
    details = (
        "Serve what a crawl has archived (default: CRAWL_DIR) on loopback with pywb, also while the crawl runs. "
        "Prints the address of a page with seeds, hosts, titles and dates; Ctrl-C ends it. FOLDER may be "
        "the address to which the archive was uploaded. "
        "Example: scrapy replay crawls/web --port 8080"
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
                first_page = _FirstPage(Path(folder), index, self.settings)
                first_page.make(archives)
                with wayback(program, index, Path(folder), port) as process:
                    say(f"http://{ADDRESS}:{port}/{COLLECTION}/ shows {archives.crawl}; Ctrl-C ends it.")
                    sys.stdout.flush()
                    _follow(archives.crawl, index, process, first_page)
        except KeyboardInterrupt:
            return
        raise OperatorError(f"pywb ended by itself (exit status {process.returncode}).")


def _follow(crawl: CrawlDir, index: ReplayIndex, process: subprocess.Popen[bytes], first_page: _FirstPage) -> None:
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
            first_page.keep(archives)


class _FirstPage:
    """What pywb opens with: seeds, hosts, titles and dates, instead of an empty search box."""

    def __init__(self, folder: Path, index: ReplayIndex, settings: Settings) -> None:
        self._folder, self._index, self._settings = folder, index, settings
        self._made_of: dict[str, int] = {}
        self._not_before = 0.0  # monotonic

    def keep(self, archives: Archives) -> None:
        """Make it again when the index has grown, in a twentieth of the time at most."""
        if time.monotonic() >= self._not_before and self._made_of != self._sizes():
            self.make(archives)

    def make(self, archives: Archives) -> None:
        """From the index that pywb has, so that it shows what can be replayed."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.archive_contents import contents

        began, self._made_of = time.monotonic(), self._sizes()
        found = contents(
            sorted(self._index.indexes.glob(f"*{CDXJ_SUFFIX}")),
            Captures(archives.folders, archives.elsewhere),
            seed_addresses([folder.log for folder in archives.folders]),
        )
        crawl = None
        with suppress(OperatorError):  # a file of the crawl's that cannot be read is no matter of its archive's
            crawl = view_of(archives.crawl, self._settings)
        settings = self._settings if crawl is None else crawl.settings
        title = Title(title_of(settings, archives.crawl), str(settings["CRAWL_DESCRIPTION"] or ""))
        facts = [] if crawl is None else about(crawl)
        seeds = [_linked(one.timestamp, one.url, one.url, one.title, [_moment(one.timestamp)]) for one in found.seeds]
        hosts = [
            _linked(
                one.best.row.timestamp, one.best.row.url, one.host, one.title,
                [f"{one.pages:,}", _moment(one.first)[:10], _moment(one.last)[:10]],
            )
            for one in found.hosts
        ]  # fmt: skip
        write_first_page(self._folder, replay_page(title, facts, _counted(found), seeds, hosts))
        self._not_before = began + _PAGE_REST * (time.monotonic() - began)

    def _sizes(self) -> dict[str, int]:
        return {path.name: path.stat().st_size for path in self._index.indexes.iterdir()}


def _linked(timestamp: str, url: str, name: str, title: str, cells: list[str]) -> Linked:
    return Linked(f"{timestamp}/{url}", name, title, cells)


def _moment(timestamp: str) -> str:
    day, time = (timestamp[:4], timestamp[4:6], timestamp[6:8]), (timestamp[8:10], timestamp[10:12])
    return f"{'-'.join(day)} {':'.join(time)}"


def _counted(found: Contents) -> str:
    hosts = f"{counted(found.hosts_in_all, 'host')} with {counted(found.pages, 'page')}."
    shown = f" The first {len(found.hosts):,} are listed." if len(found.hosts) < found.hosts_in_all else ""
    return f"{hosts}{shown}" if found.whole else f"More than {hosts} The index has more than was read for this page."


@contextmanager
def _distant_files(archives: Archives) -> Iterator[Callable[[Path], str | None]]:
    """What gives pywb the files that are at another place, while the block runs."""
    if archives.crawl.is_here and not any(folder.upload.is_dir() for folder in archives.folders):
        yield lambda path: None
        return
    from crawlerproject.inspection.pywb import ranges_served  # a crawl that is all here does without
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
