"""Judge a crawl from outside: by the server's own log, by our request log against it, and by what the WARCs hold.

``python -m tests.web.judge --folder DIR --crawl CRAWL_DIR --host-seconds 0.25 --ip-seconds 0.5`` prints what it
saw and ends with status 1 when anything was wrong. Nothing here uses the crawler's code: a judge has its own eyes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from warcio.archiveiterator import ArchiveIterator

TOLERANCE_SECONDS = 0.005  # nginx logs whole milliseconds for both ends; the rest is scheduling on a busy machine
_RATE_LIMITED, _SERVER_ERROR = 429, 500  # from 500 on: a crawler comes back, so that may be archived repeatedly
_CUT = 599  # in place of the status of an answer that broke off, which is asked for again as well
_PLACE = ("Target-URI", "Date")  # of a record: what a revisit says of its original beside the id
_SHOWN = 15  # lines printed of a long list


class Visit(NamedTuple):
    """One request as the server saw it; times in epoch seconds."""

    start: float
    end: float  # after the last byte was handed to the network
    host: str  # name, without port
    ip: str  # the local address asked
    path: str
    status: int
    rest: float = 0.0  # seconds that this answer's Retry-After asks for
    cut: bool = False  # the client left before the answer was whole


class Pauses(NamedTuple):
    """How one host or address was treated."""

    visits: int
    smallest: float  # seconds; infinity after one visit
    overlaps: int  # requests that began before the one before had ended


class Attempt(NamedTuple):
    """One line of our own request log that reached a server."""

    start: float
    end: float
    status: int | None
    delay_seconds: float


@dataclass(slots=True)
class Verdict:
    """What was wrong, one sentence each, and what was counted."""

    faults: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    def add(self, other: Verdict) -> None:
        self.faults += other.faults
        self.facts += other.facts


def read_visits(path: Path) -> list[Visit]:
    """The server's log in order of start: the synthetic web's, or nginx's written as ``NGINX_FORMAT``."""
    visits = []
    with path.open() as lines:
        for line in lines:
            row = json.loads(line)
            end = float(row["end"])
            start = float(row["start"]) if "start" in row else end - float(row["took"])
            host = row["host"].rsplit(":", 1)[0] if ":" in row["host"] else row["host"]
            status, rest = int(row["status"]), float(row.get("rest", 0))
            visits.append(Visit(start, end, host, row["ip"], row["path"], status, rest, bool(row.get("cut"))))
    visits.sort()
    return visits


#: nginx's ``log_format`` body for ``read_visits``; $request_time runs from the request's first byte to the last sent.
NGINX_FORMAT = (
    '{"end":$msec,"took":$request_time,"host":"$http_host","ip":"$server_addr",'
    '"path":"$request_uri","status":$status,"bytes":$bytes_sent,"connection":$connection}'
)


def pauses(visits: Iterable[Visit], key: str) -> dict[str, Pauses]:
    """For each value of ``key`` (host or ip): visits, smallest pause from an end to the next start, overlaps."""
    last: dict[str, float] = {}
    found: dict[str, Pauses] = {}
    for visit in visits:
        name = getattr(visit, key)
        before = found.get(name, Pauses(0, float("inf"), 0))
        pause = visit.start - last[name] if name in last else float("inf")
        overlaps = before.overlaps + (pause < 0)
        found[name] = Pauses(before.visits + 1, min(before.smallest, pause), overlaps)
        last[name] = max(last.get(name, 0.0), visit.end)
    return found


