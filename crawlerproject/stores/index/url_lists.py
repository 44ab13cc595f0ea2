"""The URLs that a file lists: a sitemap as fetched, or an index of captures (CDXJ or Parquet)."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.errors import OperatorError
from crawlerproject.rules.feeds.feeds import read_sitemap


def urls_of_sitemap(path: Path) -> list[str]:
    """The pages of a sitemap. Raises OperatorError when it is none."""
    sitemap = read_sitemap(path.read_bytes())
    if sitemap.flaw and not sitemap.entries:
        raise OperatorError(f"{path} is no usable sitemap: {sitemap.flaw}.")
    return [entry.url for entry in sitemap.entries if not entry.is_index]


def urls_of_index(path: Path) -> Iterator[str]:
    """The URLs of an index of captures. Raises OperatorError for an unknown kind or schema."""
    if path.suffix == ".parquet":
        yield from _parquet_urls(path)
        return
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield str(orjson.loads(line[line.index(b"{") :])["url"])
            except (ValueError, KeyError, TypeError):
                raise OperatorError(f"{path}, line {number}, is no line of a CDXJ index.") from None


def _parquet_urls(path: Path) -> Iterator[str]:
    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise OperatorError(f"{path} is no Parquet file ({error}).") from error
    if "url" not in file.schema_arrow.names:
        raise OperatorError(f"{path} is of an unknown schema: it has no column url.")
    for batch in file.iter_batches(columns=["url"]):
        yield from (url for url in batch["url"].to_pylist() if url)
