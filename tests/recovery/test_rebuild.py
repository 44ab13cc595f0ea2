"""A crawl that dies half way and loses its frontier: made again from archive and log, and finished as if nothing was.

Judged by the servers' log: what was archived is not asked for again, and no host is hurried.
"""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from crawlerproject.recovery.rebuild import damage_of
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.rocks.frontier_folder import put_in_place
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.commands.running import Done, scrapy
from tests.hostile.arena import PACE_SECONDS, SETTINGS, Arena, Asked, answer, arena, page
from tests.web import zygote
from tests.web.judge import read_captures
from tests.web.running import crawl_command, start
from tests.web.waiting import wait_until

_HOSTS = ("one.test", "two.test")
_PAGES = 24  # numbered ones of each host
_HALF = 22  # requests to the first host after which the crawl dies
_SECONDS = 60.0
_SERVERS_VIEW_SECONDS = 0.005  # between its clock and ours


def sites(web: Arena) -> None:
    """Two hosts that link to each other: pages, a redirect, a sitemap, a feed, copies, rules and nofollow."""
    busy: set[str] = set()

    def make(asked: Asked) -> bytes | None:
        other = _HOSTS[asked.host == _HOSTS[0]]
        special = {
            "/robots.txt": answer("User-agent: *\nDisallow: /private\nSitemap: /map.xml\n", mime="text/plain"),
            "/map.xml": answer(
                "<urlset>" + "".join(f"<url><loc>{web.url(asked.host, f'/map/{n}')}</loc></url>" for n in range(4))
                + "</urlset>", mime="application/xml",
            ),
            "/feed.xml": answer(
                f"<rss><channel><item><link>{web.url(asked.host, '/item')}</link></item></channel></rss>",
                mime="application/rss+xml",
            ),
            "/moved": answer("", "301 Moved Permanently", Location="/arrived"),
            "/nofollow": answer('<meta name="robots" content="nofollow"><a href="/hidden">x</a>'),
            "/same/a/": page("next", text="the same words in both places"),
            "/same/b/": page("next", text="the same words in both places"),
        }  # fmt: skip
        if asked.path in special:
            return special[asked.path]
        if asked.path == "/busy" and asked.host not in busy:
            busy.add(asked.host)
            return answer("", "503 Service Unavailable", Retry_After="1")
        first = ("/moved", "/nofollow", "/same/a/", "/same/b/", "/feed.xml", "/private/x", "/busy")
        name = asked.path.strip("/")
        number = int(name) if name.isdigit() else 0
        if number >= _PAGES:
            return None
        words = " ".join(f"{asked.host[:3]}{name}x{place}" for place in range(50))
        near = [str(near) for near in (2 * number + 1, 2 * number + 2) if near < _PAGES]
        links = [f"/{each}" for each in near] + [web.url(other, f"/{each}") for each in near]
        return page(*links, *(first if asked.path == "/" else ()), text=words)

    for name in _HOSTS:
        web.site(name, make)


EXPECTED = {
    *(f"/{number}" for number in range(1, _PAGES)),
    *(f"/map/{number}" for number in range(4)),
    *("/", "/map.xml", "/feed.xml", "/item", "/moved", "/arrived", "/nofollow", "/busy"),
    *("/same/a/", "/same/b/", "/same/a/next", "/same/b/next"),
}


class Half(NamedTuple):
    """A crawl that was killed half way, and the web it is of."""

    web: Arena
    folder: Path

    def command(self, folder: Path) -> list[str]:
        """The same crawl, in a folder."""
        return crawl_command(self.web.folder / "seeds.txt", folder, self.web.folder / "hosts", SETTINGS, "domain")

    def run(self, folder: Path, end: signal.Signals) -> None:
        """The first half of it, ended so."""
        before = len(self.web.of(_HOSTS[0]))
        with folder.with_suffix(".log").open("wb") as output:
            process = start(self.command(folder), output)
        try:
            wait_until(lambda: len(self.web.of(_HOSTS[0])) - before >= _HALF, seconds=_SECONDS, process=process)
            process.send_signal(end)
            process.wait(_SECONDS)
        finally:
            process.kill()

    def copy(self, folder: Path) -> Path:
        """The folder as the death left it."""
        shutil.copytree(self.folder, folder)
        return folder


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Half]:
    """Killed by ``kill -9`` while both hosts have pages left."""
    folder = tmp_path_factory.mktemp("half")
    with arena(folder) as web:
        sites(web)
        (folder / "seeds.txt").write_text("\n".join(web.url(name) for name in _HOSTS))
        crawl = Half(web, folder / "crawl")
        crawl.run(crawl.folder, signal.SIGKILL)
        yield crawl


