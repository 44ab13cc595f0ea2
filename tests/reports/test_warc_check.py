"""The report on one file: clean, or where and how it is not."""

from pathlib import Path

import pytest

from crawlerproject.reports.warc_check import check_file
from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.stores.archive.warc_reader import members
from tests.warc_samples import info_member, make

WHOLE = info_member() + make().members


def test_clean(tmp_path: Path) -> None:
    """Counts by type, every byte accounted for; a walk can start at any member."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(WHOLE)
    report = check_file(path)
    assert report.clean
    assert dict(report.records) == {"warcinfo": 1, "request": 1, "response": 1, "metadata": 1}
    (member,) = list(members(path))[-1:]
    assert isinstance(member, Member)
    assert list(members(path, member.offset)) == [member]


def two_half_captures() -> bytes:
    """A request without its answer, then a whole capture."""
    built = make()
    return info_member() + built.members[: built.offset] + built.members


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (WHOLE[:-5], "torn gzip member"),
        (WHOLE + b"\0" * 20, "bad gzip member"),
        (two_half_captures(), "capture is not whole"),
        (info_member() + make().members[: make().offset], "capture is not whole"),
        (info_member() + make().members[make().offset :], "do not name each other"),
    ],
)
def test_flaws(tmp_path: Path, data: bytes, what: str) -> None:
    """Each kind of damage is named."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(data)
    report = check_file(path)
    assert not report.clean
    assert any(what in flaw.what for flaw in report.flaws)


def test_empty_file(tmp_path: Path) -> None:
    """An empty file has no record and no flaw."""
    path = tmp_path / "a.warc.gz"
    path.write_bytes(b"")
    assert check_file(path).clean
