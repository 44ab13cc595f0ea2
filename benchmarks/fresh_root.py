"""Install in an empty place, crawl, stop, upgrade, continue: released versions and this one, far from any checkout.

``python -m benchmarks.fresh_root`` uses a new environment with ``env -i``. With ``--root DIR`` it is a Debian made by
``debootstrap --variant=minbase --include=python3,python3-venv bookworm DIR``, entered with ``chroot`` as a user of its
own (as root, with util-linux's ``unshare``). Each version crawls a part of the synthetic web into the same folder and
is ended by SIGTERM, the newest finishes. Ends with status 1 if a page is missing or was had twice, a pause too short,
or a record damaged. The packages come from the registry that pip knows, by the hashes of requirements.lock.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, PROJECT, RunningWeb, read_pages, small_settings, synthetic_web

USER = 10001  # of the container, too
HOME = "/srv"
LONGEST_SECONDS = 600.0
# Requests that the web has had when a version is stopped; the whole has some 270.
STOPS = (60, 120)
RELEASES = ("1.3.0", "1.4.0")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the crawler is installed; ``root`` is "/" for an environment beside others."""

    root: Path
    home: Path  # as it is called outside
    enter: tuple[str, ...]  # what precedes a command

    def inside(self, path: Path) -> str:
        """A path of ours as it is called there."""
        return str(path) if self.root == Path("/") else "/" + str(path.relative_to(self.root))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command there, to its end."""
        done = subprocess.run([*self.enter, *command], capture_output=True, text=True, cwd=self.home, check=False)
        if check and done.returncode:
            raise SystemExit(
                f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        return done

    def program(self, name: str) -> str:
        """One of the environment's."""
        return self.inside(self.home / "environment" / "bin" / name)


def empty_environment(work: Path) -> Place:
    """A folder, and a process without an environment."""
    home = work / "home"
    home.mkdir()
    clean = ("env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8")
    place = Place(Path("/"), home, clean)
    place.run(sys.executable, "-m", "venv", str(home / "environment"))
    return place


def debian_root(root: Path) -> Place:
    """The chroot, in a mount namespace of its own with its own /proc, as a user without rights."""
    home = root / HOME.lstrip("/") / f"fresh-{int(time.time())}"
    home.mkdir(parents=True)
    shutil.chown(home, USER, USER)
    script = f'mount -t proc proc {root}/proc && cd / && exec "$@"'
    inner = f"/{home.relative_to(root)}"
    enter = (
        *("unshare", "--mount", "sh", "-c", script, "sh", "chroot", f"--userspec={USER}:{USER}", str(root)),
        *("env", "-i", "-C", inner, f"HOME={inner}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"),
    )
    place = Place(root, home, enter)
    place.run("python3", "-m", "venv", place.inside(home / "environment"))
    return place


