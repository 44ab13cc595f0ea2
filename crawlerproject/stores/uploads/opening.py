"""The place that an address names, open: which side of which cloud it is, and what must be installed for it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.uploads import SCHEMES, address_problem
from crawlerproject.stores.uploads.far_side import FarSide, FolderSide, ObjectSide, far_errors
from crawlerproject.stores.uploads.s3_side import S3Side

# Seconds: a far side that does not answer for so long is refused for now; everything is tried again anyway.
_CONNECT_SECONDS, _SILENT_SECONDS = 10, 60


def checked_url(url: str, what: str = "ARCHIVE_URL") -> str:
    """An address of an archive, without a slash at its end. Raises OperatorError, also when a package is missing."""
    if problem := address_problem(url):
        raise OperatorError(f"{what} cannot be used: {problem}.")
    scheme = url.partition("://")[0]
    package = SCHEMES[scheme]
    if package:
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


def far_side(url: str) -> FarSide:
    """The place of an address that ``checked_url`` has let pass."""
    scheme = url.partition("://")[0]
    if scheme == "file":
        return FolderSide(local_folder(url))
    if scheme == "s3":
        return S3Side(filesystem(url), url)
    return ObjectSide(filesystem(url), url)


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
    with far_errors(url):
        made = fsspec.filesystem(scheme, skip_instance_cache=True, **options)
        if scheme == "s3":
            made.retries = 1  # trying again is ours
        return made
