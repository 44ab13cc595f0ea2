"""The request log: one JSON object a line, a file a day (UTC), old days compressed, older ones removed.

A closed day also gets a twin in Parquet, made by a process of its own: questions about a month then take seconds
(stores/logs/log_query.py).

One line of the request log: what an attempt was and how it ended, in the order that readers know.
"""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson
from isal import isal_zlib

from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.warc_records import warc_date
from crawlerproject.stores.atomic_files import put_back, storage_errors, whole_file
from crawlerproject.stores.crawl_dir import facts_in

_UNKNOWN: dict[str, Any] = {
    "time": None,
    "end": None,
    "url": None,
    "method": "GET",
    "status": None,  # when no server answered
    "reason": None,
    "host": "",  # host key
    "ip": None,
    "via": None,
    "depth": 0,
    "hop": "",  # Heritrix letters: L R P E I M S
    "mime": None,
    "bytes": 0,  # on the wire
    "location": None,
    "ttfb_seconds": None,
    "seconds": None,
    "delay_seconds": None,  # the pace promised before this request
    "digest": None,  # SHA-1 of the payload, base32
    "warc": None,
    "offset": None,
    "length": None,
    "error": None,
    "tries": 0,
    "truncated": None,
    "rendered": False,
    "duplicate": None,  # exact, canonical or near
    "duplicate_of": None,  # the URL that it repeats
}
LOG_FIELDS = tuple(_UNKNOWN)


def attempt_line(started_at: float, ended_at: float, url: str, reason: Reason | str, **known: Any) -> dict[str, Any]:
    """One attempt to fetch an address, robots.txt and browser sub-requests included; times are epoch seconds.

    ``known``: more fields of the line, by their names. "" is unknown, as what is left out is; seconds are rounded.
    """
    found = {**_UNKNOWN, "time": warc_date(started_at), "end": warc_date(ended_at), "url": url, "reason": str(reason)}
    found["seconds"] = round(ended_at - started_at, 6)
    for name, value in known.items():
        found[name] = _UNKNOWN[name] if value == "" else round(value, 6) if type(value) is float else value
    return found


COPY_BYTES = 1 << 20
"""Bytes compressed at once."""
COMPRESSION_LEVEL = 2
"""isal level: measured on pages: 34.5 % in 0.051 ms, where zlib 6 takes 0.440 ms for 31.4 %."""
GZIP_WINDOW_BITS = 31
"""zlib's way to say "a gzip member"."""
DAY_SECONDS = 86400
_LINES_BETWEEN = 4096  # two reports of how far a file is read
TWIN_NICENESS = 19
"""The crawl comes first."""
TWIN_LOOK_SECONDS = 0.2
"""How soon a closing log is noticed."""

logger = logging.getLogger(__name__)


