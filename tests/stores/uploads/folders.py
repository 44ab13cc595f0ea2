"""Crawl folders whose archive goes to another place, and what must hold of both at any moment."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.uploads.uploader import MANIFEST, MARK
from tests.commands.running import archive

TODAY = "requests-2026-11-21.jsonl"
LARGE = "crawl-20261121165518144-00009-vm"
"""A closed file of four parts, where parts are as small as ``PART_BYTES``."""
PART_BYTES = 16 * 1024


def crawl_folder(place: Path) -> CrawlDir:
    """A crawl that has ended, with everything that is uploaded; a large WARC file of noise among it."""
    folder = CrawlDir(archive(place))
    noise = random.Random(19).randbytes(3 * PART_BYTES + 100)
    (folder.warc / f"{LARGE}.warc.gz").write_bytes(noise)
    (folder.index / f"{LARGE}.cdxj").write_text("")
    (folder.log / "requests-2026-11-20.jsonl.gz").write_bytes(gzip.compress(b'{"day":20}\n', mtime=0))
    (folder.log / TODAY).write_text('{"day":21}\n')
    return folder


def local(folder: CrawlDir) -> dict[str, bytes]:
    """What must arrive just as it lies here: WARC files, indexes, days of the log that are over."""
    found = [*folder.warc.glob("*"), *folder.index.rglob("*"), *folder.log.glob("requests-*.gz")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def archived(there: dict[str, bytes]) -> dict[str, bytes]:
    """What of the other place is compared byte by byte."""
    made = (MARK, MANIFEST, f"log/{TODAY}.gz")
    return {name: data for name, data in there.items() if name not in made}


def nothing_lost(wanted: dict[str, bytes], folder: CrawlDir, there: dict[str, bytes]) -> None:
    """Every file lies here or there, whole."""
    here = local(folder)
    for name, data in wanted.items():
        assert data in (here.get(name), there.get(name)), name
