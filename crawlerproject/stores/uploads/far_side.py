"""The other side of an upload, through fsspec: what it takes, and what it says of what it has."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from crawlerproject.errors import StorageError
from crawlerproject.rules.archive.uploads import Measured, Seen, without_secrets
from crawlerproject.rules.printable import printable_line
from crawlerproject.stores.atomic_files import sync_folder
from crawlerproject.stores.uploads.measuring import CHUNK_BYTES, measured

# Letters of what a library says of an error.
_MOST_SAID = 300


class FarSideError(StorageError):
    """The other side's: nothing that counts was changed; try again later."""


class Sending(NamedTuple):
    """How a file is sent: ``remember`` the name of what was begun, ``sent`` is called after so many bytes."""

    token: str
    remember: Callable[[str], None]
    sent: Callable[[int], None]


class FarSide(Protocol):
    """One place for one crawl folder's files, by their names in the folder. All raise FarSideError."""

    def look(self, name: str) -> Seen | None:
        """What it says of a file; None when there is none."""

    def send(self, name: str, path: Path, what: Measured, sending: Sending) -> None:
        """Put a file there, going on with what ``sending.token`` names."""

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes that are there."""


@contextmanager
def far_errors(where: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what the libraries of clouds raise, but for ``passed``, into a FarSideError of one line without secrets."""
    try:
        yield
    except FarSideError:
        raise
    except passed:
        raise
    except Exception as error:  # botocore, aiohttp, google and azure have a family of their own each
        raise FarSideError(f"{where}: {_said(error)}") from None


def _said(error: Exception) -> str:
    """Kind and text of an error; the code of S3's, which its translation into Python's leaves out."""
    response = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
    code = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    kind = str(code) or type(error).__name__
    text = str(error)[: 4 * _MOST_SAID]
    return printable_line(without_secrets(f"{kind}: {text}" if text else kind))[:_MOST_SAID]


class ObjectSide:
    """Any cloud that fsspec knows: a file appears there when it is whole."""

    def __init__(self, files: Any, url: str) -> None:
        self.files, self.url = files, url

    def where(self, name: str) -> str:
        """A file's address there."""
        return f"{self.url}/{name}"

    def look(self, name: str) -> Seen | None:
        with far_errors(self.where(name)):
            self.files.invalidate_cache()
            try:
                facts = self.files.info(self.where(name))
            except FileNotFoundError:
                return None
            return Seen(int(facts["size"]), frozenset(_digests(facts)))

    def send(self, name: str, path: Path, what: Measured, sending: Sending) -> None:
        with far_errors(self.where(name)), path.open("rb") as source, self.files.open(self.where(name), "wb") as target:
            while chunk := source.read(CHUNK_BYTES):
                target.write(chunk)
                sending.sent(len(chunk))

    def read(self, name: str) -> Iterator[bytes]:
        with far_errors(self.where(name)), self.files.open(self.where(name), "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk


def _digests(facts: dict[str, Any]) -> Iterator[str]:
    """MD5 in hex, as Google (``md5Hash``) and Azure (``content_settings``) give it; composed objects have none."""
    if isinstance(given := facts.get("md5Hash"), str):
        with suppress(ValueError):
            yield base64.b64decode(given).hex()
    given = (facts.get("content_settings") or {}).get("content_md5")
    if isinstance(given, bytes | bytearray):
        yield bytes(given).hex()
    elif isinstance(given, str):
        with suppress(ValueError):
            yield base64.b64decode(given).hex()


class FolderSide:
    """A folder of this machine, such as another disk or a mount: written beside, made durable, then renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def look(self, name: str) -> Seen | None:
        path = self.folder / name
        with far_errors(str(path)):
            if not path.is_file():
                return None
            found = measured(path)
            return Seen(found.size, frozenset({found.sha256}))

    def send(self, name: str, path: Path, what: Measured, sending: Sending) -> None:
        target = self.folder / name
        part = target.with_name(f"{target.name}.part")
        with far_errors(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as source, part.open("wb") as file:
                while chunk := source.read(CHUNK_BYTES):
                    file.write(chunk)
                    sending.sent(len(chunk))
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
            sync_folder(target.parent)

    def read(self, name: str) -> Iterator[bytes]:
        with far_errors(str(self.folder / name)), (self.folder / name).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk


def read_sha256(side: FarSide, name: str) -> tuple[int, str]:
    """Size and digest of what is there, by its bytes."""
    digest, size = sha256(), 0
    for chunk in side.read(name):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()
