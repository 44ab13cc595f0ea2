"""The place an archive is uploaded to, through fsspec: how files are put there, and what it answers about them.

Any cloud that fsspec knows, a folder of this machine, or S3 and what speaks like it. There large files go up in parts,
and a death in the middle costs one part: each carries its MD5, which the server checks, and a file appears when its
parts are put together. Until then they lie there under an upload's name, which the journal keeps.
"""

from __future__ import annotations

import base64
import importlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import md5, sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from crawlerproject.errors import OperatorError, TargetError
from crawlerproject.rules.archive import upload_rules
from crawlerproject.rules.printable import printable_line
from crawlerproject.stores.atomic_files import whole_file

CHUNK_BYTES = 1024 * 1024
# Letters of a library's error message that are shown.
_MOST_LETTERS = 300
# Seconds: a place that does not answer for so long counts as refusing for now; everything is tried again anyway.
_CONNECT_SECONDS, _SILENT_SECONDS = 10, 60


class Transfer(NamedTuple):
    """How a file is sent: ``remember`` the name of what was begun, ``sent`` is called after so many bytes."""

    token: str
    remember: Callable[[str], None]
    sent: Callable[[int], None]


@contextmanager
def target_errors(where: str, passed: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what the libraries of clouds raise, but for ``passed``, into a TargetError of one line without secrets."""
    try:
        yield
    except TargetError:
        raise
    except passed:
        raise
    except Exception as error:  # botocore, aiohttp, google and azure have a family of their own each
        # The code of an S3 error is missing in its translation into Python's.
        response = getattr(error.__cause__, "response", None) or getattr(error, "response", None)
        code = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
        kind = str(code) or type(error).__name__
        text = str(error)[: 4 * _MOST_LETTERS]
        line = printable_line(upload_rules.without_secrets(f"{kind}: {text}" if text else kind))[:_MOST_LETTERS]
        raise TargetError(f"{where}: {line}") from None


class UploadTarget(ABC):
    """One place for one crawl folder's files, by their names in the folder. All methods raise TargetError."""

    url: str

    def where(self, name: str) -> str:
        """A file's address there."""
        return f"{self.url}/{name}"

    @abstractmethod
    def look(self, name: str) -> upload_rules.Seen | None:
        """Size and digests that the place reports for a file; None when it has no such file."""

    @abstractmethod
    def send(self, name: str, path: Path, what: upload_rules.Measured, transfer: Transfer) -> None:
        """Put a file there, going on with what ``transfer.token`` names."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file from the place; it may be missing already."""

    @abstractmethod
    def _open(self, name: str) -> BinaryIO:
        """A file there, for reading. May raise anything."""

    def read(self, name: str) -> Iterator[bytes]:
        """The bytes that are there."""
        with target_errors(self.where(name)), self._open(name) as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def put(self, name: str, data: bytes) -> upload_rules.Measured:
        """Put a small file there, and have it confirmed."""
        with target_errors(self.where(name)), NamedTemporaryFile(prefix="upload-") as file:
            file.write(data)
            file.flush()
            path = Path(file.name)
            what = measured(path)
            self.send(name, path, what, Transfer("", lambda token: None, lambda count: None))
        if not self.has(name, what):
            raise TargetError(f"{name} was sent, and what is there is not what was sent")
        return what

    def has(self, name: str, what: upload_rules.Measured, *, read_back: bool = False) -> bool:
        """Whether a file is there, by the place's word or, where that says nothing, by the bytes that it gives."""
        verdict = upload_rules.agrees(what, self.look(name))
        if verdict is None or (verdict and read_back):
            return self.read_sha256(name) == (what.size, what.sha256)
        return verdict

    def read_sha256(self, name: str) -> tuple[int, str]:
        """Size and digest of what is there, by its bytes."""
        digest, size = sha256(), 0
        for chunk in self.read(name):
            digest.update(chunk)
            size += len(chunk)
        return size, digest.hexdigest()


class FolderTarget(UploadTarget):
    """A folder of this machine, such as another disk or a mount: written beside, made durable, then renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, str(folder)

    def look(self, name: str) -> upload_rules.Seen | None:
        path = self.folder / name
        with target_errors(str(path)):
            if not path.is_file():
                return None
            found = measured(path)
            return upload_rules.Seen(found.size, frozenset({found.sha256}))

    def send(self, name: str, path: Path, what: upload_rules.Measured, transfer: Transfer) -> None:
        target = self.folder / name
        with target_errors(str(target)):
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open("rb") as source, whole_file(target) as file:
                _copy(source, file, transfer)

    def remove(self, name: str) -> None:
        with target_errors(self.where(name)):
            (self.folder / name).unlink(missing_ok=True)

    def _open(self, name: str) -> BinaryIO:
        return (self.folder / name).open("rb")


class ObjectTarget(UploadTarget):
    """Any cloud that fsspec knows: a file appears there when it is whole."""

    def __init__(self, files: Any, url: str) -> None:
        self.files, self.url = files, url

    def look(self, name: str) -> upload_rules.Seen | None:
        with target_errors(self.where(name)):
            self.files.invalidate_cache()
            try:
                facts = self.files.info(self.where(name))
            except FileNotFoundError:
                return None
            return upload_rules.Seen(int(facts["size"]), frozenset(_digests(facts)))

    def send(self, name: str, path: Path, what: upload_rules.Measured, transfer: Transfer) -> None:
        where = self.where(name)
        with target_errors(where), path.open("rb") as source, self.files.open(where, "wb") as target:
            _copy(source, target, transfer)

    def remove(self, name: str) -> None:
        with target_errors(self.where(name)), suppress(FileNotFoundError):
            self.files.rm_file(self.where(name))

    def _open(self, name: str) -> BinaryIO:
        return cast("BinaryIO", self.files.open(self.where(name), "rb"))


class S3Target(ObjectTarget):
    """A bucket, or a prefix in one."""

    def __init__(self, files: Any, url: str) -> None:
        super().__init__(files, url)
        self._bucket, _, self._prefix = url.removeprefix("s3://").partition("/")

    def look(self, name: str) -> upload_rules.Seen | None:
        with target_errors(self.where(name)):
            try:
                facts = self._call("head_object", name)
            except FileNotFoundError:
                return None
            return upload_rules.Seen(int(facts["ContentLength"]), frozenset({str(facts.get("ETag", "")).strip('"')}))

    def send(self, name: str, path: Path, what: upload_rules.Measured, transfer: Transfer) -> None:
        with target_errors(self.where(name)):
            if what.size <= upload_rules.part_bytes(what.size):
                data = path.read_bytes()
                self._call("put_object", name, Body=data, ContentMD5=_md5(data))
                transfer.sent(len(data))
            else:
                self._in_parts(name, path, what, transfer)

    def _in_parts(self, name: str, path: Path, what: upload_rules.Measured, transfer: Transfer) -> None:
        upload, there = self._begun(name, transfer.token)
        if upload != transfer.token:
            transfer.remember(upload)
        step, tags = upload_rules.part_bytes(what.size), []
        with path.open("rb") as file:
            for number, data in enumerate(iter(lambda: file.read(step), b""), start=1):
                tag = f'"{md5(data, usedforsecurity=False).hexdigest()}"'
                if there.get(number) != tag:
                    given = {"UploadId": upload, "PartNumber": number, "Body": data, "ContentMD5": _md5(data)}
                    tag = self._call("upload_part", name, **given)["ETag"]
                    transfer.sent(len(data))
                tags.append({"PartNumber": number, "ETag": tag})
        self._call("complete_multipart_upload", name, UploadId=upload, MultipartUpload={"Parts": tags})

    def _begun(self, name: str, token: str) -> tuple[str, dict[int, str]]:
        """An upload of this file, and the parts that it has; what was begun and is not known any more is given up."""
        if token:
            try:
                pages = self._pages("list_parts", ("PartNumberMarker",), Key=self._key(name), UploadId=token)
                return token, {part["PartNumber"]: part["ETag"] for page in pages for part in page.get("Parts", ())}
            except FileNotFoundError:  # it was put together, or the server has forgotten it
                pass
        key, markers = self._key(name), ("KeyMarker", "UploadIdMarker")
        uploads = (page.get("Uploads", ()) for page in self._pages("list_multipart_uploads", markers, Prefix=key))
        for stray in [each["UploadId"] for page in uploads for each in page if each["Key"] == key]:
            self._call("abort_multipart_upload", name, UploadId=stray)
        return str(self._call("create_multipart_upload", name)["UploadId"]), {}

    def _pages(self, operation: str, markers: tuple[str, ...], **given: Any) -> Iterator[dict[str, Any]]:
        """All pages of a list; each names the markers behind which the next begins. A list that stands still ends."""
        after: dict[str, Any] = {}
        while True:
            page = self.files.call_s3(operation, Bucket=self._bucket, **given, **after)
            yield page
            following = {marker: page[f"Next{marker}"] for marker in markers if page.get(f"Next{marker}")}
            if not page.get("IsTruncated") or not following or following == after:
                return
            after = following

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name

    def _call(self, operation: str, name: str, **given: Any) -> dict[str, Any]:
        answer = self.files.call_s3(operation, Bucket=self._bucket, Key=self._key(name), **given)
        if not isinstance(answer, dict):
            raise TargetError(f"{self.where(name)}: no answer to {operation}")
        return answer


def _copy(source: BinaryIO, target: BinaryIO, transfer: Transfer) -> None:
    while chunk := source.read(CHUNK_BYTES):
        target.write(chunk)
        transfer.sent(len(chunk))


def _digests(facts: dict[str, Any]) -> Iterator[str]:
    """MD5 in hex, as Google (``md5Hash``) and Azure (``content_settings``) give it; composed objects have none."""
    for given in (facts.get("md5Hash"), (facts.get("content_settings") or {}).get("content_md5")):
        if isinstance(given, bytes | bytearray):
            yield bytes(given).hex()
        elif isinstance(given, str):
            with suppress(ValueError):
                yield base64.b64decode(given).hex()


def _md5(data: bytes) -> str:
    return base64.b64encode(md5(data, usedforsecurity=False).digest()).decode()


# --- files as they are here -----------------------------------------------------------------------


def here(path: Path) -> upload_rules.Here | None:
    """A file as it lies in its folder; None when it does not, or is a link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return upload_rules.Here(found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def measured(path: Path) -> upload_rules.Measured:
    """Size and the digests by which the place is believed, some six seconds a gigabyte. Raises OSError."""
    whole, content, size = md5(usedforsecurity=False), sha256(), 0
    step = upload_rules.part_bytes(path.stat().st_size)
    parts, part, left = [], md5(usedforsecurity=False), step
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK_BYTES, left)):
            size += len(chunk)
            left -= len(chunk)
            for digest in (whole, content, part):
                digest.update(chunk)
            if not left:
                parts.append(part.digest())
                part, left = md5(usedforsecurity=False), step
    if size <= step:
        return upload_rules.Measured(size, content.hexdigest(), whole.hexdigest(), whole.hexdigest())
    if left < step:
        parts.append(part.digest())
    etag = f"{md5(b''.join(parts), usedforsecurity=False).hexdigest()}-{len(parts)}"
    return upload_rules.Measured(size, content.hexdigest(), whole.hexdigest(), etag)


