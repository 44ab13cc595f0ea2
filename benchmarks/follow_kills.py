"""``python -m benchmarks.follow_kills [--pages 100000] [--kills 5] [--workers 1]``: searched while it runs, and killed.

A crawl of ``benchmarks/broad``'s web, its WARC files small enough to roll, with ``scrapy process --follow`` and
``scrapy load --follow`` beside it. Each of the three is killed so often (kill -9), at moments over the whole crawl, and
begun again by the same command; with ``--workers`` it is a fleet, which has a worker more from its middle kill on. In
the end the pages of the archive (read by warcio), the rows of ``processed/pages`` and the documents of the index must
be the same, each once. Printed is how long it took from a page's fetch until the index had it; of each file that was
loaded the newest page is then asked for at the page of ``scrapy search --serve``.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

import pyarrow.parquet as pq
import tantivy
from warcio.archiveiterator import ArchiveIterator

from benchmarks.broad.__main__ import web
from crawlerproject.batch.fulltext import JOURNAL
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.web.running import PROJECT, crawl_command, many_files
from tests.web.zygote import direct

_LOOK_SECONDS = 0.25
_END_SECONDS = 30.0  # of a process that was told to end
_LAST_KILL = 0.8  # of the crawl's pages
_DELAY_SECONDS = 5.0
_COLUMNS = ["url", "fetch_time", "title"]

Place = tuple[str, int]
"""A capture's WARC file and first byte."""


class Kept:
    """A command that is begun again by itself when it was killed."""

    def __init__(self, command: list[str], log: Path, *, whole_group: bool = False) -> None:
        self.command, self.kills = command, 0
        self._log, self._whole_group = log, whole_group
        self.begin()

    def kill(self) -> None:
        """And wait for what is left of it, then begin it again."""
        os.killpg(self.process.pid, signal.SIGKILL) if self._whole_group else self.process.kill()
        if self.process.wait() == -signal.SIGKILL:
            self.kills += 1
            self.begin()

    def ended(self) -> bool:
        """Whether it has, rightly: RuntimeError where not."""
        status = self.process.poll()
        if status:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(self.command)[:200]} ended with status {status}\n{tail}")
        return status == 0

    def stop(self) -> None:
        """Ask it to end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)

    def begin(self) -> None:
        """Once more."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=PROJECT, env=direct(), stdout=log, stderr=log, process_group=0
            )


