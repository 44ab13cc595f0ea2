"""``scrapy recover``: mends what a power loss or a bad disk left of a crawl's archive."""

from __future__ import annotations

import argparse
import time
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.fleet.repartition.journal import under_way
from crawlerproject.fleet.repartition.repartition import adopt_recovered, finish
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.inspection.crawl_view import frontier_in_redis
from crawlerproject.inspection.verification import Captured, Verification
from crawlerproject.operator_command import Bytes, OperatorCommand, locked, named_archives, named_crawl, option
from crawlerproject.recovery.lost_worker import fetch_again, give_up
from crawlerproject.rules.archive.warc_members import is_ours
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.archive.archive import close_left, has_our_name, parquet_of
from crawlerproject.stores.archive.recovery import LostCapture, LostPages, good_spans, mend, recover
from crawlerproject.stores.archive.warc_reader import first_member
from crawlerproject.stores.crawl_dir import OPEN_SUFFIX, WARC_SUFFIX, CrawlDir, check_there
from crawlerproject.stores.crawl_folders import alone, folders_of, missing_workers, read_plan, workers_of
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.poison import poison_of, write_poison
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, OpenFile, unpack_open
from crawlerproject.stores.redis.forgetting import fact_of_worker
from crawlerproject.stores.rocks.frontier_folder import of_redis_worker
from crawlerproject.stores.rocks.partition_rows import ROWS_AT_A_TIME
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Changes the archive, and keeps whatever it cuts out."""

    arguments = "[FOLDER]"
    summary = "Mend damaged WARC files, rebuild index and frontier, fetch again what was lost"
    details = (
        "Cut out of a stopped crawl's WARC files what is not good and keep it in torn/; make both indexes again; put "
        "pages whose captures are lost back into the frontier. A crash needs none of this. A damaged frontier is made"
        " again from WARC files and request log, and the old one kept. --poison only gives pages over which the "
        "process died another chance. A worker of a fleet over Redis that never comes back: scrapy recover "
        "crawls/web/NAME -s STATE_URL=redis://…; with --lost NAME, when its archive is lost, its pages are fetched "
        "again. Exit status 1 when something cannot be mended. Example: scrapy "
        "recover crawls/web"
    )

    options = (
        option("--frontier", action="store_true", help="make the frontier again, though it can be read to its end"),
        option(
            "--poison",
            action="store_true",
            help="give pages that are set aside as poison another chance; nothing else is done",
        ),
        option(
            "--lost",
            metavar="NAME",
            action="append",
            help="a worker of a fleet over Redis whose archive is lost; may be repeated",
        ),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Mend, say what was done, and look again."""
        if opts.lost:
            self._fetch_lost_workers(args, opts.lost)
            return
        folder, folders = self._folders(args)
        with locked({folder, *folders}):
            if opts.poison:
                self._poison(folder)
                return
            adopt_recovered(folder)  # of a recovery that was ended at its end
            damage = self._damage(folder, folders, again=opts.frontier)
        with locked([folder]):
            if not damage:
                finish(folder, say)  # partitions that were on their way, while the locks of workers are free
            with locked({*folders} - {folder}):
                made = self._mended(folder, folders, damage)
                with Bytes("Verifying", _files(*folders)) as progress:
                    found = Verification(folder, progress.advance).run()
        for problem in found.problems:
            say(f"Left as it is: {problem}", error=True)
        say(f"{folder}: {counted(found.captures, 'good capture')} in {counted(found.files, 'WARC file')}")
        self.exitcode = 0 if made and not found.problems else 1

    def _fetch_lost_workers(self, args: list[str], names: list[str]) -> None:
        folder = named_crawl(args, self.settings)
        check_there(folder)
        frontier = frontier_in_redis(folder, self.settings)
        if frontier is None:
            raise OperatorError("--lost is for a fleet over Redis: give the crawl's with -s STATE_URL=redis://…")
        folders = folders_of(folder)
        with frontier, locked({folder, *folders}), Bytes("Comparing", _files(*folders)) as progress:
            if waited_for := give_up(frontier, names):
                say(
                    f"The others wait for {', '.join(waited_for)} no more, and what nothing else knew is lost: start "
                    "them; once they have stopped, run this again for pages whose archive is lost."
                )
                return
            urls = fetch_again(folder, frontier, names, progress.advance)
        say(*urls)
        say(f"Of {', '.join(names)} {counted(len(urls), 'page')} without any archive: to be fetched again", error=True)

    def _folders(self, args: list[str]) -> tuple[CrawlDir, list[CrawlDir]]:
        """The crawl's folder, and all that have files of it. Raises OperatorError."""
        given = named_crawl(args, self.settings)
        whole = CrawlDir(given.parent)
        if given.is_dir() and read_plan(whole) is not None and given in workers_of(whole):
            raise OperatorError(
                f"{given} has a part of the crawl in {whole}, whose hosts move between folders: scrapy recover {whole} "
                "mends all of it."
            )
        local_fleet = given.is_dir() and (read_plan(given) is not None or under_way(given))
        if not local_fleet:
            archives = named_archives(args, self.settings)
            if not given.has_archive() and (workers := list(filter(of_redis_worker, archives.folders))):
                raise OperatorError(
                    f"{given} is of a fleet over Redis: name the folder of one worker, as {workers[0]}."
                )
            return given, [given]
        found = [folder for folder in folders_of(given) if folder.has_archive() or folder.has_frontier()]
        if not any(folder.has_archive() for folder in found):
            raise OperatorError(f"{given} holds no crawl: there is no WARC file in any of its folders.")
        return given, found

    def _damage(self, folder: CrawlDir, folders: list[CrawlDir], *, again: bool) -> str:
        """What is wrong with a frontier of the crawl; "" when all are whole."""
        if of_redis_worker(folder):
            return ""
        if again:
            return f"The frontier in {folder} is given up"
        if missing := missing_workers(folder):
            return f"{missing[0]} is missing"
        holders, moving = [folder], under_way(folder)
        if folders != [folder]:  # while hosts move, those that the plan does not name, too
            holders = folders if moving else (read_plan(folder) or alone(1)).folders(folder)
            holders = [each for each in holders if each.has_frontier() or (each.has_archive() and not moving)]
        from crawlerproject.recovery.rebuild import damage_of

        for holder in holders:
            with Bytes("Reading the frontier", holder.frontier.glob("*.sst")) as progress:
                if damage := damage_of(holder, progress.advance):
                    return damage
        return ""

    def _mended(self, folder: CrawlDir, folders: list[CrawlDir], damage: str) -> bool:
        """Mend archive, index and frontier; False when the frontier cannot be made again."""
        if damage:
            say(f"{damage}: it is made again from the archive")
        closed: list[Path] = []
        for each in folders:
            self._cut_out(each, known=not damage)
            index = CdxjFiles(each.index, parquet_of(each))
            if damage:  # every whole capture counts: no frontier says how much of an open file is committed
                for path in each.open_warcs():
                    if first_member(path) is not None:
                        close_left(each.warc, path.name.removesuffix(OPEN_SUFFIX))
                        closed.append(path)
                say(*recover(each.warc, None, index).messages)
            else:
                self._open_file(each, index)
            with Bytes("Indexing", _files(each)) as progress:
                for warc in each.closed_warcs():
                    index.rebuild(warc, progress.advance)
            index.catch_up(each.warc)
        if damage:
            made = False
            try:
                made = self._rebuilt(folder, folders)
            finally:
                if not made:
                    self._opened_again(closed)
            return made
        self._fetch_lost(folder, folders)
        return True

    def _opened_again(self, closed: list[Path]) -> None:
        """Where the old frontier stays, which can be gone on with, it says how much of these is committed."""
        for path in closed:
            folder, filename = CrawlDir(path.parent.parent), path.name.removesuffix(OPEN_SUFFIX)
            with suppress(StorageError):
                if self._committed(folder) is not None:
                    CdxjFiles(folder.index, parquet_of(folder)).reopen(path.with_name(filename))
                    path.with_name(filename).rename(path)

    def _rebuilt(self, folder: CrawlDir, folders: list[CrawlDir]) -> bool:
        from crawlerproject.recovery.rebuild import rebuild  # all of a crawl: not for what needs no more than mending

        try:
            with Bytes("Making the frontier", _files(*folders)) as progress:
                made = rebuild(self.settings, folder, folders, progress.advance)
        except OperatorError as error:
            say(str(error), error=True)
            return False
        waiting = f"{counted(made.waiting, 'URL')} of {counted(made.hosts, 'host')} wait{'s' * (made.waiting == 1)}"
        say(f"The new frontier knows {counted(made.pages, 'page')}; {waiting}")
        if folders != [folder]:
            say("One process has all of it now; the next scrapy fleet shares it out again")
        say(*(f"Not restored: {what}" for what in made.missing))
        say(*(f"The old frontier is kept in {kept}" for kept in made.kept))
        return True

    def _poison(self, folder: CrawlDir) -> None:
        if of_redis_worker(folder):
            raise OperatorError(
                "A fleet over Redis has its frontier on several disks: copy the crawl to a folder with scrapy state "
                "copy, and give that."
            )
        count = 0
        plan = read_plan(folder)
        for each in [folder] if plan is None else plan.folders(folder):
            if each.has_frontier():
                with closing(RocksStore(each.frontier)) as store:
                    count += LostPages(store, each.log, time.time(), count_rows).poisoned()
                    store.sync()
        for each in {folder, *folders_of(folder)}:
            if poison_of(each):
                write_poison(each.poison, {})
        pages = counted(count, "page that was set aside as poison waits", "pages that were set aside as poison wait")
        say(f"{pages} in the frontier again")

    def _cut_out(self, folder: CrawlDir, *, known: bool) -> None:
        """Keep what is good of every file; an open file that needs it is closed by that.

        ``known``: a frontier says how much of it is committed.
        """
        committed = self._committed(folder) if known else None
        with Bytes("Reading", _files(folder)) as progress:
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
                say(*mend(path, spans))

    def _committed(self, folder: CrawlDir) -> OpenFile | None:
        if of_redis_worker(folder):
            return unpack_open(fact_of_worker(folder, str(self.settings["STATE_URL"]), ARCHIVE_FACT))
        if not folder.has_frontier():
            return None
        with FrontierView(folder.frontier) as view:
            return unpack_open(view.fact(ARCHIVE_FACT))

    def _open_file(self, folder: CrawlDir, index: CdxjFiles) -> None:
        """What the next start of the crawl does at once."""
        if of_redis_worker(folder):  # what is lost may be in other workers' hands: it is reported alone
            recovery = recover(folder.warc, self._committed(folder), index)
            say(*recovery.messages)
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
        say(*recovery.messages)

    def _fetch_lost(self, crawl: CrawlDir, folders: list[CrawlDir]) -> None:
        """Queue the pages that a frontier takes for archived and that are archived nowhere."""
        holders = {folder: list[LostCapture]() for folder in folders if folder.has_frontier()}
        if not holders or of_redis_worker(crawl):
            return
        with Bytes("Comparing", _files(*folders)) as progress:
            look = Verification(crawl, progress.advance)
            look.run()
        plan = read_plan(crawl) or alone(1)
        for record in look.lost:
            holders[CrawlDir(crawl / plan.holder(host_key(record.url)))].append(LostCapture(record.url, record.digest))
        count = sum(_fetched_again(folder, lost, folders, look.captured) for folder, lost in holders.items())
        if count:
            pages = counted(count, "page whose captures are lost waits", "pages whose captures are lost wait")
            say(f"{pages} in the frontier again")


