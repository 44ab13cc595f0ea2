"""``scrapy never HOST --why TEXT``: a domain is asked for nothing more, by any crawl that reads the list."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from crawlerproject.config.crawl_kind import CRAWLS, whole_crawl
from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.frontier.assembly import never_crawl_of
from crawlerproject.operator_command import InspectCommand, one_argument, option, waited_for
from crawlerproject.reports.summary import bare_host
from crawlerproject.rules.printable import counted, human_seconds
from crawlerproject.rules.url.domains import is_public_suffix
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.stores.atomic_files import append_lines, replace_file
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.operator_files.user_settings import user_path
from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, Listing, NeverCrawlLists
from crawlerproject.terminal import say, say_json

# Beyond NEVERCRAWL_RELOAD_SECONDS: until the status file is written again, and a slow disk.
_PATIENCE_SECONDS = 10.0
_NOT_UTF_8 = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")  # the marks of UTF-16 and gzip
_LIST_MODE = 0o644  # who was promised what is no secret, and a crawl of another user may read it


class Command(InspectCommand):
    """Waits until the running crawls that read the same list have taken it up."""

    arguments = "HOST --why TEXT [--remove] [--no-wait] [--json] | --list [--json]"
    summary = "Exclude a domain from all crawls, now, and show that running crawls took it up"

    example = 'scrapy never example.org --why "asked by their webmaster"'

    options = (
        option("--why", metavar="TEXT", default="", help="who asked, and why; written into the list"),
        option("--remove", action="store_true", help="the host may be asked again"),
        option("--list", action="store_true", help="print every line of the lists that a crawl honours"),
        option("--no-wait", action="store_true", help="do not wait for running crawls"),
        option(
            "--whole-suffix", action="store_true", help="HOST may be one under which others have domains (github.io)"
        ),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        try:  # the list of the crawl that CRAWL_DIR names may be another than the project's
            crawl = self.look()
        except OperatorError:
            crawl = None
        settings: Any = crawl.settings if crawl is not None else self.settings
        if opts.list:
            _print_lists(never_crawl_of(settings), args, as_json=opts.json)
            return
        host = bare_host(one_argument(args, "a host", self.example))
        why = " ".join(opts.why.split())
        if not why:
            raise OperatorError(f"Say who asked and why, for the next operator: {self.example}")
        path = target(settings)
        if opts.remove:
            changes = remove(never_crawl_of(settings), host, why, datetime.now(UTC))
            facts: dict[str, Any] = {"host": host, "removed": [change._asdict() for change in changes]}
            lines = [f"Taken off {change.path}, line {change.line}: {change.text}" for change in changes]
            changed = [change.path for change in changes]
        else:
            line, number, new = add(path, host, why, datetime.now(UTC), whole_suffix=opts.whole_suffix)
            facts = {"file": str(path), "line": number, "text": line, "added": new}
            lines, changed = [f"{'Added to' if new else 'Already in'} {path}, line {number}: {line}"], [path]
        if not opts.json:
            say(*lines)
        took = [] if opts.no_wait else list(self._wait(changed, settings, opts.json))
        elsewhere = crawl.workers_elsewhere() if crawl is not None else []
        if opts.json:
            say_json({**facts, "crawls": took, "workers_elsewhere": elsewhere})
            return
        if not took and not opts.no_wait:
            say("No running crawl was found here; one elsewhere takes it up by itself.")
        if elsewhere:
            say(f"Copy it to the machines of {', '.join(elsewhere)}: workers that are not on this one.")

    def _wait(self, paths: list[Path], settings: Any, quiet: bool) -> Iterator[dict[str, Any]]:
        """Each running crawl, once it has read these versions or the time is over."""
        versions = {str(path): path.stat().st_mtime_ns for path in paths}
        patience = settings.getfloat("NEVERCRAWL_RELOAD_SECONDS", RELOAD_SECONDS) + _PATIENCE_SECONDS
        began = time.monotonic()
        for folder in _folders(self.settings):
            if not folder.running(read_facts(folder.status)):
                continue
            reads = bool(versions.keys() & _lists_of(folder).keys())
            if reads:
                waited_for(partial(_has_read, folder, versions), began + patience - time.monotonic())
            taken = reads and _has_read(folder, versions)
            waited = time.monotonic() - began
            yield {"folder": str(folder), "reads_it": reads, "took_it_up": taken, "seconds": round(waited, 1)}
            if not quiet:
                answer = (
                    "does not read this list: see its NEVERCRAWL_FILE and NEVERCRAWL_USER_FILE" if not reads
                    else f"took it up after {human_seconds(waited)}" if taken
                    else "has not taken it up yet: look at its log"
                )  # fmt: skip
                say(f"{folder}: the running crawl {answer}")


def target(settings: Any) -> Path:
    """The list that is written: the operator's own, which no upgrade touches; the project's where there is no other."""
    path = user_path(str(settings["NEVERCRAWL_USER_FILE"] or "")) or settings["NEVERCRAWL_FILE"]
    if not path:
        raise OperatorError("NEVERCRAWL_USER_FILE and NEVERCRAWL_FILE are empty; set one to a file that crawls read.")
    return Path(path).absolute()


def add(path: Path, host: str, why: str, now: datetime, *, whole_suffix: bool = False) -> tuple[str, int, bool]:
    """Append ``host`` unless it is excluded already: the line, its number, and whether it is new. OperatorError."""
    domain = _domain(host)
    if is_public_suffix(domain) and not whole_suffix:
        raise OperatorError(
            f"{domain} is a suffix under which others have their domains (publicsuffix.org), and all of them would be "
            f"excluded; name one of them, such as example.{domain}, or add --whole-suffix to mean all."
        )
    known = NeverCrawlLists([path]).listing(domain, 0.0) if path.exists() else None
    if known is not None:
        return known.text, known.line, False
    _check_changeable(path)
    line = f"{domain}  # {why}, {now:%Y-%m-%d}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        append_lines(path, line.encode(), _LIST_MODE)
        return line, path.read_bytes().count(b"\n"), True
    except OSError as error:
        raise OperatorError(f"{path} cannot be written ({error.strerror}); check its permissions.") from error


def remove(lists: NeverCrawlLists, host: str, why: str, now: datetime) -> list[Listing]:
    """Turn each line that names ``host`` into a comment, with the reason: what the lines were. OperatorError."""
    domain, changes = _domain(host), list[Listing]()
    above = lists.current(0.0).domain_of(domain)
    if above is None:
        raise OperatorError(f"{domain} is on no list: {', '.join(lists.versions) or 'there is none'}.")
    if above != domain:
        listing = lists.listing(above, 0.0)
        assert listing is not None
        raise OperatorError(
            f"{domain} itself is on no list; line {listing.line} of {listing.path} excludes {above} and all below it."
        )
    for path in filter(Path.exists, map(Path, lists.versions)):
        _check_changeable(path)
        lines = path.read_text("utf-8", "surrogateescape").splitlines(keepends=True)
        named = [place for place, line in enumerate(lines) if domain in Exclusion.parse([line])[0].domains]
        found = [Listing(path, place + 1, lines[place].strip()) for place in named]
        for listing in found:
            lines[listing.line - 1] = f"# {listing.text}; taken off: {why}, {now:%Y-%m-%d}\n"
        if found:
            try:
                replace_file(path, "".join(lines).encode("utf-8", "surrogateescape"), path.stat().st_mode & 0o777)
            except StorageError as error:
                raise OperatorError(f"{error}; check its permissions.") from error
        changes += found
    return changes


def _check_changeable(path: Path) -> None:
    """Refuse a list to which a line in UTF-8 cannot be added."""
    if path.exists() and path.read_bytes()[:2] in _NOT_UTF_8:
        raise OperatorError(f"{path} is in UTF-16 or packed, which crawls read; to be changed here it must be UTF-8.")


def _domain(host: str) -> str:
    entries, problems = Exclusion.parse([host])
    if problems or len(entries) != 1:
        raise OperatorError(f"{host!r} is neither a domain nor an IP address.")
    (domain,) = entries.domains
    return domain


def _print_lists(lists: NeverCrawlLists, args: list[str], *, as_json: bool) -> None:
    if args:
        raise OperatorError("scrapy never --list takes no host; scrapy why HOST says whether it is excluded.")
    excluded = lists.current(0.0)
    rows = [found._asdict() | {"domain": domain} for file in lists.files for domain, found in file.listings(0.0)]
    if as_json:
        say_json([{name: str(value) if name == "path" else value for name, value in row.items()} for row in rows])
        return
    say(*(f"{row['path']}:{row['line']}: {row['text']}" for row in rows))
    say(f"{counted(len(excluded), 'entry', 'entries')} in {', '.join(lists.versions) or 'no list'}", error=True)


def _folders(settings: Any) -> list[CrawlDir]:
    """CRAWL_DIR, and every crawl beside the default one; their workers' folders too."""
    crawls = [whole_crawl(settings), *CRAWLS.started_below()]
    crawls += [worker for crawl in crawls for worker in crawl.started_below()]
    return sorted({crawl.resolve() for crawl in crawls if crawl.run.exists()})


def _has_read(folder: CrawlDir, versions: dict[str, int]) -> bool:
    read = _lists_of(folder)
    return all((read.get(path) or 0) >= version for path, version in versions.items() if path in read)


def _lists_of(folder: CrawlDir) -> dict[str, int | None]:
    """What the running crawl reads, and which version of it (ns) it has."""
    lists: dict[str, int | None] = read_facts(folder.status).get("nevercrawl_lists") or {}
    return lists
