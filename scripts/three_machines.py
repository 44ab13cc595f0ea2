"""``python scripts/three_machines.py``: the set-up of docs/runbook.md on one machine, for trial.

Three scrapyds stand for three machines, each with a folder of its own, around one Redis; the synthetic web that ships
with the project is crawled. Two machines begin, the third is added, the first is drained, the second is lost for good,
and what it had archived is recovered. At the end ``scrapy audit`` judges the logs of all, and its exit status is ours.

``--folder`` (default: crawls/three-machines, made anew) keeps everything, each machine's log as well. ``--egg`` is one
that was built of this checkout before.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("first", "second", "third")
PROJECT = {"project": "crawlerproject"}
# A busy machine starts a scrapyd in ten seconds, and builds the egg in as many.
DEADLINE_SECONDS = 120.0
POLL_SECONDS = 0.5
# Pages of a worker that is surely at work.
PAGES_BEFORE_NEXT = 3
# Until the last machine is lost: the largest hosts have twenty pages, so that they last for two hundred seconds.
SLOW_PACE = "*.test delay_seconds=10\n"
SCRAPYD = """[scrapyd]
bind_address = 127.0.0.1
http_port = {port}
eggs_dir = eggs
logs_dir = logs
dbs_dir = dbs
poll_interval = 0.5
"""
CRAWL = {
    "CRAWLER_CONTACT": "you@example.org",
    "PACE_PRESET": "mirror",
    "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
    "RENDER": "never",
    # Some of its hosts fail on purpose: with longer waits the end would be theirs.
    "FETCH_TIMEOUT_SECONDS": "3",
    "FETCH_CONNECT_TIMEOUT_SECONDS": "1",
    "BACKOFF_START_SECONDS": "1",
    "BACKOFF_MAX_SECONDS": "2",
    "HOST_MAX_FAILURES": "3",
    "FRONTIER_MAX_REST_SECONDS": "5",
    "SCOPE_MAX_DEPTH": "8",
    # A machine that is lost has its partitions taken over after so long: in earnest a minute, the default.
    "FLEET_LEASE_SECONDS": "6",
    "FLEET_PARTITIONS": "6",
    "COMMIT_SECONDS": "0.5",
    "NEVERCRAWL_RELOAD_SECONDS": "1",
}

_open = build_opener(ProxyHandler({})).open  # never through a proxy: everything is on this machine


def main(arguments: Sequence[str]) -> int:
    """Run the drill; the exit status is the audit's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "crawls" / "three-machines")
    parser.add_argument("--redis", default="", help="a redis-server or valkey-server (default: the one on the path)")
    parser.add_argument("--egg", type=Path)
    options = parser.parse_args(arguments)
    folder = options.folder.absolute()
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(redis_on(folder / "redis", options.redis))
        web = stack.enter_context(synthetic_web(folder / "web"))
        machines = [stack.enter_context(machine_in(folder, name)) for name in NAMES]
        egg = options.egg.read_bytes() if options.egg else built_egg(folder)
        return drill(Crawl(folder, redis, web), machines, egg)


class Crawl:
    """One crawl of all machines: the settings of every worker, and what Redis has of them."""

    def __init__(self, folder: Path, state_url: str, web: Path) -> None:
        self.folder = folder
        self.state_url = state_url
        self.seeds = web / "seeds.txt"
        self.pace = folder / "pace.txt"
        self.pace.write_text(SLOW_PACE)
        files = {
            "FETCH_HOSTS_FILE": web / "hosts",
            "NEVERCRAWL_FILE": web / "nevercrawl.txt",
            "HOST_PACE_FILE": self.pace,
        }
        self.settings = {**CRAWL, **{name: str(path) for name, path in files.items()}, "STATE_URL": state_url}

    def workers(self) -> dict[str, dict[str, Any]]:
        """What each worker that has joined and not left has said last, as ``scrapy status`` shows it."""
        sys.path.insert(0, str(ROOT))
        from crawlerproject.errors import OperatorError
        from crawlerproject.stores.redis.journal_view import crawl_in_redis

        try:
            with crawl_in_redis(self.state_url, "web") as view:
                return {worker.name: worker.info for worker in view.workers()}
        except OperatorError:  # no worker has begun it yet
            return {}

    def scrapy(self, *arguments: str) -> int:
        """A command of the operator's; its exit status."""
        command = [sys.executable, "-m", "scrapy", *arguments]
        say("$ scrapy " + " ".join(arguments))
        return subprocess.run(command, cwd=ROOT, check=False).returncode


