"""Plan, crawl, process, load, search on a real manual; each step killed in the middle and run again."""

from __future__ import annotations

import functools
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.batch import follow_crawl
from crawlerproject.batch.fulltext import Hit, Search, search
from crawlerproject.batch.process_warcs import PART, ExtractOptions, is_done, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.web import zygote
from tests.web.running import IDENTITY
from tests.web.waiting import busyness

MANUAL = Path("/usr/share/doc/debian-handbook/html/en-US")
pytestmark = pytest.mark.skipif(not MANUAL.is_dir(), reason="the Debian package debian-handbook is not installed")

ADDRESS = "127.7.7.7"
PATIENCE_SECONDS = 60.0


class Batch(NamedTuple):
    """A crawl of the manual and what was made of it."""

    folder: Path
    asked: list[str]  # paths, in order, of both runs of the crawl
    killed: int  # requests that had been made when the crawl was killed
    committed: int  # bytes of the file that it had open then


class Manual(http.server.SimpleHTTPRequestHandler):
    """The manual's files, and what was asked for."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        """Quiet."""


def scrapy(*arguments: str) -> list[str]:
    """A command line."""
    return [sys.executable, "-m", "scrapy", *arguments]


def finished(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command run to its end."""
    return zygote.run(scrapy(*arguments), timeout=100)


