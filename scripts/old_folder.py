"""Make a crawl folder of an earlier version, as tests/crawls/test_old_folders.py continues it.

``git worktree add /tmp/1.4.0 COMMIT``, then ``python scripts/old_folder.py /tmp/1.4.0 1.4.0``: that checkout crawls
half of tests/web/fixed.py, dies by ``kill -9``, and its folder is packed into tests/fixtures/folders/VERSION.tar.xz. To
be run once for each release, right after it.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.web.fixed import HALF, SITES, FixedWeb, fixed_web, settings, url  # noqa: E402
from tests.web.waiting import wait_until  # noqa: E402
from tests.web.zygote import direct  # noqa: E402

FOLDERS = ROOT / "tests" / "fixtures" / "folders"
# A commit of what was answered, and another one.
_COMMITS_SECONDS = 3.0


def main(checkout: Path, version: str) -> int:
    """Crawl, kill, pack."""
    with tempfile.TemporaryDirectory() as here, fixed_web(Path(here)) as web:
        folder = Path(here) / "crawl"
        _half_crawled(web, checkout, folder)
        FOLDERS.mkdir(parents=True, exist_ok=True)
        packed = FOLDERS / f"{version}.tar.xz"
        with tarfile.open(packed, "w:xz", preset=9) as archive:
            archive.add(folder, version, filter=_kept)
    print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size:,} bytes")
    return 0


def _half_crawled(web: FixedWeb, checkout: Path, folder: Path) -> None:
    web.open_to = HALF
    command = [sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={url(SITES[0])}", *settings(web, folder)]
    environment = {**direct(), "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, cwd=checkout, env=environment) as crawl:
        try:
            wait_until(lambda: {url(site, f"/{HALF - 1}") for site in SITES} <= set(web.asked), process=crawl)
            time.sleep(_COMMITS_SECONDS)
        finally:
            crawl.kill()


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Nobody's, and without RocksDB's account of its work."""
    if Path(entry.name).name.startswith(("LOG", "LOCK")):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
