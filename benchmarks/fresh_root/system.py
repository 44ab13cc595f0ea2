"""A Debian with systemd as its PID 1 (systemd-nspawn), and how a crawl is set up and judged in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fresh_root.places import debian, run
from benchmarks.fresh_root.releases import packages, scrapyd_package, wheel_of
from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, PROJECT, RunningWeb, read_pages

LONGEST_SECONDS = 600.0
HOME = Path("var/lib/polite-crawler")
_STEP = 30  # requests of some 270, by which a crawl is seen to go on
_PROGRAM = "/opt/polite-crawler"
_WHEELS = "opt/wheels"
_CHECKOUT = "/root/checkout"


@dataclass
class System:
    """A booted one; ``leader`` is its PID 1 as it is called here."""

    root: Path
    leader: int
    faults: list[str] = field(default_factory=list)

    def __call__(self, *command: str, check: bool = True) -> str:
        """What a command there prints."""
        return self._run(*command, check=check).stdout.strip()

    def _run(self, *command: str, check: bool) -> subprocess.CompletedProcess[str]:
        enter = ("nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root")
        clean = ("env", "-C", "/", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
        return run(*enter, *clean, *command, check=check)

    def of(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self("systemctl", "show", "--value", "--property", name, unit)

    def crawler(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of ours, as the docs say to look on."""
        as_user = ("setpriv", "--reuid=crawler", "--regid=crawler", "--clear-groups", "env", "XDG_CONFIG_HOME=/etc")
        return self._run(*as_user, f"{_PROGRAM}/bin/polite-crawler", *command, check=False)

    def alive(self, name: str) -> str:
        """What ``status --alive`` says of a crawl."""
        return self.crawler("status", "--alive", "-s", f"CRAWL_DIR=/{HOME}/{name}").stdout.strip()

    def typed(self, *lines: str) -> None:
        """Lines of the docs, as root in a checkout; pip finds what this machine has brought."""
        offline = f"export PIP_NO_INDEX=1 PIP_FIND_LINKS=/{_WHEELS} PIP_DISABLE_PIP_VERSION_CHECK=1"
        self("sh", "-exc", "\n".join((offline, f"cd {_CHECKOUT}", *lines)))

    def wait(self, seen: Callable[[], object], what: str, unit: str) -> None:
        """Until it is seen; SystemExit with the journal when the time is over."""
        until = time.monotonic() + LONGEST_SECONDS
        while not seen():
            if time.monotonic() > until:
                said = self("journalctl", "--no-pager", "-n", "40", "-u", unit, check=False)
                raise SystemExit(f"Never {what}:\n{said}\n{self('systemctl', 'status', unit, check=False)}")
            time.sleep(0.2)

    def note(self, what: str, good: object, detail: object = "") -> None:
        """Something that was to be so."""
        print(f"  {'yes' if good else 'NO '}  {what}{f' ({detail})' if detail != '' else ''}", flush=True)
        self.faults += [] if good else [f"Not so: {what} {detail}"]


@contextmanager
def booted(root: Path) -> Iterator[System]:
    """The system in ``root`` with systemd as its PID 1, powered off when left."""
    apart = ("--register=no", "--keep-unit", "--link-journal=no", "--console=pipe")
    command = ["systemd-nspawn", "--quiet", "--boot", f"--directory={root}", *apart]
    log = root.with_name(f"{root.name}.console")
    with log.open("wb") as output:
        nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        children = Path(f"/proc/{nspawn.pid}/task/{nspawn.pid}/children")
        until = time.monotonic() + LONGEST_SECONDS
        while True:
            leaders = children.read_text().split() if nspawn.poll() is None else []
            if nspawn.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"The system does not boot:\n{log.read_text(errors='replace')[-3000:]}")
            if leaders:
                system = System(root, int(leaders[-1]))
                state = system("systemctl", "is-system-running", "--wait", check=False)
                if state in ("running", "degraded"):
                    break
            time.sleep(0.5)
        print(f"booted: {state}, {system('systemctl', '--version').splitlines()[0]}", flush=True)
        yield system
    finally:
        nspawn.terminate()  # an orderly power-off
        try:
            nspawn.wait(60)
        except subprocess.TimeoutExpired:
            nspawn.kill()
            nspawn.wait()


