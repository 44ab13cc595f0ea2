"""``crawl.toml`` in a crawl's folder: what this crawl is, so that every start agrees on it, a daemon's too.

Written at the first start, read at each later one and by the commands. Its settings stand above ``settings.py`` and
below a spider's ``custom_settings``, the environment and ``-s``. An operator may edit it; what a command line changes
of it must be accepted.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from scrapy.settings import BaseSettings, default_settings

from crawlerproject.config.arguments import EXCLUDE, INCLUDE, PATTERNS, Arguments, check_limits, written
from crawlerproject.config.crawl_kind import crawl_folder, whole_crawl
from crawlerproject.config.old_settings import take_old_names
from crawlerproject.config.settings_table import ALL as ALL_SETTINGS
from crawlerproject.config.settings_table import RENAMED, SETTINGS, WITHOUT_EFFECT, Kind
from crawlerproject.config.values import list_of_value
from crawlerproject.errors import OperatorError
from crawlerproject.rules.limits import LIMITS, amount
from crawlerproject.settings import user
from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file, storage_errors
from crawlerproject.stores.crawl_dir import CrawlDir, open_lock
from crawlerproject.stores.operator_files.user_settings import ENVIRONMENT_PRIORITY

PRIORITY = 25
"""Above Scrapy's ``project`` (20), below ``spider`` (30) and ``cmdline`` (40)."""
ALL = "all"
SEEDS, SCOPE = "seeds", "scope"
STORE = "store"
"""What ``-a accept=`` may name as well: the loss of what a fleet's Redis has forgotten. Never meant by ALL."""

DECISIVE = tuple(name for name, setting in SETTINGS.items() if setting.decisive)
"""Settings that decide which pages a crawl has, or what is kept of them."""
_HEAD = """\
# What this crawl is: written at its first start, read by every later one.
# -s NAME=VALUE on a command line wins over it; it wins over settings.py. All settings: docs/settings.md.
"""


@dataclass(slots=True, frozen=True)
class Difference:
    """One thing that a start wants otherwise than the crawl has it."""

    name: str  # "seeds", "scope" or a setting: the word that accepts it
    kept: Any
    given: Any

    def __str__(self) -> str:
        return f"{self.name} is {self.kept!r} in this crawl, {self.given!r} was given"


@dataclass(slots=True)
class CrawlFile:
    """The file's content. ``seeds`` as ``-a seeds=`` takes them: a path, or URLs separated by commas."""

    seeds: str = ""
    scope: str = "any"
    settings: dict[str, Any] = field(default_factory=dict)
    include: list[str] = field(default_factory=list)
    exclude: list[str] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)  # by the argument's name, as it was written

    def bound(self, limits: Mapping[str, Any]) -> list[str]:
        """Take in limits that a start gives, 0 for none; what changes, in words."""
        changed = []
        for name, value in limits.items():
            before = self.limits.get(name, 0)
            if amount(name, value) != amount(name, before):
                changed.append(f"{name} is {value} ({before} before)")
            self.limits[name] = value
        self.limits = {name: value for name, value in self.limits.items() if amount(name, value)}
        return changed


def read_crawl_file(folder: Path) -> CrawlFile | None:
    """The crawl's file; None before its first start. Raises OperatorError for one that cannot be used."""
    path = CrawlDir(folder).crawl_file
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except PermissionError:
        raise OperatorError(
            f"The crawl folder {folder} is closed to this user; be its owner, or set CRAWL_DIR to another."
        ) from None
    except NotADirectoryError:
        raise OperatorError(f"The crawl folder {folder} is a file; set CRAWL_DIR to another.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{path} cannot be read ({error}); mend it, or move it away to begin without it.") from None
    import tomllib  # by starts that find such a file only

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OperatorError(f"{path} is not TOML ({error}); mend that line.") from None
    settings, scope = data.get("settings", {}), data.get(SCOPE, "any")
    unknown = [name for name in data if name not in (SEEDS, SCOPE, *PATTERNS, *LIMITS, "settings")]
    if unknown:
        may = ", ".join((SEEDS, SCOPE, *PATTERNS, *LIMITS))
        raise OperatorError(f"{path} has {unknown[0]!r}; it may hold {may} and a table [settings].")
    refuse_unknown(settings, str(path))
    if "CRAWL_DIR" in settings:
        raise OperatorError(f"{path} sets CRAWL_DIR, but it lies in that folder; take the line out.")
    seeds = data.get(SEEDS, "")
    limits = {name: data[name] for name in LIMITS if name in data}
    check_limits(limits)
    include, exclude = (written(name, data.get(name, [])) for name in PATTERNS)
    text = ",".join(seeds) if isinstance(seeds, list) else str(seeds)
    return CrawlFile(text, str(scope), dict(settings), include, exclude, limits)


