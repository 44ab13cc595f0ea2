"""Brings what is closed in a crawl's folder to another place, and removes here what that place has confirmed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import orjson

from crawlerproject.errors import OperatorError, StorageError, TargetError
from crawlerproject.rules.archive.upload_rules import (
    Here,
    Measured,
    Stage,
    Step,
    Upload,
    agrees,
    bounded_pause,
    manifest,
    next_step,
)
from crawlerproject.stores.atomic_files import storage_errors, sync_path
from crawlerproject.stores.crawl_dir import ARCHIVE_SUFFIXES, CrawlDir, archive_of_stem
from crawlerproject.stores.uploads.upload_journal import Group, Journal, Source, groups
from crawlerproject.stores.uploads.upload_target import Transfer, UploadTarget, here, measured

MARK = "uploaded-by.json"
"""There: which folder's files these are, so that two crawls never mix."""
MANIFEST = "manifest-sha256.txt"
# How often a file is sent in one round when what arrives is not what was sent.
_TRIES = 3
# Groups of files that are refused in one round until no more are tried: it is the place then, and not a file.
_REFUSALS = 3

_PARTS = "index/parquet/"

logger = logging.getLogger(__name__)


class UploadOptions(NamedTuple):
    """How it is done. ``tick`` is called between steps, where figures are shown; ``sleep`` keeps the bound."""

    keep_local: bool = True
    read_back: bool = False  # believe no digest that was not made of the bytes there
    bytes_per_second: float = 0.0  # at most, on average over a file; 0: no bound
    clock: Callable[[], float] = lambda: 0.0  # epoch seconds
    sleep: Callable[[float], None] = lambda seconds: None
    tick: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Figures:
    """What is left and what was done since the process began."""

    waiting_files: int = 0
    waiting_bytes: int = 0
    sent_files: int = 0
    sent_bytes: int = 0
    sent_again: int = 0  # what arrived was not what was sent, or was lost there
    removed_files: int = 0
    only_there: int = 0  # of all time


