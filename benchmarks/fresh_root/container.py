"""The image of the Containerfile, built and run: stopped, upgraded, continued in the same volume; then with a browser.

``python -m benchmarks.fresh_root.container --base DIR`` (as root, with podman and runc) takes the Debian in DIR, made
by debootstrap, for the base image, since it asks no registry of images. It builds the image of a released version and
of this one, looks at the running container (who is PID 1, its user, what it may write, its health check), stops it by
``podman stop``, goes on with the newer image in the same volume, read-only and without capabilities, and has it judged
as benchmarks.fresh_root does. Another container is killed by -9, started again, and its crawl judged as well.
``--chromium`` also builds with CHROMIUM=1 and renders pages, RENDER_SANDBOX=required, as the engine starts a container
and with the least rights that Chromium's sandbox can be made with. Images and volumes are in a folder of their own,
which is removed.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.fresh_root.places import USER, debian, run
from benchmarks.fresh_root.releases import released, source_of
from crawlerproject.stores.logs.request_log import read_log
from tests.hostile.rendering.confinement import Confinement, renderers
from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, RunningWeb, read_pages, small_settings, synthetic_web

LONGEST_SECONDS = 600.0
STOP_SECONDS = 900
_STOP_AFTER = 100  # requests of some 270
_BASE = "localhost/fresh-base"
_KILLED = 128 + signal.SIGKILL
_CRAWL = "/srv/crawls/web"
_TIGHT = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
# Chromium's sandbox ends in an empty root, and the engine's filter of system calls lets a container with this have one.
_CHROOT = ("--cap-add", "SYS_CHROOT")


@dataclass(frozen=True, slots=True)
class Engine:
    """podman with a storage of its own, whether or not systemd runs this machine."""

    work: Path

    @property
    def words(self) -> tuple[str, ...]:
        """The command, without its own arguments."""
        places = ("--root", str(self.work / "storage"), "--runroot", str(self.work / "run"))
        ways = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--storage-driver")
        return ("env", "DISABLE_HC_SYSTEMD=true", "podman", *places, *ways, "overlay")

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``podman …`` to its end."""
        return run(*self.words, *arguments, check=check)

    def of(self, name: str, what: str) -> str:
        """What ``podman inspect`` says of a container, by a path of its own."""
        return self("inspect", "--format", f"{{{{{what}}}}}", name).stdout.strip()


@dataclass(frozen=True, slots=True)
class Started:
    """A container that runs a crawl of a web into a volume."""

    engine: Engine
    name: str

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """``podman exec``."""
        return self.engine("exec", self.name, *command, check=False)

    @property
    def runs(self) -> bool:
        """Still."""
        return self.engine.of(self.name, ".State.Running") == "true"

    def log(self) -> str:
        """What the crawl said."""
        done = self.engine("logs", self.name, check=False)
        return done.stdout + done.stderr


def import_base(engine: Engine, root: Path) -> None:
    """The Debian as an image."""
    archive = engine.work / "base.tar"
    run(
        "tar", "-C", str(root), "--exclude=./srv/*", "--exclude=./proc/*", "--exclude=./sys/*", "-cf", str(archive), "."
    )
    engine("import", str(archive), _BASE)
    archive.unlink()


def build(engine: Engine, revision: str, *arguments: str) -> str:
    """The image of a revision; its name."""
    name = f"localhost/polite-crawler:{revision.lower()}-{len(arguments)}"
    source = source_of(released(revision), engine.work / name.rpartition(":")[2])
    given = [part for argument in (f"BASE={_BASE}", *arguments) for part in ("--build-arg", argument)]
    began = time.monotonic()
    ways = ("--isolation", "chroot", "--network", "host", "--format", "docker", "--pull-never")
    engine("build", *ways, *given, "-t", name, "-f", str(source / "Containerfile"), str(source))
    size = int(engine("image", "inspect", "--format", "{{.Size}}", name).stdout)
    print(f"{name}: {size / 1e6:.0f} MB in {time.monotonic() - began:.0f} s", flush=True)
    return name


def _limits() -> tuple[str, ...]:
    """As docs/install.md has them, or what this machine lets its root have: the engine's own may be more."""
    files = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return "--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=4096:4096"