def judge_pauses(
    visits: list[Visit], *, host_seconds: float, ip_seconds: float, floors: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE_SECONDS, logged: Mapping[str, list[Attempt]] | None = None,
) -> Verdict:  # fmt: skip
    """Faults for every pause below the promise: per host (with ``floors`` and Retry-After), per IP address.

    ``logged``: after kills, the request logs as the crawl kept them. An answer that is in none of them died with its
    process: its Retry-After, or the floor of its robots.txt, was never known.
    """
    verdict, asked = Verdict(), floors or {}
    known = None if logged is None else _answers(logged)
    for key, least in (("host", host_seconds), ("ip", ip_seconds)):
        last: dict[str, tuple[float, float, str]] = {}
        for visit in visits:
            name = getattr(visit, key)
            end, rest, path = last.get(name, (float("-inf"), 0.0, ""))
            lost = known is not None and end not in known[visit.host, path]
            floor = 0.0 if lost and path == visit.path == "/robots.txt" else asked.get(name, 0.0)
            promised = max(least, floor, rest if key == "host" and not lost else 0.0)
            pause = visit.start - end
            if pause < promised - tolerance:
                what = f"{'overlap' if pause < 0 else 'pause'} at {key} {name}"
                verdict.faults.append(f"{what}: {pause:.4f} s before {visit.path}, promised {promised:g} s")
            last[name] = max(end, visit.end), visit.rest, visit.path
        seen = pauses(visits, key)
        smallest = min((each.smallest for each in seen.values()), default=float("inf"))
        overlaps = sum(each.overlaps for each in seen.values())
        counts = f"{len(seen)} {key}s, {len(visits)} requests"
        verdict.facts.append(f"{counts}, smallest pause {smallest:.4f} s, {overlaps} overlaps")
    return verdict


class _Ends:
    """The moments at which answers to one URL ended, by our log."""

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, attempt: Attempt) -> None:
        self._spans.append((attempt.start - TOLERANCE_SECONDS, attempt.end + TOLERANCE_SECONDS))

    def __contains__(self, end: float) -> bool:
        return any(start <= end <= last for start, last in self._spans)


def _answers(logged: Mapping[str, list[Attempt]]) -> Mapping[tuple[str, str], _Ends]:
    """By host, without port, and path."""
    ends: dict[tuple[str, str], _Ends] = defaultdict(_Ends)
    for url, attempts in logged.items():
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        for attempt in attempts:
            ends[parts.hostname or "", path].add(attempt)
    return ends


def read_attempts(*folders: Path) -> dict[str, list[Attempt]]:
    """Our request logs by URL, in order of time; lines that never reached a server (no ip) are left out."""
    attempts: dict[str, list[Attempt]] = defaultdict(list)
    for row in (row for folder in folders for row in log_rows(folder)):
        if row.get("ip") and not row.get("rendered"):
            start, end = (datetime.fromisoformat(str(row[name])).timestamp() for name in ("time", "end"))
            status = row["status"]
            delay = float(str(row.get("delay_seconds") or 0))
            attempts[str(row["url"])].append(Attempt(start, end, status if isinstance(status, int) else None, delay))
    for each in attempts.values():
        each.sort(key=lambda attempt: attempt.start)
    return attempts


def log_rows(folder: Path) -> Iterator[dict[str, object]]:
    for path in sorted(folder.glob("requests-*.jsonl*")):
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
            for line in lines:
                if line.endswith("\n"):  # a torn last line: the process was killed while writing it
                    yield json.loads(line)


def judge_log(
    visits: list[Visit], attempts: Mapping[str, list[Attempt]], port: int, tolerance: float = TOLERANCE_SECONDS
) -> Verdict:
    """Faults where the server's log and ours differ: count, status, times, and pauses below what ours promised."""
    verdict, paired = Verdict(), 0
    by_url: dict[str, list[tuple[Visit, float]]] = defaultdict(list)
    last: dict[str, float] = {}
    for visit in visits:
        pause = visit.start - last.get(visit.host, float("-inf"))
        url = f"http://{visit.host}:{port}{visit.path}"
        ours, number = attempts.get(url, []), len(by_url[url])
        # Of an answer that we gave up on the server hears when it next looks: the pause begins when we left.
        end = ours[number].end if visit.cut and number < len(ours) else visit.end
        by_url[url].append((visit, pause))
        last[visit.host] = max(last.get(visit.host, 0.0), end)
    for url in sorted(by_url.keys() | attempts.keys()):
        seen, ours = by_url.get(url, []), attempts.get(url, [])
        if len(seen) != len(ours):
            verdict.faults.append(f"{url}: the server saw {len(seen)} requests, our log has {len(ours)}")
            continue
        for (visit, pause), attempt in zip(seen, ours, strict=True):
            paired += 1
            if attempt.status != visit.status and attempt.status is not None:
                verdict.faults.append(f"{url}: the server sent {visit.status}, our log says {attempt.status}")
            # Of an answer that we gave up on the server hears when it next looks.
            ended_early = attempt.end < visit.end - tolerance and not visit.cut
            if attempt.start > visit.start + tolerance or ended_early:
                verdict.faults.append(f"{url}: our times {attempt[:2]} do not enclose the server's {visit[:2]}")
            if pause < attempt.delay_seconds - tolerance:
                verdict.faults.append(f"{url}: pause {pause:.4f} s, our log promised {attempt.delay_seconds:.4f} s")
    verdict.facts.append(f"{paired} requests {'compared' if verdict.faults else 'agree'} in both logs")
    return verdict


