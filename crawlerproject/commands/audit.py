"""``scrapy audit``: prove from the request logs that every pause was kept, or name those that were not."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path

from scrapy.settings import BaseSettings

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.operator_command import Bytes, OperatorCommand, named_crawl, option
from crawlerproject.rules.politeness.pause_audit import Asked, Audit, Violation, asked_of
from crawlerproject.rules.printable import counted
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import log_files, read_rows
from crawlerproject.terminal import say_either

_EXIT_VIOLATIONS = 1


class Command(OperatorCommand):
    """Exit status 0: all kept; 1: violations; 2: what was given cannot be judged."""

    arguments = "[options] [CRAWL_DIR | FILE...]"
    summary = "Check the pauses in a crawl's request logs against those promised"
    details = (
        "Recompute the pause before every request from the request logs of CRAWL_DIR and its workers, or from log "
        "files, and compare it with the promised one (--ip-seconds for addresses). Exit status: 0, none is too short;"
        " 1, the violations are printed; 2, the logs cannot be judged. Example: scrapy audit crawls/web"
    )

    options = (
        option(
            "--ip-seconds",
            type=float,
            help="pause promised at an IP address (default: the PACE_IP_SECONDS of the crawl, if it kept any)",
        ),
        option("--json", action="store_true", help="print one JSON object instead of lines"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Judge, print, and set the exit status."""
        args = args or [str(self.settings["CRAWL_DIR"])]
        logs = list(_logs(args))
        audit, unreadable = Audit(self._ip_seconds(args, opts)), 0
        # Several workers ask the same hosts in turn: their lines are judged in the order of time.
        with Bytes("Reading", [file for files in logs for file in files if file.exists()]) as progress:
            for asked in merge(*(_read(files, progress.advance) for files in logs), key=_ended):
                if asked is None:
                    unreadable += 1
                else:
                    audit.add(asked)
        audit.close()
        if not audit.requests:
            raise OperatorError(f"There is no request in {', '.join(args)} that reached a server.")
        if audit.late_lines:
            raise OperatorError(
                f"{counted(audit.late_lines, 'line is', 'lines are')} out of order by more than ten minutes, so that "
                "pauses cannot be computed; give the files in the order of their days.",
            )
        say_either(_json(audit, unreadable), _lines(audit, unreadable), as_json=opts.json)
        if audit.violations:
            self.exitcode = _EXIT_VIOLATIONS

    def _ip_seconds(self, args: list[str], opts: argparse.Namespace) -> float | None:
        if opts.ip_seconds is not None:
            if not 0 <= opts.ip_seconds < float("inf"):
                raise OperatorError("--ip-seconds must be a number of 0 or more.")
            return float(opts.ip_seconds)
        settings: BaseSettings = self.settings
        named = CrawlDir(args[0])
        if named.run.is_file() or named.started_below():  # what it promised at its start
            settings = settings.copy()
            settings.set("CRAWL_DIR", args[0], priority="cmdline")
            settings = CrawlView(settings).settings
        return settings.getfloat("PACE_IP_SECONDS") if settings.getbool("PACE_PER_IP") else None


def _logs(args: list[str]) -> Iterator[list[Path]]:
    """The files of each log, in the order of their days: of a folder, of each worker in it, or as they are given."""
    named = [CrawlDir(arg) if "://" not in arg else named_crawl([arg], BaseSettings()) for arg in args]
    given: list[Path] = [path for path in named if path.is_here and not path.is_dir()]
    if given:
        yield given
    for folder in (path for path in named if path not in given):
        closed = (folder.frontier.name, folder.control.name)  # to all but the crawl's owner; their like, set aside, too
        below = (CrawlDir(path) for path in sorted(folder.iterdir()) if not path.name.startswith(closed))
        places = (folder.log, folder, *(worker.log for worker in below))
        found = [files for files in map(log_files, places) if files]
        if not found:
            raise OperatorError(f"There is no request log in {folder}: neither log/ nor requests-*.jsonl.")
        yield from found


def _read(files: Iterable[Path], done: Callable[[int], None]) -> Iterator[Asked | None]:
    """The requests of one log; None for a line that cannot be read."""
    for path in files:
        try:
            for row in read_rows(path, done):
                try:
                    if row is None:
                        yield None
                    elif (asked := asked_of(row)) is not None:
                        yield asked
                except (KeyError, ValueError, TypeError):
                    yield None
        except OSError as error:
            raise OperatorError(f"{path} cannot be read: {error.strerror or error}.") from None
        except ValueError as error:
            raise OperatorError(f"{error}; without all of it nothing can be proved.") from None


def _ended(asked: Asked | None) -> float:
    """When the answer ended, which is when its line was written; 0 for one that cannot be read."""
    return 0.0 if asked is None else asked.end


def _lines(audit: Audit, unreadable: int) -> Iterable[str]:
    places = f"{counted(audit.hosts, 'host')} at {counted(audit.ips, 'IP address', 'IP addresses')}"
    yield f"{counted(audit.requests, 'request')} to {places}"
    lost = f", {counted(unreadable, 'line')} unreadable" if unreadable else ""
    yield f"from {_iso(audit.began)} to {_iso(audit.ended)}{lost}"
    if audit.tightest is not None:
        pause = audit.tightest
        closest = f"{pause.promised_seconds:.3f} s promised, {pause.kept_seconds:.3f} s kept ({pause.name})"
        yield f"{counted(audit.pauses, 'pause')}; the closest: {closest}"
    most = audit.most
    yield f"in flight at once: at most {most['host']} at a host, {most['ip']} at an IP address, {most['all']:,} in all"
    yield from map(_violation, audit.violations)
    yield counted(len(audit.violations), "violation")


def _violation(found: Violation) -> str:
    pause = found.pause
    kept = f"{pause.kept_seconds:.3f} s after" if pause.kept_seconds >= 0 else f"{-pause.kept_seconds:.3f} s before"
    return (
        f"VIOLATION {found.kind} {pause.name}: asked at {_iso(pause.started_at)}, {kept} the answer before had ended "
        f"({_iso(pause.ended_at)}); promised {pause.promised_seconds:.3f} s; {found.url}"
    )


def _json(audit: Audit, unreadable: int) -> dict[str, object]:
    tightest = audit.tightest
    return {
        "requests": audit.requests,
        "hosts": audit.hosts,
        "ips": audit.ips,
        "began": _iso(audit.began),
        "ended": _iso(audit.ended),
        "unreadable_lines": unreadable,
        "pauses": audit.pauses,
        "tightest": None
        if tightest is None
        else {
            "seconds": tightest.margin_seconds,
            "promised_seconds": tightest.promised_seconds,
            "name": tightest.name,
        },
        "ip_seconds": audit.ip_seconds,
        "most_in_flight": audit.most,
        "violations": [
            {
                "kind": kind,
                "name": pause.name,
                "ended": _iso(pause.ended_at),
                "started": _iso(pause.started_at),
                "kept_seconds": pause.kept_seconds,
                "promised_seconds": pause.promised_seconds,
                "url": url,
            }
            for kind, pause, url in audit.violations
        ],
    }


def _iso(epoch_seconds: float) -> str:
    return datetime.fromtimestamp(epoch_seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