def _fetched_again(folder: CrawlDir, lost: list[LostCapture], folders: list[CrawlDir], captured: Captured) -> int:
    """How many pages of a holder of hosts wait again. Later captures are revisits of none that is lost."""
    with closing(RocksStore(folder.frontier)) as store:
        originals = store.originals()
        while some := list(islice(originals, ROWS_AT_A_TIME)):
            if gone := captured.lost(some):
                store.apply(Changes(payloads=[(digest, None) for digest in gone]))
        committed = unpack_open(store.fact(ARCHIVE_FACT))
        # A mended file is closed, and its committed length means nothing any more.
        closed = committed is not None and not (folder.warc / f"{committed.filename}{OPEN_SUFFIX}").exists()
        facts = [(ARCHIVE_FACT, b"")] if closed else []
        logs = [other.log for other in folders if other != folder]
        count = LostPages(store, folder.log, time.time(), count_rows, other_logs=logs).fetch_again(lost, facts)
        store.sync()
        return count


def _files(*folders: CrawlDir) -> list[Path]:
    """Closed and open WARC files, those of each folder in order."""
    found = [path for folder in folders for path in sorted(folder.warc.glob(f"*{WARC_SUFFIX}*"))]
    return [path for path in found if path.suffix in (".gz", OPEN_SUFFIX)]
