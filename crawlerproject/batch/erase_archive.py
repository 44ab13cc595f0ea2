"""Cuts what was withdrawn out of all that a crawl keeps: WARC files, scraps of recoveries, copies of robots.txt.

Each file is replaced whole or removed, and none is that has nothing of it. So a death at any moment does no harm, and
a second run does what is left. No process of the crawl works in the folders meanwhile.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote

from rocksdict import BottommostLevelCompaction, CompactOptions

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.warc_members import Flaw
from crawlerproject.rules.archive.withdrawal import Withdrawn
from crawlerproject.rules.printable import counted
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.erasure import covered, erase
from crawlerproject.stores.archive.recovery import torn_files
from crawlerproject.stores.archive.warc_reader import Progress, members
from crawlerproject.stores.atomic_files import storage_errors, sync_path, whole_file
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, OPEN_SUFFIX, CrawlDir
from crawlerproject.stores.crawl_folders import Archives, removed_from
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from crawlerproject.stores.row_codec import ROBOTS

_PACK = "log/robots-"  # copies of robots.txt, as crawls of 1.7 and before sent them


def archive_files(folder: CrawlDir) -> list[Path]:
    """The archive files of a folder: closed, open, and those that only another place has."""
    there = [path for path in removed_from(folder) if path.name.endswith(ARCHIVE_SUFFIXES)]
    return [*folder.closed_warcs(), *folder.open_warcs(), *there]


def erase_archives(archives: Archives, withdrawn: Withdrawn, now: float, progress: Progress) -> list[str]:
    """Cut it out everywhere; sentences that say what was done. ``now`` in epoch seconds.

    Raises OperatorError for what cannot be read, where some of it may be left, when all else is done; StorageError.
    """
    captures = files = scraps = 0
    damaged: list[str] = []
    for folder in archives.folders:
        scraps += _without_scraps(folder, withdrawn)
        index = CdxjFiles(folder.index, parquet_of(folder))
        for path in archive_files(folder):
            flaws: list[Flaw] = []
            spans = list(covered(path, withdrawn, progress, flaws))
            damaged += [f"{path.name} at byte {flaw.offset}" for flaw in flaws]
            if spans:
                erase(path, spans, now, folder.warc / path.name)
                captures, files = captures + sum(span.captures for span in spans), files + 1
            if path.name.endswith(OPEN_SUFFIX):
                index.forget_withdrawn(path.name.removesuffix(OPEN_SUFFIX))
        index.catch_up(folder.warc)  # also of a file that lay elsewhere alone
        scraps += _without_robots(folder, withdrawn)
    if damaged:
        raise OperatorError(
            f"What is damaged may hold some of it ({', '.join(damaged[:3])}); scrapy recover {archives.crawl} mends "
            "that, then give this command again."
        )
    lines = [f"{counted(captures, 'capture')} in {counted(files, 'WARC file')} erased"]
    return [*lines, f"{counted(scraps, 'other file')} removed or made again without it"] if scraps else lines


def _without_scraps(folder: CrawlDir, withdrawn: Withdrawn) -> int:
    """Remove what recoveries have kept aside where it holds some of it, or cannot be read; and half-written files."""
    torn = [path for path in torn_files(folder) if _may_hold(path, withdrawn)]
    halves = [path for part in (folder.warc, folder.index, folder.torn) for path in part.glob("*.part")]
    return _removed([*torn, *halves])


def _may_hold(path: Path, withdrawn: Withdrawn) -> bool:
    return any(isinstance(found, Flaw) or withdrawn.covers(found.url) for found in members(path))


def _removed(paths: Iterable[Path]) -> int:
    count = 0
    for path in paths:
        with storage_errors(path):
            path.unlink(missing_ok=True)
            sync_path(path.parent)
        count += 1
    return count


def _without_robots(folder: CrawlDir, withdrawn: Withdrawn) -> int:
    """Of robots.txt: the frontier's, the copies of earlier versions, and the packs of these on their way or there."""
    if folder.has_frontier():
        _without_rows(folder.frontier, withdrawn)
    copies = [
        path for home in folder.robots_copies.glob("*/*") if _covers(home.name, withdrawn) for path in home.glob("*")
    ]
    return _removed(copies) + sum(_repacked(folder, name, path, withdrawn) for name, path in _packs(folder))


def _covers(home: str, withdrawn: Withdrawn) -> bool:
    """Whether the copies in a folder of this name, ``http_HOST``, are of a robots.txt that was withdrawn."""
    return withdrawn.covers(f"{unquote(home).replace('_', '://', 1)}/robots.txt")


def _without_rows(frontier: Path, withdrawn: Withdrawn) -> None:
    tables = open_to_write(frontier)
    try:
        batch = tables.batch()
        for origin, _ in tables.rows(ROBOTS):
            if withdrawn.covers(f"{origin.decode('utf-8', 'replace')}/robots.txt"):
                batch.delete(ROBOTS, origin)
        if batch.rows:
            tables.write(batch)
            rewriting = CompactOptions()  # what was removed lies in the files until then
            rewriting.set_bottommost_level_compaction(BottommostLevelCompaction.force())
            tables.robots.compact_range(None, None, rewriting)
            tables.sync()
    finally:
        tables.close()


def _packs(folder: CrawlDir) -> Iterator[tuple[str, Path]]:
    """Each pack by its name in the folder: those that wait, and those that were sent."""
    waiting = folder.upload_staged / folder.log.name
    yield from ((f"log/{path.name}", path) for path in sorted(waiting.glob("robots-*.tar.gz")))
    if not folder.upload_journal.exists():
        return
    from crawlerproject.stores.uploads.distant import DistantPath  # no other crawl's folder needs them
    from crawlerproject.stores.uploads.upload_journal import Journal
    from crawlerproject.stores.uploads.upload_target import local_folder

    journal = Journal(folder)
    there = local_folder(journal.url) if journal.url.startswith("file:") else DistantPath(journal.url)
    for name, _ in journal:
        if name.startswith(_PACK) and not (folder.upload_staged / name).exists():
            yield name, there / name


def _repacked(folder: CrawlDir, name: str, path: Path, withdrawn: Withdrawn) -> bool:
    """Whether a pack had copies of it; without them it waits to be sent."""
    with path.open("rb") as packed, tarfile.open(fileobj=packed, mode="r:gz") as tar:
        kept = [member for member in tar if not _covers(Path(member.name).parent.name, withdrawn)]
        if len(kept) == len(tar.getmembers()):
            return False
        target = folder.upload_staged / name
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(target) as file, tarfile.open(fileobj=file, mode="w:gz", format=tarfile.PAX_FORMAT) as out:
                for member in kept:
                    out.addfile(member, tar.extractfile(member))
    return True
