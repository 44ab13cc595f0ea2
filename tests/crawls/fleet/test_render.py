"""Workers of both kinds of fleet have pages that scripts build rendered, each by its host's, with a real Chromium."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crawlerproject.stores.logs.request_log import read_log
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import PARTITIONS, workers
from tests.crawls.fleet.local_fleets import local_fleet, one_of_each
from tests.stores.redis_servers import redis_server
from tests.web import zygote
from tests.web.judge import Visit, read_captures, read_visits
from tests.web.running import RunningWeb, crawl_command, small_settings, synthetic_web

_SETTINGS = {
    "RENDER": "auto",
    "RENDER_SCREENSHOT": "False",
    # A page that ends by itself needs no more of these than its work takes: on a busy machine it has a minute for that.
    "RENDER_NAVIGATION_SECONDS": "60",
    "RENDER_TIMEOUT_SECONDS": "90",
    "RENDER_WAIT_SECONDS": "10",  # for a first page whose browser starts on a busy machine; it ends when all is there
    "FLEET_LEASE_SECONDS": "150",  # no render may outlive its lease
}
_HOSTS = 6  # with pages that scripts build; two of them are crawled
_PAGES = ("/0", "/1")  # of each of the two
_START_SECONDS = 60.0
_NO_BROWSER = "/bin/false"  # a program that ends at once


class Rendered(NamedTuple):
    """A finished crawl."""

    hosts: tuple[str, ...]
    port: int
    folder: Path
    folders: list[Path]  # of the workers
    said: str
    visits: list[Visit]

    def rows(self, folder: Path) -> list[dict[str, Any]]:
        """The lines of a worker's log that say what became of a render."""
        return [row for row in read_log(folder / "log") if row["rendered"]]


def in_redis(web: RunningWeb, folder: Path) -> tuple[list[Path], str]:
    """Two workers, which share the hosts as they come; their folders, and what they said."""
    with redis_server(folder / "redis") as server, workers(web, folder / "crawl", server.url, _SETTINGS) as fleet:
        fleet.start("w1", "w2")
        fleet.wait(200.0)
        at_work = [path.parent.parent for path in fleet.folder.glob("*/warc/*.warc.gz")]
        return sorted(set(at_work)), "".join(fleet.output(name) for name in ("w1", "w2"))


def without_a_server(web: RunningWeb, folder: Path) -> tuple[list[Path], str]:
    """As the operator starts them."""
    with local_fleet(web, folder / "crawl", 2, _SETTINGS) as fleet:
        assert fleet.wait(200.0) == 0, fleet.said()[-3000:]
        said = fleet.said() + "".join(fleet.output(name) for name in fleet.names)
        return [fleet.folder / name for name in fleet.names], said


_KINDS = {"redis": in_redis, "local": without_a_server}


@pytest.fixture(scope="module", params=_KINDS)
def rendered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rendered]:
    """The crawl that all tests here look at."""
    folder = tmp_path_factory.mktemp("rendered")
    hosts = one_of_each((f"app{number}.test" for number in range(_HOSTS)), PARTITIONS)
    with synthetic_web(folder / "web", "--profile", "many-apps", "--hosts", str(_HOSTS)) as web:
        seeds = [f"http://{host}:{web.port}{page}\n" for host in hosts for page in _PAGES]
        (web.folder / "seeds.txt").write_text("".join(seeds))
        folders, said = _KINDS[request.param](web, folder)
        visits = read_visits(web.folder / "server.jsonl")
        yield Rendered(hosts, web.port, folder / "crawl", folders, said, visits)


def test_every_page_is_rendered_once(rendered: Rendered) -> None:
    """The first of a worker's as well, which it meets before it was granted anything; by the worker of its host."""
    rows = [row for folder in rendered.folders for row in rendered.rows(folder)]
    counts = Counter((row["url"], row["reason"]) for row in rows)

    wanted = {f"http://{host}:{rendered.port}{page}" for host in rendered.hosts for page in _PAGES}
    assert counts == dict.fromkeys(((url, "rendered") for url in wanted), 1)
    for folder in rendered.folders:
        assert len({row["host"] for row in rendered.rows(folder)}) <= 2


def test_links_that_only_scripts_made_are_crawled(rendered: Rendered) -> None:
    """Each once; a page is not asked for again to be rendered, nor a script that another page has had."""
    built = {(host, f"/built{page}") for host in rendered.hosts for page in _PAGES}
    asked = Counter((visit.host, visit.path) for visit in rendered.visits)
    captures = read_captures(*(folder / "warc" for folder in rendered.folders))

    assert built < asked.keys()
    assert set(asked.values()) == {1}
    assert all(captures[f"http://{host}:{rendered.port}{path}"].total() == 1 for host, path in built)


def test_it_is_one_crawler_to_the_web(rendered: Rendered) -> None:
    """No host was asked twice at once, files for the browser included; one audit and one verification find nothing."""
    for host in rendered.hosts:
        visits = [visit for visit in rendered.visits if visit.host == host]
        assert [(one, two) for one, two in pairwise(visits) if two.start < one.end - 0.01] == []
    checked = [rendered.folder] if (rendered.folder / "fleet.json").exists() else rendered.folders
    for command in [["audit", str(rendered.folder)], *(["verify", str(folder)] for folder in checked)]:
        done = scrapy(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in rendered.said
    assert "guard_refused" not in rendered.said


def test_one_process_renders_what_a_fleet_has_left(tmp_path: Path) -> None:
    """A fleet without a browser fetched the pages: their answers lie in the folders of its workers."""
    hosts = one_of_each((f"app{number}.test" for number in range(_HOSTS)), PARTITIONS)
    with synthetic_web(tmp_path / "web", "--profile", "many-apps", "--hosts", str(_HOSTS)) as web:
        seeds = {f"http://{host}:{web.port}/0" for host in hosts}
        (web.folder / "seeds.txt").write_text("".join(f"{seed}\n" for seed in seeds))
        with local_fleet(web, tmp_path / "crawl", 2, {**_SETTINGS, "RENDER_BROWSER": _NO_BROWSER}) as fleet:
            assert fleet.wait(200.0) == 0, fleet.said()[-3000:]
        settings = {**small_settings(web), **_SETTINGS, "RENDER_BROWSER": ""}
        command = crawl_command(web.folder / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", settings)
        done = zygote.run(command)

    assert done.returncode == 0, done.stderr[-3000:]
    rows = [row for row in read_log(tmp_path / "crawl" / "log") if row["rendered"]]
    assert {(row["url"], row["reason"], row["error"]) for row in rows} == {(seed, "rendered", None) for seed in seeds}
