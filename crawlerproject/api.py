"""Crawls from Python: start one, watch it, read what it has archived. docs/python.md has examples, which tests run.

A crawl that is started here is a process of its own, that of ``scrapy crawl`` or ``scrapy fleet``, and is watched by
its folder. So it runs beside any event loop (Scrapy's reactor cannot be started twice in a process, nor in a notebook's
loop), computes beside the script instead of in its turns, and survives it: whatever ends the script leaves a crawl that
goes on, and ``Crawl(folder)`` finds it again.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from crawlerproject import BLAS_IS_FREE, BLAS_THREADS
from crawlerproject.errors import OperatorError as OperatorError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa
    from scrapy.settings import Settings

    from crawlerproject.inspection.crawl_view import CrawlView
    from crawlerproject.stores.archive.capture_index import Captures
    from crawlerproject.stores.archive.warc_reader import ArchivedCapture
    from crawlerproject.stores.crawl_dir import CrawlDir
    from crawlerproject.stores.crawl_folders import Archives

__all__ = ["Crawl", "CrawlStatus", "OperatorError", "Record", "start"]

if BLAS_IS_FREE:
    os.environ.pop(BLAS_THREADS, None)

_LOG = "crawl.log"
_SEEDS = "seeds.txt"
# What a start may take on a busy machine; it usually takes a second.
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.2
_STATUS_SECONDS = 5.0  # a look reads the state of every host
_EXIT_REFUSED = 2
_ERROR = "error: "  # stands before the sentence that a refused start ends with
_TAIL_BYTES = 4096
_BATCH_ROWS = 2000  # some 20 MB of text
_MAX_BODY_BYTES = 1 << 30  # of a body without its Content-Encoding: more than any crawl keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlStatus:
    """The figures of ``scrapy status --json``, under the same names; docs/status.schema.json says what they mean."""

    schema: int
    folder: str
    running: bool
    said_seconds_ago: float | None
    paused: str
    finish_reason: str | None
    pages: int
    bytes: int
    errors: int
    totals: Mapping[str, float] | None
    pages_per_second: float
    bytes_per_second: float
    cpu_share: float
    bound_by: str | None
    politeness_ceiling_per_second: float
    hosts: Mapping[str, int]
    queued: int
    eta_seconds: float | None
    slowest: Sequence[Mapping[str, Any]]
    resting_queued: int
    rests_end_in_seconds: float | None
    parked_queued: int
    reader: str | None
    paused_hosts: Mapping[str, str]
    uploads: Mapping[str, Any] | None
    poison: int
    workers: Sequence[Mapping[str, Any]] = field(default=())  # of a crawl of several


@dataclass(frozen=True, slots=True)
class Record:
    """A capture: an answer as it is archived, or the page that a browser made of one (``rendered``)."""

    url: str
    fetch_time: datetime
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes | None  # without its Content-Encoding; None above 1 GiB, or where it repeats one that is not here
    mime: str
    rendered: bool
    metadata: Mapping[str, str]  # of its metadata record: hopsFromSeed, via, ...
    warc_filename: str
    warc_record_offset: int


class Crawl:
    """The crawl in a folder, at work or not, whatever started it. Constructing one reads nothing.

    As a context manager it stops the crawl at the end of the block, if it still runs then.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any] | None = None) -> None:
        """``settings``: those that name where it is, such as the STATE_URL of a fleet over Redis."""
        self.folder = Path(folder)
        self._given = dict(settings or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()
        while self.running:
            time.sleep(_LOOK_SECONDS)

    # --- watch ----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a process of it is at work on this machine. Reads some kilobytes."""
        if self._process is not None:
            return self._process.poll() is None
        return bool(self._pids())

    def status(self) -> CrawlStatus:
        """How it stands now. Raises OperatorError where there is no crawl."""
        from crawlerproject.inspection.status_facts import facts_of

        facts, _ = facts_of(self._view())
        known = {each.name for each in fields(CrawlStatus)}
        return CrawlStatus(**{name: value for name, value in facts.items() if name in known})

    def watch(self, every_seconds: float = _STATUS_SECONDS) -> Iterator[CrawlStatus]:
        """Its status now, and again and again until it has ended; the last one is that of the end."""
        while self.running:
            yield self.status()
            until = time.monotonic() + every_seconds
            while self.running and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
        yield self.status()

    async def watch_async(self, every_seconds: float = _STATUS_SECONDS) -> AsyncIterator[CrawlStatus]:
        """The same in a running event loop: ``async for status in crawl.watch_async(): ...``."""
        while self.running:
            yield await asyncio.to_thread(self.status)
            until = time.monotonic() + every_seconds
            while self.running and time.monotonic() < until:
                await asyncio.sleep(_LOOK_SECONDS)
        yield await asyncio.to_thread(self.status)

    def wait(self, timeout_seconds: float | None = None) -> CrawlStatus:
        """Until it has ended. Raises TimeoutError, and OperatorError where it ended otherwise than done or stopped."""
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while self.running:
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"The crawl in {self.folder} still runs after {timeout_seconds:g} s.")
            time.sleep(_LOOK_SECONDS)
        return self._ended()

    async def wait_async(self) -> CrawlStatus:
        """``wait`` in a running event loop. One that is cancelled leaves the crawl alone."""
        while self.running:
            await asyncio.sleep(_LOOK_SECONDS)
        return self._ended()

    def stop(self) -> None:
        """Have it end once what is on its way has come, as ``scrapy stop`` does; ``start`` goes on. Does not wait."""
        from crawlerproject.stores.operator_files.control import Pauses, change_pauses

        def change(pauses: Pauses) -> None:
            pauses.stopped_at = time.time()

        if self.running:
            change_pauses(self.folder, change)

    # --- read -----------------------------------------------------------------------------------

    def records(self) -> Iterator[Record]:
        """Every capture in its WARC files, robots.txt included, in the order of writing; also while it runs.

        Raises OperatorError where nothing is archived. A damaged file is read up to the damage (``scrapy verify``).
        """
        from crawlerproject.stores.archive.capture_index import Captures
        from crawlerproject.stores.archive.warc_reader import captures_in

        archives = self._archives()
        originals = Captures(archives.folders, archives.elsewhere)
        for warc in (*archives.closed_warcs(), *archives.open_warcs()):
            for capture in captures_in(warc):
                yield _record(capture, originals)

    def page_files(self) -> list[Path]:
        """The Parquet files of its pages, one a closed WARC file, after ``scrapy process`` has made what is missing.

        docs/batch.md has their columns. Raises OperatorError, also when a WARC file is damaged.
        """
        from crawlerproject.batch.process_warcs import PAGES, ExtractOptions, is_done

        archives, wanted = self._archives(), ExtractOptions()
        out = archives.crawl.processed
        if not all(is_done(warc, out, wanted) for warc in archives.closed_warcs()):
            # In a process of its own: its workers import the script that is the main module, which may start crawls.
            made = subprocess.run(
                _command("process", str(self.folder)), stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            if made.returncode not in (0, 1):  # 1: of a damaged file what stands before the damage is there
                raise OperatorError(_last_words(made.stderr) or f"scrapy process ended with {made.returncode}")
        return sorted((out / PAGES).glob("*.parquet"))

    def pages(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of these files, some thousands at a time, all with the same columns; all of them, or those named.

        A page that was visited twice has a row a visit. Raises ValueError for a name that is no column's.
        """
        import pyarrow.parquet as pq

        schema = _page_schema(columns)
        for path in self.page_files():
            with pq.ParquetFile(path) as file:
                there = [name for name in schema.names if name in file.schema_arrow.names]
                for batch in file.iter_batches(_BATCH_ROWS, columns=there):
                    yield _in_columns(batch, schema)

    def to_pandas(self, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """All of ``pages`` as a frame. Raises ImportError, in one sentence, without pandas."""
        try:
            import pandas  # noqa: F401  # what Arrow asks for
        except ImportError:
            raise ImportError("to_pandas() needs pandas, which is not installed: pip install pandas") from None
        return self._table(columns).to_pandas()

    def to_polars(self, columns: Sequence[str] | None = None) -> polars.DataFrame:
        """All of ``pages`` as a frame. Raises ImportError, in one sentence, without polars."""
        try:
            import polars
        except ImportError:
            raise ImportError("to_polars() needs polars, which is not installed: pip install polars") from None
        frame: polars.DataFrame = polars.from_arrow(self._table(columns))
        return frame

    # --- within ---------------------------------------------------------------------------------

    def _table(self, columns: Sequence[str] | None) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_batches(self.pages(columns), _page_schema(columns))

    def _crawl_dir(self) -> CrawlDir:
        from crawlerproject.stores.crawl_dir import CrawlDir

        return CrawlDir(self.folder)

    def _archives(self) -> Archives:
        from crawlerproject.stores.crawl_folders import archives_of

        archives = archives_of(self._crawl_dir())
        if not archives.has_archive():
            raise OperatorError(f"{self.folder} holds no crawl: there is no WARC file in {self._crawl_dir().warc}.")
        return archives

    def _view(self) -> CrawlView:
        from crawlerproject.config.crawl_file import apply_of_folder
        from crawlerproject.inspection.crawl_view import CrawlView

        settings = _settings_of(self.folder, self._given)
        apply_of_folder(settings)
        return CrawlView(settings)

    def _pids(self) -> list[int]:
        """The processes at work in its folder."""
        from crawlerproject.inspection.crawl_progress import workers_below
        from crawlerproject.stores.crawl_dir import read_facts

        crawl = self._crawl_dir()
        own = read_facts(crawl.status)
        statuses = [own] if crawl.running(own) else [worker.status for worker in workers_below(crawl) if worker.running]
        return [int(status["pid"]) for status in statuses]

    def _ended(self) -> CrawlStatus:
        status = self.status()
        if self._process is not None and (code := self._process.returncode):
            why = _last_words(_tail(self.folder / _LOG)) if code == _EXIT_REFUSED else ""
            how = f"exit status {code}, {status.finish_reason}" if code > 0 else f"signal {-code}"
            raise OperatorError(why or f"The crawl in {self.folder} ended with {how}; its log: {self.folder / _LOG}")
        return status

    def _begin(self, words: Sequence[str]) -> None:
        """Start a process, and wait until it is at work. OperatorError."""
        before, log = set(self._pids()), self.folder / _LOG
        with log.open("ab") as output:
            began = output.tell()
            # A session of its own: a Ctrl-C in the terminal is the script's, which decides what becomes of the crawl.
            self._process = process = subprocess.Popen(
                _command(*words), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        until = time.monotonic() + _START_SECONDS
        while process.poll() is None and not set(self._pids()) - before:
            if time.monotonic() > until:
                raise OperatorError(f"The crawl in {self.folder} has not begun yet; its log: {log}")
            time.sleep(_LOOK_SECONDS)
        if process.returncode == _EXIT_REFUSED:
            raise OperatorError(_last_words(_tail(log, began)))


def start(
    seeds: str | os.PathLike[str] | Iterable[str] | None = None,
    folder: str | os.PathLike[str] = "crawls/web",
    *,
    settings: Mapping[str, Any] | None = None,
    arguments: Mapping[str, Any] | None = None,
    workers: int = 1,
) -> Crawl:
    """Begin a crawl in a process of its own, or go on with the one in ``folder``; returns once it is at work.

    ``seeds``: one URL, URLs, or the path of a file of them (a text without ``://`` is one); None: those that the crawl
    has. ``settings`` are those of docs/settings.md (``-s``), ``arguments`` those of the spider (``-a``: scope,
    max_pages, ...). Several ``workers`` share the hosts, as by ``scrapy fleet``. What the crawl prints goes into
    ``crawl.log`` in its folder. Raises OperatorError, one sentence, when it does not start.
    """
    crawl = Crawl(folder, settings)
    words = ["crawl", "web"] if workers == 1 else ["fleet", "--workers", str(workers)]
    try:
        crawl.folder.mkdir(parents=True, exist_ok=True)
        given = {"seeds": _seeds_of(seeds, crawl.folder)} if seeds is not None else {}
        for name, value in {**given, **(arguments or {})}.items():
            words += ["-a", f"{name}={value}"]
        for name, value in {**(settings or {}), "CRAWL_DIR": crawl.folder}.items():
            words += ["-s", f"{name}={_written(value)}"]
        crawl._begin(words)
    except OSError as error:
        raise OperatorError(f"The crawl folder {crawl.folder} cannot be used ({error.strerror}).") from error
    return crawl


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "crawlerproject", *words]


def _settings_of(folder: Path, given: Mapping[str, Any]) -> Settings:
    """The project's settings, and those that are given, of the crawl in ``folder``."""
    from scrapy.settings import Settings

    settings = Settings()
    settings.setmodule("crawlerproject.settings", "project")
    settings.update({**given, "CRAWL_DIR": str(folder)}, "cmdline")
    return settings


def _seeds_of(seeds: str | os.PathLike[str] | Iterable[str], folder: Path) -> str:
    """The value of ``-a seeds=``. URLs are put into a file: a command line is bounded, and a comma divides it."""
    if isinstance(seeds, (str, os.PathLike)):
        return os.fspath(seeds)
    from crawlerproject.stores.atomic_files import write_whole

    write_whole(folder / _SEEDS, "".join(f"{url}\n" for url in seeds).encode())
    return str((folder / _SEEDS).absolute())


def _written(value: Any) -> str:
    """A setting's value as a command line has it."""
    if isinstance(value, (list, tuple, set, frozenset, dict)):
        return json.dumps(value if isinstance(value, dict) else list(value))
    return "" if value is None else str(value)


def _tail(path: Path, began: int = 0) -> bytes:
    with path.open("rb") as file:
        file.seek(max(began, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read()


def _last_words(output: bytes) -> str:
    """The sentence that a command ended with."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].rpartition(_ERROR)[2] if lines else ""


def _record(capture: ArchivedCapture, originals: Captures) -> Record:
    from crawlerproject.fetch.decoding import decode
    from crawlerproject.stores.archive.warc_reader import ArchivedCapture

    member, source = capture.member, capture
    body: bytes | None = member.block
    if member.kind == "revisit":
        with suppress(OperatorError):  # the index does not say the truth, as scrapy verify does
            if (found := originals.original(member)) is not None:
                source = ArchivedCapture(originals.record(found), capture.path)
        body = None
    if not capture.rendered and source.member.kind != "revisit":
        coding = source.headers.get("content-encoding", "").encode("latin-1")
        body = None if source.member.is_large else decode(source.member.body, coding, _MAX_BODY_BYTES).body
    return Record(
        url=capture.url,
        fetch_time=capture.fetched_at,
        status=capture.status,
        headers=capture.headers,
        body=body,
        mime=source.headers.get("content-type", "").partition(";")[0].strip().lower(),
        rendered=capture.rendered,
        metadata=capture.notes,
        warc_filename=capture.path.name.removesuffix(".open"),
        warc_record_offset=member.offset,
    )


def _page_schema(columns: Sequence[str] | None) -> pa.Schema:
    import pyarrow as pa

    from crawlerproject.batch.warc_extract import PAGE_SCHEMA

    if columns is None:
        return PAGE_SCHEMA
    if unknown := [name for name in columns if name not in PAGE_SCHEMA.names]:
        raise ValueError(f"{unknown[0]!r} is no column; there are {', '.join(PAGE_SCHEMA.names)}")
    return pa.schema([PAGE_SCHEMA.field(name) for name in columns])


def _in_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """What a file of an earlier version lacks is null; its ``metadata`` is a map."""
    import pyarrow as pa

    there = set(batch.schema.names)
    found = [
        batch.column(each.name).cast(each.type) if each.name in there else pa.nulls(len(batch), each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(found, schema=schema)