class Trial:
    """The three commands, the page, and what was found when."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.crawl = CrawlDir(folder / "crawl")
        self._folder, self._given = folder, given
        self.seconds: dict[tuple[str, str], float] = {}  # by URL and moment of fetch: until it was found
        self.asked = self.answered = 0
        self._loaded = 0  # bytes of the index's journal
        self._logged: dict[Path, tuple[int, int]] = {}  # by log of the crawl: bytes and lines read
        self.kept: dict[str, Kept] = {}
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]

    def run(self) -> None:
        """Crawl, follow and kill, until all three have ended. RuntimeError: it took too long, or one went wrong."""
        given, until = self._given, time.monotonic() + self._given.longest
        self.kept["crawl"] = Kept(self._crawl(given.workers), self._folder / "crawl.log", whole_group=True)
        share = given.pages * _LAST_KILL / max(1, given.kills)
        kills = sorted(
            (int(share * (number + (place + 1) / 3)), name)
            for number in range(given.kills) for place, name in enumerate(("crawl", "process", "load"))
        )  # fmt: skip
        try:
            while not all(each.ended() for name, each in self.kept.items() if name != "search") or len(self.kept) < 4:
                if time.monotonic() > until:
                    raise RuntimeError(
                        f"not at its end after {given.longest} s, with {len(self.seconds):,} pages found"
                    )
                self._begin()
                for name, before in (("process", "crawl"), ("load", "process")):
                    if name in self.kept and self.kept[name].ended() and not self.kept[before].ended():
                        self.kept[name].begin()  # ended between two lives of what it follows
                self._look()
                while kills and self._requests() >= kills[0][0]:
                    self._kill(kills.pop(0)[1])
                time.sleep(_LOOK_SECONDS)
            self._look()
        finally:
            for each in reversed(self.kept.values()):
                each.stop()

    def _crawl(self, workers: int) -> list[str]:
        made, pace = self._folder / "web", f"{_DELAY_SECONDS:g}"
        exact = {f"PACE_{each}_SECONDS": pace for each in ("MIN", "MAX", "START", "IP")}
        settings = {"PACE_PRESET": "fixed5", **exact, "WARC_MAX_BYTES": str(self._given.warc_bytes), "RENDER": "never"}
        command = crawl_command(made / "seeds.txt", self.crawl, made / "hosts", settings)
        command += ["-a", f"max_pages={self._given.pages}"]
        if workers < 2:
            return command
        at = command.index("crawl")
        return [*command[:at], "fleet", *command[at + 2 :], "--workers", str(workers)]

    def _begin(self) -> None:
        """What is not there yet and can be."""
        scrapy, here = [sys.executable, "-m", "scrapy"], str(self.crawl)
        if "process" not in self.kept and any(self.crawl.glob("**/*.warc.gz.open")):
            self.kept["process"] = Kept([*scrapy, "process", here, "--follow"], self._folder / "process.log")
            self.kept["load"] = Kept([*scrapy, "load", here, "--follow"], self._folder / "load.log")
        if "search" not in self.kept and (self.crawl.search / "meta.json").exists():
            serve = [*scrapy, "search", "--serve", str(self._port), "--folder", here]
            self.kept["search"] = Kept(serve, self._folder / "search.log")

    def _kill(self, name: str) -> None:
        kept = self.kept[name]
        if kept.ended():
            return
        if name == "crawl" and self._given.workers > 1 and kept.kills + 1 == (self._given.kills + 1) // 2:
            kept.command = self._crawl(self._given.workers + 1)
        kept.kill()
        print(f"{name} killed after {self._requests():,} requests; {len(self.seconds):,} pages found", flush=True)

    def _requests(self) -> int:
        """Of the crawl, so far, as it has logged them."""
        for path in self.crawl.glob("**/log/requests-*.jsonl"):
            size, lines = self._logged.get(path, (0, 0))
            with path.open("rb") as file:
                file.seek(size)
                more = file.read()
            self._logged[path] = size + len(more), lines + more.count(b"\n")
        return sum(lines for _, lines in self._logged.values())

    def _look(self) -> None:
        """What the index has since the last time."""
        journal = self.crawl.search / JOURNAL
        text = journal.read_bytes()[self._loaded :] if journal.exists() else b""
        now, whole = datetime.now(UTC), text[: text.rfind(b"\n") + 1]
        self._loaded += len(whole)
        for name in filter(None, whole.decode().splitlines()):
            try:
                rows = pq.read_table(self.crawl.processed / "pages" / name, columns=_COLUMNS).to_pylist()
            except FileNotFoundError:  # a longer piece has taken its place
                continue
            for row in rows:
                fetched = row["fetch_time"]
                self.seconds.setdefault((row["url"], fetched.isoformat()), (now - fetched).total_seconds())
            if rows:
                self._ask(max(rows, key=lambda row: row["fetch_time"]))

    def _ask(self, row: dict[str, Any]) -> None:
        """The page for one page, by the words that its title alone has."""
        words = {"q": f'"{row["title"].partition(":")[0]}"', "host": urlsplit(row["url"]).netloc}
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/?{urlencode(words)}", timeout=60) as answer:
                self.answered += f'href="{row["url"]}"' in answer.read().decode()
            self.asked += 1
        except OSError:  # not there yet
            return


def archived(crawl: CrawlDir) -> Iterator[tuple[Place, str]]:
    """Each HTML page of the archive, by its place, as warcio reads it."""
    for path in sorted(crawl.glob("**/*.warc.gz")):
        with path.open("rb") as file:
            records = ArchiveIterator(file)
            for record in records:
                kind = record.http_headers.get_header("Content-Type", "") if record.http_headers else ""
                if record.rec_type == "response" and kind.startswith("text/html"):
                    yield (path.name, records.get_record_offset()), record.rec_headers.get_header("WARC-Target-URI")


def judged(crawl: CrawlDir) -> list[str]:
    """What does not agree."""
    archive = dict(archived(crawl))
    columns = ["url", "fetch_time", "warc_filename", "warc_record_offset"]
    rows = [row for file in (crawl.processed / "pages").glob("*.parquet")
            for row in pq.read_table(file, columns=columns).to_pylist()]  # fmt: skip
    tables = Counter((row["warc_filename"], row["warc_record_offset"]) for row in rows)
    newest: dict[str, str] = {}
    for row in rows:
        newest[row["url"]] = max(newest.get(row["url"], ""), row["fetch_time"].isoformat())
    index = tantivy.Index.open(str(crawl.search))
    searcher = index.searcher()
    hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits
    found = Counter((doc.get_first("url"), doc.get_first("fetched")) for doc in (searcher.doc(at) for _, at in hits))
    print(
        f"{len(archive):,} pages archived, of {len(set(archive.values())):,} addresses, in "
        f"{len(list(crawl.glob('**/*.warc.gz')))} WARC files; {tables.total():,} rows in {len(tables):,} places; "
        f"{found.total():,} documents"
    )
    differ = {
        "archived and in no table": len(archive.keys() - tables.keys()),
        "in a table and not archived": len(tables.keys() - archive.keys()),
        "rows twice": tables.total() - len(tables),
        "addresses archived and not in the index": len(set(archive.values()) - {url for url, _ in found}),
        "documents that are not the newest row of an address": len(found.keys() ^ newest.items()),
        "documents twice": found.total() - len(found),
    }
    return [f"{count:,} {what}" for what, count in differ.items() if count]


def main() -> int:
    """Crawl, kill and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000, help="after which the crawl ends")
    parser.add_argument("--hosts", type=int, default=600, help="each is asked every five seconds")
    parser.add_argument("--links", type=int, default=9, help="of a page")
    parser.add_argument("--kills", type=int, default=5, help="of the crawl, and as many of each that follows it")
    parser.add_argument("--workers", type=int, default=1, help="of the crawl; from 2 on it gains one")
    parser.add_argument("--warc-bytes", type=int, default=50_000_000, help="at which a WARC file is closed")
    parser.add_argument("--longest", type=int, default=3600, help="seconds after which it is given up")
    given = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="follow-") as scratch:
        trial = Trial(Path(scratch), given)
        began = time.monotonic()
        with web(Path(scratch, "web"), given.hosts, given.links, 0.9):
            trial.run()
        took = time.monotonic() - began
        kills = ", ".join(f"{name} {kept.kills}" for name, kept in trial.kept.items() if name != "search")
        seconds = sorted(trial.seconds.values())
        late = sum(second > 60 for second in seconds)
        print(
            f"{took:.0f} s; killed: {kills}\nfrom fetch to found: median {seconds[len(seconds) // 2]:.1f} s, "
            f"99 % within {seconds[len(seconds) * 99 // 100]:.1f} s, worst {seconds[-1]:.1f} s; "
            f"{late:,} of {len(seconds):,} later than 60 s\n"
            f"the page was asked for {trial.asked} of them as they were found, and had {trial.answered}"
        )
        faults = judged(trial.crawl)
    print(*(faults or ["archive, tables and index agree"]), sep="\n")
    return 1 if faults or trial.answered < trial.asked else 0


if __name__ == "__main__":
    sys.exit(main())
