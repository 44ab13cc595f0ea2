"""A WARC file read strictly, member by member: what it holds, and where it is not good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crawlerproject.rules.archive.warc_members import Flaw, Member, wrong_digest
from crawlerproject.stores.archive.warc_reader import Progress, all_members


@dataclass(slots=True)
class FileReport:
    """What a strict reading of one file found."""

    path: Path
    file_bytes: int = 0
    good_bytes: int = 0  # end of the last good member
    ours: bool = True  # captures are checked to be whole; others write them in other ways
    records: Counter[str] = field(default_factory=Counter)  # by WARC-Type
    flaws: list[Flaw] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every byte of the file belongs to a good record."""
        return not self.flaws and self.good_bytes == self.file_bytes


class FileCheck:
    """Takes what is found in a file, in order: gzip, WARC framing, sha1 digests, and (``ours``) whole captures.

    ``until``: only so many bytes count, what follows is not yet committed. ``seen`` gets every good record with its
    WARC-Type.
    """

    def __init__(
        self,
        path: Path,
        *,
        until: int | None = None,
        ours: bool = True,
        seen: Callable[[Member, str], None] | None = None,
    ) -> None:
        size = path.stat().st_size
        self.report = FileReport(path, file_bytes=size if until is None else until, ours=ours)
        self._pairing, self._seen = _Pairing(self.report), seen
        if size < self.report.file_bytes:
            missing = f"the file ends here, and {until} bytes of it were committed"
            self.report.flaws.append(Flaw(size, missing))

    def take(self, found: Member | Flaw) -> None:
        """One record, or a place of damage."""
        report = self.report
        if isinstance(found, Flaw):
            report.flaws.append(found)
            self._pairing.end()
            return
        report.good_bytes = found.end
        kind = found.kind
        report.records[kind] += 1
        if found.end > report.file_bytes:
            report.flaws.append(Flaw(found.offset, "the committed length is in the middle of this record"))
        if name := wrong_digest(found):
            report.flaws.append(Flaw(found.offset, f"{name} does not hold"))
        if report.ours:
            self._pairing.add(found, kind)
        if self._seen is not None:
            self._seen(found, kind)

    def end(self) -> FileReport:
        """There is no more."""
        self._pairing.end()
        return self.report


def check_file(path: Path, *, ours: bool = True, progress: Progress | None = None) -> FileReport:
    """Read the whole file."""
    check = FileCheck(path, ours=ours)
    for found in all_members(path, progress):
        check.take(found)
    return check.end()


class _Pairing:
    """Whether requests, responses and metadata come in whole captures that name each other."""

    def __init__(self, report: FileReport) -> None:
        self._report = report
        self._request: Member | None = None
        self._answer: Member | None = None
        self._conversion: Member | None = None

    def add(self, member: Member, kind: str) -> None:
        if kind == "request":
            self.end()
            self._request, self._answer = member, None
        elif kind in ("response", "revisit"):
            self._answer = member
        elif kind == "conversion":
            self.end()
            self._conversion = member
        elif kind == "metadata" and self._conversion is not None:
            if member.field("warc-refers-to") != self._conversion.field("warc-record-id"):
                self._report.flaws.append(Flaw(member.offset, "metadata does not name its conversion"))
            self._conversion = None
        elif kind == "metadata":
            if not _belong_together(self._request, self._answer, member):
                what = "request, response and metadata do not name each other"
                self._report.flaws.append(Flaw(member.offset, what))
            self._request = None

    def end(self) -> None:
        if self._request is not None:
            self._report.flaws.append(Flaw(self._request.offset, "capture is not whole"))
            self._request = None
        if self._conversion is not None:
            self._report.flaws.append(Flaw(self._conversion.offset, "render is not whole"))
            self._conversion = None


def _belong_together(request: Member | None, answer: Member | None, metadata: Member) -> bool:
    if request is None or answer is None:
        return False
    answer_id = answer.field("warc-record-id")
    named = (request.field("warc-concurrent-to"), metadata.field("warc-concurrent-to"))
    return named == (answer_id, answer_id) and request.field("warc-record-id") in answer.all("warc-concurrent-to")
