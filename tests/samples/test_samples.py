"""Each file of samples/ as the crawl.toml of a real crawl: it starts, and does what it is a sample of."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.arena import SETTINGS, Arena, answer, arena, page
from tests.web.running import PROJECT, finish, start
from tests.web.waiting import busyness

SAMPLES = PROJECT / "samples"
MOVIE = b"\x00\x00\x00\x18ftyp" * 100
# Where the crawl runs, and how long it may wait; nothing of what a sample is about. WATCH_PORT would be everybody's.
HERE = {**SETTINGS, "FETCH_ALLOW_NETWORKS": "127.0.0.0/8", "WATCH_PORT": "0", "DISK_MIN_FREE_BYTES": "1000000"}
_LONGEST_SECONDS = 60.0


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A site with a subdomain (of a suffix that the public list has), a picture, a film and a deep path; a stranger."""
    with arena(tmp_path_factory.mktemp("samples")) as opened:
        opened.site("example.org", lambda asked: _example(opened, asked.path))
        opened.site("blog.example.org", lambda asked: page(text="the blog") if asked.path == "/" else None)
        opened.site("stranger.test", lambda asked: _stranger(asked.path))
        yield opened


def _example(web: Arena, path: str) -> bytes | None:
    """A front page with a picture, a film, a printable copy, its blog and a stranger; then page after page."""
    if path == "/":
        links = ["/1", "/film.mp4", "/print/1", web.url("blog.example.org"), web.url("stranger.test")]
        shown = f"<img src=/seen.png><img src={web.url('stranger.test', '/badge.png')}>"
        listed = "".join(f"<p><a href={link}>{link}</a></p>" for link in links)
        return answer(f"<!doctype html><title>front</title><body>{shown}{listed}")
    if path == "/film.mp4":
        return answer(MOVIE.decode("latin-1"), mime="video/mp4")
    if path == "/seen.png":
        return answer("seen", mime="image/png")
    number = path.rpartition("/")[2]
    return page(f"/{int(number) + 1}", text=f"page {'abcdefghijkl'[int(number)] * 40}") if number.isdigit() else None


def _stranger(path: str) -> bytes | None:
    if path == "/badge.png":
        return answer("badge", mime="image/png")
    return page(text="a stranger of its own words") if path == "/" else None


def crawl(web: Arena, sample: str, seeds: str, *arguments: str, days: float = 0) -> Path:
    """Crawl with a copy of ``samples/SAMPLE.toml``, which stays for the next call; the crawl's folder."""
    folder = web.folder / sample
    folder.mkdir(exist_ok=True)
    if not (folder / "crawl.toml").exists():
        shutil.copyfile(SAMPLES / f"{sample}.toml", folder / "crawl.toml")
    given = {**HERE, "CRAWL_DIR": str(folder), "FETCH_HOSTS_FILE": str(web.folder / "hosts")}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    begin = [sys.executable, "-m", "tests.web.later", str(days), "crawl", "web"]
    log = web.folder / f"{sample}.log"
    with log.open("wb") as output:
        process = start([*begin, "-a", f"seeds={seeds}", "-a", "accept=all", *arguments, *options], output)
        try:
            process.wait(_LONGEST_SECONDS * busyness())
        finally:
            process.kill()
            spent = finish(process, time.monotonic())
    assert spent.status == 0, log.read_text(errors="replace")[-3000:]
    return folder


def archived(folder: Path) -> dict[str, str]:
    """URL of each answer -> its reason; robots.txt left out."""
    rows = [row for row in read_log(folder / "log") if row["status"] == 200 and not row["url"].endswith("/robots.txt")]
    return {str(row["url"]): str(row["reason"]) for row in rows}


def test_one_site(web: Arena) -> None:
    """Its pages, the film that they link to, their pictures wherever those are; the operator's name in each file."""
    folder = crawl(web, "one-site", web.url("example.org"), "-a", "max_pages=4")

    found = archived(folder)
    needed = {web.url("example.org", "/seen.png"), web.url("stranger.test", "/badge.png")}
    assert needed | {web.url("example.org"), web.url("example.org", "/film.mp4")} <= found.keys()
    assert not {web.url("stranger.test"), web.url("blog.example.org")} & found.keys()
    (file, *_) = (folder / "warc").glob("example-*.warc.gz")
    with file.open("rb") as opened:
        about = next(iter(ArchiveIterator(opened))).content_stream().read().decode()
    assert "operator: An archive, you@example.org" in about


def test_a_list_of_domains(web: Arena, tmp_path: Path) -> None:
    """Whole domains and no stranger, pages and no pictures, so many pages of each host."""
    (tmp_path / "domains.txt").write_text(f"{web.url('example.org')}\n")

    folder = crawl(web, "domains", str(tmp_path / "domains.txt"), "-a", "max_pages_per_host=3")

    found = archived(folder)
    assert web.url("blog.example.org") in found
    assert len([url for url in found if url.startswith(web.url("example.org"))]) == 3
    assert not [url for url in found if "stranger" in url or url.endswith(("png", "mp4")) or "/print/" in url]


def test_a_broad_crawl(web: Arena, tmp_path: Path) -> None:
    """Strangers as well; six links deep."""
    (tmp_path / "seeds.txt").write_text(f"{web.url('example.org')}\n")

    folder = crawl(web, "broad", str(tmp_path / "seeds.txt"))

    found = archived(folder)
    assert {web.url("stranger.test"), web.url("blog.example.org"), web.url("example.org", "/6")} <= found.keys()
    assert web.url("example.org", "/7") not in found


def test_a_monthly_recrawl(web: Arena) -> None:
    """Each page again a month later, and none two weeks after that."""
    web.innocent(pages=3, name="monthly.test")
    seeds = web.url("monthly.test")

    folder = crawl(web, "monthly", seeds)
    first = len(web.of("monthly.test"))
    crawl(web, "monthly", seeds, "-a", "mode=recrawl", days=31)
    second = len(web.of("monthly.test"))
    crawl(web, "monthly", seeds, "-a", "mode=recrawl", days=45)

    assert (first, second, len(web.of("monthly.test"))) == (3, 6, 6)
    indexed = [line.split(" ", 2)[2] for path in folder.glob("index/*.cdxj") for line in path.read_text().splitlines()]
    kinds = [json.loads(line)["mime"] for line in indexed if "monthly.test" in line and "robots.txt" not in line]
    assert kinds.count("warc/revisit") == 3
