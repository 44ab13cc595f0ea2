"""``scrapy recover``: mends what a power loss or a bad disk left of a crawl's archive."""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack, closing
from pathlib import Path

from crawlerproject.commands.base import Bytes, named_archives
from crawlerproject.errors import OperatorError
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.inspection.operator_command import OperatorCommand
from crawlerproject.inspection.verification import Verification
from crawlerproject.reports.warc_check import is_ours
from crawlerproject.rules.url.hosts import host_key
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.lost_captures import LostCapture, LostPages
from crawlerproject.stores.archive.recovery import recover
from crawlerproject.stores.archive.repair import good_spans, mend
from crawlerproject.stores.archive.warc_reader import first_member
from crawlerproject.stores.archive.warc_writer import ARCHIVE_FACT, OpenFile, close_left, has_our_name, unpack_open
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, WARC_SUFFIX, CrawlDir, take_lock
from crawlerproject.stores.crawl_folders import Archives, archives_of, refuse_moving
from crawlerproject.stores.fleet_plan import read_plan
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.stores.poison import poison_of, write_poison
from crawlerproject.stores.redis.worker_identity import fact_of_worker
from crawlerproject.stores.rocks.frontier_folder import put_in_place
from crawlerproject.stores.rocks.store import RocksStore
from crawlerproject.stores.rocks.view import FrontierView
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Changes the archive, and keeps whatever it cuts out."""

    arguments = "[FOLDER]"
    summary = "Mend damaged WARC files, rebuild index and frontier, fetch again what was lost"
    details = (
        "Cut out of a stopped crawl's WARC files what is not good and keep it in torn/; make both "
        "indexes again; put pages whose captures are gone back into the frontier. A crash needs none of "
        "this: the next start of the crawl mends what it left. A frontier that is damaged or gone is made again "
        "from the WARC files and the request log, beside the old one, which is kept. Exit status 0 when scrapy "
        "verify finds nothing any more, 1 when something is left that cannot be mended. With --poison: give pages "
        "over which the process died another chance, and nothing else. A worker that never comes back: "
        "scrapy recover crawls/web/NAME -s STATE_URL=redis://…. Example: scrapy recover crawls/web"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--frontier", action="store_true", help="make the frontier again, though it can be read to its end"
        )
        parser.add_argument(
            "--poison",
            action="store_true",
            help="give pages that are set aside as poison another chance; nothing else is done",
        )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Mend, say what was done, and look again."""
        archives = named_archives(args, self.settings)
        _refuse_several_in_redis(archives)
        refuse_moving(archives.crawl)
        with ExitStack() as locks:
            for folder in archives.to_lock():
                locks.callback(os.close, take_lock(folder))
            if opts.poison:
                self._poison(archives)
                return
            made = self._mended(archives, again=opts.frontier)
            with Bytes("Verifying", _size(archives)) as progress:
                found = Verification(archives.crawl, progress.advance).run()
        for problem in found.problems:
            say(f"Left as it is: {problem}", error=True)
        say(f"{archives.crawl}: {found.captures:,} captures in {found.files:,} WARC files are good")
        self.exitcode = 0 if made and not found.problems else 1

    def _mended(self, archives: Archives, *, again: bool) -> bool:
        """Mend archive, index and frontier; False when the frontier cannot be made ``again``."""
        damage = ""
        for folder in _holders(archives.crawl):
            put_in_place(folder)  # of a recovery that was ended at its end
            if not damage and not _is_workers(folder):
                damage = self._damage(folder, again=again)
        if damage:
            say(f"{damage}: it is made again from the archive")
        for folder in archives.folders:
            self._cut_out(folder, known=not damage)
            if not damage:
                self._open_file(folder)
            else:
                self._close_all(folder)
            self._index(folder)
        if damage:
            return self._rebuilt(archives.crawl)
        self._frontier(archives)
        return True

    def _damage(self, folder: CrawlDir, *, again: bool) -> str:
        if again:
            return f"The frontier in {folder} is given up"
        from crawlerproject.recovery.damage import damage_of

        with Bytes("Reading the frontier", _frontier_size(folder)) as progress:
            return damage_of(folder, progress.advance)

    def _close_all(self, folder: CrawlDir) -> None:
        """Every whole capture counts: no frontier says any more how much of an open file is committed."""
        for path in folder.open_warcs():
            if first_member(path) is not None:
                close_left(folder.warc, path.name.removesuffix(OPEN_SUFFIX))
        for message in recover(folder.warc, None, CdxjFiles(folder.index, parquet_of(folder))).messages:
            say(message)

    def _rebuilt(self, folder: CrawlDir) -> bool:
        from crawlerproject.recovery.rebuild import rebuild  # all of a crawl: not for what needs no more than mending

        try:
            with Bytes("Making the frontier", _size(archives_of(folder))) as progress:
                made = rebuild(self.settings, folder, progress.advance)
        except OperatorError as error:
            say(str(error), error=True)
            return False
        say(f"The new frontier knows {made.pages:,} pages; {made.waiting:,} URLs of {made.hosts:,} hosts wait")
        for what in made.missing:
            say(f"Not restored: {what}")
        if made.kept is not None:
            say(f"The old frontier is kept in {made.kept}")
        return True

    def _poison(self, archives: Archives) -> None:
        if any(map(_is_workers, archives.folders)):
            raise OperatorError(
                "The pages of a fleet are in Redis: copy the crawl to a folder with scrapy state copy, and give that."
            )
        count, logs = 0, [folder.log for folder in archives.folders]
        for folder in _holders(archives.crawl):
            if folder.has_frontier():
                with closing(RocksStore(folder.frontier)) as store:
                    count += LostPages(store, logs, time.time(), count_rows).poisoned()
                    store.sync()
        for folder in archives.folders:
            if poison_of(folder):
                write_poison(folder.poison, {})
        say(f"{count:,} pages that were set aside as poison wait in the frontier again")

    def _cut_out(self, folder: CrawlDir, *, known: bool) -> None:
        """Keep what is good of every file; an open file that needs it is closed by that.

        ``known``: a frontier says how much of it is committed.
        """
        committed = self._committed(folder) if known else None
        with Bytes("Reading", sum(path.stat().st_size for path in _files(folder))) as progress:
            for path in _files(folder):
                first = first_member(path)
                ours = is_ours(first) or (first is None and has_our_name(path))
                spans = good_spans(path, whole_captures=ours, progress=progress.advance)
                if path.suffix == OPEN_SUFFIX and committed is not None:
                    if path.name != f"{committed.filename}{OPEN_SUFFIX}":
                        continue  # begun after the last commit: moved aside whole in a moment
                    spans = [(start, min(end, committed.length)) for start, end in spans if start < committed.length]
                    if spans == [(0, committed.length)]:
                        continue
                for message in mend(path, spans):
                    say(message)

    def _committed(self, folder: CrawlDir) -> OpenFile | None:
        if not _is_workers(folder):
            return _committed(folder)
        return unpack_open(fact_of_worker(folder, str(self.settings["STATE_URL"]), ARCHIVE_FACT))

    def _open_file(self, folder: CrawlDir) -> None:
        """What the next start of the crawl does at once."""
        index = CdxjFiles(folder.index, parquet_of(folder))
        if _is_workers(folder):  # what is lost of it may be in other workers' hands: it is said, and not queued again
            recovery = recover(folder.warc, self._committed(folder), index)
            for message in recovery.messages:
                say(message)
            if recovery.open_file is not None:  # it will not go on: what is committed of it is closed and indexed
                close_left(folder.warc, recovery.open_file.filename)
                say(f"{recovery.open_file.filename} is closed: {recovery.open_file.length:,} bytes")
            return
        if not folder.has_frontier():
            return
        with closing(RocksStore(folder.frontier)) as store:
            committed = unpack_open(store.fact(ARCHIVE_FACT))
            lost = LostPages(store, folder.log, time.time(), count_rows)
            recovery = recover(folder.warc, committed, index, lost.rows_lost)
        for message in recovery.messages:
            say(message)

    def _index(self, folder: CrawlDir) -> None:
        index = CdxjFiles(folder.index, parquet_of(folder))
        with Bytes("Indexing", sum(path.stat().st_size for path in _files(folder))) as progress:
            for warc in folder.closed_warcs():
                index.rebuild(warc, progress.advance)
        index.catch_up(folder.warc)

    def _frontier(self, archives: Archives) -> None:
        """Queue the pages that the frontier takes for archived and that are not, with the holder of their host."""
        holders: dict[CrawlDir, list[LostCapture]] = {
            folder: [] for folder in _holders(archives.crawl) if folder.has_frontier()
        }
        if not holders:
            return
        with Bytes("Comparing", _size(archives)) as progress:
            look = Verification(archives.crawl, progress.advance)
            look.run()
        plan, count, logs = read_plan(archives.crawl), 0, [folder.log for folder in archives.folders]
        for record in look.lost:
            holder = archives.crawl if plan is None else CrawlDir(archives.crawl / plan.holder(host_key(record.url)))
            holders[holder].append(LostCapture(record.url, record.digest))
        for folder, lost in holders.items():
            with closing(RocksStore(folder.frontier)) as store:
                committed = unpack_open(store.fact(ARCHIVE_FACT))
                # A mended file is closed, and its committed length means nothing any more.
                closed = committed is not None and not (folder.warc / f"{committed.filename}{OPEN_SUFFIX}").exists()
                facts = [(ARCHIVE_FACT, b"")] if closed else []
                count += LostPages(store, logs, time.time(), count_rows).fetch_again(lost, facts)
                store.sync()
        if count:
            say(f"{count:,} pages whose captures are gone wait in the frontier again")


