"""``scrapy withdraw HOST|URL --why TEXT``: what is archived of a site is shown no more, nor asked for again."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Any

from crawlerproject.commands.never import add as never_again
from crawlerproject.commands.never import target
from crawlerproject.commands.upload import send
from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import (
    Bytes,
    InspectCommand,
    locked,
    named_crawl,
    one_argument,
    option,
    waited_for,
)
from crawlerproject.rules.archive.withdrawal import State, Withdrawal, Withdrawn, selector
from crawlerproject.rules.printable import counted
from crawlerproject.rules.url.domains import is_public_suffix
from crawlerproject.stores.archive.archive import parquet_of
from crawlerproject.stores.archive.wacz import is_being_closed
from crawlerproject.stores.crawl_dir import CrawlDir, check_there
from crawlerproject.stores.crawl_folders import Archives, archives_of
from crawlerproject.stores.index.cdxj import CdxjFiles
from crawlerproject.stores.operator_files.withdrawn_list import add, change, is_workers, list_of, withdrawn_of
from crawlerproject.terminal import say, say_json

# An index of a file of 1 GB is made in seconds; beside a crawl it may be many.
_CLOSING_SECONDS = 120.0


class Command(InspectCommand):
    """Writes one line into the crawl's list; all that shows captures asks it."""

    arguments = "HOST|URL --why TEXT [--erase] [--still-crawl] | HOST|URL --remove --why TEXT | --list [--json]"
    summary = "Show no more what is archived of a host or URL, and ask for it no more"

    example = 'scrapy withdraw example.org --why "asked by their webmaster"'

    options = (
        option("--why", metavar="TEXT", default="", help="who asked, and why; written into the list"),
        option("--erase", action="store_true", help="cut it out of the archive's files, also where they were uploaded"),
        option("--still-crawl", action="store_true", help="it may be asked for again all the same"),
        option("--remove", action="store_true", help="show it again (what was erased stays erased)"),
        option("--list", action="store_true", help="print what was withdrawn"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        crawl = self._crawl()
        listed = withdrawn_of(crawl)
        if opts.list:
            _print(listed, args, as_json=opts.json)
            return
        what = _selector(one_argument(args, "a host or a URL", self.example))
        entry = next((entry for entry in listed.entries if entry.what == what), None)
        why = " ".join(opts.why.split()) or (entry.why if entry is not None and not opts.remove else "")
        if not why:
            raise OperatorError(f"Say who asked and why, for the next operator: {self.example}")
        if opts.remove:
            said = self._shown_again(crawl, what, entry, why)
        else:
            entry = entry or Withdrawal(what, _today(), State.WITHDRAWN, why, opts.still_crawl)
            if entry not in listed.entries:
                add(list_of(crawl), entry.line())
            said = [f"{list_of(crawl)}: {entry.line()}", *self._excluded(entry), *_hidden(crawl)]
            if opts.erase:
                said += self._erased(crawl, entry)
            else:
                self._send(crawl)
        if opts.json:
            say_json({"what": what, "list": str(list_of(crawl)), "done": said})
        else:
            say(*said)

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
            return [f"{entry.what} may be asked for again"]
        if "://" in entry.what:
            return [f"{entry.what} is not asked for again by crawls in this folder"]
        path = target(self.settings)
        line, number, new = never_again(path, entry.what, entry.why, datetime.now(UTC))
        return [f"{'Added to' if new else 'Already in'} {path}, line {number}: {line}"]

    def _erased(self, crawl: CrawlDir, entry: Withdrawal) -> list[str]:
        """Cut it out, here and where it was uploaded; the list says how far that is."""
        from crawlerproject.batch.erase_archive import archive_files, erase_archives
        from crawlerproject.batch.withdrawn_results import leave_out

        archives, path = archives_of(crawl), list_of(crawl)
        with locked(archives.to_lock()):
            begun = entry._replace(state=State.ERASING)
            change(path, entry, begun)
            files = [file for folder in archives.folders for file in archive_files(folder)]
            with Bytes("Erasing", files) as progress:
                said = erase_archives(archives, Withdrawn([begun]), time.time(), progress.advance)
            said += leave_out(crawl, withdrawn_of(crawl), erase=True)
        if not self._send(crawl):
            raise OperatorError(f"Not all of it is erased where it was uploaded; {self._again(entry)} does the rest.")
        change(path, begun, entry._replace(state=State.ERASED))
        add(path, f"# {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} erased {entry.what}: {'; '.join(said)}")
        self._send(crawl)
        return said

    def _again(self, entry: Withdrawal) -> str:
        return f"scrapy withdraw {entry.what} --erase"

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
            raise OperatorError(f"{what} is not in {list_of(crawl)}; scrapy withdraw --list prints what is.")
        if entry.state is State.ERASING:
            raise OperatorError(f"{what} is being erased: scrapy withdraw {what} --erase ends that first.")
        change(list_of(crawl), entry, None, f"{why}, {_today()}")
        count = 0
        for folder in archives_of(crawl).folders:
            index = CdxjFiles(folder.index, parquet_of(folder))
            for warc in folder.closed_warcs():
                index.rebuild(warc)
                count += 1
        return [f"Taken off {list_of(crawl)}: {entry.line()}", f"{counted(count, 'WARC file')} indexed again"]


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
            gone = index.without_withdrawn(warc)
            captures, files = captures + gone, files + bool(gone)
    said = f"{counted(captures, 'capture')} of {counted(files, 'closed WARC file')} taken out of the index"
    return [said, *leave_out(crawl, withdrawn_of(crawl), erase=False)]


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