def read_captures(*folders: Path) -> dict[str, Counter[int]]:
    """URL to its captures by status: response and revisit records of every WARC in the folders, open ones too."""
    captures: dict[str, Counter[int]] = defaultdict(Counter)
    files = [path for folder in folders for form in ("*.warc.gz", "*.warc.gz.open") for path in folder.glob(form)]
    for path in sorted(files):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, no_record_parse=False):
                if record.rec_type in ("response", "revisit"):
                    url = record.rec_headers.get_header("WARC-Target-URI")
                    status = record.http_headers.get_statuscode() if record.http_headers else "0"
                    cut = record.rec_headers.get_header("WARC-Truncated") == "disconnect"
                    captures[url][_CUT if cut else int(status) if status and status.isdigit() else 0] += 1
    return captures


def judge_references(*folders: Path) -> Verdict:
    """Faults for a revisit that names no response with its payload, and for a payload stored twice.

    Workers that write at the same time (several folders) may each store a payload, and name each other's.
    """
    verdict, revisits = Verdict(), []
    stored: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for path in [path for folder in folders for path in sorted([*folder.glob("*.warc.gz*")])]:
        if not path.name.endswith((".warc.gz", ".warc.gz.open")):
            continue
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                fields, name = record.rec_headers, f"{path.name}: {record.rec_headers.get_header('WARC-Record-ID')}"
                digest = fields.get_header("WARC-Payload-Digest")
                if record.rec_type == "response" and record.http_headers.get_statuscode() == "200":
                    if fields.get_header("WARC-Truncated") or not record.raw_stream.read():
                        continue
                    if digest in stored and len(folders) == 1:
                        verdict.faults.append(f"{name} stores the payload of {stored[digest][0][0]} again")
                    stored[digest].append(tuple(fields.get_header(f"WARC-{name}") for name in ("Record-ID", *_PLACE)))
                elif record.rec_type == "revisit":
                    names = ("", *(f"-{name}" for name in _PLACE))
                    refers = tuple(fields.get_header(f"WARC-Refers-To{name}") for name in names)
                    revisits.append((name, digest, refers))
                    if len(folders) == 1 and refers not in stored[digest]:
                        verdict.faults.append(f"{name} names no earlier response with its payload")
    for name, digest, refers in revisits if len(folders) > 1 else ():
        if refers not in stored[digest]:
            verdict.faults.append(f"{name} names no response with its payload")
    verdict.facts.append(f"{len(stored)} payloads stored, {len(revisits)} revisits of them")
    return verdict


def _final(status: int) -> bool:
    return status < _SERVER_ERROR and status != _RATE_LIMITED