def prepare(root: Path, pins: Path, work: Path) -> None:
    """A Debian with systemd and a browser, the crawler in /opt, and of a checkout what the docs' lines name."""
    debian(root, "systemd-sysv", "dbus", "ca-certificates")
    if not (root / "usr/bin/chromium-headless-shell").exists():
        quiet = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "install", "--no-install-recommends")
        run("chroot", str(root), *quiet, "-y", "chromium-headless-shell", "libatomic1")
    shutil.rmtree(root / "opt", ignore_errors=True)
    shutil.rmtree(root / HOME, ignore_errors=True)
    wheels = root / _WHEELS
    wheels.mkdir(parents=True)
    packages(pins)
    ours = (*pins.glob("*.whl"), wheel_of("HEAD", work / "wheel"))
    for wheel in (*ours, scrapyd_package(work / "scrapyd")):
        shutil.copy(wheel, wheels)
    run("chroot", str(root), "python3", "-m", "venv", _PROGRAM)
    pip = (f"{_PROGRAM}/bin/python", "-m", "pip", "-q", "install", "--no-index", "--no-deps")
    run("chroot", str(root), *pip, *(f"/{_WHEELS}/{wheel.name}" for wheel in ours))
    checkout = root / _CHECKOUT.lstrip("/")
    shutil.rmtree(checkout, ignore_errors=True)
    for name in ("deploy", "samples"):
        shutil.copytree(PROJECT / name, checkout / name)
    shutil.copy(PROJECT / "requirements.txt", checkout)


def documented(heading: str = "## systemd") -> list[str]:
    """The lines with which docs/install.md sets units up: the first block below a heading."""
    chapter = (PROJECT / "docs" / "install.md").read_text().partition(f"\n{heading}\n")[2]
    block = re.search(r"```\n(.*?)```", chapter, flags=re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def give_crawl(system: System, name: str, web: RunningWeb, settings: Mapping[str, str]) -> None:
    """Its crawl.toml, as an operator edits it."""
    folder = system.root / HOME / name
    system("install", "-d", "-o", "crawler", "-g", "crawler", f"/{HOME}/{name}")
    for file in ("hosts", "nevercrawl.txt"):
        shutil.copy(web.folder / file, system.root / "etc/polite-crawler" / f"{name}.{file}")
    files = {"FETCH_HOSTS_FILE": f"/etc/polite-crawler/{name}.hosts",
             "NEVERCRAWL_FILE": f"/etc/polite-crawler/{name}.nevercrawl.txt"}  # fmt: skip
    given = {**IDENTITY, **settings, **files, "LOG_LINES": "json"}
    lines = [f"seeds = {json.dumps((web.folder / 'seeds.txt').read_text().split())}", 'scope = "any"', "[settings]"]
    lines += [f"{key} = {_toml(value)}" for key, value in given.items()] + ['FETCH_ALLOW_NETWORKS = ["127.0.0.0/8"]']
    (folder / "crawl.toml").write_text("\n".join(lines) + "\n")
    system("chown", "crawler:crawler", f"/{HOME}/{name}/crawl.toml")


def _toml(text: str) -> str:
    bare = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) or text in ("True", "False")
    return text.lower() if bare else json.dumps(text)


def drop_in(system: System, unit: str, text: str) -> None:
    """What ``systemctl edit`` writes."""
    folder = system.root / "etc/systemd/system" / f"{unit}.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "here.conf").write_text(text)
    system("systemctl", "daemon-reload")


def main_pid(system: System, unit: str) -> int:
    """As it is called here. SystemExit when it has none."""
    there = system.of(unit, "MainPID")
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            names = re.search(r"^NSpid:\s*(\d+)\s+(\d+)$", status.read_text(), flags=re.MULTILINE)
            inside = names is not None and names[2] == there and b"polite" in (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if inside:
            return int(status.parent.name)
    raise SystemExit(f"{unit} has no process")


def goes_on(system: System, web: RunningWeb, unit: str) -> None:
    """Until the servers have seen more requests."""
    log = web.folder / "server.jsonl"
    before = read_pages(log)
    system.wait(lambda: read_pages(log) >= before + _STEP, f"went on after {before} requests", unit)


def stop(system: System, unit: str, status: int = 0) -> None:
    """``systemctl stop``, which is to end it in good order; ``status``: of its main process, or the signal."""
    began = time.monotonic()
    system("systemctl", "stop", unit)
    took_seconds = time.monotonic() - began
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    good = result == ("success", str(int(status)))
    system.note(f"systemctl stop ends {unit} in good order", good, f"{result} in {took_seconds:.1f} s")


def judge(system: System, web: RunningWeb, name: str, workers: Sequence[str] = ()) -> None:
    """A crawl that was killed, by its own commands, by the servers' log and by its archive."""
    folder = HOME / name
    archives = [folder / worker for worker in workers] or [folder]
    for command, places in (("verify", archives), ("audit", [folder])):
        done = [system.crawler(command, f"/{place}") for place in places]
        said = "; ".join((each.stdout.strip().splitlines() or [each.stderr])[-1] for each in done)
        system.note(f"{command} finds nothing wrong", not any(each.returncode for each in done), said)
    crawls = [system.root / archive for archive in archives]
    judged = judge_folder(web.folder, None, workers=crawls, host_seconds=0.25, ip_seconds=0.5, log=False)
    system.note("every page once, every pause kept", not judged.faults, "; ".join(judged.faults[:3] or judged.facts))