class RequestLog:
    """Collects lines in memory until ``flush``; ``keep_days`` days stay, today included. One thread."""

    def __init__(self, folder: Path, keep_days: int) -> None:
        self.folder = folder
        self._keep_days = keep_days
        self._day = ""
        self._day_ends = 0.0  # epoch seconds
        self._waiting: dict[str, list[bytes]] = {}  # lines by day
        self._descriptor = -1
        self._open_day = ""
        self._unwritten = b""  # what a full disk did not take of the open day
        self._tidying: threading.Thread | None = None
        self._stop_twins = threading.Event()
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, now: float, line: Mapping[str, object] | bytes) -> None:
        """Add a line, packed or its fields, to the file of the day ``now`` (epoch seconds); on disk with ``flush``."""
        if now >= self._day_ends:  # a clock set back stays with the later day: closed days are not reopened
            self._day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
            self._day_ends = (now // DAY_SECONDS + 1) * DAY_SECONDS
        packed = line if isinstance(line, bytes) else orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
        self._waiting.setdefault(self._day, []).append(packed)

    def flush(self) -> None:
        """Hand all lines to the system; raises StorageError and keeps what was not written for the next time."""
        if self._descriptor >= 0:
            self._descriptor = put_back(self._descriptor, self.folder / _name(self._open_day), os.O_APPEND)
        self._write_out()
        for day in sorted(self._waiting):
            if day != self._open_day:
                self._turn_to(day)
            self._unwritten += b"".join(self._waiting.pop(day))
            self._write_out()

    def close(self) -> None:
        """Flush and wait for the compression of old days."""
        try:
            self.flush()
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
                self._open_day = ""
            self._stop_twins.set()  # a twin that is not ready is made after the next start
            if self._tidying is not None:
                self._tidying.join()

    def _write_out(self) -> None:
        with storage_errors(self.folder / _name(self._open_day)):
            while self._unwritten:
                written = os.write(self._descriptor, self._unwritten)
                self._unwritten = self._unwritten[written:]

    def _turn_to(self, day: str) -> None:
        """Open the file of ``day``, ending a torn last line, and tidy up the days before it."""
        path = self.folder / _name(day)
        with storage_errors(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._open_day = descriptor, day
        self._unwritten = b"\n" if torn else b""
        if self._tidying is not None:
            self._stop_twins.set()
            self._tidying.join()
        self._stop_twins = threading.Event()
        self._tidying = threading.Thread(target=self._tidy, args=(day, self._stop_twins), name="request-log")
        self._tidying.start()

    def _tidy(self, today: str, stop: threading.Event) -> None:
        tidy(self.folder, today, self._keep_days)
        make_twins(self.folder, stop)


def log_files(folder: Path) -> list[Path]:
    """The log's files, oldest day first, of a day the compressed part first."""
    files = (path for path in folder.glob("requests-*.jsonl*") if path.suffix in (".gz", ".jsonl"))
    return sorted(files, key=lambda path: (day_of(path), path.suffix != ".gz"))


def read_log(folder: Path) -> Iterator[dict[str, Any]]:
    """Every whole line of the log, oldest day first, compressed or not; torn lines are passed over."""
    return (row for row in log_rows(folder) if row is not None)


def log_rows(folder: Path) -> Iterator[dict[str, Any] | None]:
    """The rows of all files; what cannot be unpacked is left out with a warning."""
    for path in log_files(folder):
        try:
            yield from read_rows(path)
        except ValueError as error:
            logger.warning("%s and was read only in part", error)


def read_rows(path: Path, done: Callable[[int], None] = lambda count: None) -> Iterator[dict[str, Any] | None]:
    """Each line of one file as its fields; None for a line that is not an object, such as one that a crash tore.

    ``done`` takes bytes of the file as they are read. Raises OSError when the file cannot be read, ValueError when its
    compression is damaged.
    """
    before = 0
    try:
        with path.open("rb") as raw, gzip.open(raw, "rb") if path.suffix == ".gz" else raw as file:
            for number, text in enumerate(file, 1):
                yield (facts_in(text) or None) if text.endswith(b"\n") else None
                if number % _LINES_BETWEEN == 0:
                    now = raw.tell()
                    done(now - before)
                    before = now
            done(raw.tell() - before)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path.name} is damaged ({error})") from error


def tidy(folder: Path, today: str, keep_days: int) -> None:
    """Compress the days before ``today`` (YYYY-MM-DD) and remove those that are too old; trouble is logged."""
    oldest = (date.fromisoformat(today) - timedelta(days=keep_days - 1)).isoformat()
    for path in sorted(folder.glob("requests-*")):
        try:
            if path.is_dir():  # where a twin was sorted when its maker was killed
                shutil.rmtree(path)
            elif day_of(path) < oldest or path.suffix == ".part":
                path.unlink(missing_ok=True)
            elif path.suffix == ".jsonl" and day_of(path) < today:
                _compress(path)
        except OSError as error:
            logger.warning("The request log %s could not be tidied: %s", path.name, error)


def make_twins(folder: Path, stop: threading.Event) -> None:
    """Make the Parquet twins that are missing or older than their lines; in idle time, and not past ``stop``."""
    for packed in sorted(folder.glob("requests-*.jsonl.gz"), reverse=True):
        twin = twin_of(packed)
        if twin.exists() and twin.stat().st_mtime >= packed.stat().st_mtime:
            continue
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # the project may be an egg of scrapyd's
        command = [sys.executable, "-m", "crawlerproject.stores.logs.log_query", str(packed)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as maker:
            os.setpriority(os.PRIO_PROCESS, maker.pid, TWIN_NICENESS)
            while maker.poll() is None and not stop.wait(TWIN_LOOK_SECONDS):
                pass
            if stop.is_set():
                maker.terminate()
                return
            if maker.returncode and maker.stderr is not None:
                why = maker.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
                logger.warning("%s has no Parquet twin (%s); its lines are read instead", packed.name, why)


def _compress(path: Path) -> None:
    """Put ``path.gz`` in place of ``path``, durably; a day that has a .gz already gains what is new."""
    target = path.with_name(f"{path.name}.gz")
    if not (target.exists() and _same(path, target)):  # same: a crash came before the plain file was removed
        with whole_file(target) as raw:
            if target.exists():
                raw.write(target.read_bytes())
            compress_into(raw, path)
    path.unlink()


def compress_into(target: BinaryIO, plain: Path) -> None:
    """Append what ``plain`` holds, as one gzip member."""
    packer = isal_zlib.compressobj(COMPRESSION_LEVEL, isal_zlib.DEFLATED, GZIP_WINDOW_BITS)
    with plain.open("rb") as file:
        while chunk := file.read(COPY_BYTES):
            target.write(packer.compress(chunk))
    target.write(packer.flush())


def _same(plain: Path, packed: Path) -> bool:
    try:
        with plain.open("rb") as left, gzip.open(packed, "rb") as right:
            while True:
                chunk = left.read(COPY_BYTES)
                if chunk != right.read(len(chunk) or 1):
                    return False
                if not chunk:
                    return True
    except (OSError, EOFError, zlib.error):
        return False


def _name(day: str) -> str:
    return f"requests-{day}.jsonl"


def twin_of(path: Path) -> Path:
    """Where the twin of a day's lines is or will be."""
    return path.with_name(path.name.partition(".")[0] + ".parquet")


def day_of(path: Path) -> str:
    """The day (YYYY-MM-DD) of a log's file, or of its twin."""
    return path.name.removeprefix("requests-")[:10]


# Looked through from the end (ours): some 30,000 attempts, a tenth of a second.
TAIL_BYTES = 16 * 1024 * 1024


def last_of_host(folder: Path, host: str, most: int, tail_bytes: int = TAIL_BYTES) -> list[dict[str, Any]]:
    """The last attempts at a host (its key) among the last ``tail_bytes`` of today's lines, oldest first.

    What is older is in compressed days: ``stores/logs/log_query.py`` asks those.
    """
    wanted = orjson.dumps({"host": host})[1:-1]  # as it stands in a line
    rows = (facts_in(line) for line in lines_from_end(folder, tail_bytes) if wanted in line)
    return [*islice((row for row in rows if row.get("host") == host), most)][::-1]


def lines_from_end(folder: Path, tail_bytes: int = TAIL_BYTES) -> Iterator[bytes]:
    """The last lines of days that are not compressed, newest first; the first and the last may be cut."""
    for path in sorted(folder.glob("requests-*.jsonl"), reverse=True):
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - tail_bytes))
            lines = file.read(tail_bytes).split(b"\n")  # the first may be cut, the last half written just now
        yield from reversed(lines)
        tail_bytes -= size
        if tail_bytes <= 0:
            break
