"""The Parquet index: for each closed WARC one part a subset, in folders that Common Crawl's users know.

``parquet/crawl=NAME/subset=warc/FILE.parquet``; each part is sorted and only ever replaced whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.rules.archive.cdxj import CdxjEntry
from crawlerproject.rules.archive.parquet_columns import crawl_of
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.stores.atomic_files import replace_file, storage_errors
from crawlerproject.stores.crawl_dir import archive_of_stem, stem_of

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetFiles:
    """The parts in ``folder``; ``crawl`` names the crawl of WARC files that do not say which they belong to."""

    def __init__(self, folder: Path, crawl: str) -> None:
        self.folder = folder
        self.crawl = crawl

    def write(self, warc: Path, first: Member | None, rows: Iterable[CdxjEntry]) -> None:
        """Write the parts of one closed WARC, whose first record is ``first``, in place of earlier ones."""
        # Arrow takes a tenth of a second to import, which a crawl need not spend before its first file is full.
        from crawlerproject.stores.index.parquet_tables import written

        parts = self.build(warc.name, first, rows)
        for path, table in parts.items():
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, written(table))
        for path in self.parts_of(warc.name):
            if path not in parts:
                path.unlink()

    def build(self, filename: str, first: Member | None, rows: Iterable[CdxjEntry]) -> dict[Path, pa.Table]:
        """What the parts of one WARC must hold, by their paths. Raises StorageError for a file beyond 2 GiB."""
        from crawlerproject.stores.index.parquet_tables import tables_of

        crawl = crawl_of(first, self.crawl)
        return {self._path(crawl, subset, filename): table for subset, table in tables_of(filename, rows).items()}

    def parts_of(self, filename: str) -> list[Path]:
        """Every part there is of one WARC."""
        return sorted(self.folder.glob(f"crawl=*/subset=*/{stem_of(filename)}.parquet"))

    def filenames(self) -> Iterator[str]:
        """The WARC files that any part is of."""
        yield from sorted({archive_of_stem(path.stem) for path in self.folder.glob("crawl=*/subset=*/*.parquet")})

    def _path(self, crawl: str, subset: str, filename: str) -> Path:
        return self.folder / f"crawl={crawl}" / f"subset={subset}" / f"{stem_of(filename)}.parquet"
