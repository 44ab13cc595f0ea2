"""Takes what was withdrawn out of what ``process``, ``export`` and ``load`` have made of an archive.

Each file is replaced by one without it, whole, so that this may be stopped and done again at any time.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crawlerproject.batch.process_warcs import LINKS, PAGES, PART, WAT, WET
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.withdrawal import Withdrawn
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.warc_reader import members
from crawlerproject.stores.atomic_files import storage_errors, whole_file
from crawlerproject.stores.crawl_dir import CrawlDir

_URLS = {PAGES: "url", LINKS: "source"}
"""The column of each kind of table that says which page a row is of."""
_ROWS = 2000  # at a time, as they were written


def leave_out(crawl: CrawlDir, withdrawn: Withdrawn, *, erase: bool) -> list[str]:
    """Do it; sentences that say what was done. ``erase``: what leaves it out as it is asked goes, too. StorageError."""
    tables = [
        (path, column)
        for kind, column in _URLS.items()
        for path in sorted((crawl.processed / kind).glob("*.parquet"))
        if _has_rows(path, column, withdrawn)
    ]
    lines = []
    # First what is made of the tables: were they first, a second run would find nothing to do.
    if (tables or erase) and (exports := [path for path in crawl.exports.glob("*/*") if path.is_dir()]):
        for folder in exports:
            shutil.rmtree(folder)
        lines.append(f"{crawl.exports} was emptied: scrapy export makes it again (what was sent elsewhere stays there)")
    if erase and crawl.search.exists():
        shutil.rmtree(crawl.search)
        lines.append(f"{crawl.search} was removed: scrapy load makes it again")
    if erase:  # what a scrapy process left that was killed: none is at work now
        for path in crawl.processed.glob(f"*/*{PART}*"):
            path.unlink(missing_ok=True)
    for path, column in tables:
        _without_rows(path, column, withdrawn)
    texts = [path for kind in (WET, WAT) for path in sorted((crawl.processed / kind).glob("*.gz"))]
    changed = len(tables) + sum(_without_records(path, withdrawn) for path in texts)
    return [f"{counted(changed, 'file')} in {crawl.processed} made again without it", *lines] if changed else lines


def _has_rows(path: Path, column: str, withdrawn: Withdrawn) -> bool:
    with pq.ParquetFile(path) as table:
        batches = table.iter_batches(_ROWS, columns=[column])
        return any(withdrawn.covers(url) for batch in batches for url in batch.column(column).to_pylist())


def _without_rows(path: Path, column: str, withdrawn: Withdrawn) -> None:
    with (
        pq.ParquetFile(path) as table,
        storage_errors(path),
        whole_file(path) as file,
        pq.ParquetWriter(file, table.schema_arrow, compression="zstd") as writer,
    ):
        for batch in table.iter_batches(_ROWS):
            kept = [not withdrawn.covers(url) for url in batch.column(column).to_pylist()]
            writer.write_batch(batch.filter(pa.array(kept, pa.bool_())))


def _without_records(path: Path, withdrawn: Withdrawn) -> bool:
    """Whether a WET or WAT file had records of withdrawn pages, and has them no more."""
    count, places = 0, list[tuple[int, int]]()
    for member in members(path):
        if isinstance(member, Member):
            count += 1
            if not withdrawn.covers(member.url):
                places.append((member.offset, member.length))
    if len(places) == count:
        return False
    with storage_errors(path), path.open("rb") as source, whole_file(path) as file:
        for offset, length in places:
            source.seek(offset)
            file.write(source.read(length))
    return True
