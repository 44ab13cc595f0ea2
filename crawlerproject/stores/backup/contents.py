"""What a backup holds: ``backup.json``, written last, names every file of it and every file of the archive of then."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.readable import counted
from crawlerproject.stores.archive.warc_writer import OpenFile
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.crawl_dir import CrawlDir, refuse_links_out

_MANIFEST = "backup.json"
_FORMAT = 1


class FolderThen(NamedTuple):
    """A folder of the crawl, its own or a worker's, as it was."""

    name: str  # in the crawl's; "": that folder itself
    has_frontier: bool
    closed: tuple[str, ...]  # WARC files that were not written any more
    open_file: OpenFile | None  # the one that was, and how much of it counts

    @property
    def still_open(self) -> OpenFile | None:
        """``open_file``, unless it was closed since the commit that named it."""
        return None if self.open_file is None or self.open_file.filename in self.closed else self.open_file


class Backup(NamedTuple):
    """One that is whole, in ``folder``, where its files lie as in a crawl's."""

    folder: CrawlDir
    made_at: float  # epoch seconds
    crawl: str  # the folder that it was made of
    folders: tuple[FolderThen, ...]


def write_manifest(folder: Path, crawl: Path, folders: list[FolderThen]) -> None:
    """Name all that is there, durably: from now on it is a backup. StorageError."""
    facts = {
        "format": _FORMAT,
        "made_at": time.time(),
        "crawl": str(crawl.resolve()),
        "folders": [each._asdict() | {"open_file": each.open_file and tuple(each.open_file)} for each in folders],
        "files": _sizes(folder),
    }
    replace_file(folder / _MANIFEST, orjson.dumps(facts, option=orjson.OPT_INDENT_2), SECRET_FILE)


def read_backup(folder: Path) -> Backup:
    """The backup there. Raises OperatorError for none, for one that is not whole, and for a newer version's."""
    try:
        facts = orjson.loads((folder / _MANIFEST).read_bytes())
        if facts["format"] > _FORMAT:
            raise OperatorError(f"The backup in {folder} was made by a newer version of this crawler; use that.")
        refuse_links_out(folder)
        missing = _missing(folder, facts["files"])
        made_at, of = float(facts["made_at"]), str(facts["crawl"])
        backup = Backup(CrawlDir(folder), made_at, of, tuple(map(_folder, facts["folders"])))
    except (FileNotFoundError, NotADirectoryError):
        raise OperatorError(
            f"{folder} holds no whole backup: there is no {_MANIFEST}, which is written last; name another."
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OperatorError(f"{folder / _MANIFEST} cannot be read ({error}); name another backup.") from error
    if missing:
        raise OperatorError(
            f"The backup in {folder} is not whole: {counted(len(missing), 'file')} of it, such as {missing[0]}, "
            "are gone or have another size; name another."
        )
    return backup


def is_backup(folder: Path) -> bool:
    """Whether one was made there to its end."""
    return (folder / _MANIFEST).exists()


def _sizes(folder: Path) -> dict[str, int]:
    lock = CrawlDir(folder).lock_file  # the command's that makes it
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path != lock)
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def _missing(folder: Path, files: dict[str, int]) -> list[str]:
    return [name for name, size in files.items() if _size(folder / name) != size]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


def _folder(facts: dict[str, Any]) -> FolderThen:
    """Names are those of files and folders of the crawl: a backup may be another's, and must not lead elsewhere."""
    filename, length = facts["open_file"] or ("", 0)
    open_file = OpenFile(filename, int(length)) if filename else None
    then = FolderThen(facts["name"], bool(facts["has_frontier"]), tuple(facts["closed"]), open_file)
    names = [*then.closed, *([open_file.filename] if open_file else []), *([then.name] if then.name else [])]
    for name in names:
        if name in ("", ".", "..") or "/" in name or not name.isprintable():
            raise ValueError(f"{name[:100]!r} is no name of a file or folder in it")
    return then
