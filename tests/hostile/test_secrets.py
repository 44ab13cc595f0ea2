"""Others on the same machine: what they may read of a crawl, and where they may lead it."""

from __future__ import annotations

import fcntl
import os
import random
import re
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from scrapy.utils.project import get_project_settings

from crawlerproject.batch.plans import write_plan
from crawlerproject.commands.audit import _logs
from crawlerproject.config.crawl_file import CrawlFile, read_crawl_file, write_crawl_file
from crawlerproject.errors import OperatorError
from crawlerproject.inspection.crawl_view import CrawlView
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.wacz_file import Packing, write_wacz
from crawlerproject.stores.atomic_files import replace_file, write_whole
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts, refuse_links_out, take_lock, write_facts
from crawlerproject.stores.uploads.upload_process import upload_lock
from tests.commands.running import archive, crawl, scrapy
from tests.hostile.arena import Asked, arena, page
from tests.hostile.ledger import pays
from tests.web.ports import free_port
from tests.web.running import IDENTITY, PROJECT

SECRET = "hunter2"
NOBODY = 65534
OTHERS = stat.S_IRWXG | stat.S_IRWXO


def mode(path: Path) -> int:
    """Permission bits."""
    return stat.S_IMODE(path.stat().st_mode)


def test_what_a_crawl_leaves_is_closed_and_holds_no_password(tmp_path: Path) -> None:
    """Proxies of the browser and of the environment, seeds with passwords: in no line and in no file but crawl.toml,
    which must give them back at the next start.

    A folder of an earlier version is closed at the start; the archive is as open as the umask makes it.
    """
    folder = tmp_path / "crawl"
    (folder / "frontier").mkdir(parents=True)
    (folder / "frontier").chmod(0o755)
    for name in ("run.json", "status.json"):
        (folder / name).write_text("{}")
        (folder / name).chmod(0o644)
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.5 a.test\n")
    proxy = f"http://me:{SECRET}@127.0.0.1:{free_port()}"
    settings = {
        **IDENTITY, "CRAWL_DIR": str(folder), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8", "FRONTIER_MAX_REST_SECONDS": "0",
        "RENDER": "never", "RENDER_PROXIES": f"{proxy},{proxy}", "NEVERCRAWL_FILE": "", "HOST_MAX_FAILURES": "1",
        "PACE_PRESET": "mirror", "BACKOFF_START_SECONDS": "60", "FETCH_HOSTS_FILE": str(hosts),
    }  # fmt: skip
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    seeds = f"seeds=http://me:{SECRET}@a.test/,http://me:{SECRET}@[nonsense/"

    done = subprocess.run(
        [sys.executable, "-m", "scrapy", "crawl", "web", "-a", seeds, *options, "--loglevel=DEBUG"],
        cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "http_proxy": proxy, "no_proxy": ""}, umask=0o022,
    )  # fmt: skip

    assert done.returncode == 69, done.stderr  # nothing was fetched
    assert "proxy-failed" in "".join(path.read_text() for path in (folder / "log").glob("*.jsonl"))
    assert SECRET not in done.stdout + done.stderr
    holding = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    leaked = sum(path.name != "crawl.toml" for path in holding)
    pays("passwords in proxies and seeds", "the operator", leaked, "files that hold one", at_most=0)
    assert read_facts(CrawlDir(folder).run)["settings"]["RENDER_PROXIES"] in (
        [re.sub(SECRET, "***", proxy)] * 2,
        re.sub(SECRET, "***", f"{proxy},{proxy}"),
    )
    assert mode(folder / "frontier") == 0o700
    assert [mode(folder / name) for name in ("run.json", "status.json", "crawl.toml")] == [0o600] * 3
    assert [mode(path) for path in (folder / "log").glob("*.jsonl")] == [0o644]


def test_a_new_folder_is_closed_and_its_archive_open(tmp_path: Path) -> None:
    """WARC and index are for everyone the umask lets in; a hub's secret stands in the frontier alone."""
    with arena(tmp_path) as web:
        seed = web.site("a.test", _front)
        done = web.crawl(seed)

    assert mode(done.folder / "frontier") == 0o700
    assert mode(CrawlDir(done.folder).run) == mode(CrawlDir(done.folder).status) == 0o600
    open_ones = [path for name in ("warc", "index") for path in (done.folder / name).rglob("*") if path.is_file()]
    assert len(open_ones) >= 3
    assert {mode(path) & 0o044 for path in open_ones} == {0o044}