@contextmanager
def crawling(
    engine: Engine, image: str, volume: str, web: RunningWeb, settings: Mapping[str, str], *options: str
) -> Iterator[Started]:
    """A container of the image, as docs/install.md starts it but for the network; removed when left."""
    for name in ("hosts", "seeds.txt", "nevercrawl.txt"):
        (web.folder / name).chmod(0o644)
    here = "/etc/polite-crawler"
    given = {"FETCH_HOSTS_FILE": f"{here}/hosts", "NEVERCRAWL_FILE": f"{here}/nevercrawl.txt"}
    given = {**IDENTITY, **settings, **given, "FETCH_ALLOW_NETWORKS": "127.0.0.0/8"}
    environment = [part for name, value in given.items() for part in ("-e", f"POLITE_{name}={value}")]
    name = f"fresh-{time.monotonic_ns()}"
    mounts = ("-v", f"{volume}:/srv/crawls", "-v", f"{web.folder}:{here}:ro")
    ways = ("--detach", "--name", name, "--network", "host", *_limits())
    logs = ("--log-driver", "k8s-file", "--stop-timeout", str(STOP_SECONDS))
    command = ("crawl", "web", "-a", f"seeds={here}/seeds.txt")
    engine("run", *ways, *logs, *mounts, *environment, *options, image, *command)
    try:
        yield Started(engine, name)
    finally:
        engine("rm", "--force", "--time", "1", name, check=False)


def wait(container: Started, seen: Callable[[], object], what: str) -> None:
    """Until it is seen; SystemExit when the crawl ends before, or the time."""
    until = time.monotonic() + LONGEST_SECONDS
    while not seen():
        if time.monotonic() > until or not container.runs:
            raise SystemExit(f"Never {what}:\n{container.log()[-3000:]}")
        time.sleep(0.2)


def ended(container: Started) -> int:
    """Its exit status, once it has one."""
    until = time.monotonic() + LONGEST_SECONDS
    while container.runs and time.monotonic() < until:
        time.sleep(0.5)
    return int(container.engine.of(container.name, ".State.ExitCode"))


def first_looks(container: Started) -> list[str]:
    """Faults of a container at work."""
    compilers = ("sh", "-c", "command -v pip pip3 gcc cc")
    checks = {
        "PID 1 is tini": container.inside("cat", "/proc/1/comm").stdout.strip() == "tini",
        "it runs as the user of the image": container.inside("id", "-u").stdout.strip() == str(USER),
        "it may not write beside its volume": container.inside("touch", "/usr/x", "/opt/x").returncode == 1,
        "there is no pip and no compiler": container.inside(*compilers).returncode != 0,
        "the health check says that it is at work":
            container.engine("healthcheck", "run", container.name, check=False).returncode == 0,
    }  # fmt: skip
    faults = []
    for what, good in checks.items():
        print(f"  {'yes' if good else 'NO '}  {what}", flush=True)
        faults += [] if good else [f"Not so: {what}"]
    return faults


