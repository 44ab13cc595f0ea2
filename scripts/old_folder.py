"""Make a crawl folder of an earlier version, as tests/crawls/test_old_folders.py continues it.

``git worktree add /tmp/1.4.0 COMMIT``, then ``python scripts/old_folder.py /tmp/1.4.0 1.4.0``: that checkout crawls
half of tests/web/fixed.py, dies by ``kill -9``, and its folder is packed into tests/fixtures/folders/VERSION.tar.xz.
With ``--fleet`` two workers do so, as ``scrapy fleet`` starts them, and die with their supervisor; their folder goes to
tests/fixtures/fleets. Both are to be run once for each release, right after it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.crawls.fleet.local_fleets import children_of, command_line  # noqa: E402
from tests.web.fixed import HALF, OF_FLEETS, SITES, FixedWeb, fixed_web, settings, url  # noqa: E402
from tests.web.waiting import wait_until  # noqa: E402
from tests.web.zygote import direct  # noqa: E402

FIXTURES = ROOT / "tests" / "fixtures"
WORKERS = 2
# A commit of what was answered, and another one.
_COMMITS_SECONDS = 3.0


def main(checkout: Path, version: str, *, fleet: bool) -> int:
    """Crawl, kill, pack."""
    with tempfile.TemporaryDirectory() as here, fixed_web(Path(here)) as web:
        folder = Path(here) / "crawl"
        command = ["fleet", "--workers", str(WORKERS)] if fleet else ["crawl", "web"]
        command += ["-a", f"seeds={url(SITES[0])}", *settings(web, folder, **(OF_FLEETS if fleet else {}))]
        _half_crawled(web, checkout, command)
        into = FIXTURES / ("fleets" if fleet else "folders")
        into.mkdir(parents=True, exist_ok=True)
        packed = into / f"{version}.tar.xz"
        with tarfile.open(packed, "w:xz", preset=9) as archive:
            archive.add(folder, version, filter=_kept)
    print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size:,} bytes")
    return 0


def _half_crawled(web: FixedWeb, checkout: Path, command: list[str]) -> None:
    web.open_to = HALF
    environment = direct(PYTHONPATH=str(checkout), PYTHONDONTWRITEBYTECODE="1", XDG_CONFIG_HOME="/nonexistent")
    with subprocess.Popen([sys.executable, "-m", "scrapy", *command], cwd=checkout, env=environment) as crawl:
        try:
            wait_until(lambda: {url(site, f"/{HALF - 1}") for site in SITES} <= set(web.asked), process=crawl)
            time.sleep(_COMMITS_SECONDS)
        finally:
            workers = children_of(crawl.pid)
            crawl.kill()
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not any(map(command_line, workers)), "all are dead")


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Of no user, and without RocksDB's account of its work; sockets are none."""
    if Path(entry.name).name.startswith(("LOG", "LOCK")) or not (entry.isdir() or entry.isreg()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=lambda path: Path(path).resolve())
    parser.add_argument("version")
    parser.add_argument("--fleet", action="store_true")
    raise SystemExit(main(**vars(parser.parse_args())))
