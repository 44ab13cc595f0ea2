"""The tables of the Parquet index: Common Crawl's columns, sorted, as Arrow holds and writes them."""

from __future__ import annotations

import io
from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.index_rows import COLUMNS, MAX_OFFSET, CdxjEntry, columns, subset_of

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], nullable) for name, kind, nullable in COLUMNS])
# Rows handed to Arrow at once: what holds Python's lock while a crawl goes on beside. Arrow sorts without it.
_ROWS_AT_ONCE = 1024
# So many are sorted here, in some three milliseconds: Arrow's sort is in pyarrow.compute, whose import takes 30. It is
# what the crawl's own process has to index (stores/index/index_files.py); a larger WARC's index is made in another.
_MOST_SORTED_HERE = 5_000
_GZIP_LEVEL = 6  # in a third of the time of Arrow's 9, and a hundredth larger (our measurement)
_ORDER = ("url_surtkey", "fetch_time", "warc_record_offset")
_place = itemgetter(*[[name for name, _, _ in COLUMNS].index(name) for name in _ORDER])


def tables_of(filename: str, rows: Iterable[CdxjEntry]) -> dict[str, pa.Table]:
    """By subset, what the parts of one WARC must hold. Raises StorageError for a file beyond 2 GiB."""
    waiting: dict[str, list[tuple[object, ...]]] = {}
    batches: dict[str, list[pa.RecordBatch]] = {}
    for row in rows:
        if row.offset > MAX_OFFSET:
            raise StorageError(f"{filename} is larger than 2 GiB, which the Parquet index's columns cannot hold")
        found = waiting.setdefault(subset := subset_of(row), [])
        found.append(columns(row, filename))
        if len(found) == _MOST_SORTED_HERE:
            batches.setdefault(subset, []).extend(_batches(waiting.pop(subset)))
    return {subset: _table(batches.get(subset, []), waiting.get(subset, [])) for subset in {**batches, **waiting}}


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


def _batches(rows: list[tuple[object, ...]]) -> list[pa.RecordBatch]:
    return [_batch(rows[at : at + _ROWS_AT_ONCE]) for at in range(0, len(rows), _ROWS_AT_ONCE)]


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    values = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=SCHEMA)


def _table(batches: list[pa.RecordBatch], rest: list[tuple[object, ...]]) -> pa.Table:
    """All of it, in order."""
    if not batches:
        return pa.Table.from_batches(_batches(sorted(rest, key=_place)), SCHEMA).combine_chunks()
    whole = pa.Table.from_batches(batches + _batches(rest), SCHEMA)
    return whole.sort_by([(name, "ascending") for name in _ORDER]).combine_chunks()