class Machine:
    """One scrapyd, the folder that stands for its machine, and the job that it runs."""

    def __init__(self, name: str, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.folder = folder
        self.process = process
        self.job = ""
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, service: str, data: bytes | None = None, kind: str = "") -> dict[str, Any]:
        """Scrapyd's JSON interface; with ``data`` (of that content type) it does something. RuntimeError: refused."""
        url = f"{self._url}/{service}.json" + ("" if data is not None else f"?{urlencode(PROJECT)}")
        request = Request(url, data)
        if kind:
            request.add_header("Content-Type", kind)
        with _open(request, timeout=DEADLINE_SECONDS) as answer:
            said: dict[str, Any] = json.load(answer)
        if said["status"] != "ok":
            raise RuntimeError(f"{self.name}: {said}")
        return said

    def deploy(self, egg: bytes) -> None:
        """As ``make deploy TARGET=…`` does (addversion.json)."""
        mark = "three-machines"
        parts = [
            f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in {**PROJECT, "version": "1"}.items()
        ]
        head = f'--{mark}\r\nContent-Disposition: form-data; name="egg"; filename="egg"\r\n\r\n'.encode()
        body = b"".join(parts) + head + egg + f"\r\n--{mark}--\r\n".encode()
        self.ask("addversion", body, f"multipart/form-data; boundary={mark}")

    def schedule(self, crawl: Crawl) -> None:
        """A worker of the crawl, by the machine's name."""
        own = {"CRAWL_DIR": str(self.folder / "crawl"), "FLEET_WORKER": self.name}
        settings = [("setting", f"{name}={value}") for name, value in {**crawl.settings, **own}.items()]
        fields = [*PROJECT.items(), ("spider", "web"), ("seeds", str(crawl.seeds)), ("scope", "any"), *settings]
        self.job = str(self.ask("schedule", urlencode(fields).encode())["jobid"])
        say(f"{self.name} joins (job {self.job})")

    def running(self) -> dict[str, Any] | None:
        """The job as scrapyd lists it while it runs."""
        jobs = self.ask("listjobs")["running"]
        return next((job for job in jobs if job["id"] == self.job), None)

    def finished(self) -> bool:
        """Whether the job has ended."""
        return self.job in [job["id"] for job in self.ask("listjobs")["finished"]]

    def drain(self) -> None:
        """The worker finishes what is on its way, gives its partitions back, and ends."""
        say(f"{self.name} is drained")
        self.ask("cancel", urlencode({**PROJECT, "job": self.job}).encode())

    def lose(self) -> None:
        """The machine is gone, its worker and its scrapyd with it."""
        say(f"{self.name} is lost")
        job = self.running()
        if job is None:
            raise RuntimeError(f"the job of {self.name} does not run any more")
        os.kill(int(job["pid"]), signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def drill(crawl: Crawl, machines: Sequence[Machine], egg: bytes) -> int:
    """Add, drain and lose machines while they crawl; the audit's exit status."""
    first, second, third = machines
    for machine in machines:
        machine.deploy(egg)
    first.schedule(crawl)
    second.schedule(crawl)
    until(lambda: at_work(crawl, first, second), "both are at work")
    third.schedule(crawl)
    until(lambda: at_work(crawl, third), "the third is at work")
    crawl.scrapy("status", "-s", f"CRAWL_DIR={empty(crawl.folder)}", "-s", f"STATE_URL={crawl.state_url}")
    first.drain()
    until(first.finished, "the first has ended")
    second.lose()
    crawl.pace.write_text("")  # the rest at the usual pace
    until(third.finished, "the third has done the rest")
    lost = second.folder / "crawl" / second.name
    if crawl.scrapy("recover", str(lost), "-s", f"STATE_URL={crawl.state_url}"):
        return 1
    return crawl.scrapy("audit", str(together(crawl.folder, machines)))


def at_work(crawl: Crawl, *machines: Machine) -> bool:
    """Whether each of them holds partitions and has crawled some pages."""
    said = crawl.workers()
    own = [said.get(machine.name, {}) for machine in machines]
    return all(info.get("partitions") and info.get("pages", 0) >= PAGES_BEFORE_NEXT for info in own)


def together(folder: Path, machines: Sequence[Machine]) -> Path:
    """The workers' folders side by side, as when they were copied onto one machine."""
    of_all = folder / "all"
    of_all.mkdir()
    for machine in machines:
        (of_all / machine.name).symlink_to(machine.folder / "crawl" / machine.name)
    return of_all


def empty(folder: Path) -> Path:
    """A folder of the operator's, who has no worker's."""
    path = folder / "operator"
    path.mkdir(exist_ok=True)
    return path


def built_egg(folder: Path) -> bytes:
    """What ``make deploy`` hands over, built in a copy of the project."""
    copy = folder / "project"
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "crawlerproject", *_BUILT_FROM],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in names:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    egg = folder / "project.egg"
    deploy = Path(sys.executable).parent / "scrapyd-deploy"
    subprocess.run(
        [deploy, "--build-egg", egg], cwd=copy, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return egg.read_bytes()


_BUILT_FROM = ("setup.py", "pyproject.toml", "README.md", "LICENSE", "scrapy.cfg")


# --- processes --------------------------------------------------------------------------------------


@contextlib.contextmanager
def redis_on(folder: Path, program: str) -> Iterator[str]:
    """A server on a free port; what STATE_URL is to be."""
    found = program or shutil.which("redis-server") or shutil.which("valkey-server")
    if not found:
        sys.exit("There is no redis-server on the path; on Debian: sudo apt install redis-server.")
    port = free_port()
    options = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder), "save": "", "appendonly": "yes"}
    with started([found, *(word for name, value in options.items() for word in (f"--{name}", value))], folder):
        until(lambda: listens(port), "Redis listens")
        yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def synthetic_web(folder: Path) -> Iterator[Path]:
    """The web that is crawled; its folder."""
    command = [sys.executable, "-m", "tests.web", "--folder", str(folder)]
    with started(command, folder, cwd=ROOT):
        until((folder / "ready").exists, "the synthetic web listens")
        yield folder


@contextlib.contextmanager
def machine_in(folder: Path, name: str) -> Iterator[Machine]:
    """A scrapyd in a folder of its own."""
    own, port = folder / name, free_port()
    own.mkdir()
    (own / "scrapyd.conf").write_text(SCRAPYD.format(port=port))
    with started([sys.executable, "-m", "scrapyd"], own, cwd=own) as process:
        until(lambda: listens(port), f"the scrapyd of {name} listens")
        yield Machine(name, own, port, process)


@contextlib.contextmanager
def started(command: Sequence[str], folder: Path, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process with its output in ``folder``, ended on leaving. A Ctrl-C on the terminal comes to us alone."""
    folder.mkdir(exist_ok=True)
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def until(done: Callable[[], bool], what: str) -> None:
    """Wait for it; RuntimeError when it does not come."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {DEADLINE_SECONDS:.0f} s")
        time.sleep(POLL_SECONDS)
    say(what)


def listens(port: int) -> bool:
    """Whether a server takes connections there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def free_port() -> int:
    """One that no server has now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