def killed(arguments: list[str], moment: Callable[[], bool]) -> None:
    """A command that is killed, with its children, when the moment has come."""
    process = zygote.Process(scrapy(*arguments), start_new_session=True)
    until = time.monotonic() + PATIENCE_SECONDS * busyness()
    while not moment() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def in_open_file(crawl: CrawlDir) -> int:
    """Bytes that are committed of the file that a crawl is writing."""
    written = follow_crawl._committed(crawl) if crawl.has_frontier() else None
    return 0 if written is None or written[0].exists() else written[1]


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    """Plan and crawl; the crawl is killed after a third of its pages."""
    folder = tmp_path_factory.mktemp("batch")
    asked: list[str] = []
    handler = type("Handler", (Manual,), {"asked": asked})
    server = http.server.ThreadingHTTPServer((ADDRESS, 0), functools.partial(handler, directory=str(MANUAL)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    (folder / "hosts").write_text(f"{ADDRESS} handbook.test\n")
    plan = folder / "plan.jsonl.gz"
    made = finished("plan", str(plan), "--seeds", f"http://handbook.test:{port}/index.html", "--random", "1")
    assert made.returncode == 0, made.stderr
    crawl = ["crawl", "plan", "-a", f"plan={plan}", "-a", "depth=1"]
    quick = {"PACE_MIN_SECONDS": "0.01", "PACE_START_SECONDS": "0.01", "PACE_IP_SECONDS": "0", "PACE_PRESET": "mirror"}
    settings = {
        **IDENTITY,
        **quick,
        "CRAWL_DIR": str(folder / "crawl"),
        "FETCH_HOSTS_FILE": str(folder / "hosts"),
        "FETCH_ALLOW_NETWORKS": '["127.0.0.0/8"]',
        "RENDER": "never",
        # Several files, of which two can be done while others are not.
        "WARC_MAX_BYTES": "75000",
        "COMMIT_SECONDS": "0.3",
        "DISK_MIN_FREE_BYTES": "0",
    }
    for name, value in settings.items():
        crawl += ["-s", f"{name}={value}"]
    killed(crawl, lambda: len(asked) > 40 and in_open_file(CrawlDir(folder / "crawl")) > 0)
    before, committed = len(asked), in_open_file(CrawlDir(folder / "crawl"))  # it may have begun another file meanwhile
    follow = ["process", str(folder / "crawl"), "--follow", "--out", str(folder / "followed")]
    first = finished(*follow)  # of a crawl that is no more it takes what was committed
    again = finished(*crawl)
    second = finished(*follow)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert again.returncode == 0, again.stderr[-2000:]
    yield Batch(folder / "crawl", asked, before, committed)
    server.shutdown()


def test_a_follower_takes_the_open_file_and_goes_on_behind_it(batch: Batch, tmp_path: Path) -> None:
    """Each capture once, and the same rows as of the closed files; what is there is not done again."""
    followed = batch.folder.parent / "followed"
    for warc in sorted((batch.folder / "warc").iterdir()):
        process_warc(warc, tmp_path, ExtractOptions())

    def rows(out: Path, kind: str) -> Counter[str]:
        read = (row for path in (out / kind).glob("*.parquet") for row in pq.read_table(path).to_pylist())
        return Counter(map(str, read))

    first = [path.stem.rpartition("-")[2] for path in (followed / "pages").glob("*.000000000000-*.parquet")]
    assert [int(end) for end in first] == [batch.committed] * (batch.committed > 0)
    for kind in ("pages", "links"):
        assert rows(followed, kind) == rows(tmp_path, kind)
    assert all(is_done(warc, followed, ExtractOptions()) for warc in (batch.folder / "warc").iterdir())


def test_a_killed_batch_crawl_goes_on_and_archives_each_page_once(batch: Batch) -> None:
    """Front page and what it links to: all of it, each in the archive exactly once."""
    archived: Counter[str] = Counter()
    for path in sorted((batch.folder / "warc").glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type in ("response", "revisit"):
                    archived[str(record.rec_headers.get_header("WARC-Target-URI")).partition("/")[2][1:]] += 1
    pages = {url: count for url, count in archived.items() if url.endswith(".html")}

    assert 40 < batch.killed < len(batch.asked)
    assert len(pages) > 100
    assert {url for url, count in pages.items() if count > 1} == set()
    assert {path for path in batch.asked if path.endswith(".html")} <= {"/" + url.partition("/")[2] for url in pages}


@pytest.fixture(scope="module")
def processed(batch: Batch) -> Path:
    """What one process that nobody disturbed made."""
    undisturbed = finished("process", str(batch.folder), "--workers", "1", "--wet", "--wat")
    assert undisturbed.returncode == 0, undisturbed.stderr
    return batch.folder / "processed"


def test_a_killed_process_gives_the_same_files(batch: Batch, processed: Path, tmp_path: Path) -> None:
    """Pages, links, WET and WAT, byte for byte as of a run that nobody disturbed; killed with its two workers."""
    whole, torn = processed, tmp_path / "torn"
    command = ["process", str(batch.folder), "--wet", "--wat", "--out", str(torn), "--workers"]

    def amid() -> bool:
        return len(list(torn.glob("pages/*.parquet"))) >= 2 and any(torn.glob(f"pages/*{PART}*"))

    killed([*command, "2"], amid)
    done = len(list(torn.glob("pages/*.parquet")))

    assert finished(*command, "1").returncode == 0

    files = {path.relative_to(whole): path.read_bytes() for path in whole.rglob("*.*")}
    assert 2 <= done < len(list(whole.glob("pages/*.parquet")))
    assert {path.relative_to(torn): path.read_bytes() for path in torn.rglob("*.*")} == files


def test_a_killed_load_gives_the_same_answers(batch: Batch, processed: Path) -> None:
    """Known passages of the manual are found, once each, with the words marked; after a kill as well."""
    journal = batch.folder / "search" / "loaded.txt"
    killed(["load", str(batch.folder)], lambda: journal.exists() and bool(journal.read_text()))
    named = len(journal.read_text().splitlines())

    loaded = finished("load", str(batch.folder))

    assert loaded.returncode == 0, loaded.stderr
    assert named >= 1
    pages = {url for file in (processed / "pages").iterdir() for url in urls(file)}
    everything = answers(batch, "debian", limit=1000)
    assert Counter(hit.url for hit in everything).most_common(1)[0][1] == 1
    assert len(pages) / 2 < len(everything) <= len(pages)
    printed = finished("search", '"package meta-information"', "--folder", str(batch.folder), "--json")
    first = json.loads(printed.stdout.splitlines()[0])
    assert first["url"].endswith("/sect.package-meta-information.html")
    assert first["language"] == "en"
    assert "*dependencies*" in answers(batch, "Depends field dependencies")[0].snippet


def urls(file: Path) -> list[str]:
    """Of one file of pages."""
    return list(pq.read_table(file, columns=["url"])["url"].to_pylist())


def answers(batch: Batch, words: str, limit: int = 5) -> list[Hit]:
    """The best ones."""
    return search(batch.folder / "search", Search(words, limit)).hits


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    """Each step without the one before: a sentence and a status, no traceback."""
    for command, word in (
        (["search", "debian", "--folder", str(tmp_path)], "scrapy load"),
        (["load", str(tmp_path)], "scrapy process"),
        (["crawl", "plan", "-a", f"plan={tmp_path / 'none'}"], "scrapy plan"),
    ):
        refused = finished(*command)
        assert refused.returncode == 2
        assert word in refused.stderr
        assert "Traceback" not in refused.stderr


def test_ranks_and_links(batch: Batch, processed: Path) -> None:
    """Every page is ranked; the page that all link to is first; links keep words, rel and place."""
    ranked = finished("rank", str(batch.folder))
    assert ranked.returncode == 0, ranked.stderr

    rows = pq.read_table(processed / "rank" / "pages.parquet").to_pylist()
    links = pq.read_table(processed / "links").to_pylist()

    assert max(rows, key=lambda row: row["pagerank"])["url"].endswith("/index.html")
    assert len(rows) == len({url for file in (processed / "pages").iterdir() for url in urls(file)})
    assert {"text", "rel", "position", "source", "target"} <= set(links[0])
    assert any(link["text"] == "Next" and link["target"].endswith(".html") for link in links)
