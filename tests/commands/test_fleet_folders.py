"""Every command on the folder of a fleet on one machine, compared with the same crawl as one process has it."""

from __future__ import annotations

import gzip
import importlib
import json
import os
import pkgutil
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scrapy.settings import Settings
from scrapy.utils.project import get_project_settings

from crawlerproject import commands
from crawlerproject.batch.file_workers import FileWorkers, Task
from crawlerproject.commands.add import _places
from crawlerproject.commands.looking_process import answer
from crawlerproject.errors import OperatorError
from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.rules.traps.template_yield import HostYields
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts, take_lock, write_facts
from crawlerproject.stores.crawl_folders import read_plan
from crawlerproject.stores.protocols import Changes, HostFact
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.commands.running import Done, scrapy
from tests.commands.split_crawls import PAUSED, WORKERS, Crawls, made
from tests.commands.status_schema import SCHEMA, mistakes
from tests.hostile.arena import arena
from tests.web import zygote


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawls]:
    """The crawl in its three forms."""
    with arena(tmp_path_factory.mktemp("fleet")) as web:
        yield made(web)


LISTS = ("pages", "extraPages")
"""Of pages, in a WACZ."""


def of_folder(folder: CrawlDir) -> Settings:
    """The project's settings, looking at a crawl."""
    settings = get_project_settings()
    settings.set("CRAWL_DIR", str(folder), "cmdline")
    return settings


def ran(folder: CrawlDir, *arguments: str, status: int = 0) -> Done:
    """A command on a folder."""
    done = scrapy(*arguments, "-s", f"CRAWL_DIR={folder}")
    assert done.returncode == status, done.stdout + done.stderr
    return done


def asked(folder: CrawlDir, *arguments: str) -> Any:
    """What a command answers with ``--json``."""
    return json.loads(ran(folder, *arguments, "--json").stdout)


def same(crawls: Crawls, *arguments: str) -> Any:
    """What a command answers with ``--json``, of all three crawls alike."""
    one, *others = [asked(folder, *arguments) for folder in dict.fromkeys(crawls[:3])]
    assert all(other == one for other in others)
    return one


def test_hosts_are_those_of_all_workers(crawls: Crawls) -> None:
    """In one table, sorted as that of one process."""
    rows = same(crawls, "hosts", "--sort", "host")
    assert [row["host"] for row in rows] == sorted(row["host"] for row in rows)
    assert {row["state"] for row in rows} == {"done", "paused"}


def test_why_asks_the_holder_of_the_host(crawls: Crawls) -> None:
    """Of pages that were fetched, refused, missing, or wait, and of hosts."""
    url = crawls.url
    assert same(crawls, "why", url("ant.test", "/3"))["state"] == "done"
    two = crawls._replace(again=crawls.fleet)  # the log is the same
    assert same(two, "why", url("bee.test", "/private"))["reason"] == "robots"
    assert same(two, "robots", url("bee.test", "/private"))["url"] == url("bee.test", "/private")
    assert same(two, "why", url("cat.test", "/gone"))["last_attempt_status"] == 404
    assert same(crawls, "why", url(PAUSED))["reason"] == "paused"
    assert same(crawls, "why", url("elsewhere.test"))["state"] == "never-seen"
    assert same(two, "why", url("dog.test", "/3"), "--via", url("dog.test", "/2"))["state"] == "done"
    assert same(crawls, "why", f"eel.test:{crawls.port}")["state"] == "done"


def test_status_is_one_screen_for_all(crawls: Crawls) -> None:
    """Sums as of one process, and each worker."""
    one, fleet, again = [asked(folder, "status") for folder in crawls[:3]]
    for said in (one, fleet):
        assert list(mistakes(said, SCHEMA)) == []
    assert list(mistakes({**one, "queued": "1", "new": 0}, SCHEMA)) != []
    workers = fleet.pop("workers")
    for said in (one, fleet, again):
        for name in ("folder", "said_seconds_ago"):
            said.pop(name)
    assert fleet == again == one
    assert [worker["name"] for worker in workers] == list(WORKERS)
    assert sum(worker["pages"] for worker in workers) == one["pages"]
    assert sum(worker["partitions"] for worker in workers) == 8
    assert "Worker    worker-2: 4 partitions, ended" in ran(crawls.fleet, "status").stdout
    assert "Worker" not in ran(crawls.again, "status").stdout


