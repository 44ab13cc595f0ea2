"""``python -m benchmarks.upload_clouds az|gs COMMAND…``: an archive's way to Azure or Google, and back, by emulators.

COMMAND starts the emulator, with ``{port}`` and ``{folder}`` in it, for example Azurite of npm::

    python -m benchmarks.upload_clouds az azurite-blob --blobPort {port} --location {folder} --skipApiVersionCheck
    python -m benchmarks.upload_clouds gs gcp-storage-emulator start --port {port} --in-memory --default-bucket archive

This interpreter must have adlfs or gcsfs. A crawl's folder is uploaded and removed, and every command that reads from
there must say what it said of the folder; then ``kill -9`` in the middle of uploads, as ``benchmarks.upload_kills``
has it. Exit status 1 when something was lost, doubled or said otherwise.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.upload_kills import Place, run, say
from tests.commands.running import crawl
from tests.stores.uploads.s3_servers import answers
from tests.web.ports import free_port
from tests.web.waiting import wait_until

_BUCKET = "archive"
# Azurite's own account, which is no secret: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


class Cloud(NamedTuple):
    """One kind of place."""

    scheme: str
    environment: Callable[[int], dict[str, str]]


def _azure(port: int) -> dict[str, str]:
    endpoint = f"BlobEndpoint=http://127.0.0.1:{port}/{_ACCOUNT}"
    said = f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};{endpoint};"
    return {"AZURE_STORAGE_CONNECTION_STRING": said}


def _google(port: int) -> dict[str, str]:
    # The second: gcsfs asks for the bucket's type by a way that the emulator has no credentials for, and warns.
    return {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}


CLOUDS = {"az": Cloud("az", _azure), "gs": Cloud("gs", _google)}


@contextmanager
def emulator(command: list[str], folder: Path) -> Iterator[int]:
    """The emulator, until the block ends; its port."""
    port = free_port()
    told = [word.format(port=port, folder=folder) for word in command]
    with (folder / "emulator.log").open("wb") as log, subprocess.Popen(told, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: answers(port), f"{told[0]} answers", process=process, log=folder / "emulator.log")
            yield port
        finally:
            process.terminate()


def files_of(cloud: Cloud) -> Any:
    """The far side, past every proxy; with a bucket."""
    from crawlerproject.stores.uploads.upload_target import filesystem

    files = filesystem(f"{cloud.scheme}://", use_listings_cache=False)
    if not files.exists(_BUCKET):
        files.mkdir(_BUCKET)
    return files


def place_in(cloud: Cloud, files: Any, port: int) -> Place:
    """Where what is killed goes."""
    root = f"{_BUCKET}/kills/"

    def there() -> dict[str, bytes]:
        files.invalidate_cache()
        return {name.removeprefix(root): files.cat_file(name) for name in files.find(root)}

    return Place(port, f"{cloud.scheme}://{_BUCKET}/kills", cloud.environment, there, list)


def read_back(cloud: Cloud, home: Path) -> list[str]:
    """Upload a crawl, remove it here, and read it from there; what is not as it was."""
    before, url = home / "before", f"{cloud.scheme}://{_BUCKET}/read"
    page = crawl(before)[4]
    left = shutil.copytree(before, home / "left")
    problems = []
    place = ["-s", f"ARCHIVE_URL={url}", "-s", "ARCHIVE_KEEP_LOCAL=False"]
    uploaded = _scrapy("upload", str(left), *place)
    if uploaded.returncode or list((left / "warc").iterdir()):
        return [f"upload: {uploaded.stderr or uploaded.stdout}"]
    for words in (["lookup", page], ["show", page]):
        expected = _scrapy(*words, "-s", f"CRAWL_DIR={before}")
        for where in (url, str(left)):
            found = _scrapy(*words, "-s", f"CRAWL_DIR={where}")
            if found.stdout != expected.stdout or not found.stdout:
                problems.append(f"{words[0]} of {where}: {found.stdout}{found.stderr}")
    for words, said in (
        (["verify", url], "20 captures: all is well"),
        (["process", url, "--out", str(home / "rows"), "--workers", "1"], ""),
        (["wacz", url, "-o", str(home / "all.wacz")], "1 WARC file, 20 pages"),
        (["upload", str(left), "--check", *place], ""),
    ):
        found = _scrapy(*words)
        if found.returncode or said not in found.stdout:
            problems.append(f"{words[0]}: {found.stdout}{found.stderr}")
    return problems


def _scrapy(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cloud", choices=CLOUDS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    cloud = CLOUDS[given.cloud]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with emulator(given.command, home) as port:
            print(shlex.join(given.command))
            os.environ |= cloud.environment(port)
            place = place_in(cloud, files_of(cloud), port)
            problems = read_back(cloud, home)
            print(*problems, f"{len(problems)} commands said otherwise of what is there", sep="\n")
            return say(run(given.rounds, given.seed, home, place=place)) or bool(problems)


if __name__ == "__main__":
    sys.exit(main())