class Uploader:
    """One folder's. ``round`` may be called again and again; each raises TargetError where the other side refuses."""

    def __init__(
        self, folder: CrawlDir, opens: Callable[[], UploadTarget], journal: Journal, options: UploadOptions
    ) -> None:
        """``opens`` is called within the first round: what its library refuses is tried again like the rest."""
        self.figures = Figures()
        self.problems: list[str] = []  # what cannot be mended from here
        self._folder, self._opens, self._journal, self._options = folder, opens, journal, options
        self._claimed = False
        self._refused: list[str] = []  # in this round
        self._sent_before = 0  # files, in earlier rounds

    @cached_property
    def _target(self) -> UploadTarget:
        return self._opens()

    @property
    def takes_again(self) -> bool:
        """Whether this round has sent something and met no refusal yet: what was refused before is tried first."""
        return not self._refused and self.figures.sent_files > self._sent_before

    def round(self, *, ended: bool) -> None:
        """Send, confirm and remove all that may be now. Raises StorageError, TargetError among them, OperatorError."""
        self._refused, self._sent_before = [], self.figures.sent_files
        self._claim()
        found = list(groups(self._folder, ended=ended))
        self._count(found)
        refused = self._refused
        for group in found:
            try:
                for source in group.sources:
                    self._settle(source)
                    self._options.tick()
                if group.removable and not self._options.keep_local:
                    self._remove(group)
            except StorageError as error:  # of one file, it may be; the others need not wait for it
                refused.append(str(error))
                if len(refused) == _REFUSALS:
                    raise TargetError("; ".join(dict.fromkeys(refused))) from None
        self._without_files({source.name for group in found for source in group.sources})
        self._list()
        if refused:
            raise TargetError("; ".join(dict.fromkeys(refused)))
        self.figures.only_there = len(self._journal.removed())
        self._options.tick()

    def check_again(self) -> None:
        """Have everything that was confirmed checked again by the next round; what is only there is checked now.

        What was a problem before is one no more, unless it is found again.
        """
        self.problems.clear()
        for name, known in self._journal:
            if known.stage is Stage.CONFIRMED:
                self._journal.set(name, known._replace(stage=Stage.UPLOADED))
            elif known.stage is Stage.REMOVED and not self._is_there(name, known.measured):
                self.problems.append(f"{name} is not there as it was sent, and was removed here")

    def _claim(self) -> None:
        """Mark the place as this folder's. Raises OperatorError when it is another's."""
        if self._claimed:
            return
        if self._target.look(MARK) is None:
            self._target.put(MARK, orjson.dumps({"crawl": self._folder.resolve().name, "id": self._journal.identity}))
        try:
            found = orjson.loads(b"".join(self._target.read(MARK)))
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or found.get("id") != self._journal.identity:
            raise OperatorError(
                f"{self._journal.url} holds another archive (its {MARK} is not of this folder); set ARCHIVE_URL to a "
                "place of its own."
            )
        self._claimed = True

    def _settle(self, source: Source) -> None:
        """Send a file until the other side has it."""
        waited = False
        for _ in range(2 * _TRIES):
            step = next_step(self._journal.get(source.name), source.found)
            if step is Step.SEND:
                waited = True
                self._send(source)
            elif step is Step.CONFIRM:
                waited = True
                self._confirm(source.name)
            else:
                break
        else:
            raise TargetError(f"{source.name} was sent {_TRIES} times, and what is there is not what was sent")
        if waited:
            self.figures.waiting_files -= 1
            self.figures.waiting_bytes -= source.found.size
        if source.passing or source.plain is not None:
            staged = source.path if source.passing else self._folder.upload_staged / source.path.name
            staged.unlink(missing_ok=True)

    def _send(self, source: Source) -> None:
        name, known, token = source.name, self._journal.get(source.name), ""
        with storage_errors(source.path):
            path = source.ready(self._folder)
            what = measured(path)
        if known is not None and known.measured == what and known.stage is not Stage.LOCAL:
            # The same bytes: only their time changed, or a death came between, and they may be there already.
            if known.stage is not Stage.UPLOADING or agrees(what, self._target.look(name)):
                self._journal.set(name, Upload(Stage.UPLOADED, source.found, what))
                return
            token = known.token
        begun = Upload(Stage.UPLOADING, source.found, what, token)
        self._journal.set(name, begun)
        began, sent = self._options.clock(), 0

        def note(count: int) -> None:
            nonlocal sent
            sent += count
            self.figures.sent_bytes += count
            self._options.tick()
            self._options.sleep(bounded_pause(sent, self._options.clock() - began, self._options.bytes_per_second))

        def remember(begun_there: str) -> None:
            self._journal.set(name, begun._replace(token=begun_there))

        self._target.send(name, path, what, Transfer(token, remember, note))
        stage = Stage.UPLOADED if source.plain is not None or here(path) == source.found else Stage.LOCAL
        self._journal.set(name, Upload(stage, source.found, what))
        self.figures.sent_files += 1

    def _confirm(self, name: str) -> None:
        known = self._journal.get(name)
        assert known is not None
        if self._is_there(name, known.measured):
            self._journal.set(name, known._replace(stage=Stage.CONFIRMED, token=""))
            return
        logger.warning("%s is not there as it was sent", name)
        self.figures.sent_again += 1
        self._journal.set(name, known._replace(stage=Stage.LOCAL, token=""))

    def _is_there(self, name: str, what: Measured) -> bool:
        return self._target.has(name, what, read_back=self._options.read_back)

    def _remove(self, group: Group) -> None:
        """Remove files of which the other side says, once more, that it has them; the WARC file first.

        A WARC file without indexes would have them made again by the next start.
        """
        there = [(source, known) for source in group.sources if (known := self._journal.get(source.name)) is not None]
        if len(there) < len(group.sources):
            return
        for source, known in there:
            if known.stage is Stage.CONFIRMED and not self._is_there(source.name, known.measured):
                logger.warning("%s was confirmed, and is not there any more: it is sent again", source.name)
                self.figures.sent_again += 1
                self._journal.set(source.name, known._replace(stage=Stage.LOCAL))
                return
        if any(here(source.path) != known.here for source, known in there):
            return  # changed since: the next round sends it again
        for source, known in there:
            if known.stage is not Stage.REMOVED:
                self._journal.set(source.name, known._replace(stage=Stage.REMOVED))
        for source, _ in sorted(there, key=lambda found: not found[0].name.endswith(ARCHIVE_SUFFIXES)):
            with storage_errors(source.path):
                source.path.unlink(missing_ok=True)
                sync_path(source.path.parent)
            self.figures.removed_files += 1

    def _without_files(self, present: set[str]) -> None:
        """Settle files that were removed here before they were confirmed: they may have arrived."""
        for name, known in self._journal:
            # A day of the log that is not over is compressed for the way alone.
            here_still = (self._folder / name).exists() or (self._folder / name.removesuffix(".gz")).exists()
            if name in present or name == MANIFEST or here_still:
                continue
            archive = f"warc/{archive_of_stem(name.rpartition('/')[2].removesuffix('.parquet'))}"
            if known.stage is Stage.CONFIRMED and name.startswith(_PARTS) and archive in present:
                # Made again, the index of that file has no such part: of what it was about all was withdrawn.
                self._target.remove(name)
                self._journal.forget(name)
                continue
            step = next_step(known, None)
            if step is Step.CONFIRM and self._is_there(name, known.measured):
                self._journal.set(name, known._replace(stage=Stage.CONFIRMED))
            elif step in (Step.CONFIRM, Step.FORGET):
                self.problems.append(f"{name} was removed here before it was confirmed there")
                self._journal.forget(name)

    def _list(self) -> None:
        """Upload the manifest when it has changed."""
        listed = manifest((name, known) for name, known in self._journal if name != MANIFEST)
        known, digest = self._journal.get(MANIFEST), sha256(listed).hexdigest()
        if not listed or (known is not None and known.here == Here(len(listed), 0) and known.measured.sha256 == digest):
            return
        what = self._target.put(MANIFEST, listed)
        self._journal.set(MANIFEST, Upload(Stage.CONFIRMED, Here(len(listed), 0), what))

    def _count(self, found: list[Group]) -> None:
        waiting = [
            source
            for group in found
            for source in group.sources
            if next_step(self._journal.get(source.name), source.found) in (Step.SEND, Step.CONFIRM)
        ]
        self.figures.waiting_files = len(waiting)
        self.figures.waiting_bytes = sum(source.found.size for source in waiting)
        self._options.tick()
