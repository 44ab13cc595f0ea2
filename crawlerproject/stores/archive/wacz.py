"""A crawl in one file: WACZ 1.1.1, a zip of WARC files, their index and a list of pages.

Source: https://specs.webrecorder.net/wacz/1.1.1/
"""

from __future__ import annotations

import gzip
import heapq
import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from xxhash import xxh3_64_hexdigest

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive import cdxj
from crawlerproject.rules.archive.warc_members import CHUNK_BYTES
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.atomic_files import new_file, sync_folder
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir

VERSION = "1.1.1"
LINES_PER_BLOCK = 1024
"""Lines of the index in one gzip member, as py-wacz has them: a reader unpacks so many to find one."""
PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})


class WaczWriter:
    """Writes the parts of one WACZ and remembers their hashes; ``created`` in epoch seconds."""

    def __init__(self, archive: zipfile.ZipFile, created: float, progress: Progress) -> None:
        self._zip = archive
        self._created = datetime.fromtimestamp(created, UTC)
        self._progress = progress
        self._resources: list[dict[str, Any]] = []

    def add(self, path: str, chunks: Iterable[bytes], *, listed: bool = True) -> str:
        """Add one file; its hash. Nothing is compressed again: readers look into WARC files by their bytes."""
        entry = zipfile.ZipInfo(path, self._created.timetuple()[:6])
        entry.compress_type = zipfile.ZIP_STORED
        digest, size = sha256(), 0
        with self._zip.open(entry, "w", force_zip64=True) as target:
            for chunk in chunks:
                target.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        hashed = f"sha256:{digest.hexdigest()}"
        if listed:
            name = path.rpartition("/")[2].lower()
            self._resources.append({"name": name, "path": path, "hash": hashed, "bytes": size})
        return hashed

    def add_warc(self, warc: Path) -> None:
        """Add a WARC file as it is."""
        self.add(f"archive/{warc.name}", self._read(warc))

    def add_index(self, indexes: Sequence[Path]) -> int:
        """Merge sorted CDXJ files into one of gzip blocks, with the list of its blocks; how many lines."""
        blocks: list[bytes] = [b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']
        count = 0

        def packed() -> Iterator[bytes]:
            nonlocal count
            offset = 0
            with ExitStack() as stack:
                lines = heapq.merge(*(stack.enter_context(index.open("rb")) for index in indexes))
                while block := list(islice(lines, LINES_PER_BLOCK)):
                    count += len(block)
                    data = gzip.compress(b"".join(block), mtime=0)
                    place = {"offset": offset, "length": len(data), "digest": f"sha256:{sha256(data).hexdigest()}"}
                    key = b" ".join(block[0].split(b" ", 2)[:2])
                    blocks.append(b"%b %b\n" % (key, json.dumps({**place, "filename": "index.cdx.gz"}).encode()))
                    offset += len(data)
                    yield data

        self.add("indexes/index.cdx.gz", packed())
        self.add("indexes/index.idx", blocks)
        return count

    def add_pages(self, indexes: Sequence[Path]) -> int:
        """Add the list of pages: every HTML answer with status 200; how many."""
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            yield json.dumps({"format": "json-pages-1.0", "id": "pages", "title": "All pages"}).encode() + b"\n"
            for index in indexes:
                with index.open("rb") as file:
                    for line in file:
                        page = _page(line)
                        if page is not None:
                            count += 1
                            yield page

        self.add("pages/pages.jsonl", lines())
        return count

    def finish(self, title: str) -> None:
        """Add what lists and seals the rest."""
        created = self._created.strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"profile": "data-package", "title": title, "wacz_version": VERSION, "software": "crawlerproject"}
        package = json.dumps({**about, "created": created, "resources": self._resources}, indent=2).encode()
        hashed = self.add("datapackage.json", [package], listed=False)
        seal = json.dumps({"path": "datapackage.json", "hash": hashed}).encode()
        self.add("datapackage-digest.json", [seal], listed=False)

    def _read(self, path: Path) -> Iterator[bytes]:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
                self._progress(len(chunk))


def write_wacz(target: Path, warcs: Sequence[Path], created: float, progress: Progress) -> int:
    """Pack closed WARC files with their index, which is beside them, into ``target``; how many pages it lists.

    Raises OperatorError when the target exists or a file has no index. A crash leaves no half file under that name.
    """
    if target.exists():
        raise OperatorError(f"{target} exists already; remove it, or name another file with -o.")
    indexes = [CrawlDir(warc.parent.parent).index / f"{warc.name.removesuffix(WARC_SUFFIX)}.cdxj" for warc in warcs]
    missing = [index for index in indexes if not index.exists()]
    if missing:
        raise OperatorError(f"{missing[0].name} is missing in {missing[0].parent}; scrapy index makes it.")
    part = target.with_name(f"{target.name}.part")
    try:
        with new_file(part) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
            writer = WaczWriter(archive, created, progress)
            for warc in warcs:
                writer.add_warc(warc)
            writer.add_index(indexes)
            pages = writer.add_pages(indexes)
            writer.finish(target.stem)
        part.replace(target)
        sync_folder(target.parent)
    finally:
        part.unlink(missing_ok=True)
    return pages


def _page(line: bytes) -> bytes | None:
    found = cdxj.parse(line)
    if found is None or found[0].status != 200 or found[0].mime not in PAGE_TYPES:
        return None
    row = found[0]
    stamp = row.timestamp
    time = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
    # Checkers take the list for a table whose columns are those of its first line: each page needs one of them.
    page = {"id": xxh3_64_hexdigest(f"{row.url} {stamp}".encode()), "url": row.url, "ts": time}
    return json.dumps(page).encode() + b"\n"