def crawl_file_of(settings: BaseSettings, spider_name: str = "web") -> CrawlFile | None:
    """The file of the crawl that this process works on; several workers have one. Raises OperatorError."""
    whole = read_crawl_file(whole_crawl(settings, spider_name))
    # Earlier versions had one in the folder of each worker.
    return read_crawl_file(crawl_folder(settings, spider_name)) if whole is None else whole


def adopt_crawl_file(crawl: CrawlDir, worker: CrawlDir) -> None:
    """Make the file that an earlier version kept in a worker's folder the crawl's. StorageError."""
    if crawl != worker and worker.crawl_file.exists() and not crawl.crawl_file.exists():
        replace_file(crawl.crawl_file, worker.crawl_file.read_bytes(), SECRET_FILE)


@contextmanager
def keeping_crawl_file(crawl: CrawlDir) -> Iterator[None]:
    """Read, compare and write the file while no other worker of the crawl does. Waits for it; StorageError."""
    with storage_errors(crawl):
        descriptor = open_lock(crawl.crawl_file_lock)
    try:
        with storage_errors(crawl):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_crawl_file(folder: Path, crawl: CrawlFile) -> None:
    """Put the file in place, durable and for its owner alone (proxies may have passwords).

    Comments and order of a file that is there are kept.
    """
    path = CrawlDir(folder).crawl_file
    if not path.exists():
        replace_file(path, _new(crawl).encode(), SECRET_FILE)
        return
    import tomlkit  # only a start that changes something needs it

    document = tomlkit.parse(path.read_text("utf-8"))
    _put(document, SEEDS, _one_by_one(crawl.seeds))
    _put(document, SCOPE, crawl.scope)
    for name in (*PATTERNS, *LIMITS):
        value = _own(crawl)[name]
        if value:
            _put(document, name, value)
        else:
            document.pop(name, None)
    if "settings" not in document:
        document.add("settings", tomlkit.table())
    table: Any = document["settings"]
    for name, value in crawl.settings.items():
        _put(table, name, value)
    replace_file(path, tomlkit.dumps(document).encode(), SECRET_FILE)


def _new(crawl: CrawlFile) -> str:
    """The whole file. JSON's texts, numbers, booleans and lists of these are TOML's as well."""
    values = {SEEDS: _one_by_one(crawl.seeds), SCOPE: crawl.scope}
    values |= {name: value for name, value in _own(crawl).items() if value}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    lines += ["", "[settings]"]
    lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in crawl.settings.items()]
    return _HEAD + "\n" + "\n".join(lines) + "\n"


def _own(crawl: CrawlFile) -> dict[str, Any]:
    """Patterns and limits by the argument's name."""
    limits = {name: crawl.limits.get(name) for name in LIMITS}
    return {INCLUDE: crawl.include, EXCLUDE: crawl.exclude, **limits}


def _one_by_one(seeds: str) -> str | list[str]:
    """A file's path as it is, URLs as a list."""
    return [part.strip() for part in seeds.split(",")] if "://" in seeds else seeds


def _put(table: Any, name: str, value: Any) -> None:
    if table.get(name) != value:
        table[name] = value


def refuse_unknown(names: Iterable[str], where: str) -> None:
    """Raise OperatorError, with the nearest name, for one that looks like a setting of ours but is not."""
    for name in names:
        if name in _KNOWN or hasattr(default_settings, name):
            continue
        near = get_close_matches(name.upper(), SETTINGS, n=1, cutoff=_LIKENESS)
        if near or name.partition("_")[0] in _FAMILIES:
            meant = f"{near[0]} was probably meant" if near else "docs/settings.md lists them all"
            raise OperatorError(f"{where} sets {name}, which is no setting; {meant}.")


# difflib's measure: one letter wrong or missing in the shortest of our names (RENDER) gives 0.83.
_LIKENESS = 0.8
_FAMILIES = frozenset(name.partition("_")[0] for name in SETTINGS)
_KNOWN = ALL_SETTINGS.keys() | RENAMED.keys() | WITHOUT_EFFECT.keys()


