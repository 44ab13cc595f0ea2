"""The fleet of deploy/compose, as containers: seen by its Prometheus, drained, killed, its Redis restarted, to its end.

``python -m benchmarks.fresh_root.compose --base DIR`` (as root, with podman, runc and podman-compose on the path) takes
the Debian in DIR for the base image, as benchmarks.fresh_root.container does, and puts Debian's Redis and Prometheus
in the place of the published images. Grafana has none here and is left out. The containers and three sites are in a
network namespace of their own, from which nothing leads out. At the end each page has been asked for once.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from benchmarks.fresh_root.container import Engine, build, clean, import_base
from benchmarks.fresh_root.places import debian, run
from tests.web.running import PROJECT

_FOLDER = PROJECT / "deploy" / "compose"
_SITES = ("web-a", "web-b", "web-c")
_WORKERS = {f"worker-{number}": f"172.30.77.1{number}" for number in (1, 2, 3)}
_PAGES, _LINKS = 60, 2  # of a site; the pages that each links to
_PAUSE_SECONDS = "2"  # of a host: the crawl takes two minutes at least
_LEASE_SECONDS = "20"
_SECONDS = 240.0
_STAND_INS = """FROM {base} AS redis
RUN apt-get update && apt-get install -y --no-install-recommends redis-server prometheus && install -d -o redis /data
FROM redis AS prometheus
RUN install -d -o nobody /prometheus /etc/prometheus
USER nobody
ENTRYPOINT ["prometheus"]
"""
_open = build_opener(ProxyHandler({})).open


def images(engine: Engine, root: Path) -> str:
    """Of this version and of what stands in for others; the crawler's name."""
    import_base(engine, root)
    name = build(engine, "HEAD")
    folder = engine.work / "stand-ins"
    folder.mkdir()
    (folder / "Containerfile").write_text(_STAND_INS.format(base="localhost/fresh-base"))
    ways = ("--isolation", "chroot", "--network", "host", "--format", "docker", "--pull-never")
    for target in ("redis", "prometheus"):
        engine("build", *ways, "--target", target, "-t", f"localhost/{target}", str(folder))
    return name


def _page(number: int) -> str:
    return "index.html" if number == 0 else f"{hashlib.sha256(b'%d' % number).hexdigest()[:10]}.html"


def make_site(folder: Path) -> None:
    """A tree of pages, each with words of its own."""
    folder.mkdir()
    for number in range(_PAGES):
        links = [each for each in range(_LINKS * number + 1, _LINKS * (number + 1) + 1) if each < _PAGES]
        text = hashlib.shake_256(b"%d" % number).hexdigest(300)
        words = " ".join(text[at : at + 6] for at in range(0, len(text), 6))
        anchors = "".join(f'<p><a href="/{_page(each)}">one more</a>' for each in links)
        (folder / _page(number)).write_text(f"<html><title>{text[:9]}</title><p>{words}{anchors}</html>")


class Fleet:
    """``podman-compose`` with the compose file, and a file with what is so for a test alone."""

    def __init__(self, engine: Engine, image: str) -> None:
        self.engine = engine
        self.faults: list[str] = []
        work = engine.work
        make_site(work / "site")
        names = {"CRAWLER_IMAGE": image, "REDIS_IMAGE": "localhost/redis", "PROMETHEUS_IMAGE": "localhost/prometheus"}
        given = dict.fromkeys(
            re.findall(r"^(\w+)=", (_FOLDER / "env.example").read_text(), flags=re.MULTILINE), "a0b1c2"
        )
        given |= {"SEEDS": ",".join(f"http://{site}:8000/" for site in _SITES), "CRAWLER_CONTACT": "you@example.org"}
        (work / "env").write_text("".join(f"{name}={value}\n" for name, value in {**given, **names}.items()))
        settings = {
            "FETCH_ALLOW_NETWORKS": "172.30.77.0/24", "RENDER": "never", "FLEET_LEASE_SECONDS": _LEASE_SECONDS,
            "FETCH_TIMEOUT_SECONDS": "10", "FLEET_PARTITIONS": "12",
            **dict.fromkeys((f"PACE_{which}_SECONDS" for which in ("MIN", "MAX", "START")), _PAUSE_SECONDS),
        }  # fmt: skip
        worker = {
            "environment": {f"POLITE_{name}": value for name, value in settings.items()},
            "ulimits": {"nofile": 16384, "nproc": 4096},  # podman's own are more than this machine may give
        }
        site = {"image": image, "entrypoint": ["python3", "-u", "-m", "http.server", "--directory", "/site"],
                "command": ["8000"], "volumes": [f"{work}/site:/site:ro"], "ulimits": worker["ulimits"]}  # fmt: skip
        services = {**dict.fromkeys(_WORKERS, worker), **{name: {**site, "hostname": name} for name in _SITES}}
        (work / "more.yaml").write_text(json.dumps({"services": services}))
        (work / "containers.conf").write_text(
            '[containers]\ndefault_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]\n'
        )
        podman = work / "podman"
        podman.write_text(f'#!/bin/sh\nCONTAINERS_CONF={work}/containers.conf exec {shlex.join(engine.words)} "$@"\n')
        podman.chmod(0o755)

    def compose(self, *words: str) -> None:
        """A command of podman-compose."""
        work = self.engine.work
        ways = ("--podman-path", f"{work}/podman", "--env-file", f"{work}/env", "--project-name", "fleet")
        run("podman-compose", *ways, "-f", "compose.yaml", "-f", f"{work}/more.yaml", *words, cwd=_FOLDER)

    def ready(self, worker: str) -> dict[str, Any]:
        """Its place in the fleet, as its /ready has it; empty while it has none."""
        with contextlib.suppress(OSError), _open(f"http://{_WORKERS[worker]}:8765/ready", timeout=20) as answer:
            said: dict[str, Any] = json.load(answer)["workers"][worker]
            return said
        return {}

    def number(self, expression: str) -> float:
        """What Prometheus says; NaN when it has nothing to say."""
        with contextlib.suppress(OSError, LookupError):
            asked = urlencode({"query": expression})
            with _open(f"http://127.0.0.1:9090/api/v1/query?{asked}", timeout=20) as answer:
                return float(json.load(answer)["data"]["result"][0]["value"][1])
        return float("nan")

    def status(self, name: str, what: str = "Status") -> str:
        """Of a container."""
        return self.engine.of(f"fleet_{name}_1", f".State.{what}")

    def wait(self, seen: Callable[[], object], what: str, seconds: float = _SECONDS) -> None:
        """Until it is seen; a fault when it never is."""
        began = time.monotonic()
        while not (good := seen()) and time.monotonic() < began + seconds:
            time.sleep(1)
        self.note(f"{what}, after {time.monotonic() - began:.0f} s", good)

    def note(self, what: str, good: object) -> None:
        """Something that was to be so."""
        print(f"  {'yes' if good else 'NO '}  {what}", flush=True)
        self.faults += [] if good else [f"Not so: {what}"]

    def asked(self) -> list[str]:
        """Every page that was asked for, as often as it was; by the logs of the sites."""
        logs = ((site, self.engine("logs", f"fleet_{site}_1", check=False)) for site in _SITES)
        found = ((site, path) for site, log in logs for path in re.findall(r'"GET (/\S*)', log.stdout + log.stderr))
        return [f"{site}{path}" for site, path in found if path != "/robots.txt"]