@pytest.fixture
def one_at_work(crawls: Crawls) -> Iterator[CrawlDir]:
    """The fleet as if its first worker ran, as this process, and the second had been killed."""
    first, second = (CrawlDir(crawls.fleet / name) for name in WORKERS)
    kept = {folder: read_facts(folder.status) for folder in (first, second)}
    running = kept[first] | {"ended": None, "pid": os.getpid()}
    killed = {name: value for name, value in kept[second].items() if name not in ("ended", "finish_reason")}
    write_facts(first.status, running)
    write_facts(second.status, killed)
    lock = take_lock(first)
    try:
        yield crawls.fleet
    finally:
        os.close(lock)
        for folder, status in kept.items():
            write_facts(folder.status, status)


def test_status_says_which_worker_is_down_or_paused(one_at_work: CrawlDir) -> None:
    """Beside one that runs, for people and for programs."""
    text = ran(one_at_work, "status").stdout
    assert "running with 1 of 2 workers" in text
    assert f"Worker    worker-1: 4 partitions, runs as process {os.getpid()}:" in text
    assert "Worker    worker-2: 4 partitions, not running; its last process did not end in good order" in text
    told = asked(one_at_work, "status")
    assert list(mistakes(told, SCHEMA)) == []
    assert told["running"]
    assert [worker["running"] for worker in told["workers"]] == [True, False]

    first = CrawlDir(one_at_work / WORKERS[0])
    status = read_facts(first.status)
    status["progress"]["paused"] = "the disk is full"
    write_facts(first.status, status)
    assert "Worker    worker-1: 4 partitions, paused: the disk is full" in ran(one_at_work, "status").stdout
    write_facts(first.status, status | {"time": 1.0, "progress": {**status["progress"], "paused": ""}})
    assert "silent as process" in ran(one_at_work, "status").stdout


def test_a_folder_without_any_frontier_is_said_in_a_sentence(crawls: Crawls, tmp_path: Path) -> None:
    """A plan alone is no crawl yet."""
    (tmp_path / "fleet.json").write_bytes(crawls.fleet.fleet_plan.read_bytes())
    assert "has a frontier yet" in ran(CrawlDir(tmp_path), "hosts", status=2).stderr


# --- what is archived ---------------------------------------------------------------------------


def said(crawls: Crawls, *arguments: str, status: int = 0) -> str:
    """What a command prints, of the crawl of one process and of the fleet alike but for their names."""
    one, other = (ran(folder, *arguments, status=status).stdout.replace(str(folder), "CRAWL") for folder in crawls[:2])
    assert other == one
    return one


def test_captures_are_found_in_all_folders(crawls: Crawls) -> None:
    """lookup, show and shell --archived see one archive."""
    for site in ("ant.test", "dog.test"):
        for path in ("/", "/robots.txt", "/5"):
            assert len(said(crawls, "lookup", crawls.url(site, path)).splitlines()) == 1
        assert f"{site[:3]}d0" in said(crawls, "show", crawls.url(site, "/3"))
    assert said(crawls, "lookup", crawls.url(PAUSED), status=1) == ""
    for folder in crawls[:2]:  # a process of its own each: a shell begins Scrapy's reactor and sets its loggers
        command = [sys.executable, "-m", "scrapy", "shell", "--archived", crawls.url("eel.test", "/2")]
        command += ["-c", "page.links[0].url[-1]", "-s", f"CRAWL_DIR={folder}"]
        shell = zygote.run(command)
        assert shell.returncode == 0, shell.stderr
        assert "3" in shell.stdout


def test_the_log_is_that_of_all_folders(crawls: Crawls) -> None:
    """audit, report and requests judge it as one, in the order of time."""
    audited = [json.loads(scrapy("audit", str(folder), "--json").stdout) for folder in crawls[:2]]
    assert audited[1] == audited[0]
    assert audited[0]["ip_seconds"] == 0.01
    assert audited[0]["hosts"] == 5
    assert same(crawls, "report")["pages"] == 40
    assert len(same(crawls, "requests", "ant.test")) == 9
    letter = said(crawls, "reply", "bee.test")
    assert "made 9 requests" in letter


