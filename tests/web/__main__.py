"""``python -m tests.web --folder DIR``: serve the synthetic web until interrupted.

DIR then holds ``hosts`` (hosts(5)), ``seeds.txt``, ``nevercrawl.txt``, ``expected.txt`` (must be archived),
``forbidden.txt`` (must not be asked for), ``world.json`` (what the judge needs), ``server.jsonl`` and, once it
listens, ``ready``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import signal
from pathlib import Path

from tests.web.graph import Fate, World
from tests.web.profiles.apps import apps_world, many_apps
from tests.web.profiles.broad import broad_world
from tests.web.profiles.changing import changing_world, clock
from tests.web.profiles.consent import consent_world, later_world
from tests.web.profiles.exclusion import exclusion_world
from tests.web.profiles.manners import manners_world
from tests.web.profiles.pushed import pushed_world
from tests.web.profiles.shared import shared_world
from tests.web.profiles.sites import small_world
from tests.web.profiles.traps import traps_world
from tests.web.running import many_files
from tests.web.server import listening_socket, serve

PROFILES = (
    *(
        "small",
        "manners",
        "broad",
        "broad-domain",
        "traps",
        "exclusion",
        "consent",
        "consent-later",
        "apps",
        "many-apps",
        "changing",
        "pushed",
        "shared",
    ),
)


def build(
    profile: str, port: int, hosts: int = 2000, response_seconds: float = 0.05, folder: Path = Path(), pages: int = 10
) -> World:
    """The world of ``profile``.

    ``hosts`` matters to broad and shared, ``response_seconds`` to broad, ``pages`` to shared, ``folder`` to the others.
    """
    if profile in ("broad", "broad-domain"):
        return broad_world(port, hosts, response_seconds, one_domain=profile == "broad-domain")
    if profile == "shared":
        return shared_world(port, hosts, pages)
    if profile == "changing":
        return changing_world(port, clock(folder))
    if profile == "pushed":
        return pushed_world(port, folder)
    if profile in ("traps", "exclusion"):
        return traps_world(port) if profile == "traps" else exclusion_world(port)
    if profile == "consent":
        return consent_world(port)
    if profile == "consent-later":
        return later_world(port)
    if profile == "apps":
        return apps_world(port)
    if profile == "many-apps":
        return many_apps(port, hosts, 10 * hosts)
    return manners_world(port) if profile == "manners" else small_world(port)


def describe(world: World, folder: Path) -> None:
    """Write the files that a crawl of ``world`` and its judge read."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = {
        "seeds.txt": world.seeds,
        "nevercrawl.txt": sorted(world.nevercrawl),
        "expected.txt": sorted(world.expected()),
        "forbidden.txt": sorted(world.forbidden()),
    }
    for name, content in lines.items():
        (folder / name).write_text("".join(f"{line}\n" for line in content))
    (folder / "hosts").write_text(world.hosts_file())
    floors = {site.host: site.floor_seconds for site in world.sites.values() if site.floor_seconds}
    known = {
        "port": world.port,
        "floors": floors,  # host to the seconds that its robots.txt asks for
        "aliases": [sorted(group) for group in world.aliases],
        "optional": sorted(url for url, fate in world.reach().items() if fate is Fate.MAY) + world.extra,
        "endless": sorted(site.host for site in world.sites.values() if site.endless),
    }
    (folder / "world.json").write_text(json.dumps(known, indent=1))


async def run(arguments: argparse.Namespace) -> None:
    folder: Path = arguments.folder
    sock = listening_socket(arguments.port)
    port = sock.getsockname()[1]
    world = build(arguments.profile, port, arguments.hosts, arguments.response_seconds, folder, arguments.pages)
    describe(world, folder)
    server = await serve(sock, world.sites, folder / "server.jsonl")
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    part = folder / "ready.part"
    part.write_text(json.dumps({"port": port, "pid": os.getpid(), "hosts": len(world.sites)}))
    part.rename(folder / "ready")  # a reader that waits for the file sees it whole
    print(f"synthetic web: {len(world.sites)} hosts on port {port}, folder {folder}", flush=True)
    gc.freeze()  # the world never changes: the collector need not look at it again
    await stop.wait()
    server.close()
    (folder / "ready").unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.web", description="Serve the synthetic web on loopback.")
    parser.add_argument("--port", type=int, default=0, help="0 (default) takes any free one")
    parser.add_argument("--folder", type=Path, required=True, help="where hosts, seeds.txt, server.jsonl, ready go")
    parser.add_argument("--profile", choices=PROFILES, default="small")
    parser.add_argument("--hosts", type=int, default=2000, help="broad and shared only")
    parser.add_argument("--pages", type=int, default=10, help="shared only: of each host")
    parser.add_argument("--response-seconds", type=float, default=0.05, help="broad only: time to first byte")
    arguments = parser.parse_args()
    many_files()
    with contextlib.suppress(ImportError):  # three times the requests per core, where it is installed
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run(arguments))


if __name__ == "__main__":
    main()
