"""pywb in a process of its own, which replays a crawl's archive through our index."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.web.ports import free_port
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

TOOLS = PROJECT / ".venv-tools" / "bin"
_START_SECONDS = 60.0


@contextlib.contextmanager
def pywb_of(crawled: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """Where pywb listens; its collection is ``crawl``, its own files go into ``folder``."""
    config: dict[str, Any] = {"index_paths": str(crawled / "index"), "archive_paths": f"{crawled / 'warc'}/"}
    (folder / "config.yaml").write_text(json.dumps({"collections": {"crawl": config}}))
    port = free_port()
    command: list[str | Path] = [TOOLS / "wayback", "--bind", "127.0.0.1", "--port", str(port)]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: _listens(port), seconds=_START_SECONDS, process=process, log=folder / "log")
            yield "127.0.0.1", port
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ask(server: tuple[str, int], path: str) -> tuple[str, bytes]:
    """Status and body; by hand, since a client that reads headers strictly stumbles over the ugly ones."""
    with socket.create_connection(server, timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split()[1].decode(), body
