"""Ten lines on a crawl, counted from its request log and its files.

``python -m crawlerproject.reports.summary CRAWL_DIR`` prints them.

What a crawl did at one host: every attempt with the pause before it.
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
from typing import Any, NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pause_audit import Audit, LastAnswers, Pause, asked_of
from crawlerproject.rules.printable import PLAINER, counted, printable_line
from crawlerproject.rules.url.urls import host_name
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.logs.log_query import open_log, rows
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
        unreadable = f" ({counted(self.unreadable_lines, 'line')} unreadable)" if self.unreadable_lines else ""
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


# A host key without its port, in SQL.
_NAME = "regexp_replace(host, ':[0-9]+$', '')"


class Attempt(NamedTuple):
    """One attempt, and the pause before it at the same host: None before the first, and when it reached none."""

    attempt: dict[str, Any]
    pause: Pause | None

    @property
    def pause_seconds(self) -> float | None:
        """The pause that was kept."""
        return None if self.pause is None else self.pause.kept_seconds

    @property
    def too_soon(self) -> bool:
        """Whether the pause was shorter than promised."""
        return self.pause is not None and self.attempt["delay_seconds"] is not None and self.pause.too_short

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        return {**self.attempt, "pause_seconds": self.pause_seconds, "too_soon": self.too_soon}


@dataclass(slots=True)
class HostStory:
    """Facts for an answer to a site's owner."""

    host: str
    visits: list[Attempt] = field(default_factory=list)

    @property
    def reached(self) -> list[Attempt]:
        """Those that came to the host; others were refused on our side, or found no way to it."""
        return [visit for visit in self.visits if visit.attempt["ip"]]

    @property
    def statuses(self) -> Counter[str]:
        """Answers by status, failures by reason."""
        return Counter(str(visit.attempt["status"] or visit.attempt["reason"]) for visit in self.visits)

    @property
    def origins(self) -> list[str]:
        """Those that may have a robots.txt for what was asked."""
        hosts = sorted({visit.attempt["host"] for visit in self.visits}) or [self.host]
        return [f"{scheme}://{host}" for host in hosts for scheme in ("https", "http")]

    @property
    def began(self) -> datetime | None:
        """The first attempt."""
        return datetime.fromisoformat(self.visits[0].attempt["time"]) if self.visits else None

    @property
    def received_bytes(self) -> int:
        """On the wire."""
        return sum(visit.attempt["bytes"] or 0 for visit in self.visits)

    @property
    def pauses(self) -> list[float]:
        """All pauses that were kept, seconds."""
        return [visit.pause_seconds for visit in self.visits if visit.pause_seconds is not None]

    @property
    def too_soon(self) -> int:
        """Pauses that were shorter than promised."""
        return sum(visit.too_soon for visit in self.visits)


def host_story(
    folders: Sequence[CrawlDir], host: str, since: str = "", until: str = "", *, subdomains: bool = False
) -> HostStory:
    """The story of a host name (any port; with ``subdomains`` also the names below it) by the logs in ``folders``."""
    name = host.lower().rstrip(".")
    story = HostStory(name)
    below = f" OR {_NAME} LIKE $below" if subdomains else ""
    values = {"name": name, **({"below": f"%.{name}"} if subdomains else {})}
    with open_log([folder.log for folder in folders], since, until) as connection:
        found = rows(
            connection,
            f"SELECT * FROM log WHERE host = $name OR {_NAME} = $name{below} ORDER BY time",
            values,
        )
    answers = LastAnswers()
    for row in found:
        asked, pause = asked_of(row), None
        if asked is not None and (before := answers.ask(host_name(asked.host), asked.end)) is not None:
            pause = Pause(asked.host, before, asked.start, asked.promised_seconds or 0.0)
        story.visits.append(Attempt(row, pause))
    return story


def bare_host(text: str) -> str:
    """A host name from what an operator pastes: a name, a name with a port, or a URL."""
    name = text.strip().partition("://")[2] or text.strip()
    return host_name(name.partition("/")[0].rpartition("@")[2]).lower().rstrip(".")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
