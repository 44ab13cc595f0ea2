"""Copies of partitions at the place where the archive goes: objects that are put there once and never changed.

An object has a new name each time, and counts once Redis names it (``stores/redis/copies.py``), with its size and its
digest. Threads ask the place, so that leases are renewed meanwhile, and what hangs there holds nothing up at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from hashlib import sha256
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import uuid4

from crawlerproject.errors import TargetError
from crawlerproject.rules.archive.upload_rules import FIRST_PART_BYTES, SCHEMES
from crawlerproject.stores.row_codec import join_parts, split_parts

if TYPE_CHECKING:
    from crawlerproject.stores.uploads.upload_target import UploadTarget

MOST_BYTES = FIRST_PART_BYTES
"""Of an object: it goes up in one request, and is read as a whole before any of it counts."""
# Objects that are on their way at once.
_AT_ONCE = 4
# How often one is sent until the place counts as away.
_TRIES = 3
_TICK_SECONDS = 0.5
_FOLDER = "/partitions/"
_MARK = b"@"  # no compressed part begins so

_T = TypeVar("_T")
Tick = Callable[[], None]


class CopyDamaged(TargetError):
    """An object is missing, or is not what was put there: waiting does not help."""


class Placed(NamedTuple):
    """An object that was put there, as Redis names it instead of a part of a copy."""

    size: int
    sha256: str
    address: str

    def packed(self) -> bytes:
        """As ``placed`` reads it; the scripts of ``stores/redis/copies.py`` find the address in it."""
        return f"@{self.size} {self.sha256} {self.address}".encode()


def placed(entry: bytes) -> Placed | None:
    """What an entry of a copy's list names; None: it is a part itself."""
    if not entry.startswith(_MARK):
        return None
    size, digest, address = entry[1:].decode().split(" ", 2)
    return Placed(int(size), digest, address)


def copies_url(archive_url: str) -> str:
    """Where copies go when the archive goes to ``archive_url``: "" is Redis, for what other machines may not see."""
    scheme = archive_url.partition("://")[0]
    return archive_url.rstrip("/") if scheme in SCHEMES and scheme != "file" else ""


class CopyPlace:
    """Where new objects go; those of any place are read, and removed. All of it raises TargetError."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._targets: dict[str, UploadTarget] = {}
        self._opening = Lock()

    def new_address(self, crawl: str, partition: int) -> str:
        """Of an object that is not there yet, and never was."""
        return f"{self.url}{_FOLDER}{quote(crawl, safe='')}/{partition}/{uuid4().hex}"

    def put(self, address: str, parts: list[bytes]) -> Placed:
        """Put parts there as one object, which the place confirms."""
        data = join_parts(parts)
        target, name = self._found(address)
        for left in reversed(range(_TRIES)):
            try:
                what = target.put(name, data)
            except TargetError:
                if not left:
                    raise
            else:
                break
        return Placed(what.size, what.sha256, address)

    def read(self, wanted: Placed) -> list[bytes]:
        """The parts of an object. Raises CopyDamaged."""
        target, name = self._found(wanted.address)
        try:
            data = b"".join(target.read(name))
        except TargetError:
            if target.look(name) is not None:
                raise
            raise CopyDamaged(f"{wanted.address} is missing") from None
        if len(data) != wanted.size or sha256(data).hexdigest() != wanted.sha256:
            raise CopyDamaged(f"{wanted.address} is damaged")
        return list(split_parts(data))

    def remove(self, address: str) -> None:
        """Remove an object, which may be missing."""
        target, name = self._found(address)
        target.remove(name)

    def resolved(self, entries: Iterable[bytes], tick: Tick | None = None) -> Iterator[bytes]:
        """The parts that the entries of a copy's list are or name, in their order. Raises CopyDamaged."""
        coming: deque[Future[list[bytes]]] = deque()
        for entry in entries:
            wanted = placed(entry)
            if wanted is None:
                yield entry
                continue
            coming.append(begun(lambda wanted=wanted: self.read(wanted)))  # type: ignore[misc]
            if len(coming) == _AT_ONCE:
                yield from waited(coming.popleft(), tick)
        while coming:
            yield from waited(coming.popleft(), tick)

    def _found(self, address: str) -> tuple[UploadTarget, str]:
        from crawlerproject.stores.uploads.upload_target import open_target  # only where there is a place

        root, _, name = address.rpartition(_FOLDER)
        with self._opening:
            if root not in self._targets:
                self._targets[root] = open_target(root)
            return self._targets[root], _FOLDER.lstrip("/") + name


def begun(do: Callable[[], _T]) -> Future[_T]:
    """Have it done by a thread that the process does not wait for at its end."""
    made: Future[_T] = Future()

    def work() -> None:
        try:
            made.set_result(do())
        except BaseException as error:
            made.set_exception(error)

    Thread(target=work, daemon=True).start()
    return made


def waited(future: Future[_T], tick: Tick | None) -> _T:
    """Its result; ``tick`` is called meanwhile, and may raise."""
    while True:
        try:
            return future.result(_TICK_SECONDS)
        except TimeoutError:
            if future.done():
                raise
            if tick is not None:
                tick()