def _files(folder: CrawlDir) -> list[Path]:
    """Closed and open WARC files."""
    return [path for path in sorted(folder.warc.glob(f"*{WARC_SUFFIX}*")) if path.suffix in (".gz", OPEN_SUFFIX)]


def _size(archives: Archives) -> int:
    return sum(path.stat().st_size for folder in archives.folders for path in _files(folder))


def _holders(crawl: CrawlDir) -> list[CrawlDir]:
    """The folders that have, or should have, a frontier: of several workers those that began."""
    plan = read_plan(crawl)
    if plan is None or plan.alone:
        return [crawl]
    return [folder for folder in plan.folders(crawl) if folder.has_frontier() or folder.has_archive()]


def _refuse_several_in_redis(archives: Archives) -> None:
    """Raise OperatorError for all workers of a fleet in Redis at once: those that come back mend their own."""
    if archives.folders != [archives.crawl] and (workers := list(filter(_is_workers, archives.folders))):
        raise OperatorError(
            f"{archives.crawl} has workers of a fleet in Redis: name the folder of one, as {workers[0]}."
        )


def _frontier_size(folder: CrawlDir) -> int:
    return sum(path.stat().st_size for path in folder.frontier.glob("*.sst"))


def _is_workers(folder: CrawlDir) -> bool:
    """Whether the frontier is in Redis, shared with other workers."""
    return folder.worker.exists() and not folder.has_frontier()


def _committed(folder: CrawlDir) -> OpenFile | None:
    if not folder.has_frontier():
        return None
    with FrontierView(folder.frontier) as view:
        return unpack_open(view.fact(ARCHIVE_FACT))
