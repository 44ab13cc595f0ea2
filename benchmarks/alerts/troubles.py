"""What goes wrong, made from outside of the crawl: each trouble is a story in three parts.

A ``yield`` ends each part: the crawl's surroundings are ready and it may start; the trouble is there; it is over.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from benchmarks.alerts.crawl import WatchedCrawl
from benchmarks.alerts.web import Answers, name_server, names
from tests.crawls.fleet.local_fleets import command_line
from tests.stores.redis_servers import redis_server
from tests.stores.uploads.s3_servers import BUCKET, KEYS, Answer, Asked, Fault, error, proxied, s3_server
from tests.web.waiting import wait_until

Story = Generator[None, None, None]
Trouble = Callable[[WatchedCrawl], Story]

_MIB = 2**20
_LOOK_SECONDS = 0.1
_ANY = resource.RLIM_INFINITY
_SMALL_FILE_BYTES = 4096  # no commit and no page fits
_FILES_SHARE = 0.95  # of the limit; the alert has nine tenths
#: A file system of its own for a crawl: what the store keeps free for itself (100 MB) and as much again.
_FILLED_AT_A_TIME_BYTES = 400_000
_DISK_BYTES, _MIN_FREE_BYTES = 800 * _MIB, 200 * _MIB
_FULL_BYTES = 150 * _MIB  # left when it is full
_FILLING_BYTES = 540 * _MIB  # left when it begins to be filled slowly, by 4 MB a second, until the other alert's bound
_MEMORY_BYTES = 400 * _MIB  # a crawl of a few sites has some 130
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),  # the first version
    (Path("/sys/fs/cgroup"), "memory.max"),
)


def none(crawl: WatchedCrawl) -> Story:
    """The operator pauses a host, and lets it go on."""
    yield
    [host] = names(crawl.name, 1)
    crawl.ask("pause", host)
    yield
    crawl.ask("resume", host)
    yield


def sites(answers: Answers, *, from_the_start: bool = False) -> Trouble:
    """Sites answer so; ``from_the_start``: where what they answered before would be remembered."""

    def story(crawl: WatchedCrawl) -> Story:
        if from_the_start:
            crawl.web.troubled[crawl.name] = answers
        yield
        crawl.web.troubled[crawl.name] = answers
        yield
        del crawl.web.troubled[crawl.name]
        yield

    return story


def silent_names(crawl: WatchedCrawl) -> Story:
    """The name server is silent about every other name; about all of them, and the crawl would pause."""
    with name_server(crawl.web) as server:
        crawl.settings = {"FETCH_HOSTS_FILE": "", "FETCH_DNS_SERVERS": json.dumps([server])}
        crawl.web.troubled[crawl.name] = Answers()
        yield
        yield
        del crawl.web.troubled[crawl.name]
        yield


def wrong(crawl: WatchedCrawl) -> Story:
    """What runs within the crawl is wrong."""
    yield
    crawl.flag.touch()
    yield
    crawl.flag.unlink()
    yield


def stopped(crawl: WatchedCrawl) -> Story:
    """SIGSTOP."""
    yield
    os.kill(crawl.pid, signal.SIGSTOP)
    yield
    os.kill(crawl.pid, signal.SIGCONT)
    yield


def no_growth(crawl: WatchedCrawl) -> Story:
    """No file may grow: the kernel refuses writes as a full disk or a quota does."""
    yield
    resource.prlimit(crawl.pid, resource.RLIMIT_FSIZE, (_SMALL_FILE_BYTES, _ANY))
    yield
    resource.prlimit(crawl.pid, resource.RLIMIT_FSIZE, (_ANY, _ANY))
    yield


def few_files(crawl: WatchedCrawl) -> Story:
    """The limit of descriptors is just above what is open."""
    yield
    before = resource.prlimit(crawl.pid, resource.RLIMIT_NOFILE)
    files = len(os.listdir(f"/proc/{crawl.pid}/fd"))
    resource.prlimit(crawl.pid, resource.RLIMIT_NOFILE, (int(files / _FILES_SHARE), before[1]))
    yield
    resource.prlimit(crawl.pid, resource.RLIMIT_NOFILE, before)
    yield


@contextlib.contextmanager
def _disk(crawl: WatchedCrawl) -> Iterator[Path]:
    """A file system of its own for the crawl; the path of a file that may fill it."""
    crawl.folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(crawl.folder)], check=True)
    crawl.settings = {"DISK_MIN_FREE_BYTES": str(_MIN_FREE_BYTES)}
    try:
        yield crawl.folder / "filler"
    finally:
        crawl.kill()
        subprocess.run(["umount", "--lazy", str(crawl.folder)], check=True)


def _fill(filler: Path, left_bytes: int, most_bytes: float = math.inf) -> None:
    """Let it grow until so much is left, or by so much."""
    grown = 0
    with filler.open("ab") as stream:
        while grown < most_bytes and shutil.disk_usage(filler.parent).free > left_bytes:
            grown += stream.write(bytes(_FILLED_AT_A_TIME_BYTES))
            stream.flush()


def full_disk(crawl: WatchedCrawl) -> Story:
    """Another program's file takes the room."""
    with _disk(crawl) as filler:
        yield
        _fill(filler, _FULL_BYTES)
        yield
        filler.unlink()
        yield


def filling_disk(crawl: WatchedCrawl) -> Story:
    """Another program's file grows."""
    with _disk(crawl) as filler:
        yield
        _fill(filler, _FILLING_BYTES)
        with _again(lambda: _fill(filler, 2 * _MIN_FREE_BYTES, _FILLED_AT_A_TIME_BYTES)):
            yield
        filler.unlink()
        yield


