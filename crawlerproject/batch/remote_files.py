"""Files that are read by byte range, here or at an HTTP address: politely, one request at a time."""

from __future__ import annotations

import io
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.stores.uploads.distant import SpanFile

_TIMEOUT_SECONDS = 60.0
# A server that is asked too often says so; it is left alone, longer each time.
_TRIES = 6
_REST_SECONDS = 2.0
_BUSY = (429, 500, 502, 503, 504)
# Parquet's footer and column chunks are read in pieces of at least this much.
_BLOCK_BYTES = 256 * 1024


class Distant:
    """One place of files: a folder or an HTTP address, with a pause between requests to the latter."""

    def __init__(
        self, base: str, user_agent: str, pause_seconds: float, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.base = base
        self.requests = 0
        self._user_agent = user_agent
        self._pause_seconds = pause_seconds
        self._sleep = sleep

    def read(self, name: str, offset: int | None = None, length: int = 0) -> bytes:
        """A whole file, or a span of it. Raises OperatorError when it cannot be had."""
        place = _joined(self.base, name)
        if "://" not in place:
            return _read_here(Path(place), offset, length)
        headers = {"User-Agent": self._user_agent, "Accept-Encoding": "identity"}
        if offset is not None:
            headers["Range"] = f"bytes={offset}-{offset + length - 1}"
        body = self._asked(urllib.request.Request(place, headers=headers))
        return body[offset : offset + length] if offset is not None and len(body) > length else body

    def size(self, name: str) -> int:
        """Bytes of a file."""
        place = _joined(self.base, name)
        if "://" not in place:
            try:
                return Path(place).stat().st_size
            except OSError as error:
                raise OperatorError(f"{place} cannot be read ({error.strerror}).") from error
        request = urllib.request.Request(place, headers={"User-Agent": self._user_agent}, method="HEAD")
        self._rest()
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                return int(answer.headers["Content-Length"])
        except (OSError, TypeError, ValueError) as error:
            raise OperatorError(f"{place} cannot be read: {error}.") from error

    def _asked(self, request: urllib.request.Request) -> bytes:
        for attempt in range(_TRIES):
            self._rest()
            try:
                with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
                    body: bytes = answer.read()
                    return body
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY or attempt + 1 == _TRIES:
                    raise OperatorError(f"{request.full_url} answers {error.code} {error.reason}.") from error
                asked = error.headers.get("Retry-After", "")
                self._sleep(float(asked) if asked.isdigit() else _REST_SECONDS * 2**attempt)
            except OSError as error:
                if attempt + 1 == _TRIES:
                    raise OperatorError(f"{request.full_url} cannot be reached: {error}.") from error
                self._sleep(_REST_SECONDS * 2**attempt)
        raise AssertionError("unreachable")

    def _rest(self) -> None:
        if self.requests:
            self._sleep(self._pause_seconds)
        self.requests += 1


def buffered(distant: Distant, name: str, block_bytes: int = _BLOCK_BYTES) -> io.BufferedReader:
    """A file as pyarrow reads one: the spans that are wanted are fetched, a little more at a time unless asked."""
    spans = SpanFile(distant.size(name), lambda start, end: distant.read(name, start, end - start))
    return io.BufferedReader(spans, block_bytes)


def _joined(base: str, name: str) -> str:
    if "://" in name or not base or name.startswith("/"):
        return name
    return f"{base.rstrip('/')}/{name}"


def _read_here(path: Path, offset: int | None, length: int) -> bytes:
    try:
        with path.open("rb") as file:
            if offset is None:
                return file.read()
            file.seek(offset)
            return file.read(length)
    except OSError as error:
        raise OperatorError(f"{path} cannot be read ({error.strerror}).") from error
