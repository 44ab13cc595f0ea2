"""``scrapy withdraw``: what was asked back is shown by nothing any more, and asked for no more."""

from __future__ import annotations

import gzip
import json
import tempfile
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.fulltext import Search, search
from crawlerproject.frontier.url_filters import UrlFilters
from crawlerproject.inspection.pywb import ReplayIndex
from crawlerproject.reasons import Reason
from crawlerproject.reparse.offline import chosen
from crawlerproject.rules.url.refused_urls import AddressRules
from crawlerproject.rules.url.scope import Scope
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.watched_lists import NeverCrawlLists, WithdrawnFile, withdrawn_of
from crawlerproject.stores.protocols import QueuedPage
from tests.commands.running import Done, archive_of, crawl, scrapy, write
from tests.warc_samples import exchange

GONE, KEPT = "h1.example.com", "h2.example.com"
WHY = "asked by their webmaster"


def withdraw(folder: Path, *arguments: str) -> Done:
    """The command, with a never-crawl list of its own."""
    never = folder.parent / "never.txt"
    settings = ("-s", f"CRAWL_DIR={folder}", "-s", f"NEVERCRAWL_FILE={never}", "-s", "NEVERCRAWL_USER_FILE=")
    return scrapy("withdraw", *arguments, *settings)


@pytest.fixture
def made(tmp_path: Path) -> CrawlDir:
    """A crawl of three hosts."""
    folder = CrawlDir(tmp_path / "crawl")
    crawl(folder)
    return folder


def processed(folder: CrawlDir) -> None:
    """Make everything of it that can be made."""
    for command in (["process", "--wet", "--wat", "--workers", "1"], ["load"], ["export"]):
        assert scrapy(*command, str(folder)).returncode == 0


def test_nothing_shows_it_any_more(made: CrawlDir, tmp_path: Path) -> None:
    """Indexes, replay, WACZ, tables, texts, exports, search, reparse, lookup, show; verify finds all well."""
    processed(made)
    assert scrapy("lookup", f"http://{GONE}/1", "-s", f"CRAWL_DIR={made}").returncode == 0

    done = withdraw(made, GONE, "--why", WHY)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"{GONE}  " in made.withdrawn.read_text()
    assert GONE in (tmp_path / "never.txt").read_text()
    for command in ("lookup", "show"):
        assert scrapy(command, f"http://{GONE}/1", "-s", f"CRAWL_DIR={made}").returncode == 1
        assert scrapy(command, f"http://{KEPT}/2", "-s", f"CRAWL_DIR={made}").returncode == 0
    assert f", {WHY}" in scrapy("why", f"http://{GONE}/1", "-s", f"CRAWL_DIR={made}").stdout
    assert scrapy("process", str(made), "--wet", "--wat", "--workers", "1").returncode == 0
    assert scrapy("export", str(made)).returncode == 0
    shown = shown_hosts(made, tmp_path)
    assert shown == {name: {"h0.example.com", KEPT} for name in shown}
    verified = scrapy("verify", str(made))
    assert (verified.returncode, verified.stderr) == (0, "")
    assert withdraw(made, GONE).returncode == 0  # again: nothing is left to do
    assert made.withdrawn.read_text().count(GONE) == 1


def shown_hosts(made: CrawlDir, place: Path) -> dict[str, set[str]]:
    """The hosts of which something is shown, by who shows it."""
    package = place / "out.wacz"
    package.unlink(missing_ok=True)
    assert scrapy("wacz", str(made), "-o", str(package), "--text").returncode == 0
    with zipfile.ZipFile(package) as packed:
        (place / "unpacked.warc.gz").write_bytes(packed.read(next(n for n in packed.namelist() if "archive/" in n)))
        pages = [json.loads(line) for line in packed.read("pages/pages.jsonl").splitlines()[1:]]
    records = scrapy("verify", str(place / "unpacked.warc.gz"))
    assert records.returncode == 0, records.stderr
    index = ReplayIndex(Path(tempfile.mkdtemp(dir=place)))
    index.refresh([made])
    lines = b"".join(path.read_bytes() for path in index.indexes.iterdir()).decode()
    exported = b"".join(gzip.decompress(path.read_bytes()) for path in made.exports.glob("*/*/*.gz")).decode()
    texts = {
        "package": " ".join(page["url"] for page in pages),
        "cdxj": "".join(path.read_text() for path in made.index.glob("*.cdxj")),
        "replay": lines,
        "parquet": urls_in(made.parquet),
        "pages": urls_in(made.processed / "pages"),
        "export": exported,
        "search": " ".join(
            hit.url for hit in search(made.search, Search("page", 100), withdrawn=withdrawn_of(made)).hits
        ),
        "reparse": " ".join(each.capture.row.url for each in chosen([made], every=True)),
    }
    return {name: {host for host in ("h0.example.com", GONE, KEPT) if host in text} for name, text in texts.items()}