# --- the place that an address names --------------------------------------------------------------


def checked_url(url: str, what: str = "ARCHIVE_URL") -> str:
    """An address of an archive, without a slash at its end. Raises OperatorError, also when a package is missing."""
    if problem := upload_rules.address_problem(url):
        raise OperatorError(f"{what} cannot be used: {problem}.")
    scheme = url.partition("://")[0]
    if package := upload_rules.SCHEMES[scheme]:
        try:
            importlib.import_module(package)
        except ImportError:
            raise OperatorError(
                f"Archives at {scheme}:// need the package {package}; install it with: pip install {package}"
            ) from None
    return url.rstrip("/")


def place_of(url: str, crawl: Path, folder: Path) -> str:
    """The address of one folder's files: of a crawl's own that of the crawl, of a worker's one below it."""
    return url if folder == crawl else f"{url}/{folder.name}"


def open_target(url: str) -> UploadTarget:
    """The place of an address that ``checked_url`` has let pass."""
    scheme = url.partition("://")[0]
    if scheme == "file":
        return FolderTarget(local_folder(url))
    return (S3Target if scheme == "s3" else ObjectTarget)(filesystem(url), url)


def local_folder(url: str) -> Path:
    """The folder of a ``file://`` address."""
    return Path(unquote(urlsplit(url).path))


def filesystem(url: str, **options: Any) -> Any:
    """fsspec's file system of an address; keys and endpoints come from the environment or the cloud's own files."""
    fsspec: Any = importlib.import_module("fsspec")
    scheme = url.partition("://")[0]
    if scheme == "s3":
        # S3's own checksums are asked for where we give none: of parts we give Content-MD5, which all servers know.
        wanted = {
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": _SILENT_SECONDS,
            "retries": {"total_max_attempts": 1},
        }
        checks = dict.fromkeys(("request_checksum_calculation", "response_checksum_validation"), "when_required")
        options = {"config_kwargs": {**wanted, **checks}, **options}
    with target_errors(url):
        made = fsspec.filesystem(scheme, skip_instance_cache=True, **options)
        if scheme == "s3":
            made.retries = 1  # trying again is ours
        return made