def test_no_other_user_can_open_what_a_start_waits_for(tmp_path: Path) -> None:
    """``flock`` needs no more than to read: each lock is the owner's, and one that was open is closed at the start.

    The crawl's folder itself can be opened by everyone who may look into it: a lock of it stops nothing.
    """
    folder = CrawlDir(tmp_path / "crawl")
    folder.mkdir()
    folder.lock_file.touch()
    folder.lock_file.chmod(0o644)
    other = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with arena(tmp_path) as web:
        web.crawl(web.site("a.test", _front))
    os.close(other)

    with upload_lock(folder, wait=False):
        locks = [path for path in folder.rglob("*") if "lock" in path.name.lower() and path.is_file()]
    reachable = [
        path for path in locks if all(mode(folder / each) & 0o011 for each in path.relative_to(folder).parents)
    ]
    assert {folder.lock_file, folder.upload_lock, folder.crawl_file_lock} <= set(locks)
    assert {path.name: mode(path) for path in reachable if mode(path) & 0o066} == {}


def _front(asked: Asked) -> bytes | None:
    return page(text="only this") if asked.path == "/" else None


def test_the_frontier_of_a_command_is_closed_as_well(tmp_path: Path) -> None:
    """``commoncrawl`` makes one without a crawl."""
    source = archive(tmp_path)
    assert scrapy("index", str(source)).returncode == 0

    made = tmp_path / "new"
    done = scrapy("commoncrawl", str(source / "index"), "-s", f"CRAWL_DIR={made}")

    assert done.returncode == 0, done.stderr
    assert mode(made / "frontier") & OTHERS == 0


def test_what_was_left_open_is_closed_at_the_start(tmp_path: Path) -> None:
    """Everything that writes into a folder takes its lock first, and that closes it."""
    (tmp_path / "frontier").mkdir(mode=0o755)
    for name in ("run.json", "status.json", "crawl.toml", "worker.json"):
        (tmp_path / name).touch(0o644)

    os.close(take_lock(tmp_path))

    assert mode(tmp_path / "frontier") == 0o700
    assert {mode(path) for path in tmp_path.iterdir() if path.is_file() and path.name != "lock"} == {0o600}


# --- links ---------------------------------------------------------------------------------------


def _folder_out(crawl: Path, outside: Path) -> str:
    (crawl / "frontier").symlink_to(outside)
    return "frontier"


def _dangling(crawl: Path, outside: Path) -> str:
    (crawl / "lock").symlink_to(outside / "not-there")
    return "lock"


def _log_file(crawl: Path, outside: Path) -> str:
    (crawl / "log").mkdir()
    (crawl / "log" / "requests-2026-11-22.jsonl").symlink_to(outside / "kept")
    return "log/requests-2026-11-22.jsonl"


def _relative(crawl: Path, outside: Path) -> str:
    (crawl / "warc" / "deep").mkdir(parents=True)
    (crawl / "warc" / "deep" / "x").symlink_to(Path("..", "..", "..", "outside"))
    return "warc/deep/x"


def _by_another_link(crawl: Path, outside: Path) -> str:
    (crawl / "a").symlink_to("b")
    (crawl / "b").symlink_to(outside)
    return ""


def _twin(crawl: Path, outside: Path) -> str:
    twin = outside.with_name("crawl-2")  # begins like the folder
    twin.mkdir()
    (crawl / "index").symlink_to(twin)
    return "index"


LINKS = [_folder_out, _dangling, _log_file, _relative, _by_another_link, _twin]


@pytest.mark.parametrize("plant", LINKS, ids=lambda plant: plant.__name__.strip("_"))
def test_a_link_that_leads_out_is_refused(tmp_path: Path, plant: Callable[[Path, Path], str]) -> None:
    """One sentence with the link and where it leads, before anything is written; by every command that writes."""
    outside, folder = tmp_path / "outside", tmp_path / "crawl"
    outside.mkdir()
    (outside / "kept").write_text("as it was")
    folder.mkdir()
    link = plant(folder, outside)

    done = scrapy("crawl", "web", "-a", "seeds=http://a.test/", "-s", f"CRAWL_DIR={folder}",
                  "-s", "CRAWLER_CONTACT=you@example.org")  # fmt: skip
    imported = scrapy("commoncrawl", "x.cdxj", "-s", f"CRAWL_DIR={folder}")

    for ended in (done, imported):
        assert ended.returncode == 2
        assert f"{folder / link}".rstrip("/") in ended.stderr
        assert "is a link that leads out of the crawl's folder, to " in ended.stderr
        assert "Traceback" not in ended.stderr
    assert [(path.name, path.read_text()) for path in outside.iterdir()] == [("kept", "as it was")]


def test_links_that_stay_inside_and_a_folder_that_is_one(tmp_path: Path) -> None:
    """A crawl's folder may be a link to another disk, and a link in it may name what is in it."""
    real = tmp_path / "disk"
    crawl(real)
    (real / "newest").symlink_to(next((real / "warc").iterdir()))
    (real / "here").symlink_to(".")
    (tmp_path / "crawl").symlink_to(real)

    os.close(take_lock(tmp_path / "crawl"))


