"""Archives of other programs in a crawl's folder: every command reads them, in whatever shape they are."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from crawlerproject.batch.process_warcs import ExtractOptions, Outcome, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import scrapy
from tests.crawls.archive.pywb_server import TOOLS, ask, pywb_of
from tests.foreign_archives import SHAPES, Page

PLACED = [name for name, shape in SHAPES.items() if shape.placed]


def page(name: str, number: int = 0) -> Page:
    """One whose words are its own."""
    text = f"<!DOCTYPE html><title>{name} {number}</title><p>Words of {name} and of no other, {'more ' * 60}"
    return Page(f"http://{name}.test/{number}", text.encode())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a file of each shape, indexed."""
    folder = tmp_path_factory.mktemp("theirs") / "crawl"
    (folder / "warc").mkdir(parents=True)
    for name, shape in SHAPES.items():
        (folder / "warc" / f"{name}{shape.suffix}").write_bytes(shape.make([page(name, 0), page(name, 1)]))
    done = scrapy("index", str(folder))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"{name}: 2 captures share gzip members, and no index can name them; warcio recompress {name} NEW.warc.gz "
        "gives each its own"
        for name in ("arc-one-member.arc.gz", "one-member.warc.gz")
    ]
    return folder


def test_process_reads_them_all(folder: Path, tmp_path: Path) -> None:
    """The same title and text of each, without what frames it in the file."""
    for warc in CrawlDir(folder).closed_warcs():
        assert process_warc(warc, tmp_path, ExtractOptions(wet=True, wat=True)) == Outcome()
    rows = pq.read_table(tmp_path / "pages").to_pylist()
    assert Counter(row["url"] for row in rows) == {page(name, n).url: 1 for name in SHAPES for n in (0, 1)}
    for row in rows:
        name = row["url"].split("/")[2].removesuffix(".test")
        assert row["title"] == f"{name} {row['url'][-1]}"
        assert row["text"] == f"Words of {name} and of no other, {'more ' * 60}".strip()
        assert len(row["digest"]) == 32
    assert len(list((tmp_path / "wet").iterdir())) == len(list((tmp_path / "wat").iterdir())) == len(SHAPES)


def test_verify_says_that_all_is_well(folder: Path) -> None:
    """With a note on each, and what no index can name."""
    done = scrapy("verify", str(folder))

    assert done.returncode == 0, done.stderr
    assert f"{len(SHAPES)} WARC files" in done.stdout
    assert f"{2 * len(SHAPES)} captures: all is well" in done.stdout
    assert done.stderr.count("was written by another program") == len(SHAPES)
    assert done.stderr.count("share gzip members") == 2


@pytest.mark.parametrize("name", SHAPES)
def test_verify_of_one_file(folder: Path, tmp_path: Path, name: str) -> None:
    """Well as it is, and not where it breaks off."""
    path = folder / "warc" / f"{name}{SHAPES[name].suffix}"
    torn = tmp_path / path.name
    torn.write_bytes(path.read_bytes()[:-20])

    good, bad = scrapy("verify", str(path)), scrapy("verify", str(torn))

    assert (good.returncode, good.stderr.count("\n")) == (0, 1)
    assert "all is well" in good.stdout
    assert bad.returncode == 1
    assert "torn" in bad.stderr


@pytest.mark.parametrize("name", PLACED)
def test_a_page_is_shown(folder: Path, name: str) -> None:
    """As a spider would see it, by the index."""
    wanted = page(name, 1)

    done = scrapy("show", wanted.url, "-s", f"CRAWL_DIR={folder}")

    assert done.returncode == 0, done.stderr
    assert wanted.body.decode() in done.stdout


def test_wacz_takes_what_is_warc(folder: Path, tmp_path: Path) -> None:
    """The format has no ARC, which is said."""
    refused = scrapy("wacz", str(folder), "-o", str(tmp_path / "x.wacz"))
    warcs = tmp_path / "warcs"
    for part in ("warc", "index"):
        (warcs / part).mkdir(parents=True)
        for path in (folder / part).glob("*.*"):
            if ".arc" not in path.name and path.is_file():
                (warcs / part / path.name).write_bytes(path.read_bytes())
    done = scrapy("wacz", str(warcs), "-o", str(tmp_path / "x.wacz"))

    assert refused.returncode == 2
    assert "arc-one-member.arc.gz is no WARC, and a WACZ holds nothing else" in refused.stderr
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "x.wacz") as packed:
        pages = [json.loads(line) for line in packed.read("pages/pages.jsonl").splitlines()[1:]]
    assert {each["title"] for each in pages} == {
        f"{name} {n}" for name, shape in SHAPES.items() if "warc" in shape.suffix for n in (0, 1)
    }


@pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")
def test_pywb_replays_them_by_our_index(folder: Path, tmp_path: Path) -> None:
    """Each whose records have a place of their own."""
    with pywb_of(folder, tmp_path) as server:
        for name in PLACED:
            wanted = page(name)
            assert ask(server, f"/crawl/20260301100000id_/{wanted.url}")[1] == wanted.body, name
