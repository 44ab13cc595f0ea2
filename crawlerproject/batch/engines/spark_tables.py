"""Tables of Spark: each a folder of Parquet files that all executors see, so that a lost one costs a task."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.batch.engines.ranks import Reader
from crawlerproject.batch.process import PART

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ROWS = 65_536
_FIRST = "part-00000.parquet"


class SparkTables:
    """``batch.engines.ranks.Tables``. Ours rather than GraphFrames, whose package on PyPI comes without its jar."""

    def __init__(self, spark: SparkSession, work: Path) -> None:
        self._spark = spark
        self._work = work
        self._numbers = count()
        self._folders: dict[str, Path] = {}

    def fill(self, name: str, files: Sequence[Path], read: Reader, schema: pa.Schema) -> None:
        folder = self._new(name)
        folder.mkdir()
        pq.write_table(schema.empty_table(), folder / _FIRST)
        if files:
            task = partial(_file_of_rows, str(folder), read, schema)
            self._spark.sparkContext.parallelize([str(file) for file in files], len(files)).foreach(task)
        self._use(name, folder)

    def put(self, name: str, table: pa.Table) -> None:
        folder = self._new(name)
        folder.mkdir()
        pq.write_table(table, folder / _FIRST)
        self._use(name, folder)

    def keep(self, name: str, query: str) -> None:
        self._save(name, self._spark.sql(query))

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

    def _save(self, name: str, frame: DataFrame) -> None:
        folder = self._new(name)
        frame.write.parquet(folder.as_uri())
        self._use(name, folder)

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