def test_a_report_is_one_page(crawls: Crawls, tmp_path: Path) -> None:
    """The same but for its title."""
    pages = []
    for folder in crawls[:2]:
        ran(folder, "report", str(tmp_path / "report.html"))
        pages.append(
            (tmp_path / "report.html").read_text().replace(str(folder), "CRAWL").replace(f"“{folder.name}”", "“CRAWL”")
        )
    assert pages[1] == pages[0]


def test_verify_compares_all_archives_with_all_frontiers(crawls: Crawls) -> None:
    """Where each page is archived, and who holds its host now, may differ."""
    told = said(crawls, "verify")
    assert "45 captures, 40 answered pages of the frontier: all is well" in told
    assert ran(crawls.again, "verify").stdout.replace(str(crawls.again), "CRAWL") == told


def test_a_wacz_has_all_of_it(crawls: Crawls, tmp_path: Path) -> None:
    """The same files, index and pages."""
    packed = []
    for number, folder in enumerate(crawls[:2]):
        target = tmp_path / f"{number}.wacz"
        ran(folder, "wacz", "-o", str(target))
        with zipfile.ZipFile(target) as archive:
            packed.append({name: archive.read(name) for name in archive.namelist() if "datapackage" not in name})
    lists = [[sorted(files.pop(f"pages/{name}.jsonl").splitlines()) for name in LISTS] for files in packed]
    assert lists[1] == lists[0]
    assert packed[1] == packed[0]
    assert len([name for name in packed[0] if name.startswith("archive/")]) > len(WORKERS) + 1


