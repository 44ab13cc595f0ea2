"""``scrapy withdraw HOST|URL --why TEXT``: what is archived of a site is shown no more, nor asked for again."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Any

from crawlerproject.commands.never import add as never_again
from crawlerproject.commands.never import target
from crawlerproject.commands.upload import send
from crawlerproject.config.crawl_kind import shared
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import shared_frontier
from crawlerproject.operator_command import (
    Bytes,
    InspectCommand,
    locked,
    named_crawl,
    one_argument,
    option,
    still,
    waited_for,
)
from crawlerproject.rules.archive.withdrawal import State, Withdrawal, Withdrawn, selector
from crawlerproject.rules.consent.verdict import PURPOSES
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.domains import is_public_suffix
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.wacz_file import is_being_closed
from crawlerproject.stores.crawl_dir import CrawlDir, check_there
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.operator_files.watched_lists import (
    add_lines,
    change_lines,
    is_workers,
    withdrawn_of,
    withdrawn_path,
)
from crawlerproject.terminal import say, say_either, say_json

# An index of a file of 1 GB is made in seconds; beside a crawl it may be many.
_CLOSING_SECONDS = 120.0


class Command(InspectCommand):
    """Writes one line into the crawl's list; all that shows captures asks it."""

    arguments = (
        "HOST[:PORT]|URL --why TEXT [--erase] [--still-crawl] | HOST|URL --remove --why TEXT | "
        "--reserved [--purpose PURPOSE] [--erase] | --list [--json]"
    )
    summary = "Show no more what is archived of a host or URL, and ask for it no more"

    example = 'scrapy withdraw example.org --why "asked by their webmaster"'

    options = (
        option("--why", metavar="TEXT", default="", help="who asked, and why; written into the list"),
        option("--erase", action="store_true", help="cut it out of the archive's files, also where they were uploaded"),
        option("--still-crawl", action="store_true", help="it may be asked for again all the same"),
        option("--remove", action="store_true", help="show it again (what was erased stays erased)"),
        option("--reserved", action="store_true", help="withdraw what its sites reserve now, by their newest words"),
        option("--purpose", choices=PURPOSES, default="", help="with --reserved: from this one (default: PURPOSE)"),
        option("--list", action="store_true", help="print what was withdrawn"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self._crawl()
        listed = withdrawn_of(crawl)
        if opts.list:
            _print(listed, args, as_json=opts.json)
            return
        why = " ".join(opts.why.split())
        if opts.reserved:
            self._withdraw_reserved(crawl, listed, args, opts, why)
            return
        what = _selector(one_argument(args, "a host or a URL", self.example))
        entry = next((entry for entry in listed.entries if entry.what == what), None)
        why = why or (entry.why if entry is not None and not opts.remove else "")
        if not why:
            raise OperatorError(f"Say who asked and why, for the next operator: {self.example}")
        if opts.remove:
            lines = self._shown_again(crawl, what, entry, why)
        else:
            entry = entry or Withdrawal(what, _today(), State.WITHDRAWN, why, opts.still_crawl)
            lines = [f"{withdrawn_path(crawl)}: {entry.line()}"]
            lines += self._withdrawn(crawl, listed, [entry], f"{what} --erase", erase=opts.erase)
        say_either({"what": what, "list": str(withdrawn_path(crawl)), "done": lines}, lines, as_json=opts.json)

    def _withdraw_reserved(
        self, crawl: CrawlDir, listed: Withdrawn, args: list[str], opts: argparse.Namespace, why: str
    ) -> None:
        """Each page by itself, and free to be asked for again: a recrawl sees whether it is reserved still."""
        from crawlerproject.batch.reserved_pages import NewestWords

        if args or opts.remove:
            raise OperatorError("scrapy withdraw --reserved takes no host; --remove takes one off the list.")
        archives, purpose = archives_of(crawl), opts.purpose or str(self.settings["PURPOSE"])
        warcs, words = [*archives.closed_warcs(), *archives.open_warcs()], NewestWords(self.settings["CRAWLER_NAME"])
        with Bytes("Reading", warcs) as progress:
            for warc in warcs:
                words.read(warc, progress.advance)
        known, entries = {entry.what: entry for entry in listed.entries}, list[Withdrawal]()
        for url, judged in words.reserved(purpose):
            what = _selector(url)
            reason = f"{why or f'reserved from {purpose}'}: {judged.source} {' '.join(judged.words.split())}"
            if what in known or not listed.covers(url):
                entries.append(known.get(what) or Withdrawal(what, _today(), State.WITHDRAWN, reason, crawled=True))
        lines = [f"{withdrawn_path(crawl)}: {counted(len(entries), 'page')} reserved from {purpose}"]
        if opts.erase:  # of one that was interrupted nothing may be held any more
            entries += [entry for entry in listed.entries if entry.state is State.ERASING and entry not in entries]
        if entries:
            lines += self._withdrawn(crawl, listed, entries, "--reserved --erase", erase=opts.erase)
        pages = [entry.what for entry in entries]
        facts = {"purpose": purpose, "list": str(withdrawn_path(crawl)), "pages": pages, "done": lines}
        say_either(facts, [*(entry.line() for entry in entries), *lines], as_json=opts.json)

    def _withdrawn(
        self, crawl: CrawlDir, listed: Withdrawn, entries: list[Withdrawal], again: str, *, erase: bool
    ) -> list[str]:
        """Put entries on the list, unless they are, and make it so; ``again``: the arguments that go on with it."""
        if new := [entry.line() for entry in entries if entry not in listed.entries]:
            add_lines(withdrawn_path(crawl), "\n".join(new))
        lines = [each for entry in entries for each in self._excluded(entry)] + _hidden(crawl)
        if erase:
            return lines + self._erased(crawl, entries, again)
        self._send(crawl)
        return lines

    def _crawl(self) -> CrawlDir:
        """The whole crawl, also where the folder of one of its workers is named."""
        crawl = named_crawl([], self.settings)
        if not crawl.is_here:
            raise OperatorError(
                f"What was uploaded follows the folder that it came from: set CRAWL_DIR to that, not to {crawl}."
            )
        check_there(crawl)
        return CrawlDir(crawl.parent) if is_workers(crawl) else crawl

    def _excluded(self, entry: Withdrawal) -> list[str]:
        """Put a host on the never-crawl list. A URL that was withdrawn each crawl in this folder refuses by itself."""
        if entry.crawled:
            return []
        if "://" in entry.what:
            return [f"{entry.what} is not asked for again by crawls in this folder"]
        path = target(self.settings)
        line, number, new = never_again(path, entry.what, entry.why, datetime.now(UTC))
        return [f"{'Added to' if new else 'Already in'} {path}, line {number}: {line}"]

    def _erased(self, crawl: CrawlDir, entries: list[Withdrawal], again: str) -> list[str]:
        """Cut them out, here and where they were uploaded; the list says how far that is."""
        from crawlerproject.batch.erase_archive import archive_files, erase_archives
        from crawlerproject.batch.withdrawn_results import leave_out

        archives, path = archives_of(crawl), withdrawn_path(crawl)
        with locked(archives.to_lock()), still(archives.to_lock(), erases=True):
            begun = [entry._replace(state=State.ERASING) for entry in entries]
            change_lines(path, dict(zip(entries, begun, strict=True)))
            files = [file for folder in archives.folders for file in archive_files(folder)]
            with Bytes("Erasing", files) as progress:
                lines = erase_archives(archives, Withdrawn(begun), time.time(), progress.advance)
            lines += leave_out(crawl, withdrawn_of(crawl), erase=True)
            lines += self._forgotten_in_redis(archives, Withdrawn(begun))
        if not self._send(crawl):
            raise OperatorError(
                f"Not all of it is erased where it was uploaded; scrapy withdraw {again} does the rest."
            )
        change_lines(path, {entry: entry._replace(state=State.ERASED) for entry in begun})
        what = entries[0].what if len(entries) == 1 else counted(len(entries), "page")
        add_lines(path, f"# {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} erased {what}: {'; '.join(lines)}")
        self._send(crawl)
        return lines

    def _forgotten_in_redis(self, archives: Archives, withdrawn: Withdrawn) -> list[str]:
        """Of a site's text the frontier of a fleet has its robots.txt."""
        if not any(folder.worker.exists() for folder in archives.folders):
            return []
        try:
            settings = self.look().settings
            if not shared(settings):
                return []
            with shared_frontier(settings) as frontier:
                if frontier.forget_robots(lambda origin: withdrawn.covers(f"{origin}/robots.txt")):
                    return []
        except OperatorError as error:  # it may be gone for good
            return [f"What Redis keeps of its robots.txt was not removed: {error}"]
        return ["A worker that is at work keeps its robots.txt: stop all workers, then give this command again"]

    def _send(self, crawl: CrawlDir) -> bool:
        """Bring what has changed to where the archive is uploaded, unless a crawl does it; whether all is there."""
        whole = True
        for folder in archives_of(crawl).folders:
            if folder.upload_journal.exists() and not folder.locked():
                from crawlerproject.stores.uploads.upload_journal import Journal

                whole &= send(self.settings, folder, Journal(folder).url, aside=True)
        return whole

    def _shown_again(self, crawl: CrawlDir, what: str, entry: Withdrawal | None, why: str) -> list[str]:
        if entry is None:
            raise OperatorError(f"{what} is not in {withdrawn_path(crawl)}; scrapy withdraw --list prints what is.")
        if entry.state is State.ERASING:
            raise OperatorError(f"{what} is being erased: scrapy withdraw {what} --erase ends that first.")
        change_lines(withdrawn_path(crawl), {entry: None}, f"{why}, {_today()}")
        count = 0
        for folder in archives_of(crawl).folders:
            index = CdxjFiles(folder.index, parquet_of(folder))
            for warc in folder.closed_warcs():
                index.rebuild(warc)
                count += 1
        return [f"Taken off {withdrawn_path(crawl)}: {entry.line()}", f"{counted(count, 'WARC file')} indexed again"]


def _selector(text: str) -> str:
    try:
        what = selector(text)
    except ValueError:
        raise OperatorError(f"{text!r} is neither a host nor an http or https URL.") from None
    if "://" not in what and is_public_suffix(what):
        raise OperatorError(f"{what} is a suffix under which others have their domains; name one of them.")
    return what


def _hidden(crawl: CrawlDir) -> list[str]:
    """Make again without it all that was made of the archive; sentences that say what was done."""
    from crawlerproject.batch.withdrawn_results import leave_out  # Arrow: not before it is needed

    archives = archives_of(crawl)
    waited_for(lambda: not _is_closing(archives), _CLOSING_SECONDS)  # such an index may be as of before
    captures = files = 0
    for folder in archives.folders:
        index = CdxjFiles(folder.index, parquet_of(folder))
        for warc in folder.closed_warcs():
            removed = index.without_withdrawn(warc)
            captures, files = captures + removed, files + bool(removed)
    line = f"{counted(captures, 'capture')} of {counted(files, 'closed WARC file')} taken out of the index"
    return [line, *leave_out(crawl, withdrawn_of(crawl), erase=False)]


def _is_closing(archives: Archives) -> bool:
    """Whether a crawl that runs is just making an index."""
    return any(
        is_being_closed(warc) for folder in archives.folders if folder.locked() for warc in folder.closed_warcs()
    )


def _print(listed: Withdrawn, args: list[str], *, as_json: bool) -> None:
    if args:
        raise OperatorError("scrapy withdraw --list takes no host.")
    if as_json:
        rows: list[dict[str, Any]] = [entry._asdict() for entry in listed.entries]
        say_json(rows)
        return
    say(*(entry.line() for entry in listed.entries))
    say(counted(len(listed.entries), "entry", "entries"), error=True)


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"
