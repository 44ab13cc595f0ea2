"""``scrapy never HOST --why TEXT``: a domain is asked for nothing more, by any crawl that reads the list."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.progress import human_seconds
from crawlerproject.onlooker import LookingCommand, Onlooker, one_argument
from crawlerproject.reports.host_story import bare_host
from crawlerproject.rules.exclusion import Exclusion
from crawlerproject.stores.looking import RUN_FILE, STATUS_FILE, read_facts, running
from crawlerproject.stores.nevercrawl import NeverCrawlFile
from crawlerproject.terminal import say, say_json

# Beyond NEVERCRAWL_RELOAD_SECONDS: a beat of the status file, and a slow disk.
_PATIENCE_SECONDS = 10.0
_LOOK_SECONDS = 0.2


class Command(LookingCommand):
    """Waits until the running crawls that read the same list have taken it up."""

    example = 'scrapy never example.org --why "asked by their webmaster"'

    def syntax(self) -> str:
        return "HOST --why TEXT [--no-wait] [--json]"

    def short_desc(self) -> str:
        return "Add a domain to NeverCrawl.txt, and show that running crawls took it up"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--why", metavar="TEXT", default="", help="who asked, and why; written into the list")
        parser.add_argument("--no-wait", action="store_true", help="do not wait for running crawls")

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        host = bare_host(one_argument(args, "a host", self.example))
        why = " ".join(opts.why.split())
        if not why:
            raise OperatorError(f"Say who asked and why, for the next operator: {self.example}")
        crawl = self._crawl()
        settings: Any = crawl.settings if crawl is not None else self.settings
        if not settings["NEVERCRAWL_FILE"]:
            raise OperatorError("NEVERCRAWL_FILE is empty; set it to a file that your crawls read.")
        path = Path(settings["NEVERCRAWL_FILE"]).absolute()
        line, number, new = add(path, host, why, datetime.now(UTC))
        facts: dict[str, Any] = {"file": str(path), "line": number, "text": line, "added": new}
        if not opts.json:
            say(f"{'Added to' if new else 'Already in'} {path}, line {number}: {line}")
        took = [] if opts.no_wait else list(self._wait(path, settings.getfloat("NEVERCRAWL_RELOAD_SECONDS"), opts.json))
        elsewhere = crawl.workers_elsewhere() if crawl is not None else []
        if opts.json:
            say_json({**facts, "crawls": took, "workers_elsewhere": elsewhere})
            return
        if not took and not opts.no_wait:
            say("No running crawl reads this list; the next one will.")
        if elsewhere:
            say(f"Copy it to the machines of {', '.join(elsewhere)}: workers that are not on this one.")

    def _crawl(self) -> Onlooker | None:
        """The crawl that CRAWL_DIR names, if it is there: its list may be another than the project's."""
        try:
            return self.look()
        except OperatorError:
            return None

    def _wait(self, path: Path, reload_seconds: float, quiet: bool) -> Iterator[dict[str, Any]]:
        """Each running crawl that reads the list, once it has read this version or the time is over."""
        assert self.settings is not None
        version = path.stat().st_mtime_ns
        began = time.monotonic()
        for folder in _folders(self.settings):
            if not running(read_facts(folder, STATUS_FILE), time.time()) or _list_of(folder) != path:
                continue
            taken = _has_read(folder, version)
            while not taken and time.monotonic() - began < reload_seconds + _PATIENCE_SECONDS:
                time.sleep(_LOOK_SECONDS)
                taken = _has_read(folder, version)
            waited = time.monotonic() - began
            yield {"folder": str(folder), "took_it_up": taken, "seconds": round(waited, 1)}
            if not quiet:
                said = (
                    f"took it up after {human_seconds(waited)}" if taken else "has not taken it up yet: look at its log"
                )
                say(f"{folder}: the running crawl {said}")


def add(path: Path, host: str, why: str, now: datetime) -> tuple[str, int, bool]:
    """Append ``host`` unless it is excluded already: the line, its number, and whether it is new. OperatorError."""
    entries, problems = Exclusion.parse([host])
    if problems or len(entries) != 1:
        raise OperatorError(f"{host!r} is neither a domain nor an IP address.")
    (domain,) = entries.domains
    listed = NeverCrawlFile(path)
    known = listed.current(0.0).line_of(domain)
    if known is not None:
        return listed.line(known), known, False
    line = f"{domain}  # {why}, {now:%Y-%m-%d}"
    try:
        before = path.read_bytes() if path.exists() else b""
        text = (b"" if not before or before.endswith(b"\n") else b"\n") + line.encode() + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text)  # one write: a crawl that reads meanwhile sees all of it or nothing
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise OperatorError(f"{path} cannot be written ({error.strerror}); check its permissions.") from error
    return line, before.count(b"\n") + text.count(b"\n"), True


def _folders(settings: Any) -> list[Path]:
    """CRAWL_DIR, and every crawl beside the default one; their workers' folders too."""
    own = Path(settings["CRAWL_DIR"] or "crawls/web")
    below = [*own.glob(f"*/{RUN_FILE}"), *Path("crawls").glob(f"*/{RUN_FILE}"), *Path("crawls").glob(f"*/*/{RUN_FILE}")]
    return sorted({path.parent.resolve() for path in [own / RUN_FILE, *below] if path.exists()})


def _has_read(folder: Path, version: int) -> bool:
    read: int = read_facts(folder, STATUS_FILE).get("nevercrawl_read") or 0
    return read >= version


def _list_of(folder: Path) -> Path | None:
    run = read_facts(folder, RUN_FILE)
    listed = run.get("settings", {}).get("NEVERCRAWL_FILE")
    return Path(run.get("cwd", "."), listed).absolute() if listed else None
