"""A WARC file read strictly, member by member: what it holds, and where it is not good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crawlerproject.rules.archive.warc_members import Flaw, Member, wrong_digest
from crawlerproject.stores.archive.warc_reader import Progress, members, next_member


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


def check_file(
    path: Path,
    *,
    until: int | None = None,
    ours: bool = True,
    seen: Callable[[Member, str], None] | None = None,
    progress: Progress | None = None,
) -> FileReport:
    """Read the whole file: gzip, WARC framing, sha1 digests, and (``ours``) that every capture is whole.

    ``until``: only so many bytes count, what follows is not yet committed. ``seen`` gets every good record with its
    WARC-Type. After a flaw the reading goes on at the next good record.
    """
    size = path.stat().st_size
    report = FileReport(path, file_bytes=size if until is None else until, ours=ours)
    if size < report.file_bytes:
        report.flaws.append(Flaw(size, f"the file ends here, and {report.file_bytes} bytes of it were committed"))
    pairing = _Pairing(report)
    position: int | None = 0
    while position is not None and position < report.file_bytes:
        start, position = position, None
        for member in members(path, start, progress):
            if member.offset >= report.file_bytes:
                break
            if isinstance(member, Flaw):
                report.flaws.append(member)
                pairing.end()
                position = next_member(path, member.offset + 1)
                break
            report.good_bytes = member.end
            kind = member.kind
            report.records[kind] += 1
            if member.end > report.file_bytes:
                report.flaws.append(Flaw(member.offset, "the committed length is in the middle of this record"))
            if name := wrong_digest(member):
                report.flaws.append(Flaw(member.offset, f"{name} does not hold"))
            if report.ours:
                pairing.add(member, kind)
            if seen is not None:
                seen(member, kind)
    pairing.end()
    return report


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