def released(version: str) -> str:
    """The commit that gave the package this version."""
    pattern = f'__version__ = "{version}"'
    log = ["git", "log", "--format=%H", "--reverse", f"-S{pattern}", "--", "crawlerproject/__init__.py"]
    found = subprocess.run(log, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split()
    if not found:
        raise SystemExit(f"There is no commit of version {version} in this clone's history.")
    return found[0]


def wheel_of(revision: str, work: Path) -> Path:
    """Its wheel, built from its source distribution."""
    source, built = work / "source", work / "built"
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision], cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (sdist,) = built.glob("*.tar.gz")
    made = [sys.executable, "-m", "pip", "-q", "wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*made, str(sdist), "-w", str(work)], cwd=work, check=True)
    (wheel,) = work.glob("*.whl")
    return wheel


def packages(folder: Path) -> None:
    """All pins as wheels, by their hashes; those that are there are kept."""
    pip = [sys.executable, "-m", "pip", "-q", "wheel", "--require-hashes", "--no-build-isolation"]
    pip += ["--only-binary", ":all:", "--no-binary", "surt"]  # which has no wheel
    subprocess.run([*pip, "-r", str(PROJECT / "requirements.lock"), "-w", str(folder)], check=True)


def install(place: Place, wheels: Sequence[Path]) -> None:
    """Into the environment there, from files alone."""
    folder = place.home / "wheels"
    folder.mkdir(exist_ok=True)
    names = [shutil.copy(wheel, folder) for wheel in wheels]
    for path in (folder, *map(Path, names)):
        path.chmod(0o755)
    pip = (place.program("python"), "-m", "pip", "-q", "install", "--no-index", "--no-deps", "--force-reinstall")
    place.run(*pip, *(place.inside(Path(name)) for name in names))


@contextmanager
def crawling(place: Place, web: RunningWeb) -> Iterator[subprocess.Popen[bytes]]:
    """The crawl, in the folder that each version continues; killed when left."""
    for name in ("hosts", "seeds.txt", "nevercrawl.txt"):
        shutil.copy(web.folder / name, place.home)
    files = {"FETCH_HOSTS_FILE": "hosts", "NEVERCRAWL_FILE": "nevercrawl.txt", "CRAWL_DIR": "crawl"}
    given = {**IDENTITY, **small_settings(web), "FETCH_ALLOW_NETWORKS": "127.0.0.0/8", "FRONTIER_MAX_REST_SECONDS": "8"}
    given |= {name: place.inside(place.home / file) for name, file in files.items()}
    options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    seeds = place.inside(place.home / "seeds.txt")
    command = [*place.enter, place.program("polite-crawler"), "crawl", "web", "-a", f"seeds={seeds}", *options]
    with (place.home / "crawl.log").open("ab") as log, subprocess.Popen(command, stderr=log, cwd=place.home) as process:
        try:
            yield process
        finally:
            process.kill()


def crawl(place: Place, web: RunningWeb, until: int | None) -> int:
    """Until so many requests, then SIGTERM; without ``until`` to the end. The exit status."""
    ends = time.monotonic() + LONGEST_SECONDS
    with crawling(place, web) as process:
        while until is not None and read_pages(web.folder / "server.jsonl") < until and process.poll() is None:
            if time.monotonic() > ends:
                raise SystemExit("The crawl has not come so far in time.")
            time.sleep(0.05)
        if until is not None:
            process.send_signal(signal.SIGTERM)
        return process.wait(LONGEST_SECONDS)


def checked(place: Place, web: RunningWeb) -> list[str]:
    """What is wrong with the crawl, by its own commands and by the servers' log."""
    folder = place.inside(place.home / "crawl")
    faults = []
    for command in (("verify", folder), ("audit", folder), ("status", "-s", f"CRAWL_DIR={folder}")):
        done = place.run(place.program("polite-crawler"), *command, check=False)
        print(f"  {command[0]}: {(done.stdout.strip().splitlines() or [''])[-1]}")
        if done.returncode:
            faults.append(f"{command[0]} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}")
    return faults + judge_folder(web.folder, place.home / "crawl", host_seconds=0.25, ip_seconds=0.5).faults


def main() -> int:
    """0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="a Debian that debootstrap has made; else an empty environment")
    parser.add_argument("--packages", type=Path, help="a folder that keeps the pins' wheels for another time")
    options = parser.parse_args()
    work = Path(mkdtemp(prefix="fresh-root-"))
    place = debian_root(options.root.resolve()) if options.root else empty_environment(work)
    pins = options.packages or work / "packages"
    packages(pins)
    install(place, sorted(pins.glob("*.whl")))
    with synthetic_web(work) as web:
        for name, revision, stop in (*((one, released(one), at) for one, at in zip(RELEASES, STOPS, strict=True)),
                                     ("this one", "HEAD", None)):  # fmt: skip
            wheel = wheel_of(revision, work / name.replace(" ", "-"))
            install(place, [wheel])
            status = crawl(place, web, stop)
            print(f"{name} ({wheel.name}): exit status {status}, {read_pages(web.folder / 'server.jsonl')} requests")
            if status:
                print((place.home / "crawl.log").read_text()[-3000:])
                return 1
        faults = checked(place, web)
    print("\n".join(faults) or "every page once, every pause kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
