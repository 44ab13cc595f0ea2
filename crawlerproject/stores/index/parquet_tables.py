"""The tables of the Parquet index: Common Crawl's columns, sorted, as Arrow holds and writes them."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.index_rows import (
    COLUMNS,
    MAX_OFFSET,
    CdxjEntry,
    columns,
    fetch_time,
    subset_of,
    surt_key,
)

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], nullable) for name, kind, nullable in COLUMNS])
# Rows handed to Arrow at once: what holds Python's lock while a crawl goes on beside.
_ROWS_AT_ONCE = 1024
_GZIP_LEVEL = 6  # in a third of the time of Arrow's 9, and a hundredth larger (our measurement)


def tables_of(filename: str, rows: Iterable[CdxjEntry]) -> dict[str, pa.Table]:
    """By subset, what the parts of one WARC must hold. Raises StorageError for a file beyond 2 GiB."""
    found: dict[str, list[tuple[str, datetime, int, CdxjEntry]]] = {}
    for row in rows:
        if row.offset > MAX_OFFSET:
            raise StorageError(f"{filename} is larger than 2 GiB, which the Parquet index's columns cannot hold")
        found.setdefault(subset_of(row), []).append((surt_key(row.url), fetch_time(row), row.offset, row))
    # Sorted here: Arrow's sort takes four times as long (our measurement), and 30 ms to import pyarrow.compute.
    # What is large is not sorted in the crawl's own process (stores/index/index_files.py).
    return {subset: _table(sorted(each), filename) for subset, each in found.items()}


def written(table: pa.Table) -> bytes:
    """The bytes of a part; gzip as Common Crawl's own parts have it."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="gzip", compression_level=_GZIP_LEVEL)
    return buffer.getvalue()


def read_part(path: Path) -> pa.Table:
    """A part without the columns that its folders stand for. Raises StorageError when it is not Parquet."""
    try:
        with path.open("rb") as file:  # which may be at another place
            # In this thread: one of Arrow's may still hold the file when Python ends, which then ends in abort().
            return pq.ParquetFile(file, pre_buffer=False).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _table(rows: list[tuple[str, datetime, int, CdxjEntry]], filename: str) -> pa.Table:
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    pieces = (rows[at : at + _ROWS_AT_ONCE] for at in starts)
    batches = [_batch([columns(row, filename, key, time) for key, time, _, row in piece]) for piece in pieces]
    return pa.Table.from_batches(batches, SCHEMA).combine_chunks()


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    values = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=SCHEMA)
