"""Where one crawl has its archives, indexes and logs: in its own folder, in those of its workers, or in both.

What is archived never moves. So a crawl that was a fleet and is one process again, or that has fewer workers now, has
files in folders in which nothing runs any more.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, CrawlDir
from crawlerproject.stores.fleet_plan import ALONE, read_plan


def workers_of(crawl: CrawlDir) -> list[CrawlDir]:
    """The folders in ``crawl`` of its workers, those of former ones included, by name. Raises OperatorError.

    A folder below that of a crawl of one process may as well be another crawl's.
    """
    plan = read_plan(crawl)
    started = crawl.started_below()
    if plan is None and crawl.run.exists():
        return [folder for folder in started if folder.worker.exists()]
    planned = [] if plan is None else [CrawlDir(crawl / name) for name in plan.workers if name != ALONE]
    return sorted({*started, *(folder for folder in planned if folder.is_dir())})


class Archives(NamedTuple):
    """What a crawl has archived, wherever that lies. What is made of all of it goes into the crawl's own folder."""

    crawl: CrawlDir
    folders: list[CrawlDir]  # every one with something of the crawl, its own first
    elsewhere: tuple[Path, ...] = ()  # what was removed here, since another place has it

    def closed_warcs(self) -> list[Path]:
        """The WARC files that are not written any more, by folder and in the order of writing; then those elsewhere."""
        there = [path for path in self.elsewhere if path.name.endswith(ARCHIVE_SUFFIXES)]
        return [*(warc for folder in self.folders for warc in folder.closed_warcs()), *there]

    def open_warcs(self) -> list[Path]:
        """Those that are being written, or that a process left open when it died."""
        return [warc for folder in self.folders for warc in folder.open_warcs()]

    def has_archive(self) -> bool:
        """Whether something was ever archived."""
        return any(folder.has_archive() for folder in self.folders)

    def to_lock(self) -> list[CrawlDir]:
        """Whose locks keep every process of the crawl away."""
        return list(dict.fromkeys([self.crawl, *self.folders]))


def refuse_moving(crawl: CrawlDir) -> None:
    """Raise OperatorError while hosts are on their way from worker to worker: no folder has all of them then."""
    if crawl.fleet_moving.is_dir():
        raise OperatorError(
            f"The hosts of the crawl in {crawl} are on their way to other workers; look again when scrapy fleet, or "
            "scrapy crawl, has begun to crawl (the same command finishes a move that was interrupted)."
        )


def archives_of(crawl: CrawlDir) -> Archives:
    """Of the crawl in this folder. Raises OperatorError."""
    folders = folders_of(crawl)
    return Archives(crawl, folders, tuple(path for folder in folders for path in removed_from(folder)))


def removed_from(folder: CrawlDir) -> list[Path]:
    """What a folder has no more, since another place has confirmed it: the files there."""
    if not (folder.is_here and folder.has_removed()):
        return []
    from crawlerproject.stores.uploads.distant import only_there  # no other crawl's folder needs it

    return only_there(folder)


def folders_of(crawl: CrawlDir) -> list[CrawlDir]:
    """Every folder with something of the crawl, its own first. Raises OperatorError."""
    if not crawl.is_here:
        return _folders_there(crawl)
    workers = workers_of(crawl)
    own = not workers or crawl.log.is_dir() or crawl.warc.is_dir()
    return [*([crawl] if own else []), *workers]


def _folders_there(crawl: CrawlDir) -> list[CrawlDir]:
    """Of a crawl at another place: its own folder, and those of workers below their names, where an archive is."""
    own = {crawl.warc.name, crawl.index.name, crawl.log.name}
    below = [CrawlDir(path) for path in crawl.iterdir() if path.name not in own and path.is_dir()]
    return [folder for folder in (crawl, *below) if folder.has_archive()]
