"""A pywb of the operator's that replays an archive on loopback: how it is found, started and ended; its index.

Gives a program on this machine the bytes of files that lie at another place: over HTTP, on loopback, by ranges.

Under an address that cannot be guessed, since every program on this machine may ask. Nothing but the files that were
named can be had.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from scrapy.utils.conf import closest_scrapy_cfg

from crawlerproject.errors import OperatorError, StorageError
from crawlerproject.rules.archive import index_rows
from crawlerproject.stores.atomic_files import write_whole
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, OPEN_SUFFIX, WARC_SUFFIX, CrawlDir, archive_of_stem
from crawlerproject.stores.index.index_files import CDXJ_SUFFIX, JOURNAL_SUFFIX, shown_lines
from crawlerproject.stores.operator_files.watched_lists import withdrawn_from

if TYPE_CHECKING:
    from crawlerproject.stores.uploads.distant import DistantPath  # a start loads nothing of uploads

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
_TEMPLATES = "templates"  # where pywb looks first, below the folder that it runs in (2.10, templateview.py)
_FILE_MODE = 0o644  # as files have by default


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


def write_first_page(folder: Path, page: str) -> None:
    """Have pywb open with this page, which is no template of its own: what strangers wrote is not carried out."""
    (folder / _TEMPLATES).mkdir(exist_ok=True)
    text = "{% raw %}" + str(page).replace("{%", "&#123;%") + "{% endraw %}"  # Markup would escape the entity
    write_whole(folder / _TEMPLATES / "search.html", text.encode(), _FILE_MODE)
    # Of the only collection, in place of the list of collections.
    leads = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url=/{COLLECTION}/">'
    write_whole(folder / _TEMPLATES / "index.html", leads.encode(), _FILE_MODE)


def _wait(process: subprocess.Popen[bytes], program: str, port: int, log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((ADDRESS, port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > until:
            words = log.read_bytes()[-_LAST_WORDS_BYTES:].decode("utf-8", "replace").strip().splitlines()
            raise OperatorError(f"pywb ({program}) did not start: {words[-1] if words else 'it printed nothing'}")
        time.sleep(_LOOK_SECONDS)


class _Journal:
    """The rows of one open WARC file as lines of an index; each byte of the journal is read once."""

    def __init__(self, path: Path, filename: str) -> None:
        self._path = path
        self._filename = filename
        self._inode, self._read_bytes = 0, 0
        self._lines: dict[int, bytes] = {}  # by where the capture begins; after a cut an offset is used again

    def grown(self) -> bool:
        """Whether there is more than before; raises FileNotFoundError for one that was closed a moment ago."""
        with self._path.open("rb") as file:
            found = self._path.stat()
            if found.st_ino != self._inode or found.st_size < self._read_bytes:  # it was cut
                self._inode, self._read_bytes = found.st_ino, 0
                self._lines.clear()
            file.seek(self._read_bytes)
            before = self._read_bytes
            for line in file:
                if not line.endswith(b"\n"):  # the rest is still to be written
                    break
                self._read_bytes += len(line)
                if (row := index_rows.unpack(line)) is not None:
                    self._lines[row.start] = index_rows.line(row, self._filename) + b"\n"
        return self._read_bytes != before

    def lines(self) -> bytes:
        """Sorted, as in a finished index."""
        return b"".join(shown_lines(sorted(set(self._lines.values())), withdrawn_from(self._path)))


class ReplayIndex:
    """``indexes`` holds one CDXJ file a WARC file, ``paths`` a line a WARC file: its name, then where it may be."""

    def __init__(self, folder: Path, distant: Callable[[Path], str | None] = lambda path: None) -> None:
        """``distant``: the address of a WARC file at another place, None of one that is here."""
        self._distant = distant
        self.indexes = folder / "indexes"
        self.paths = folder / "paths"
        self.indexes.mkdir()
        self._journals: dict[str, _Journal] = {}
        self._linked: dict[str, Path] = {}
        self._changes = 0

    def refresh(self, folders: Sequence[CrawlDir], elsewhere: Sequence[Path] = ()) -> tuple[str, ...]:
        """Take in what has changed in the folders of one crawl; the closed WARC files that have no index.

        ``elsewhere`` are files that were removed from these folders.
        """
        # Journals first: one that is closed meanwhile is then found among the closed ones.
        journals = {path.name.removesuffix(JOURNAL_SUFFIX): path for path in _all(folders, JOURNAL_SUFFIX)}
        indexes = [path for path in elsewhere if path.name.endswith(CDXJ_SUFFIX)]
        closed = {path.name.removesuffix(CDXJ_SUFFIX): path for path in (*indexes, *_all(folders, CDXJ_SUFFIX))}
        warcs = [path for folder in folders for path in (*folder.closed_warcs(), *folder.open_warcs())]
        warcs += [path for path in elsewhere if path.name.endswith(ARCHIVE_SUFFIXES)]
        self._list_paths(warcs)
        for stem, index in closed.items():
            if self._linked.get(stem) != index:
                self._link(stem, index)
        for stem, journal in journals.items():
            if stem not in closed:
                self._copy(stem, journal)
        for stem in [stem for stem in (*self._linked, *self._journals) if stem not in closed | journals]:
            self._place(stem).unlink(missing_ok=True)
            self._linked.pop(stem, None)
            self._journals.pop(stem, None)
        if self.indexes.stat().st_mtime != self._changes:
            # Seen as a change: pywb lists a folder again when its time differs by whole seconds (2.10, aggregator.py).
            self._changes += 1
            os.utime(self.indexes, (self._changes, self._changes))
        stems = {path.name.removesuffix(WARC_SUFFIX) for path in warcs if path.name.endswith(ARCHIVE_SUFFIXES)}
        return tuple(sorted(map(archive_of_stem, stems - closed.keys() - journals.keys())))

    def _list_paths(self, warcs: Iterable[Path]) -> None:
        """Each file under both of its names, since it may be closed between two looks."""
        lines = set()
        for warc in warcs:
            whole = str(warc.resolve()).removesuffix(OPEN_SUFFIX)
            name = warc.name.removesuffix(OPEN_SUFFIX)
            places = self._distant(warc) or f"{whole}\t{whole}{OPEN_SUFFIX}"
            lines.add(f"{name}\t{places}\n".encode())
        content = b"".join(sorted(lines))
        if not self.paths.exists() or self.paths.read_bytes() != content:
            write_whole(self.paths, content, _FILE_MODE)

    def _link(self, stem: str, index: Path) -> None:
        if self._distant(index) is not None:
            lines = index.read_bytes().splitlines(keepends=True)
            write_whole(self._place(stem), b"".join(shown_lines(lines, withdrawn_from(index))), _FILE_MODE)
        else:
            link = self.indexes / f"{stem}.link"
            link.unlink(missing_ok=True)
            link.symlink_to(index.resolve())
            link.replace(self._place(stem))
        self._linked[stem] = index
        self._journals.pop(stem, None)

    def _copy(self, stem: str, path: Path) -> None:
        journal = self._journals.setdefault(stem, _Journal(path, f"{stem}{WARC_SUFFIX}"))
        with suppress(FileNotFoundError):  # its index is there at the next look
            if journal.grown():
                write_whole(self._place(stem), journal.lines(), _FILE_MODE)

    def _place(self, stem: str) -> Path:
        return self.indexes / f"{stem}{CDXJ_SUFFIX}"


def _all(folders: Sequence[CrawlDir], suffix: str) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.index.glob(f"*{suffix}"))]


_ADDRESS = "127.0.0.1"
_TOKEN_BYTES = 16
_RANGE = re.compile(r"bytes=(\d{1,19})-(\d{1,19})?")
# Read at a time from the other side, and passed on.
_SPAN_BYTES = 8 << 20


class RangeServer(ThreadingHTTPServer):
    """The files, by name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__((_ADDRESS, 0), _Handler)
        self._home = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}"
        self._files: dict[str, DistantPath] = {}
        self._sizes: dict[str, int] = {}

    def address(self, path: DistantPath) -> str:
        """Where a file can be had from now on."""
        self._files[path.name] = path
        return f"http://{_ADDRESS}:{self.server_port}{self._home}/{path.name}"

    def file(self, asked: str) -> DistantPath | None:
        """What stands under the path of an address."""
        home, _, name = asked.rpartition("/")
        return self._files.get(name) if secrets.compare_digest(home.encode(), self._home.encode()) else None

    def size(self, path: DistantPath) -> int:
        """Bytes of a file; what was closed does not change. Raises FileNotFoundError, TargetError."""
        if path.name not in self._sizes:
            self._sizes[path.name] = path.stat().st_size
        return self._sizes[path.name]


@contextmanager
def ranges_served() -> Iterator[RangeServer]:
    """A server, until the block ends."""
    server = RangeServer()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """One range, or all of a file."""
        files = self.server
        assert isinstance(files, RangeServer)
        path = files.file(self.path)
        asked = _RANGE.fullmatch(self.headers.get("Range", "bytes=0-"))
        if path is None or asked is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            size = files.size(path)
            start, end = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
            first = path.span(start, min(end, start + _SPAN_BYTES)) if start < end else b""
        except FileNotFoundError:
            self.send_error(HTTPStatus.NOT_FOUND)
        except (StorageError, OSError):
            self.send_error(HTTPStatus.BAD_GATEWAY)
        else:
            self._give(path, first, (start, end), size)

    def _give(self, path: DistantPath, first: bytes, span: tuple[int, int], size: int) -> None:
        start, end = span
        if start >= end:
            self.send_error(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
            return
        self.send_response(HTTPStatus.PARTIAL_CONTENT)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            while first:
                self.wfile.write(first)
                start += len(first)
                first = path.span(start, min(end, start + _SPAN_BYTES)) if start < end else b""
        except (StorageError, OSError):  # it has what came so far, and sees that it is not all
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the address is a secret."""
