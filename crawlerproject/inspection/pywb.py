"""A pywb of the operator's that replays an archive on loopback: how it is found, started and ended."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scrapy.utils.conf import closest_scrapy_cfg

from crawlerproject.errors import OperatorError
from crawlerproject.inspection.replay_index import ReplayIndex

ADDRESS = "127.0.0.1"
COLLECTION = "crawl"
"""As it stands in each address of a replayed page."""
_PROGRAM = "wayback"
# Where `make tools` and the sentence below bring it: pywb asks for other versions of what we use.
_ENVIRONMENT = ".venv-tools"
_INSTALL = (
    f"python3 -m venv {_ENVIRONMENT} && {_ENVIRONMENT}/bin/pip install pywb==2.10.0 'setuptools<81'"  # pkg_resources
)
# A second on an idle machine (measured); beside a crawl it may be many.
_START_SECONDS = 120.0
_END_SECONDS = 10.0
_LOOK_SECONDS = 0.05
_LAST_WORDS_BYTES = 2000


def find_wayback(configured: str) -> str:
    """pywb's program: REPLAY_COMMAND, else in .venv-tools (here or of the project), else on the PATH. OperatorError."""
    if configured:
        path = os.path.expanduser(configured)
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            raise OperatorError(f"REPLAY_COMMAND={configured} is no program; give the path of pywb's {_PROGRAM}.")
        return os.path.abspath(path)
    project = Path(closest_scrapy_cfg()).parent  # of a checkout; here, where there is none
    for home in (Path(_ENVIRONMENT).absolute(), project / _ENVIRONMENT):
        if os.access(program := home / "bin" / _PROGRAM, os.X_OK):
            return str(program)
    if found := shutil.which(_PROGRAM) or shutil.which(_PROGRAM, path=os.path.dirname(sys.executable)):
        return found
    raise OperatorError(f"scrapy replay shows an archive with pywb, which is not installed; this brings it: {_INSTALL}")


def port_of(wanted: int) -> int:
    """``wanted``, or one that is free for 0. Raises OperatorError when another program listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, wanted))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise OperatorError(f"Port {wanted} of {ADDRESS} is not to be had ({why}); give another --port.") from None
        return int(probe.getsockname()[1])


@contextmanager
def wayback(program: str, index: ReplayIndex, folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """pywb, from when it answers until the block ends; ``folder`` is for its own files. Raises OperatorError."""
    collection = {"index_paths": str(index.indexes), "archive_paths": str(index.paths)}
    settings = {"collections": {COLLECTION: collection}, "enable_auto_colls": False}
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML
    log = folder / "pywb.txt"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [program, "--bind", ADDRESS, "--port", str(port)],
            cwd=folder,
            env={**os.environ, "NO_PROXY": ADDRESS, "no_proxy": ADDRESS},  # files elsewhere come by loopback
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for this process, which ends it
        ) as process,
    ):
        try:
            _wait(process, program, port, log)
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)
            process.kill()


def _wait(process: subprocess.Popen[bytes], program: str, port: int, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > until:
            words = log.read_bytes()[-_LAST_WORDS_BYTES:].decode("utf-8", "replace").strip().splitlines()
            raise OperatorError(f"pywb ({program}) did not start: {words[-1] if words else 'it said nothing'}")
        time.sleep(_LOOK_SECONDS)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) == 0