def little_memory(crawl: WatchedCrawl) -> Story:
    """A control group of its own, as a container or a unit has it, and a spider that keeps what it should let go."""
    root, limit = next((root, limit) for root, limit in _CGROUPS if root.is_dir())
    group = root / f"crawl-alerts-{os.getpid()}"
    group.mkdir()
    try:
        (group / limit).write_text(str(_MEMORY_BYTES))
        yield
        (group / "cgroup.procs").write_text(str(crawl.pid))
        crawl.flag.write_text(str(_MEMORY_BYTES))
        yield
        crawl.flag.unlink()
        yield
    finally:
        crawl.kill()
        group.rmdir()


def dying_browser(crawl: WatchedCrawl) -> Story:
    """Chromium's processes of pages are killed as often as they start. One that cannot start at all is given up."""

    def kill() -> None:
        for pid in crawl.below():
            if any("--type=renderer" in part for part in command_line(pid)):
                _kill(pid, signal.SIGKILL)

    yield
    with _again(kill):
        yield
    yield


def dying_worker(crawl: WatchedCrawl) -> Story:
    """One that has not the metrics' port dies whenever it is started, as by a machine that is short of memory."""
    yield
    name = _other_worker(crawl)

    def kill() -> None:
        if pid := crawl.worker(name):
            _kill(pid, signal.SIGKILL)

    with _again(kill):
        yield
    yield


def stopped_worker(crawl: WatchedCrawl) -> Story:
    """The same with SIGSTOP."""
    yield
    pid = crawl.worker(_other_worker(crawl))
    os.kill(pid, signal.SIGSTOP)
    yield
    _kill(pid, signal.SIGCONT)
    yield


def stopped_redis(crawl: WatchedCrawl) -> Story:
    """The frontier's server takes connections and answers nothing."""
    with redis_server(crawl.place / "redis") as server:
        crawl.settings = {"STATE_URL": server.url}
        yield
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            server.process.send_signal(signal.SIGCONT)
        yield
        crawl.kill()


def emptied_redis(crawl: WatchedCrawl) -> Story:
    """The frontier's server loses all that it has; the crawl ends."""
    with redis_server(crawl.place / "redis") as server:
        crawl.settings = {"STATE_URL": server.url}
        yield
        with server.client() as client:
            client.flushall()
        yield
        assert crawl.process is not None
        crawl.process.wait()
        yield


def unowned_partitions(crawl: WatchedCrawl) -> Story:
    """A worker dies whenever it is started; what it held is free when its lease is over, which is long here."""
    with redis_server(crawl.place / "redis") as server:
        crawl.settings = {"STATE_URL": server.url}
        yield from dying_worker(crawl)
        crawl.kill()


class _Denied(Fault):
    """As a password that has ended."""

    def before(self, asked: Asked) -> Answer | Asked:
        return error(403, "AccessDenied")


class _Held(Fault):
    """No answer while it is so."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def before(self, asked: Asked) -> Answer | Asked:
        self.over.wait()
        return asked


def _to_s3(crawl: WatchedCrawl, endpoint: str) -> None:
    crawl.environment = {**KEYS, "AWS_ENDPOINT_URL": endpoint}
    crawl.settings = {"ARCHIVE_URL": f"s3://{BUCKET}/{crawl.name}", "WARC_MAX_BYTES": "4000", "HTTP_PROXY": ""}


def refusing_place(crawl: WatchedCrawl) -> Story:
    """S3 refuses all."""
    with proxied(s3_server().port) as proxy:
        _to_s3(crawl, proxy.url)
        yield
        proxy.fault = _Denied()
        yield
        proxy.fault = Fault()
        yield


def hanging_place(crawl: WatchedCrawl) -> Story:
    """S3 takes connections and answers nothing."""
    with proxied(s3_server().port) as proxy:
        _to_s3(crawl, proxy.url)
        yield
        held = proxy.fault = _Held()
        try:
            yield
        finally:
            held.over.set()
            proxy.fault = Fault()
        yield


def stopped_upload(crawl: WatchedCrawl) -> Story:
    """The process that sends is stopped with SIGSTOP while nothing waits."""
    _to_s3(crawl, s3_server().url)
    yield
    [pid] = [pid for pid in crawl.below() if "crawlerproject.stores.uploads.upload_process" in command_line(pid)]
    os.kill(pid, signal.SIGSTOP)
    yield
    _kill(pid, signal.SIGCONT)
    yield


def lost_there(crawl: WatchedCrawl) -> Story:
    """A file of the archive that is only there any more is removed there; ``scrapy upload --check`` finds out."""
    server = s3_server()
    _to_s3(crawl, server.url)
    crawl.settings["ARCHIVE_KEEP_LOCAL"] = "False"

    def only_there() -> str:
        here = {path.name for path in (crawl.folder / "warc").iterdir()}
        there: list[str] = server.files.find(f"{BUCKET}/{crawl.name}/warc")
        return next((name for name in there if Path(name).name not in here), "")

    yield
    name = wait_until(only_there, "a file that is only there", process=crawl.process)
    kept = server.files.cat_file(name)
    crawl.stop()
    server.files.rm_file(name)
    crawl.ask("upload", "--check")
    crawl.start()
    yield
    crawl.stop()
    server.files.pipe_file(name, kept)
    crawl.ask("upload", "--check")
    crawl.start()
    yield


def _other_worker(crawl: WatchedCrawl) -> str:
    return next(name for name in ("worker-1", "worker-2") if name != crawl.watching_worker())


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


@contextlib.contextmanager
def _again(what: Callable[[], None]) -> Iterator[None]:
    """It is done again and again in a thread, for the length of the block."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(_LOOK_SECONDS):
            what()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