def judge_captures(
    captures: Mapping[str, Counter[int]], expected: set[str], *, forbidden: Iterable[str] = (),
    aliases: Iterable[Iterable[str]] = (), optional: Iterable[str] = (), endless: Iterable[str] = (),
) -> Verdict:  # fmt: skip
    """Faults for what is missing, archived twice, forbidden, or not known of; robots.txt is looked past."""
    verdict = Verdict()
    final = {url: sum(n for status, n in found.items() if _final(status)) for url, found in captures.items()}
    pages = {url: count for url, count in final.items() if urlsplit(url).path != "/robots.txt"}
    groups = [frozenset(group) for group in aliases]
    spare = set(optional).union(*groups)
    verdict.faults += [f"missing: {url}" for url in sorted(expected) if not captures.get(url)]
    verdict.faults += [f"archived {n} times: {url}" for url, n in sorted(pages.items()) if n > 1 and url not in spare]
    verdict.faults += [f"forbidden: {url}" for url in sorted(set(forbidden) & captures.keys())]
    for group in groups:
        taken = sum(pages.get(url, 0) for url in group)
        if taken != 1:
            verdict.faults.append(f"archived {taken} spellings of {min(group)}")
    unknown = pages.keys() - expected - spare - set(forbidden)
    hosts = set(endless)
    verdict.faults += [f"not expected: {url}" for url in sorted(unknown) if urlsplit(url).hostname not in hosts]
    verdict.facts.append(f"{len(pages)} pages archived, {len(expected)} expected, {sum(final.values())} captures")
    return verdict


def judge_folder(
    folder: Path, crawl: Path | None, *, host_seconds: float, ip_seconds: float, tolerance: float = TOLERANCE_SECONDS,
    log: bool = True, workers: Iterable[Path] = (),
) -> Verdict:  # fmt: skip
    """All of the above for a crawl of the synthetic web in ``folder``; ``log`` False after kills, which lose lines.

    ``workers``: the folders of a crawl that several workers made together, in place of ``crawl``.
    """
    crawls = [*workers] if crawl is None else [crawl]
    world = json.loads((folder / "world.json").read_text())
    visits = read_visits(folder / "server.jsonl")
    forbidden = (folder / "forbidden.txt").read_text().splitlines()
    attempts = read_attempts(*(each / "log" for each in crawls))
    logged = attempts if crawls and not log else None
    promises = {"host_seconds": host_seconds, "ip_seconds": ip_seconds, "floors": world["floors"]}
    verdict = judge_pauses(visits, **promises, tolerance=tolerance, logged=logged)
    asked = {f"http://{visit.host}:{world['port']}{visit.path}" for visit in visits}
    verdict.faults += [f"asked for, though forbidden: {url}" for url in sorted(asked.intersection(forbidden))]
    if crawls:
        if log:
            verdict.add(judge_log(visits, attempts, world["port"], tolerance))
        expected = set((folder / "expected.txt").read_text().splitlines())
        known = {"aliases": world["aliases"], "optional": world["optional"], "endless": world["endless"]}
        verdict.add(
            judge_captures(read_captures(*(each / "warc" for each in crawls)), expected, forbidden=forbidden, **known)
        )
        verdict.add(judge_references(*(each / "warc" for each in crawls)))
    return verdict


def show(verdict: Verdict) -> int:
    """Print a verdict; the exit status it deserves."""
    print("\n".join(verdict.facts))
    for fault in verdict.faults[:_SHOWN]:
        print(f"FAULT {fault}")
    more = len(verdict.faults) - _SHOWN
    print(f"... and {more} more" if more > 0 else f"{len(verdict.faults)} faults")
    return 1 if verdict.faults else 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.web.judge", description="Judge a crawl of the small web.")
    parser.add_argument("--folder", type=Path, required=True, help="the folder of python -m tests.web")
    parser.add_argument("--crawl", type=Path, help="the CRAWL_DIR; without it only the server's log is judged")
    parser.add_argument("--host-seconds", type=float, default=0.25, help="promised pause at a host (mirror: 0.25)")
    parser.add_argument("--ip-seconds", type=float, default=0.5, help="promised pause at an IP address")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE_SECONDS, help="seconds")
    parser.add_argument("--no-log", action="store_true", help="do not compare with our request log")
    given = parser.parse_args()
    seconds = {"host_seconds": given.host_seconds, "ip_seconds": given.ip_seconds, "tolerance": given.tolerance}
    sys.exit(show(judge_folder(given.folder, given.crawl, log=not given.no_log, **seconds)))


if __name__ == "__main__":
    main()