def test_process_rank_load_search_and_export_make_one_of_all(crawls: Crawls, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their results lie in the crawl's own folder."""
    monkeypatch.setattr(FileWorkers, "run", _in_this_process)
    for folder in crawls[:2]:
        ran(folder, "process", "--workers", "1")
        ran(folder, "rank")
        ran(folder, "load")
        ran(folder, "export", "--format", "quickwit")
        assert not any(CrawlDir(folder / worker).processed.exists() for worker in WORKERS)
    (one, links), (other, other_links) = ((_rows(folder, "pages"), _rows(folder, "links")) for folder in crawls[:2])
    assert (other, other_links) == (one, links)
    assert len(one) == 40
    ranks, others = (pq.read_table(folder.ranked_pages).to_pylist() for folder in crawls[:2])
    assert {row["url"]: row["pagerank"] for row in others} == pytest.approx(
        {row["url"]: row["pagerank"] for row in ranks}
    )
    found, same_found = (_hits(folder) for folder in crawls[:2])
    assert found == same_found == [crawls.url("cat.test", "/2")]
    documents, same_documents = (_exported(folder) for folder in crawls[:2])
    assert documents == same_documents
    assert len(documents) == 40


def _in_this_process(
    _: FileWorkers, tasks: Iterable[tuple[Path, Task]], done: Callable[[int], None]
) -> Iterator[tuple[Path, object]]:
    """A process for each file would take longer than all else here."""
    return ((file, task(done)) for file, task in tasks)


def _rows(folder: CrawlDir, kind: str) -> list[str]:
    files = sorted((folder.processed / kind).glob("*.parquet"))
    return sorted(str(row) for file in files for row in pq.read_table(file).to_pylist())


def _exported(folder: CrawlDir) -> list[bytes]:
    return sorted(
        line
        for body in folder.exports.glob("quickwit/*/*.ndjson.gz")
        for line in gzip.decompress(body.read_bytes()).splitlines()
    )


def _hits(folder: CrawlDir) -> list[str]:
    return [json.loads(line)["url"] for line in ran(folder, "search", "catc7", "--json").stdout.splitlines()]


@pytest.fixture
def copy(crawls: Crawls, tmp_path: Path) -> CrawlDir:
    """A fleet's folder that may be changed."""
    shutil.copytree(crawls.fleet, tmp_path / "fleet")
    return CrawlDir(tmp_path / "fleet")


def test_while_hosts_move_that_is_said(copy: CrawlDir) -> None:
    """No folder has all of them then; what is archived is there."""
    copy.fleet_moving.mkdir()
    for command in ("hosts", "status"):
        assert "are on their way to other workers" in ran(copy, command, status=2).stderr
    assert "There is no frontier to compare with" in ran(copy, "verify").stderr


def test_index_is_made_again_beside_each_file(crawls: Crawls, copy: CrawlDir) -> None:
    """As it was; and not while a worker runs."""
    before = {path: path.read_bytes() for path in copy.glob("**/*.cdxj")}
    for path in (*before, *copy.glob("**/*.parquet")):
        path.unlink()
    assert "indexed in 3 folders of" in ran(copy, "index").stdout
    assert {path: path.read_bytes() for path in copy.glob("**/*.cdxj")} == before
    assert "all is well" in ran(copy, "verify").stdout
    lock = take_lock(CrawlDir(copy / WORKERS[1]))
    assert "in use by a running crawl" in ran(copy, "index", status=2).stderr
    os.close(lock)


def test_recover_mends_every_folder_and_asks_the_holder_again(crawls: Crawls, copy: CrawlDir) -> None:
    """A WARC that is gone, of whichever folder: its pages wait with those who hold their hosts now."""
    gone = CrawlDir(copy / WORKERS[0]).closed_warcs()[0]
    urls = [row["url"] for row in map(json.loads, _lines_of(copy)) if row["warc"] == gone.name]
    for path in copy.glob(f"**/{gone.name.removesuffix('.warc.gz')}.*"):
        path.unlink()
    assert "wait in the frontier again" in ran(copy, "recover", str(copy)).stdout
    pages = [url for url in urls if not url.endswith("/robots.txt")]
    assert pages
    assert {asked(copy, "why", url)["state"] for url in pages} == {"waiting"}
    assert "all is well" in ran(copy, "verify").stdout


def test_recover_makes_a_lost_frontier_again_as_one(crawls: Crawls, copy: CrawlDir) -> None:
    """From all archives and logs; the next fleet divides it again, and what workers had is kept aside."""
    shutil.rmtree(CrawlDir(copy / WORKERS[1]).frontier)
    done = ran(copy, "recover", str(copy))
    assert "is made again from the archive" in done.stdout
    assert not any(CrawlDir(copy / worker).has_frontier() for worker in WORKERS)
    assert list((copy / WORKERS[0]).glob("frontier.damaged-*"))
    rows = {row["host"]: (row["queued"], row["done"]) for row in asked(copy, "hosts")}
    assert rows == {row["host"]: (row["queued"], row["done"]) for row in asked(crawls.fleet, "hosts")}
    assert "all is well" in ran(copy, "verify").stdout


def test_a_workers_missing_folder_is_said_and_its_pages_wait_again(crawls: Crawls, copy: CrawlDir) -> None:
    """Nothing begins beside it, also where its disk is not mounted; recover makes the frontier again without it."""
    lost = copy / WORKERS[1]
    shutil.rmtree(lost)
    for is_empty in (False, True):
        if is_empty:
            lost.mkdir()
        assert f"{lost} is missing" in ran(copy, "verify", status=1).stderr
        with pytest.raises(OperatorError, match="may not be mounted"):
            move(copy, WORKERS, print)
        for command in (("state", "backup", str(copy.parent / "backup")), ("commoncrawl", str(copy))):
            assert f"{lost} is missing" in ran(copy, *command, status=2).stderr
        assert lost.exists() == is_empty
    assert f"{lost} is missing: it is made again" in ran(copy, "recover", str(copy)).stdout
    with FrontierView(copy.frontier) as view:
        waiting = {row.url for host in view.hosts_with_work() for row in view.queue(host)}
        assert waiting
        assert not waiting & {record.url for _, record in view.pages()}
    assert "all is well" in ran(copy, "verify").stdout
    assert move(copy, WORKERS, print).workers == WORKERS


def _lines_of(crawl: CrawlDir) -> list[str]:
    return [line for path in crawl.glob("**/requests-*.jsonl") for line in path.read_text().splitlines()]


# --- orders, and the rest -----------------------------------------------------------------------


def test_orders_lie_where_all_workers_look(crawls: Crawls, copy: CrawlDir) -> None:
    """Pauses and seeds in the crawl's own folder; a crawl that does not run reads them at its next start."""
    assert asked(copy, "pause", "ant.test", "--why", "asked")["hosts"].keys() == {"ant.test", PAUSED}
    assert asked(copy, "status")["paused_hosts"].keys() == {"ant.test", PAUSED}
    assert asked(copy, "resume", "--all")["hosts"] == {}
    seed = crawls.url("new.test")
    assert asked(copy, "add", seed) == {"added": 1, "refused": {}, "running": False, "taken_in": False}
    (spooled,) = copy.control.glob("add-*.txt")
    assert spooled.read_text() == f"{seed}\n"


def test_seeds_are_taken_in_when_every_worker_has_queued_them(crawls: Crawls, copy: CrawlDir) -> None:
    """Each worker gets a copy; the last one that goes says that all is done."""
    view = CrawlView(of_folder(copy))
    assert _places(view) == [copy, *(copy / worker for worker in WORKERS)]


def test_pause_waits_for_every_worker_that_runs(one_at_work: CrawlDir) -> None:
    """The one that was killed is not waited for."""
    first = CrawlDir(one_at_work / WORKERS[0])
    write_facts(first.status, read_facts(first.status) | {"orders_read": 1 << 63})
    told = asked(one_at_work, "pause", "bee.test")
    assert (told["running"], told["seconds"] is not None) == (True, True)
    assert asked(one_at_work, "resume", "bee.test")["hosts"].keys() == {PAUSED}


def test_never_knows_every_worker_that_runs(one_at_work: CrawlDir, tmp_path: Path) -> None:
    """Each says which lists it has read."""
    first = CrawlDir(one_at_work / WORKERS[0])
    path = tmp_path / "never.txt"
    write_facts(first.status, read_facts(first.status) | {"nevercrawl_lists": {str(path): 1 << 63}})
    listed = ("-s", f"NEVERCRAWL_USER_FILE={path}")
    told = json.loads(ran(one_at_work, "never", "out.test", "--why", "asked", "--json", *listed).stdout)
    taken = {Path(crawl["folder"]).name: crawl["took_it_up"] for crawl in told["crawls"]}
    assert taken[WORKERS[0]]
    assert WORKERS[1] not in taken


def test_traps_are_those_of_all_workers(crawls: Crawls, copy: CrawlDir) -> None:
    """Each worker's own, in one list."""
    plan = read_plan(copy)
    assert plan is not None
    for site in ("ant.test", "bee.test", "eel.test"):
        with closing(RocksStore(CrawlDir(copy / plan.holder(site)).frontier)) as store:
            yields = HostYields()
            yields.shapes, yields.example = 1, f"http://{site}/a/a/a"
            store.apply(Changes(facts=[(f"{HostFact.TRAPS}{site}", yields.pack())]))
    lines = [json.loads(line) for line in ran(copy, "traps", "--json").stdout.splitlines()]
    assert [line["host"] for line in lines] == ["ant.test", "bee.test", "eel.test"]
    assert said(crawls, "traps") == "No traps so far.\n"


def test_forecasts_and_plans_are_of_all_pages(crawls: Crawls, tmp_path: Path) -> None:
    """What is known of pages, whoever holds their hosts."""
    assert same(crawls, "forecast", "--recrawl", "--budget", "10")["pages"] == 30
    plans = []
    for folder in crawls[:3]:
        out = tmp_path / "plan.jsonl.gz"
        ran(folder, "plan", str(out), "--known", str(folder), "--random", "1")
        lines = map(json.loads, gzip.decompress(out.read_bytes()).splitlines())
        plans.append(sorted((line["domain"], sorted(line["urls"])) for line in lines))
    assert plans[1:] == plans[:1] * 2
    assert sum(len(urls) for _, urls in plans[0]) == 30


def test_what_others_have_crawled_is_known_to_the_holders(crawls: Crawls, copy: CrawlDir) -> None:
    """Each page to the worker that holds its host, once."""
    source = tmp_index(copy.parent / "index.cdxj", "one.test", "two.test", "three.test")
    assert "3 pages are newly known" in ran(copy, "commoncrawl", str(source)).stdout
    assert "0 pages are newly known, 3 were known before" in ran(copy, "commoncrawl", str(source)).stdout
    for site in ("one.test", "two.test", "three.test"):
        assert asked(copy, "why", f"http://{site}/")["state"] == "done"
    lock = take_lock(CrawlDir(copy / WORKERS[1]))
    assert "in use by a running crawl" in ran(copy, "commoncrawl", str(source), status=2).stderr
    os.close(lock)


def tmp_index(path: Path, *sites: str) -> Path:
    """An index with a page of each site."""
    path.write_text(
        "".join(
            f'test,{site})/ 20261101000000 {{"url": "http://{site}/", "status": "200", "digest": "{"A" * 32}",'
            ' "filename": "a.warc.gz", "offset": "0", "length": "1"}\n'
            for site in sites
        )
    )
    return path


def test_the_page_of_a_worker_answers_for_the_whole_crawl(crawls: Crawls) -> None:
    """What ``WATCH_PORT`` asks another process, by the crawl's folder."""
    settings = of_folder(crawls.fleet)
    for site in ("ant.test", "dog.test"):
        told = answer(settings, "host", f"{site}:{crawls.port}")
        assert len(told["requests"]) == 9
        assert len(told["robots"]) == 1
        assert told["answer"]["state"] == "done"


def test_each_worker_uploads_below_its_name(crawls: Crawls, tmp_path: Path) -> None:
    """Both archives are there, apart."""
    copy, far = CrawlDir(shutil.copytree(crawls.fleet, tmp_path / "crawl", symlinks=True)), tmp_path / "far"
    done = ran(copy, "upload", "-s", f"ARCHIVE_URL=file://{far}")
    assert "files sent" in done.stdout
    for worker in WORKERS:
        sent = sorted(path.name for path in (far / worker / "warc").iterdir())
        assert sent == [path.name for path in CrawlDir(copy / worker).closed_warcs()]


@pytest.mark.parametrize("named", ["", WORKERS[0]])
def test_withdraw_takes_all_folders(crawls: Crawls, copy: CrawlDir, named: str, tmp_path: Path) -> None:
    """Also where the folder of one worker is named: one list, and the captures of every folder are erased."""
    never = ("-s", f"NEVERCRAWL_FILE={tmp_path}/never.txt", "-s", "NEVERCRAWL_USER_FILE=")
    url, kept = crawls.url("ant.test"), crawls.url("bee.test")
    ran(copy, "lookup", url)
    before = sum(path.read_bytes().count(b"test,ant") for path in copy.rglob("*.cdxj"))
    assert before > 1

    done = ran(CrawlDir(copy / named), "withdraw", "ant.test", "--why", "their webmaster", "--erase", *never)

    assert " erased" in done.stdout
    assert [path.parent for path in copy.rglob("withdrawn.txt")] == [copy]
    assert sum(path.read_bytes().count(b"test,ant") for path in copy.rglob("*.cdxj")) == 0
    ran(copy, "lookup", url, status=1)
    ran(copy, "lookup", kept)
    assert "tombstones" in ran(copy, "verify", str(copy)).stderr


# --- no command is forgotten --------------------------------------------------------------------

COMPARED = {
    "add", "audit", "commoncrawl", "export", "forecast", "hosts", "index", "load", "lookup", "never", "pause", "plan",
    "process", "rank", "recover", "reply", "report", "requests", "resume", "robots", "search", "shell", "show",
    "status", "traps", "upload", "verify", "wacz", "why", "withdraw",
}  # fmt: skip
"""Commands that this file runs on a fleet's folder."""
ELSEWHERE = {
    "botpage": "the settings alone",
    "doctor": "the settings alone",
    "runspider": "a spider's file, whose crawl is one process",
    "samples": "the package alone",
    "consent": "tests/crawls/test_consent.py",
    "crawl": "tests/fleet/repartition, tests/crawls/fleet",
    "desk": "tests/desk",
    "fetch": "one URL, no folder",
    "fleet": "tests/crawls/fleet",
    "identity": "the settings alone",
    "parse": "one URL, no folder",
    "reparse": "tests/commands/test_reparse.py",
    "replay": "tests/commands/test_replay.py",
    "state": "tests/commands/test_state.py",
    "stop": "tests/crawls/test_pushes.py, tests/crawls/operator/test_orders.py",
    "verify-request": "one pasted request, no folder",
    "view": "one URL, no folder",
    "withdraw": "tests/commands/test_withdraw.py",
}
"""Others, and why or where."""


def test_no_command_is_forgotten() -> None:
    """Each of ours is run on a fleet's folder here, or has a reason not to be."""
    ours = {module.name for module in pkgutil.iter_modules(commands.__path__) if not _helps(module.name)}
    assert ours == COMPARED | ELSEWHERE.keys()
    text = Path(__file__).read_text().partition("# --- no command is forgotten")[0]
    assert [name for name in sorted(COMPARED) if f'"{name}"' not in text] == []


def _helps(name: str) -> bool:
    """Whether a module of the commands' room is none itself."""
    return not hasattr(importlib.import_module(f"{commands.__name__}.{name}"), "Command")
