"""``scrapy replay``: a real pywb that replays a crawl's archive through our index."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.web import zygote
from tests.web.running import PROJECT
from tests.web.waiting import wait_until

TOOLS = PROJECT / ".venv-tools" / "bin"
_START_SECONDS = 60.0
_END_SECONDS = 30.0


@contextlib.contextmanager
def pywb_of(crawled: Path | str, folder: Path) -> Iterator[tuple[str, int]]:
    """Where pywb listens; its collection is ``crawl``. What the command says goes into ``folder``; it ends well."""
    command = [sys.executable, "-m", "scrapy", "replay", str(crawled), "--port", "0"]
    log = folder / "replay.log"
    with log.open("wb") as told:
        process = zygote.Process(command, told)
    try:
        wait_until(lambda: _address(log), seconds=_START_SECONDS, process=process, log=log)
        address = _address(log)
        assert address is not None
        yield address
    except BaseException:
        process.terminate()
        raise
    served_by = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGINT)
    assert process.wait(_END_SECONDS) == 0, log.read_text()
    assert served_by
    assert not [pid for pid in served_by if Path("/proc", pid).exists()]


def _address(log: Path) -> tuple[str, int] | None:
    found = re.search(r"http://([\d.]+):(\d+)/crawl/ shows ", log.read_text())
    return (found[1], int(found[2])) if found else None


def ask(server: tuple[str, int], path: str) -> tuple[str, bytes]:
    """Status and body; by hand, since a client that reads headers strictly stumbles over the ugly ones."""
    with socket.create_connection(server, timeout=30) as connection:
        connection.sendall(f"GET {path} HTTP/1.0\r\nAccept-Encoding: gzip, deflate, br\r\n\r\n".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split()[1].decode(), body