def recover(folder: Path, *arguments: str) -> Done:
    """``scrapy recover``, which must find all well afterwards."""
    done = scrapy("recover", str(folder), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def rows(folder: Path) -> set[QueuedPage]:
    """What waits, whenever it came; but for what its turn would drop: the host itself has had it fetched meanwhile."""
    with FrontierView(folder / "frontier") as view:
        waiting = [row for host in view.hosts_with_work() for row in view.queue(host)]
        return {row._replace(arrival=0) for row in waiting if view.page(row.page_key) is None}


def pages(folder: Path) -> dict[str, tuple[str, int, bytes, str]]:
    """What is known of pages."""
    with FrontierView(folder / "frontier") as view:
        return {r.url: (r.reason, r.status, r.digest, r.etag) for _, r in view.pages()}


def facts(folder: Path) -> dict[str, bytes]:
    """Traps, domains, seeds: what is known of more than a page."""
    with FrontierView(folder / "frontier") as view:
        return dict(view.facts(""))


def test_it_is_finished_as_if_nothing_had_been(half: Half, tmp_path: Path) -> None:
    """Frontier and index are gone: a start refuses, a recovery makes both again, the crawl ends with every page."""
    web, folder = half.web, half.copy(tmp_path / "crawl")
    shutil.rmtree(folder / "frontier")
    shutil.rmtree(folder / "index")
    refused = zygote.run(half.command(folder))
    before = len(web.visits)

    done = recover(folder)
    archived = set(read_captures(folder / "warc"))
    assert len(web.visits) == before  # nobody was asked
    ended = zygote.run(half.command(folder))

    assert refused.returncode == 2
    assert f"scrapy recover {folder} makes it again" in refused.stderr
    assert "The new frontier knows" in done.stdout
    assert ended.returncode == 0, ended.stderr[-3000:]
    for host in _HOSTS:
        later = [visit.path for visit in sorted(web.visits[before:]) if visit.host == host]
        known = {url for url in archived if url.startswith(web.url(host, ""))}
        assert len(known) > len(EXPECTED) // 4
        again = [path for path in later if web.url(host, path) in known and path not in ("/busy", "/robots.txt")]
        assert again == []
        assert len(set(later)) > len(EXPECTED) // 4
        of_host = {url for url in read_captures(folder / "warc") if url.startswith(web.url(host, ""))}
        assert of_host == {web.url(host, path) for path in (*EXPECTED, "/robots.txt")}
        seen = web.of(host, robots=True)
        assert min(after.start - visit.end for visit, after in pairwise(seen)) > PACE_SECONDS - _SERVERS_VIEW_SECONDS
    twice = [url for url, kinds in read_captures(folder / "warc").items() if sum(kinds.values()) > 1]
    assert set(twice) <= {web.url(host, path) for host in _HOSTS for path in ("/busy", "/robots.txt")}
    assert scrapy("verify", str(folder)).returncode == 0


def test_the_new_frontier_is_the_old_one(half: Half, tmp_path: Path) -> None:
    """Of a crawl that was stopped in good order: page by page, row by row, fact by fact. The old one is kept."""
    folder, old = tmp_path / "crawl", tmp_path / "old"
    half.run(folder, signal.SIGTERM)
    shutil.copytree(folder, old)

    done = recover(folder, "--frontier")

    assert pages(folder) == pages(old)
    assert rows(folder) == rows(old)
    assert {name for name in facts(old) if name != "warc"} == set(facts(folder))
    for name, value in facts(old).items():
        if name.startswith(("traps/", "strangers/", "domains/", "scope", "keys of", "render")):
            assert facts(folder)[name] == value, name
    assert orjson.loads(facts(folder)["totals"])[:3] == orjson.loads(facts(old)["totals"])[:3]
    kept = next(folder.glob("frontier.damaged-*"))
    assert f"The old frontier is kept in {kept}" in done.stdout
    assert damage_of(CrawlDir(folder), lambda count: None) == ""
    (kept / "CURRENT").stat()


@pytest.mark.parametrize("what", ["CURRENT", "MANIFEST", "table"])
def test_whatever_is_damaged(half: Half, tmp_path: Path, what: str) -> None:
    """It is found, said and mended, and every way gives the same frontier."""
    folder = half.copy(tmp_path / "crawl")
    frontier = folder / "frontier"
    RocksStore(frontier).close()  # what is in its log is written to tables
    damaged = {"CURRENT": "CURRENT", "MANIFEST": "MANIFEST-*", "table": "*.sst"}[what]
    for path in frontier.glob(damaged):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if what == "table" else b"")
    if what == "CURRENT":
        (frontier / "CURRENT").unlink()

    done = recover(folder)

    assert "it is made again from the archive" in done.stdout
    with FrontierView(folder / "frontier") as view:
        waiting = {row.url for host in view.hosts_with_work() for row in view.queue(host)}
    archived = set(read_captures(folder / "warc"))
    fetched = {url for url, (_, status, _, _) in pages(folder).items() if status}
    assert fetched == {url for url in archived if not url.endswith(("/robots.txt", "/busy"))} | (fetched & archived)
    assert waiting
    assert not waiting & fetched
    assert recover(folder).stdout.count("it is made again") == 0