def upgraded(engine: Engine, older: str, newer: str) -> list[str]:
    """A crawl stopped in the older image and finished in the newer one; faults."""
    folder, volume = Path(mkdtemp(prefix="web-", dir=engine.work)), "fresh-upgrade"
    folder.chmod(0o755)
    engine("volume", "create", volume)
    with synthetic_web(folder) as web:
        settings = {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8"}
        with crawling(engine, older, volume, web, settings) as container:
            wait(container, lambda: read_pages(web.folder / "server.jsonl") >= _STOP_AFTER, "came so far")
            faults = first_looks(container)
            began = time.monotonic()
            engine("stop", container.name)
            status, seconds = ended(container), time.monotonic() - began
            print(f"{older} stopped: exit status {status} after {seconds:.1f} s", flush=True)
            if status:
                return [*faults, f"Its exit status was {status}:\n{container.log()[-3000:]}"]
        with crawling(engine, newer, volume, web, settings, *_TIGHT) as container:
            status = ended(container)
            print(f"{newer} to the end: exit status {status}, {read_pages(web.folder / 'server.jsonl')} requests")
            faults += [f"Its exit status was {status}:\n{container.log()[-3000:]}"] if status else []
        return faults + judged(engine, newer, volume, web)


def killed(engine: Engine, image: str) -> list[str]:
    """A container killed by -9 on its way, and started again with the same volume; faults."""
    folder, volume = Path(mkdtemp(prefix="web-", dir=engine.work)), "fresh-killed"
    folder.chmod(0o755)
    engine("volume", "create", volume)
    with synthetic_web(folder) as web:
        settings = {**small_settings(web), "FRONTIER_MAX_REST_SECONDS": "8"}
        with crawling(engine, image, volume, web, settings, *_TIGHT) as container:
            wait(container, lambda: read_pages(web.folder / "server.jsonl") >= _STOP_AFTER, "came so far")
            engine("kill", "--signal", "KILL", container.name)
            first = ended(container)
            before = read_pages(web.folder / "server.jsonl")
            engine("start", container.name)
            status, requests = ended(container), read_pages(web.folder / "server.jsonl")
            print(f"{image} killed: exit status {first} after {before} requests; "
                  f"started again: exit status {status}, {requests} requests", flush=True)  # fmt: skip
            faults = [] if (first, status) == (_KILLED, 0) else [container.log()[-3000:]]
        return faults + judged(engine, image, volume, web, log=False)


def judged(engine: Engine, image: str, volume: str, web: RunningWeb, *, log: bool = True) -> list[str]:
    """Faults by the crawl's own commands, in containers of the image, and by the servers' log.

    ``log`` False: after a kill, which loses lines.
    """
    faults, ways = [], ("run", "--rm", *_limits(), "--network", "none", "-v", f"{volume}:/srv/crawls", image)
    for command in (("verify", _CRAWL), ("audit", _CRAWL), ("status", "-s", f"CRAWL_DIR={_CRAWL}")):
        done = engine(*ways, *command, check=False)
        print(f"  {command[0]}: {(done.stdout.strip().splitlines() or [done.stderr])[-1]}", flush=True)
        faults += [f"{command[0]}: {done.stdout[-500:]}{done.stderr[-500:]}"] if done.returncode else []
    crawl = Path(engine("volume", "inspect", "--format", "{{.Mountpoint}}", volume).stdout.strip()) / "web"
    verdict = judge_folder(web.folder, crawl, host_seconds=0.25, ip_seconds=0.5, log=log)
    print(*(f"  {fact}" for fact in verdict.facts), sep="\n", flush=True)
    return faults + verdict.faults


def rendered(engine: Engine, image: str, how: str, *options: str, stands: bool = True) -> list[str]:
    """Pages that need a browser, rendered as the container's user; what was seen of the sandbox. Faults."""
    folder, volume = Path(mkdtemp(prefix="web-", dir=engine.work)), f"fresh-{time.monotonic_ns()}"
    folder.chmod(0o755)
    engine("volume", "create", volume)
    seen: list[Confinement] = []
    with synthetic_web(folder, "--profile", "many-apps", "--hosts", "1") as web:
        sandbox = {"RENDER": "auto", "RENDER_SANDBOX": "required"}
        settings = {**small_settings(web), **sandbox, "RENDER_MAX_IN_FLIGHT": "2", "FRONTIER_MAX_REST_SECONDS": "60"}
        with crawling(engine, image, volume, web, settings, *options) as container:
            pid = int(container.engine.of(container.name, ".State.Pid"))
            while container.runs:
                seen += renderers(pid)
                time.sleep(0.1)
            status, log = ended(container), container.log()
    crawl = Path(engine("volume", "inspect", "--format", "{{.Mountpoint}}", volume).stdout.strip()) / "web"
    pages = {str(row["url"]) for row in read_log(crawl / "log") if row["reason"] == "rendered"}
    inside = sum(each.stands for each in seen)
    lines = [line for line in log.splitlines() if "sandbox" in line or "network namespace" in line]
    print(f"{how}: exit status {status}, {len(pages)} of 10 pages rendered; seen {len(seen)} times a renderer, "
          f"{inside} times in Chromium's sandbox", *lines[:3], sep="\n    ", flush=True)  # fmt: skip
    faults = [f"{how}: exit status {status}\n{log[-3000:]}"] if status else []
    if (len(pages), inside > 0) != ((10, True) if stands else (0, False)):
        faults.append(f"{how}: {len(pages)} pages, {inside} renderers in a sandbox: {seen[-1:]}\n{log[-3000:]}")
    return faults


def clean(work: Path) -> None:
    """Unmount and remove what is below ``work``."""
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{work}/")), reverse=True):
        subprocess.run(["umount", "--lazy", place], check=False)
    shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    """0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="a Debian, made there by debootstrap")
    parser.add_argument("--older", default="1.6.0", help="what is upgraded: a version, or a revision of git's")
    parser.add_argument("--chromium", action="store_true", help="also an image with a browser")
    options = parser.parse_args()
    debian(options.base.resolve())
    work = Path(mkdtemp(prefix="fresh-container-"))
    work.chmod(0o755)
    engine = Engine(work)
    try:
        import_base(engine, options.base.resolve())
        newer = build(engine, "HEAD")
        faults = upgraded(engine, build(engine, options.older), newer)
        faults += killed(engine, newer)
        if options.chromium:
            image = build(engine, "HEAD", "CHROMIUM=1")
            faults += rendered(engine, image, "as the engine starts it")
            faults += rendered(engine, image, "with the least rights", *_TIGHT, *_CHROOT)
            faults += rendered(engine, image, "without SYS_CHROOT", *_TIGHT, stands=False)
    finally:
        clean(work)
    print("\n".join(faults) or "every page once, every pause kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
