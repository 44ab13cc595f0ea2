"""Install in an empty place, crawl, stop, upgrade, continue: released versions and this one, far from any checkout.

``python -m benchmarks.fresh_root`` uses a new environment with ``env -i``. With ``--root DIR`` it is a Debian there,
made by debootstrap, entered with ``chroot`` as a user of its own (as root, with util-linux's ``unshare``). Each version
crawls a part of the synthetic web into the same folder and is ended by SIGTERM, the newest finishes. Ends with status 1
if a page is missing or was had twice, a pause too short, or a record damaged. The packages come from the registry that
pip knows, by the hashes of requirements.lock. Containers: ``.container``; under systemd: ``.booted``.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.fresh_root.places import Place, debian_root, empty_environment
from benchmarks.fresh_root.releases import install, packages, released, wheel_of
from tests.web.judge import judge_folder
from tests.web.running import IDENTITY, RunningWeb, read_pages, small_settings, synthetic_web

LONGEST_SECONDS = 600.0
RELEASES = ("1.3.0", "1.4.0", "1.5.0", "1.6.0")
# Requests of the web, of which the whole has some 270, that each version but the newest makes.
STEP = 50


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
    parser.add_argument("--root", type=Path, help="a Debian, made there by debootstrap; else an empty environment")
    parser.add_argument("--packages", type=Path, help="a folder that keeps the pins' wheels for another time")
    parser.add_argument("--releases", nargs="*", default=RELEASES, help="before this one: versions, or git's revisions")
    options = parser.parse_args()
    work = Path(mkdtemp(prefix="fresh-root-"))
    place = debian_root(options.root.resolve()) if options.root else empty_environment(work)
    pins = options.packages or work / "packages"
    packages(pins)
    install(place, sorted(pins.glob("*.whl")))
    with synthetic_web(work) as web:
        for number, name in enumerate([*options.releases, "HEAD"], start=1):
            wheel = wheel_of(released(name), work / name)
            install(place, [wheel])
            status = crawl(place, web, None if name == "HEAD" else number * STEP)
            print(f"{name} ({wheel.name}): exit status {status}, {read_pages(web.folder / 'server.jsonl')} requests")
            if status:
                print((place.home / "crawl.log").read_text()[-3000:])
                return 1
        faults = checked(place, web)
    print("\n".join(faults) or "every page once, every pause kept")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