@pytest.mark.parametrize("killed", range(3))
def test_killed_while_it_is_made(half: Half, tmp_path: Path, killed: int) -> None:
    """The old frontier stays until the new one is whole; then it is the new one. Another recovery starts over."""
    folder = half.copy(tmp_path / "crawl")
    recover(folder, "--frontier")
    before = rows(folder)
    command = [sys.executable, "-m", "scrapy", "recover", str(folder), "--frontier"]
    process = zygote.Process(command)
    seen = [
        folder / "frontier.recovering",
        folder / "frontier.recovering.lists" / "CURRENT",
        folder / "frontier.recovered",
    ]
    wait_until(lambda: seen[killed].exists() or process.poll() is not None, seconds=_SECONDS)
    process.send_signal(signal.SIGKILL)
    process.wait()

    put_in_place(CrawlDir(folder))  # as a start does
    assert damage_of(CrawlDir(folder), lambda count: None) == ""
    assert rows(folder) == before

    recover(folder, "--frontier")
    assert rows(folder) == before
    assert not any(
        (folder / name).exists() for name in ("frontier.recovering", "frontier.recovering.lists", "frontier.recovered")
    )


def test_a_new_frontier_comes_into_its_place_however_far_it_came(tmp_path: Path) -> None:
    """Whole beside the old one, or alone after that was moved aside; half made it counts for nothing."""
    for old in (True, False):
        folder = tmp_path / str(old)
        RocksStore(folder / "frontier.recovered").close()
        if old:
            (folder / "frontier").mkdir()
            (folder / "frontier" / "CURRENT").write_text("old")

        kept = put_in_place(CrawlDir(folder))

        assert damage_of(CrawlDir(folder), lambda count: None) == ""
        assert not (folder / "frontier.recovered").exists()
        assert (kept is not None and (kept / "CURRENT").read_text()) == ("old" if old else False)
    CrawlDir(tmp_path / "half").frontier_unfinished.mkdir(parents=True)
    assert put_in_place(CrawlDir(tmp_path / "half")) is None
    assert not (tmp_path / "half" / "frontier").exists()
