"""Steps of the batch on Spark: a session, ``scrapy process`` as its tasks, and tables for ``scrapy rank``.

Executors read the WARCs and write the results by the same paths as the driver: a folder that all of them see. The
crawler is installed there as it is here; a worker of another version reports it and does nothing. Needs PySpark and a
Java; ``requirements-engines.txt`` pins it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject import __version__
from crawlerproject.batch.pagerank import Reader
from crawlerproject.batch.process_warcs import PART, ExtractOptions, Outcome, is_done, process_all, remaining
from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_APPLICATION = "crawlerproject"
# What makes rows of a page: with other versions of these a worker may make others.
_DECISIVE = ("pyarrow", "selectolax", "py3langid", "pypdfium2")
_LOCAL = "local"
# What fails comes back as an exception, and is a sentence of ours; Spark would write some sixty lines of each before.
_ALWAYS = {"spark.log.level": "FATAL", "spark.ui.showConsoleProgress": "false"}
# Of a master on this machine: no port that others could reach, and no page that would stay open while it works.
_LOOPBACK = "127.0.0.1"
_ON_LOOPBACK = {
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.ui.enabled": "false",
}
# Between two looks at how far the workers are (ours).
_LOOK_SECONDS = 0.5
_BATCH_ROWS = 65_536
_FIRST = "part-00000.parquet"
# The last line of a traceback of Python's, as Spark quotes it among its own.
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): .+)$", re.MULTILINE)


@contextmanager
def session(master: str) -> Iterator[SparkSession]:
    """A session at ``master``, closed at the end; Spark's own configuration files count as always.

    Raises OperatorError: PySpark or Java is missing, the master does not answer, or what was done there failed.
    """
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise OperatorError(
            "Spark is asked for and PySpark is not installed; install it with pip install -r requirements-engines.txt."
        ) from None
    home = os.environ.get("JAVA_HOME")  # where PySpark looks for it
    if not (os.access(os.path.join(home, "bin", "java"), os.X_OK) if home else shutil.which("java")):
        raise OperatorError("Spark needs a Java and there is none; install one (Debian: default-jre-headless).")
    # Else Spark starts the first python3 on a worker's path. The same environment stands at the same path there.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith(_LOCAL):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)
    builder = SparkSession.builder.master(master).appName(_APPLICATION)
    for name, value in (_ALWAYS | (_ON_LOOPBACK if master.startswith(_LOCAL) else {})).items():
        builder = builder.config(name, value)
    spark = None
    try:
        spark = builder.getOrCreate()
        yield spark
    except (Py4JError, PySparkException) as error:
        raise OperatorError(f"Spark at {master} could not do it: {sentence(str(error))}.") from error
    finally:
        if spark is not None:
            spark.stop()


def sentence(error: str) -> str:
    """What went wrong on a worker, or at Spark's own start, out of the many lines that Spark says."""
    found = _PYTHON_ERROR.findall(error)
    return str(found[-1] if found else error.strip().partition("\n")[0]).strip().rstrip(".")


def environment() -> str:
    """What must be the same here and on every worker, so that the same WARC gives the same files."""
    return ", ".join([f"crawlerproject {__version__}", *(f"{name} {version(name)}" for name in _DECISIVE)])


def process_on_spark(
    spark: SparkSession, warcs: list[Path], out: Path, wanted: ExtractOptions, done: Callable[[int], None]
) -> list[Outcome]:
    """Process every WARC whose files are not all there yet; ``done`` gets the count of whole files."""
    waiting = remaining(warcs, out, wanted, done)
    if not waiting:
        return []
    context = spark.sparkContext
    read = context.accumulator(0)
    task = partial(process_one, environment(), out, wanted)

    def counted(warc: Path) -> Outcome:
        outcome = task(warc)
        with suppress(OSError):  # it is not there, which its outcome says
            read.add(warc.stat().st_size)
        return outcome

    job = context.parallelize(waiting, len(waiting)).map(counted)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(job.collect)
        reported = 0
        try:
            while not answer.done():
                wait([answer], timeout=_LOOK_SECONDS)
                now = int(read.value)
                done(now - reported)
                reported = now
        except BaseException:  # the operator's Ctrl-C: tasks that run would hold the end up
            context.cancelAllJobs()
            raise
        outcomes: list[Outcome] = answer.result()
    for number, warc in enumerate(waiting):
        if not outcomes[number].problem and not is_done(warc, out, wanted):
            outcomes[number] = Outcome(
                f"{warc.name} is processed, but its files are not in {out}; name a folder with --out that this "
                "machine and all workers see by this path."
            )
    return [outcome for outcome in outcomes if outcome != Outcome()]


def process_one(driver: str, out: Path, wanted: ExtractOptions, warc: Path) -> Outcome:
    """The task: one WARC, in a process of its own below the executor, as the local engine has it.

    ``driver``: the ``environment()`` there.
    """
    if (here := environment()) != driver:
        return Outcome(f"{warc.name} is left out: a worker has {here}, this machine has {driver}.")
    outcomes = process_all([warc], out, wanted, 1, lambda read: None)
    return outcomes[0] if outcomes else Outcome()


class SparkTables:
    """Each table is a folder of Parquet files that all executors see, so that a lost one costs a task.

    Ours rather than GraphFrames, whose package on PyPI comes without its jar.
    """

    def __init__(self, spark: SparkSession, work: Path) -> None:
        self._spark = spark
        self._work = work
        self._numbers = count()
        self._folders: dict[str, Path] = {}

    def fill(self, name: str, files: Sequence[Path], read: Reader, schema: pa.Schema) -> None:
        folder = self._put(name, schema.empty_table())
        if files:
            task = partial(_file_of_rows, str(folder), read, schema)
            self._spark.sparkContext.parallelize([str(file) for file in files], len(files)).foreach(task)
        self._use(name, folder)

    def put(self, name: str, table: pa.Table) -> None:
        self._use(name, self._put(name, table))

    def _put(self, name: str, table: pa.Table) -> Path:
        folder = self._new(name)
        folder.mkdir()
        pq.write_table(table, folder / _FIRST)
        return folder

    def keep(self, name: str, query: str) -> None:
        folder = self._new(name)
        self._spark.sql(query).write.parquet(folder.as_uri())
        self._use(name, folder)

    def row(self, query: str) -> tuple[Any, ...]:
        (row,) = self._spark.sql(query).collect()
        return tuple(row)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Through files, whose names are in the order of the answer: the driver never has more than a piece."""
        folder = self._new("answer")
        self._spark.sql(query).write.parquet(folder.as_uri())
        for file in sorted(folder.glob("part-*.parquet")):
            yield from pq.ParquetFile(file).iter_batches(_BATCH_ROWS)
        shutil.rmtree(folder)

    def _new(self, name: str) -> Path:
        return self._work / f"{name}-{next(self._numbers)}"

    def _use(self, name: str, folder: Path) -> None:
        self._spark.read.parquet(folder.as_uri()).createOrReplaceTempView(name)
        before = self._folders.pop(name, None)
        if before is not None:
            shutil.rmtree(before)
        self._folders[name] = folder


def _file_of_rows(folder: str, read: Reader, schema: pa.Schema, file: str) -> None:
    """The task: rows of one file, into one file. Twice is no harm; what begins with a dot Spark does not read."""
    whole = Path(folder, Path(file).name)
    part = whole.with_name(f".{whole.name}{PART}{uuid4().hex}")
    with pq.ParquetWriter(part, schema) as writer:
        for batch in read(file):
            writer.write_batch(batch)
    part.rename(whole)
