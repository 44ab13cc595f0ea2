"""Writing that is whole or not at all, and the errors of a disk that cannot take it."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from crawlerproject.errors import StorageError

logger = logging.getLogger(__name__)

_COPIED_BYTES = 1 << 20
# Permissions of what is new: the operator's alone, or as the umask says.
SECRET_FILE = 0o600
SECRET_FOLDER = 0o700
_ANY = 0o666
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class StorageFull(StorageError):
    """The disk (or the quota) has no room; the crawl pauses until there is some."""


class storage_errors:  # noqa: N801 - used as a function
    """A ``with`` block that turns an OSError into a StorageError that names the file."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise storage_error(self._path, error) from error


def storage_error(path: Path, error: OSError) -> StorageError:
    """What an error of the system means for the file that was written."""
    refused = StorageFull if error.errno in _NO_ROOM else StorageError
    return refused(f"cannot write {path}: {error.strerror}")


def require_room(folder: str, least_bytes: int) -> None:
    """Raise StorageError where the disk has too little room to begin a change of the frontier."""
    disk = os.statvfs(folder)
    if disk.f_bavail * disk.f_frsize < least_bytes:
        raise StorageError(f"less than {least_bytes >> 20} MB free where the frontier is ({folder})")


def write_at(descriptor: int, data: bytes, offset: int) -> None:
    """Write all of ``data`` at ``offset``, or cut the file back to ``offset`` and raise the OSError."""
    try:
        written = os.pwrite(descriptor, data, offset)
        while written < len(data):  # a short write mostly means that the next one says why
            more = os.pwrite(descriptor, memoryview(data)[written:], offset + written)
            if more == 0:
                raise OSError(errno.EIO, "the disk took no more bytes")
            written += more
    except OSError:
        with suppress(OSError):  # what stays is overwritten by the next write at this offset
            os.ftruncate(descriptor, offset)
        raise


def new_file(path: Path, mode: int = _ANY) -> BinaryIO:
    """A file of ours at ``path``, for writing: what was there, such as a link that another user put there, is not
    followed but removed. ``mode`` as for ``os.open``, less the umask.
    """
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode), "wb")


def half_file(path: Path) -> Path:
    """What ``whole_file`` writes until it is whole."""
    return path.with_name(f"{path.name}.part")


@contextmanager
def whole_file(path: Path, mode: int = _ANY, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file for writing that takes the place of ``path`` when the block ends, and leaves nothing when the block fails.

    A reader sees the old file or the new one, never a part; so does a power loss when it is ``durable``. OSError.
    """
    part = half_file(path)
    try:
        with new_file(part, mode) as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
        if durable:
            sync_path(path.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # of writing: the system names no file
            error.filename = str(path)
        raise


def replace_file(path: Path, data: bytes, mode: int = _ANY, *, durable: bool = True) -> None:
    """Put ``data`` in place of ``path``, whole (``whole_file``). StorageError."""
    with storage_errors(path), whole_file(path, mode, durable=durable) as file:
        file.write(data)


def write_whole(path: Path, data: bytes, mode: int = _ANY) -> None:
    """``replace_file`` for what is about this moment only: a power loss may lose the old and the new."""
    replace_file(path, data, mode, durable=False)


def put_back(descriptor: int, path: Path, flags: int = 0) -> int:
    """Make the file of an open descriptor again under its name when that was removed; the descriptor to go on with.

    What was written is there as long as the descriptor is open (which must be one to read by). Raises StorageError.
    """
    size = os.fstat(descriptor)
    if size.st_nlink:
        return descriptor
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | flags, 0o644)
        try:
            for start in range(0, size.st_size, _COPIED_BYTES):
                write_at(made, os.pread(descriptor, _COPIED_BYTES, start), start)
            os.fsync(made)
            sync_path(path.parent)
        except OSError:
            os.close(made)
            path.unlink(missing_ok=True)
            raise
    os.close(descriptor)
    logger.warning("%s was removed while it is written; it was made again with all that it held", path)
    return made


@contextmanager
def opened(path: Path, flags: int, mode: int = _ANY) -> Iterator[int]:
    """A descriptor, as of ``os.open``, that is closed when the block ends. OSError."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def append_lines(path: Path, text: bytes, mode: int, flags: int = 0, *, first: bytes = b"") -> None:
    """Append whole lines, durably: a reader sees all of them or none. OSError.

    A line that was left without an end gets one; ``first`` is what an empty file begins with.
    """
    with opened(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | flags, mode) as descriptor:
        size = os.fstat(descriptor).st_size
        begin = first if not size else b"" if os.pread(descriptor, 1, size - 1) == b"\n" else b"\n"
        os.write(descriptor, begin + text + b"\n")
        os.fsync(descriptor)


def sync_path(path: Path) -> None:
    """Make what is in a file, or renames, new and removed names in a folder, survive a power loss."""
    with opened(path, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def unused(path: Path) -> Path:
    """``path``, or the same with a number before its last suffix, so that nothing is overwritten."""
    candidate, number = path, 0
    while candidate.exists():
        number += 1
        candidate = path.with_name(f"{path.stem}.{number}{path.suffix}")
    return candidate
