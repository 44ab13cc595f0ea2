"""Do both page readers make the same crawl? ``python -m benchmarks.same_crawl [--corpus FILE] [--against CHECKOUT]``.

The manuals, and the pages of an archive where one is given, are crawled with the native reader, with the Python one,
and by another checkout of the crawler. What each archive says of each page is compared: the payload digest, the
encoding, the fingerprint of the text, what the page asks of robots, its canonical address, the signals of triage. Exits
with 1 when anything differs. Which of several near duplicates came first is chance, in two crawls by one reader as
well; what they are compared by is the fingerprint.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from benchmarks.real_pages.site import install, nginx
from benchmarks.side_by_side.__main__ import our_command
from benchmarks.side_by_side.cases import Case, corpus, handbook, small_pages
from tests.web.running import PROJECT, many_files, measured

_TAIL = 2000  # characters of a failed crawl's output
_MOST_SHOWN = 10  # pages a difference
# Lines of a metadata record that tell of this very fetch, and not of the page.
_OF_THE_FETCH = (
    "fetchTimeMs",
    "via",
    "hopsFromSeed",
    "politenessDelaySeconds",
    "politenessWaitedSeconds",
    "duplicate",
    "duplicate-of",
    "simhash-distance",
)
FALLBACK = {"CRAWLER_NATIVE": "0"}

Pages = dict[str, tuple[str, ...]]


def crawled(case: Case, checkout: Path, environment: dict[str, str]) -> Path:
    """The folder of one crawl, made anew; ends the program when the crawl fails."""
    out, log = case.site.folder / "out", case.site.folder / "same.log"
    shutil.rmtree(out, ignore_errors=True)
    before = dict(os.environ)
    os.environ.update(environment)
    spent = measured(our_command(case), log, checkout)
    for name in environment:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]
    if spent.status:
        sys.exit(f"the crawl ended with status {spent.status}:\n{log.read_text()[-_TAIL:]}")
    return out


def said(out: Path) -> Pages:
    """What the archive says of each page."""
    pages: dict[str, list[str]] = {}
    for url, lines in _records(out):
        pages.setdefault(url, []).extend(line for line in lines if line.partition(":")[0] not in _OF_THE_FETCH)
    return {url: tuple(sorted(lines)) for url, lines in pages.items()}


def _records(out: Path) -> Iterator[tuple[str, list[str]]]:
    """(URL, lines) of each response, revisit and metadata record."""
    for path in sorted(out.rglob("*.warc.gz")):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url = record.rec_headers.get_header("WARC-Target-URI") or ""
                if record.rec_type in ("response", "revisit"):
                    digest = record.rec_headers.get_header("WARC-Payload-Digest") or ""
                    yield url, [f"digest: {digest}", f"status: {record.http_headers.get_statuscode()}"]
                elif record.rec_type == "metadata":
                    yield url, record.content_stream().read().decode().split("\r\n")


def differences(one: Pages, other: Pages) -> list[str]:
    """What differs, a line a page."""
    found = [f"only in one: {url}" for url in sorted(one.keys() ^ other.keys())]
    for url in sorted(one.keys() & other.keys()):
        if one[url] != other[url]:
            found.append(f"{url}: {sorted(set(one[url]) ^ set(other[url]))}")
    return found


def compare(case: Case, against: Path | None) -> int:
    """How many differences there are; prints them."""
    with nginx(case.site, certificate=case.certificate):
        ways: list[tuple[str, Path, dict[str, str]]] = [("the Python reader", PROJECT, FALLBACK)]
        if against is not None:
            ways.append((str(against), against, {}))
        native = said(crawled(case, PROJECT, {}))
        total = 0
        for name, checkout, environment in ways:
            found = differences(native, said(crawled(case, checkout, environment)))
            print(f"({case.letter}) {case.what}: {len(native)} pages, {len(found)} differences to {name}", flush=True)
            print("".join(f"  {line}\n" for line in found[:_MOST_SHOWN]), end="")
            total += len(found)
    return total


def main() -> None:
    """All cases, each reader and the other checkout."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_crawl", description=__doc__)
    parser.add_argument("--corpus", type=Path, help="tar archive of web pages")
    parser.add_argument("--against", type=Path, help="another checkout of the crawler")
    given = parser.parse_args()
    install()
    many_files()
    against = given.against and given.against.absolute()
    archive = given.corpus and given.corpus.absolute()
    os.chdir(PROJECT)
    with tempfile.TemporaryDirectory(prefix="same-crawl-") as scratch:
        folder = Path(scratch)
        cases = [small_pages(folder / "a"), handbook(folder / "h")]
        if archive is not None:
            cases.append(corpus(folder / "b", archive))
        sys.exit(sum(compare(case, against) for case in cases) > 0)


if __name__ == "__main__":
    main()
