"""Ten lines on a crawl, counted from its request log and its files.

``python -m crawlerproject.reports.summary CRAWL_DIR`` prints them.
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from pathlib import Path
from typing import Any

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pause_audit import Audit, Pause, asked_of
from crawlerproject.rules.printable import PLAINER, counted, printable_line
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.logs.request_log import log_rows

PREREQUISITE = "P"  # the hop letter of a robots.txt
EMBED = "E"  # of what a page needs to be seen, and of what it asked for in the browser
REDIRECT = "R"  # of where an answer pointed: a robots.txt that has moved is still one


@dataclass(frozen=True, slots=True)
class Files:
    """How many files, how many bytes on disk, and below which folder."""

    count: int
    bytes: int
    folder: Path

    def __str__(self) -> str:
        return f"{counted(self.count, 'file')}, {self.bytes:,} bytes, in {self.folder}/"


@dataclass(slots=True)
class Summary:
    """What a crawl did, over all its runs."""

    warc: Files
    index: Files
    log: Files
    pages: int = 0  # answers that are neither of the next two
    robots: int = 0  # answers to a robots.txt
    requisites: int = 0  # answers to what pages need: pages are what the limits of a crawl count
    hosts: int = 0
    bytes: int = 0  # on the wire
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)  # by reason, attempts without an answer
    began: datetime | None = None
    ended: datetime | None = None
    tightest: Pause | None = None  # the one with the least margin
    short_pauses: int = 0
    unreadable_lines: int = 0  # for example one that a crash cut

    @property
    def duration_seconds(self) -> float:
        """From the first request's start to the last answer's end, the time between runs included."""
        return (self.ended - self.began).total_seconds() if self.began and self.ended else 0.0

    def lines(self) -> list[str]:
        """The ten lines."""
        robots = f" and {self.robots:,} robots.txt" if self.robots else ""
        requisites = f", {self.requisites:,} that pages need" if self.requisites else ""
        unreadable = f" ({self.unreadable_lines:,} lines unreadable)" if self.unreadable_lines else ""
        rows = [
            ("Pages", f"{self.pages:,}{robots}{requisites}"),
            ("Hosts", f"{self.hosts:,}"),
            ("Statuses", _counts(self.statuses)),
            ("Bytes", f"{self.bytes:,} on the wire"),
            ("Errors", _counts(self.errors)),
            ("Time", self._time_text()),
            ("Pauses", self._pause_text()),
            ("WARC", str(self.warc)),
            ("Index", str(self.index)),
            ("Log", f"{self.log}{unreadable}"),
        ]
        return [f"{label:<10} {text}" for label, text in rows]

    def _time_text(self) -> str:
        if self.began is None or self.duration_seconds <= 0:
            return "–"
        rate = self.pages / self.duration_seconds
        return f"{self.duration_seconds:.1f} s from {self.began:%Y-%m-%d %H:%M:%S} UTC, {rate:.1f} pages/s"

    def _pause_text(self) -> str:
        if self.tightest is None:
            return "no host was asked twice"
        pause = self.tightest
        verdict = f"{self.short_pauses:,} shorter than promised" if self.short_pauses else "none shorter than promised"
        closest = f"{pause.kept_seconds:.3f} s kept, {pause.promised_seconds:.3f} s promised ({pause.name})"
        return f"{verdict}; the closest: {closest}"


def summarise(crawl_dir: CrawlDir) -> Summary:
    """Read a crawl's logs once and look at its files, those of all its workers; counts 0 where there is nothing."""
    folders = folders_of(crawl_dir)
    summary = Summary(
        warc=_files(crawl_dir, [folder.warc for folder in folders]),
        index=_files(crawl_dir, [folder.index for folder in folders]),
        log=_files(crawl_dir, [folder.log for folder in folders]),
    )
    audit, hosts = Audit(None), set()
    for row in merge(*(log_rows(folder.log) for folder in folders), key=_end):
        try:
            if row is None:
                raise ValueError
            began, ended = datetime.fromisoformat(row["time"]), datetime.fromisoformat(row["end"])
            asked = asked_of(row)
        except (ValueError, KeyError, TypeError):
            summary.unreadable_lines += 1
            continue
        _count(summary, row, began, ended)
        if asked is not None:
            hosts.add(asked.host)
            audit.add(asked)
    audit.close()
    summary.hosts, summary.tightest = len(hosts), audit.tightest
    summary.short_pauses = len(audit.violations)
    return summary


def _count(summary: Summary, entry: dict[str, Any], began: datetime, ended: datetime) -> None:
    """Add one attempt to the counts."""
    status = entry.get("status")
    if status is None and entry.get("reason") == Reason.RENDERED:
        pass  # what a browser made of a page that was counted when it was fetched
    elif status is None:
        summary.errors[str(entry.get("reason"))] += 1
    else:
        summary.statuses[status] += 1
        hop = str(entry.get("hop") or "").rstrip(REDIRECT)
        if hop.endswith(PREREQUISITE):
            summary.robots += 1
        elif hop.endswith(EMBED):
            summary.requisites += 1
        else:
            summary.pages += 1
    summary.bytes += entry.get("bytes") or 0
    summary.began = min(summary.began or began, began)
    summary.ended = max(summary.ended or ended, ended)


def _end(row: dict[str, Any] | None) -> str:
    """When an attempt had ended, which orders the lines of several logs; of a line that cannot be read: at once."""
    return "" if row is None else str(row.get("end", ""))


def _files(crawl: CrawlDir, folders: Sequence[Path]) -> Files:
    """All files below these folders of a crawl."""
    sizes = [path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file()]
    return Files(len(sizes), sum(sizes), folders[0] if len(folders) == 1 else crawl / "*" / folders[0].name)


def _counts(counter: Counter[Any]) -> str:
    """``200: 95, 404: 3``, the commonest first."""
    return ", ".join(f"{name}: {count:,}" for name, count in counter.most_common()) or "none"


def main(arguments: list[str]) -> int:
    """Print the summary of one crawl folder; 2 when it is no such folder."""
    if len(arguments) != 1 or not CrawlDir(arguments[0]).is_dir():
        print("Usage: python -m crawlerproject.reports.summary CRAWL_DIR (a folder that a crawl made)", file=sys.stderr)
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAINER)
    print("\n".join(map(printable_line, summarise(CrawlDir(arguments[0])).lines())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
