"""The units of deploy/systemd under a systemd that has booted: start, stop, kill -9, journal, timer, rendering.

``python -m benchmarks.fresh_root.booted --root DIR`` (as root, with debootstrap and systemd-nspawn) makes a Debian in
DIR, boots it, installs the crawler as docs/install.md says, by the very lines of that page, and looks at what becomes
of the units: that a crawl is at work, stops in good order, goes on after kill -9 and when it hangs, that journald has
its lines with their priorities, that the timer starts a recrawl, and that pages are rendered in Chromium's sandbox with
everything that the units forbid, a page that takes too much memory ended. The network is that of this machine, the web
on its loopback addresses. DIR keeps the system for another time.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.fresh_root.places import debian, run
from benchmarks.fresh_root.releases import packages, wheel_of
from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.rendering.confinement import Confinement, renderers
from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, PROJECT, RunningWeb, read_pages, small_settings, synthetic_web

LONGEST_SECONDS = 600.0
_HOME = Path("var/lib/polite-crawler")
_PROGRAM = "/opt/polite-crawler"
_CHECKOUT = "/root/checkout"
_STOP_AFTER, _KILL_AFTER, _HANG_AFTER = 60, 110, 160  # requests of some 270
_WARNING = 4  # syslog's
# What a machine has that is looked at for a month, and one that is looked at for minutes has not.
_NOW = "[Timer]\nOnCalendar=\nOnCalendar=*:*:0/5\nRandomizedDelaySec=0\n"
_SOON = "[Service]\nWatchdogSec=5s\nTimeoutAbortSec=5s\nRestartSec=1s\n"


@dataclass
class System:
    """A booted one; ``leader`` is its PID 1 as it is called here."""

    root: Path
    leader: int
    faults: list[str] = field(default_factory=list)

    def __call__(self, *command: str, check: bool = True) -> str:
        """What a command there prints."""
        enter = ("nsenter", f"--target={self.leader}", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root")
        clean = ("env", "-C", "/", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
        return run(*enter, *clean, *command, check=check).stdout.strip()

    def of(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self("systemctl", "show", "--value", "--property", name, unit)

    def crawler(self, *command: str) -> str:
        """A command of ours, as the docs say to look on."""
        return self("setpriv", "--reuid=crawler", "--regid=crawler", "--clear-groups", "env", "XDG_CONFIG_HOME=/etc",
                    f"{_PROGRAM}/bin/polite-crawler", *command, check=False)  # fmt: skip

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
    """A Debian with systemd and a browser, the crawler in /opt, deploy/ and samples/ where the operator has them."""
    debian(root, "systemd-sysv", "dbus", "ca-certificates")
    if not (root / "usr/bin/chromium").exists():
        quiet = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "install", "--no-install-recommends")
        run("chroot", str(root), *quiet, "-y", "chromium", "libatomic1")
    shutil.rmtree(root / "opt", ignore_errors=True)
    shutil.rmtree(root / _HOME, ignore_errors=True)
    wheels = root / "opt" / "wheels"
    wheels.mkdir(parents=True)
    packages(pins)
    for wheel in (*pins.glob("*.whl"), wheel_of("HEAD", work / "wheel")):
        shutil.copy(wheel, wheels)
    run("chroot", str(root), "python3", "-m", "venv", _PROGRAM)
    pip = ("python", "-m", "pip", "-q", "install", "--no-index", "--no-deps")
    names = [f"/opt/wheels/{wheel.name}" for wheel in sorted(wheels.glob("*.whl"))]
    run("chroot", str(root), f"{_PROGRAM}/bin/{pip[0]}", *pip[1:], *names)
    checkout = root / _CHECKOUT.lstrip("/")
    shutil.rmtree(checkout, ignore_errors=True)
    for name in ("deploy", "samples"):
        shutil.copytree(PROJECT / name, checkout / name)


def documented() -> list[str]:
    """The lines with which docs/install.md sets the units up."""
    chapter = (PROJECT / "docs" / "install.md").read_text().partition("\n## systemd\n")[2]
    block = re.search(r"```\n(.*?)```", chapter, flags=re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def give_crawl(system: System, name: str, web: RunningWeb, settings: Mapping[str, str]) -> None:
    """Its crawl.toml, as an operator edits it."""
    folder = system.root / _HOME / name
    system("install", "-d", "-o", "crawler", "-g", "crawler", f"/{_HOME}/{name}")
    for file in ("hosts", "nevercrawl.txt"):
        shutil.copy(web.folder / file, system.root / "etc/polite-crawler" / f"{name}.{file}")
    files = {"FETCH_HOSTS_FILE": f"/etc/polite-crawler/{name}.hosts",
             "NEVERCRAWL_FILE": f"/etc/polite-crawler/{name}.nevercrawl.txt"}  # fmt: skip
    given = {**IDENTITY, **settings, **files, "LOG_LINES": "json"}
    lines = [f"seeds = {json.dumps((web.folder / 'seeds.txt').read_text().split())}", 'scope = "any"', "[settings]"]
    lines += [f"{key} = {_toml(value)}" for key, value in given.items()] + ['FETCH_ALLOW_NETWORKS = ["127.0.0.0/8"]']
    (folder / "crawl.toml").write_text("\n".join(lines) + "\n")
    system("chown", "crawler:crawler", f"/{_HOME}/{name}/crawl.toml")


def _toml(text: str) -> str:
    bare = re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text) or text in ("True", "False")
    return text.lower() if bare else json.dumps(text)


def a_crawl(system: System, web: RunningWeb) -> None:
    """crawl@example: started, stopped, killed, to its end."""
    unit, log = "crawl@example", web.folder / "server.jsonl"
    settings = {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8", "RECRAWL_RECENT_DAYS": "0"}
    give_crawl(system, "example", web, settings)
    _drop_in(system, f"{unit}.service", _SOON)
    *_, enable = documented()
    system(*shlex.split(enable))
    system.wait(lambda: read_pages(log) >= _STOP_AFTER, "came so far", unit)
    folder = f"CRAWL_DIR=/{_HOME}/example"
    said = system.crawler("status", "--alive", "-s", folder)
    system.note("status --alive says that it is at work", said.endswith("is at work"), said)

    began = time.monotonic()
    system("systemctl", "stop", unit)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    system.note("systemctl stop ends it in good order", result == ("success", "0"),
                f"{result} in {time.monotonic() - began:.1f} s")  # fmt: skip
    said = system.crawler("status", "--alive", "-s", folder)
    system.note("status --alive says that it is not", said.endswith("is not at work"), said)

    system("systemctl", "start", unit)
    system.wait(lambda: read_pages(log) >= _KILL_AFTER, "went on", unit)
    system("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    system.wait(lambda: system.of(unit, "NRestarts") == "1", "started again", unit)
    system.wait(lambda: read_pages(log) >= _HANG_AFTER, "went on after kill -9", unit)
    system("systemctl", "kill", "--kill-whom=main", "--signal=STOP", unit)
    system.wait(lambda: system.of(unit, "NRestarts") == "2", "started again by the watchdog", unit)
    system.wait(lambda: system.of(unit, "ActiveState") == "inactive", "done", unit)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    system.note("after kill -9, and when it hangs, it starts again and comes to its end", result == ("success", "0"),
                result)  # fmt: skip
    for command in (("verify", f"/{_HOME}/example"), ("audit", f"/{_HOME}/example")):
        said = system.crawler(*command)
        print(f"  {command[0]}: {(said.splitlines() or [''])[-1]}", flush=True)
    judged = judge_folder(web.folder, system.root / _HOME / "example", host_seconds=0.25, ip_seconds=0.5, log=False)
    system.note("every page once, every pause kept", not judged.faults, "; ".join(judged.faults[:3]))


def _drop_in(system: System, unit: str, text: str) -> None:
    folder = system.root / "etc/systemd/system" / f"{unit}.d"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "here.conf").write_text(text)
    system("systemctl", "daemon-reload")


def the_journal(system: System, unit: str) -> None:
    """Its lines are JSON, and have the priority of their level."""
    text = system("journalctl", "--no-pager", "-o", "json", "-u", unit, "_COMM=polite-crawler")
    entries = [json.loads(line) for line in text.splitlines()]
    said = [(json.loads(entry["MESSAGE"]), int(entry["PRIORITY"])) for entry in entries]
    warned = {priority for line, priority in said if line["level"] == "WARNING"}
    system.note("journald has JSON lines", len(said) > 10, f"{len(said)} lines")
    system.note("warnings have their priority", warned == {_WARNING}, warned)


def a_recrawl(system: System, web: RunningWeb) -> None:
    """recrawl@example.timer, moved to now."""
    unit, log = "recrawl@example", web.folder / "server.jsonl"
    _drop_in(system, f"{unit}.timer", _NOW)
    before = read_pages(log)
    system("systemctl", "start", f"{unit}.timer")
    system.wait(lambda: system.of(unit, "ExecMainStartTimestamp"), "started by its timer", unit)
    system("systemctl", "stop", f"{unit}.timer")
    system.wait(lambda: system.of(unit, "ActiveState") == "inactive", "done", unit)
    result, visits = system.of(unit, "Result"), read_pages(log) - before
    system.note("the timer starts a recrawl, which visits pages again", result == "success" and visits > 100,
                f"{result}, {visits} requests")  # fmt: skip


def rendering(system: System, web: RunningWeb) -> None:
    """crawl@apps: pages that scripts build and pages that are a burden, with all that the unit forbids."""
    unit = "crawl@apps"
    bounds = {"RENDER_NAVIGATION_SECONDS": "8", "RENDER_TIMEOUT_SECONDS": "24", "RENDER_PAGE_MEMORY_BYTES": "300000000"}
    settings = {**small_settings(web), "RENDER": "auto", "FRONTIER_MAX_REST_SECONDS": "3", **bounds}
    give_crawl(system, "apps", web, settings)
    system("systemctl", "start", unit)
    main = _main_pid(system, unit)
    seen: list[Confinement] = []
    while system.of(unit, "ActiveState") in ("active", "deactivating"):
        seen += renderers(main)
        time.sleep(0.2)
    result = system.of(unit, "Result"), system.of(unit, "ExecMainStatus")
    rows = [row for row in read_log(system.root / _HOME / "apps" / "log") if row["rendered"]]
    shown = [row for row in rows if row["reason"] == "rendered"]
    said = system("journalctl", "--no-pager", "-o", "cat", "-u", unit)
    system.note("the crawl that renders comes to its end", result == ("success", "0"), result)
    system.note("pages are rendered", len(shown) >= 10, f"{len(shown)} of {len(rows)}")
    stands = sum(each.stands for each in seen)
    system.note("in Chromium's sandbox", stands and "without Chromium's sandbox" not in said,
                f"seen {len(seen)} times a renderer, {stands} times in it")  # fmt: skip
    system.note("in a network namespace of its own", "gets no network namespace" not in said)
    system.note("a page that takes too much memory is ended", "took too much memory and were ended" in said)


def _main_pid(system: System, unit: str) -> int:
    """As it is called here."""
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


def main() -> int:
    """0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="a Debian, made there by debootstrap")
    parser.add_argument("--packages", type=Path, help="a folder that keeps the pins' wheels for another time")
    options = parser.parse_args()
    work, root = Path(mkdtemp(prefix="fresh-booted-")), options.root.resolve()
    prepare(root, options.packages or work / "packages", work)
    with booted(root) as system:
        *steps, _ = documented()
        system("sh", "-exc", f"cd {_CHECKOUT}\n" + "\n".join(steps))
        (work / "small").mkdir()
        with synthetic_web(work / "small") as web:
            a_crawl(system, web)
            the_journal(system, "crawl@example")
            a_recrawl(system, web)
        (work / "apps").mkdir()
        with synthetic_web(work / "apps", "--profile", "apps") as web:
            rendering(system, web)
    shutil.rmtree(work)
    print("\n".join(system.faults) or "all as the docs say")
    return 1 if system.faults else 0


if __name__ == "__main__":
    sys.exit(main())