def apply(file: CrawlFile | None, settings: BaseSettings) -> None:
    """Give the crawl's own settings their place among the others."""
    for name, value in (file.settings if file is not None else {}).items():
        settings.set(name, value, PRIORITY)
    for name, text in user().environment.items():  # this start's word
        settings.set(name, text, ENVIRONMENT_PRIORITY)
    take_old_names(settings)


def apply_of_folder(settings: BaseSettings, spider_name: str = "web") -> CrawlFile | None:
    """Apply the file of the crawl that CRAWL_DIR names, for commands that open nothing else there. OperatorError.

    A folder that is closed to this user has nothing to say.
    """
    refuse_bad_user_settings()
    folder = whole_crawl(settings, spider_name)
    closed = folder.exists() and not os.access(folder, os.X_OK)
    unreadable = not closed and folder.crawl_file.exists() and not os.access(folder.crawl_file, os.R_OK)
    file = None if closed or unreadable else read_crawl_file(folder)
    apply(file, settings)
    return file


def refuse_bad_user_settings() -> None:
    """Raise OperatorError for what the operator's own file or environment has wrong."""
    own = user()
    if own.problem:
        raise OperatorError(own.problem)
    refuse_unknown(own.file, own.path)
    for name in own.environment:
        refuse_unknown([name], f"The environment's POLITE_{name}")


def kept_settings(settings: BaseSettings) -> dict[str, Any]:
    """What of our settings differs from its default, or from the operator's own file, as TOML can hold it."""
    kept = {}
    for name, setting in ALL_SETTINGS.items():
        if setting.of_process or (value := plain(name, settings.get(name))) is None:
            continue
        usual = plain(name, user().file[name]) if name in user().file else setting.default
        if not value == setting.default == usual:
            kept[name] = value
    return kept


def plain(name: str, value: Any) -> Any:
    """The value of a setting of ours in its own kind: a command line gives strings only."""
    kind = ALL_SETTINGS[name].kind
    if kind is Kind.LIST:
        return list_of_value(value)
    if value is None or isinstance(value, bool):
        return value
    if kind is Kind.SWITCH:
        return str(value).lower() in ("true", "1")
    if kind in (Kind.WHOLE, Kind.NUMBER):
        number = float(value)
        return int(number) if number.is_integer() else number
    return value if isinstance(value, (int, float)) else str(value)


def differences(
    file: CrawlFile, scope: str | None, settings: BaseSettings, given: Arguments | None = None
) -> list[Difference]:
    """What a start wants otherwise than the crawl has it; ``scope`` None: it was not given. Limits are free."""
    found = [Difference(SCOPE, file.scope, scope)] if scope is not None and scope != file.scope else []
    for name in PATTERNS if given is not None else ():
        before, now = getattr(file, name), getattr(given, name)
        if now is not None and now != before:
            found.append(Difference(name, " ".join(before), " ".join(now)))
    for name in DECISIVE:
        kept = plain(name, file.settings.get(name, SETTINGS[name].default))
        given = plain(name, settings.get(name))
        if _same(kept) != _same(given):
            found.append(Difference(name, kept, given))
    return found


def _same(value: Any) -> Any:
    """The value for comparison: lists of extensions and networks have no order."""
    return sorted(map(str, value)) if isinstance(value, list) else value


def refuse_differences(folder: Path, found: Iterable[Difference], accept: str) -> None:
    """Raise OperatorError for what ``-a accept=`` (names, separated by commas, or "all") does not name."""
    accepted = accepted_names(accept)
    refused = [one for one in found if one.name not in accepted and ALL not in accepted]
    if refused:
        names = ",".join(one.name for one in refused)
        own = [one.name for one in refused if one.name in user().file]
        leave = f"Write {' and '.join(own)} as it was into crawl.toml" if own else "Leave it out"
        raise OperatorError(
            f"The crawl in {folder} was begun otherwise: {'; '.join(map(str, refused))}. {leave} to go on as "
            f"before, add -a accept={names} to change the crawl, or set CRAWL_DIR to begin another."
        )


def accepted_names(accept: str) -> frozenset[str]:
    """The words of ``-a accept=``. Raises OperatorError for one that accepts nothing."""
    names = frozenset(part.strip() for part in accept.split(",") if part.strip())
    for name in names:
        if name not in (ALL, SEEDS, SCOPE, STORE, *PATTERNS) and name not in DECISIVE:
            words = ", ".join((SEEDS, SCOPE, STORE, *PATTERNS, *DECISIVE))
            raise OperatorError(f"-a accept={name} accepts nothing; use {words} or all.")
    return names