def test_a_workers_folder_may_not_lead_out_of_the_crawls(tmp_path: Path) -> None:
    """CRAWL_DIR/NAME is within CRAWL_DIR, which may be a link itself."""
    fleet, outside = tmp_path / "fleet", tmp_path / "outside"
    fleet.mkdir()
    outside.mkdir()
    (fleet / "w1").symlink_to(outside)
    (tmp_path / "link").symlink_to(fleet)
    (fleet / "w2").mkdir()

    refuse_links_out(tmp_path / "link" / "w2", tmp_path / "link")
    with pytest.raises(OperatorError, match="w1 is a link that leads out"):
        refuse_links_out(tmp_path / "link" / "w1", tmp_path / "link")


def _plan(path: Path) -> None:
    write_plan([parse("http://a.test/")], path, random.Random(1))


def _wacz(path: Path) -> None:
    folder = archive(path.parent)
    scrapy("index", str(folder))
    write_wacz(path, sorted((folder / "warc").iterdir()), Packing(1.7e9, lambda done: None, lambda warc: ()))
    assert zipfile.is_zipfile(path)


WRITERS: list[Callable[[Path], object]] = [
    lambda path: write_whole(path, b"new"),
    lambda path: replace_file(path, b"new"),
    _plan,
    _wacz,
]


@pytest.mark.parametrize("write", WRITERS, ids=["whole", "durable", "plan", "wacz"])
@pytest.mark.parametrize("kind", ["link", "dangling", "file"])
def test_what_was_planted_under_a_temporary_name_is_not_written_to(
    tmp_path: Path, write: Callable[[Path], object], kind: str
) -> None:
    """The name can be guessed, and /tmp is everybody's: a link there is removed, not followed."""
    victim, target = tmp_path / "victim", tmp_path / "out"
    planted = target.with_name("out.part")
    if kind == "file":
        planted.write_bytes(b"planted")
    else:
        planted.symlink_to(victim)
    if kind == "link":
        victim.write_bytes(b"as it was")

    write(target)

    assert target.is_file()
    assert not target.is_symlink()
    assert b"planted" not in target.read_bytes()
    assert not planted.exists()
    assert victim.exists() == (kind == "link")
    if kind == "link":
        assert victim.read_bytes() == b"as it was"


# --- who looks on --------------------------------------------------------------------------------


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that any user may look into; pytest's own are closed to others from their root on."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def as_another_user(act: Callable[[], object]) -> str:
    """What an operator's error says that another user meets; ``done`` when there is none."""
    if os.getuid():
        pytest.skip("only root can become another user")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:  # pragma: no cover
        os.setuid(NOBODY)
        try:
            act()
            said = "done"
        except OperatorError as error:
            said = str(error)
        except BaseException as error:
            said = repr(error)
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader, "rb") as said_there:
        return said_there.read().decode()


def test_another_user_reads_one_sentence(reachable: Path) -> None:
    """A folder that is closed to who asks is one sentence, not "not running"; nor is it begun anew."""
    folder = reachable / "crawl"
    crawl(folder)
    write_facts(CrawlDir(folder).run, {"settings": {}})
    write_crawl_file(CrawlDir(folder), CrawlFile("http://a.test/"))
    os.close(take_lock(folder))
    settings = get_project_settings()
    settings.set("CRAWL_DIR", str(folder), "cmdline")

    assert "is closed to this user" in as_another_user(lambda: CrawlView(settings))
    assert f"The crawl folder {folder} is closed to this user" in as_another_user(lambda: read_crawl_file(folder))


def test_another_user_may_judge_the_logs(reachable: Path) -> None:
    """They are open as the umask has it; what is closed beside them is passed by."""
    folder = CrawlDir(reachable / "crawl")
    for closed in (folder.frontier, folder.control, folder / "frontier.damaged-20260101T000000Z"):
        closed.mkdir(parents=True, mode=0o700)
    folder.log.mkdir()
    (folder.log / "requests-2026-01-01.jsonl").write_text("{}")

    assert as_another_user(lambda: list(_logs([str(folder)]))) == "done"


def test_who_looks_on_takes_the_password_from_the_settings(tmp_path: Path) -> None:
    """The folder knows the address without it; another crawl's address is the folder's all the same."""
    write_facts(CrawlDir(tmp_path).run, {"settings": {"STATE_URL": "redis://:***@a.test/0", "FLEET_CRAWL": "web"}})

    def seen(configured: str) -> str:
        settings = get_project_settings()
        settings.set("CRAWL_DIR", str(tmp_path), "cmdline")
        settings.set("STATE_URL", configured, "project")
        return str(CrawlView(settings).settings["STATE_URL"])

    assert seen(f"redis://:{SECRET}@a.test/0") == f"redis://:{SECRET}@a.test/0"
    assert seen("rocksdb:") == "redis://:***@a.test/0"