def urls_in(tables: Path) -> str:
    """All URLs of the tables in a folder."""
    return " ".join(url for path in tables.rglob("*.parquet") for url in pq.read_table(path)["url"].to_pylist())


def test_a_url_alone(made: CrawlDir) -> None:
    """One URL, or all below one; their host is not excluded, but they are refused at their turn."""
    assert withdraw(made, f"http://{GONE}/1", "--why", WHY).returncode == 0
    assert withdraw(made, f"http://{KEPT}/*", "--why", WHY, "--still-crawl").returncode == 0

    assert scrapy("lookup", f"http://{GONE}/1", "-s", f"CRAWL_DIR={made}").returncode == 1
    assert scrapy("lookup", f"http://{GONE}/4", "-s", f"CRAWL_DIR={made}").returncode == 0
    assert scrapy("lookup", f"http://{KEPT}/2", "-s", f"CRAWL_DIR={made}").returncode == 1
    assert not (made.parent / "never.txt").exists()
    never = NeverCrawlLists([])
    filters = UrlFilters(Scope("any"), never, AddressRules(), max_urls_per_host=10, withdrawn=WithdrawnFile(made))
    rows = [
        QueuedPage("h", b"", f"http://{where}", 0, 0, 0, "", "") for where in (f"{GONE}/1", f"{GONE}/4", f"{KEPT}/2")
    ]
    assert [filters.refusal_again(row, 0.0) for row in rows] == [Reason.NEVERCRAWL, None, None]


def test_a_port_alone(tmp_path: Path) -> None:
    """Of a host with its port what was asked there is withdrawn; its other ports stay, and it is on no list."""
    folder = CrawlDir(tmp_path / "crawl")
    made = archive_of(folder)
    for port in ("", ":8080"):
        write(made, f"http://{GONE}{port}/a")
    made.close()

    done = withdraw(folder, f"{GONE}:8080", "--why", WHY)

    assert (done.returncode, done.stderr) == (0, "")
    found = [scrapy("lookup", f"http://{GONE}{p}/a", "-s", f"CRAWL_DIR={folder}").returncode for p in ("", ":8080")]
    assert found == [0, 1]
    assert not (tmp_path / "never.txt").exists()
    assert withdraw(folder, f"{GONE}:8080", "--remove", "--why", WHY).returncode == 0


def test_it_comes_back(made: CrawlDir) -> None:
    """``--remove`` shows it again, and keeps the line as a comment."""
    before = {path: path.read_bytes() for path in made.index.rglob("*") if path.is_file()}
    withdraw(made, GONE, "--why", WHY)

    done = withdraw(made, GONE, "--remove", "--why", "they changed their mind")

    assert done.returncode == 0, done.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert made.withdrawn.read_text().splitlines()[-1].startswith(f"# {GONE}")
    assert withdraw(made, "--list").stdout == ""


def test_what_a_running_crawl_writes(tmp_path: Path) -> None:
    """Captures of the open file are shown no more at once, and their file's index is made without them."""
    folder = CrawlDir(tmp_path / "crawl")
    made = archive_of(folder)
    body = b"the same bytes"
    write(made, f"http://{GONE}/a", exchange(body))
    write(made, f"http://{KEPT}/b", exchange(b"others"))
    made.flush()

    assert withdraw(folder, GONE, "--why", WHY).returncode == 0

    assert scrapy("lookup", f"http://{GONE}/a", "-s", f"CRAWL_DIR={folder}").returncode == 1
    assert [each.capture.row.url for each in chosen([folder], every=True)] == [f"http://{KEPT}/b"]
    made.close()
    assert GONE not in next(folder.index.glob("*.cdxj")).read_text()
    assert scrapy("verify", str(folder)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Give a host or a URL"),
        (("example.org",), "Say who asked"),
        (("a b", "--why", "x"), "neither a host nor"),
        (("http://", "--why", "x"), "neither a host nor"),
        (("example.org:99999", "--why", "x"), "neither a host nor"),
        (("co.uk", "--why", "x"), "suffix"),
        (("example.org", "--remove", "--why", "x"), "is not in"),
        (("x", "--list"), "takes no host"),
    ],
)
def test_what_cannot_be_done(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    """One sentence and status 2; nothing is written."""
    folder = CrawlDir(tmp_path / "crawl")
    folder.mkdir()
    done = withdraw(folder, *arguments)
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert not folder.withdrawn.exists()
