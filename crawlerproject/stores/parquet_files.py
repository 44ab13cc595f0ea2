"""The Parquet index: for each closed WARC one part a subset, in folders that Common Crawl's users know.

``parquet/crawl=NAME/subset=warc/FILE.parquet``; each part is sorted and only ever replaced whole.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.errors import StorageError
from crawlerproject.rules.cdxj import Row
from crawlerproject.rules.columns import COLUMNS, MAX_OFFSET, columns, crawl_of, subset_of
from crawlerproject.rules.warc_members import Member
from crawlerproject.stores.durable import replace_file, storage_errors
from crawlerproject.stores.warc_reading import WARC_SUFFIX

_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
}
SCHEMA = pa.schema([pa.field(name, _TYPES[kind], nullable) for name, kind, nullable in COLUMNS])


# Rows handed to Arrow at once: what holds Python's lock while a crawl goes on beside. Arrow sorts without it.
_ROWS_AT_ONCE = 1024


class ParquetFiles:
    """The parts in ``folder``; ``crawl`` names the crawl of WARC files that do not say which they belong to."""

    def __init__(self, folder: Path, crawl: str) -> None:
        self.folder = folder
        self._crawl = crawl

    def write(self, warc: Path, first: Member | None, rows: Iterable[Row]) -> None:
        """Write the parts of one closed WARC, whose first record is ``first``, in place of earlier ones."""
        parts = self.build(warc.name, first, rows)
        for path, table in parts.items():
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            buffer = io.BytesIO()
            # gzip as Common Crawl's own parts have it.
            pq.write_table(table, buffer, compression="gzip")
            replace_file(path, buffer.getvalue())
        for path in self.parts_of(warc.name):
            if path not in parts:
                path.unlink()

    def build(self, filename: str, first: Member | None, rows: Iterable[Row]) -> dict[Path, pa.Table]:
        """What the parts of one WARC must hold, by their paths. Raises StorageError for a file beyond 2 GiB."""
        waiting: dict[str, list[tuple[object, ...]]] = {}
        batches: dict[str, list[pa.RecordBatch]] = {}
        for row in rows:
            if row.offset > MAX_OFFSET:
                raise StorageError(f"{filename} is larger than 2 GiB, which the Parquet index's columns cannot hold")
            found = waiting.setdefault(subset := subset_of(row), [])
            found.append(columns(row, filename))
            if len(found) == _ROWS_AT_ONCE:
                batches.setdefault(subset, []).append(_batch(waiting.pop(subset)))
        for subset, found in waiting.items():
            batches.setdefault(subset, []).append(_batch(found))
        crawl = crawl_of(first, self._crawl)
        return {self._path(crawl, subset, filename): _sorted(found) for subset, found in batches.items()}

    def parts_of(self, filename: str) -> list[Path]:
        """Every part there is of one WARC."""
        return sorted(self.folder.glob(f"crawl=*/subset=*/{_stem(filename)}.parquet"))

    def filenames(self) -> Iterator[str]:
        """The WARC files that any part is of."""
        yield from sorted({f"{path.stem}{WARC_SUFFIX}" for path in self.folder.glob("crawl=*/subset=*/*.parquet")})

    def _path(self, crawl: str, subset: str, filename: str) -> Path:
        return self.folder / f"crawl={crawl}" / f"subset={subset}" / f"{_stem(filename)}.parquet"


def read_part(path: Path) -> pa.Table:
    """A part without the columns that its folders stand for. Raises StorageError when it is none."""
    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def _stem(filename: str) -> str:
    return filename.removesuffix(WARC_SUFFIX)


def _batch(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    values = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(values, schema=SCHEMA)


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    order = [(name, "ascending") for name in ("url_surtkey", "fetch_time", "warc_record_offset")]
    return pa.Table.from_batches(batches, SCHEMA).sort_by(order).combine_chunks()