def story(fleet: Fleet) -> None:
    """What befalls it."""
    fleet.compose("up", "--detach", "--no-build", "redis", *_SITES, *_WORKERS, "prometheus")
    fleet.wait(lambda: all(map(fleet.ready, _WORKERS)), "three workers are in the fleet")
    for name in ("redis", *_WORKERS):
        checked = fleet.engine("healthcheck", "run", f"fleet_{name}_1", check=False)
        fleet.note(f"{name} is healthy", checked.returncode == 0)
    fleet.wait(lambda: fleet.number("sum(up)") == len(_WORKERS), "Prometheus sees them")
    unowned = "sum(crawler_partitions_held) - max(crawler_partitions)"
    fleet.wait(lambda: fleet.number(unowned) == 0, "every partition has an owner")

    began = time.monotonic()
    fleet.compose("stop", "worker-2")
    took = time.monotonic() - began
    fleet.note(f"one is drained in {took:.0f} s, with status 0", fleet.status("worker-2", "ExitCode") == "0")
    fleet.engine("kill", "--signal", "KILL", "fleet_worker-3_1")
    fleet.wait(lambda: fleet.ready("worker-1").get("held") == fleet.ready("worker-1").get("partitions", -1),
               "the last has all partitions of one that was drained and one that was killed")  # fmt: skip
    fleet.compose("start", "worker-2", "worker-3")
    fleet.wait(lambda: all(map(fleet.ready, _WORKERS)), "both are back")
    fleet.engine("restart", "fleet_redis_1")
    fleet.wait(lambda: all(map(fleet.ready, _WORKERS)), "and so is Redis, with its data")
    for name in _WORKERS:
        fleet.wait(lambda name=name: fleet.status(name) == "exited", f"{name} comes to its end")  # type: ignore[misc]
        fleet.note(f"{name} ends with status 0", fleet.status(name, "ExitCode") == "0")
    asked = fleet.asked()
    fleet.note(f"{len(asked)} requests for {len(set(asked))} of {len(_SITES) * _PAGES} pages",
               len(asked) == len(set(asked)) == len(_SITES) * _PAGES)  # fmt: skip


def main() -> int:
    """0 when all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, help="a Debian, made there by debootstrap")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)  # folder and image, in the namespace
    options = parser.parse_args()
    if options.inside:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # with all containers
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        fleet = Fleet(Engine(Path(options.inside[0])), options.inside[1])
        try:
            story(fleet)
        finally:
            fleet.compose("down", "--volumes", "--timeout", "10")
        print("\n".join(fleet.faults) or "every page once")
        return 1 if fleet.faults else 0
    root = options.base.resolve()
    debian(root)
    work = Path(mkdtemp(prefix="fresh-compose-"))
    work.chmod(0o755)
    try:
        image = images(Engine(work), root)
        apart = [
            "unshare",
            "--net",
            "--mount",
            sys.executable,
            "-m",
            "benchmarks.fresh_root.compose",
            "--base",
            str(root),
        ]
        return subprocess.run([*apart, "--inside", str(work), image], check=False, env=os.environ).returncode
    finally:
        clean(work)


if __name__ == "__main__":
    sys.exit(main())
