"""A WARC file read strictly, member by member: what it holds, and where it stops being good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crawlerproject.rules.warc_members import CHUNK_BYTES, Flaw, Member, walk, wrong_digest


@dataclass(slots=True)
class FileReport:
    """What a strict reading of one file found."""

    path: Path
    file_bytes: int = 0
    good_bytes: int = 0  # end of the last good member
    records: Counter[str] = field(default_factory=Counter)  # by WARC-Type
    flaws: list[Flaw] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every byte of the file belongs to a good record."""
        return not self.flaws and self.good_bytes == self.file_bytes


def walk_file(path: Path, start: int = 0) -> Iterator[Member | Flaw]:
    """Every good member from byte ``start`` on; a Flaw, if any, comes last."""
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        yield from walk(iter(lambda: file.read(CHUNK_BYTES), b""), start)


def check_file(path: Path) -> FileReport:
    """Read the whole file: gzip, WARC framing, sha1 digests, and that every capture is whole."""
    report = FileReport(path, file_bytes=path.stat().st_size)
    request: Member | None = None
    answer: Member | None = None
    for member in walk_file(path):
        if isinstance(member, Flaw):
            report.flaws.append(member)
            break
        report.records[member.kind] += 1
        report.good_bytes = member.end
        if name := wrong_digest(member):
            report.flaws.append(Flaw(member.offset, f"{name} does not hold"))
        if member.kind == "request":
            _expect_whole(report, request)
            request, answer = member, None
        elif member.kind in ("response", "revisit"):
            answer = member
        elif member.kind == "metadata":
            if not _belong_together(request, answer, member):
                report.flaws.append(Flaw(member.offset, "request, response and metadata do not name each other"))
            request = None
    _expect_whole(report, request)
    return report


def _expect_whole(report: FileReport, request: Member | None) -> None:
    if request is not None:
        report.flaws.append(Flaw(request.offset, "capture is not whole"))


def _belong_together(request: Member | None, answer: Member | None, metadata: Member) -> bool:
    if request is None or answer is None:
        return False
    answer_id = answer.field("warc-record-id")
    named = (request.field("warc-concurrent-to"), metadata.field("warc-concurrent-to"))
    return named == (answer_id, answer_id) and request.field("warc-record-id") in answer.all("warc-concurrent-to")
