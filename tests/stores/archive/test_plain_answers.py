"""The plain answer is read back from the archive, whether its file is open or closed."""

from pathlib import Path

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.stores.archive.warc_reader import PlainResponse, names_of, read_answer
from tests.warc_samples import info_member, make


@pytest.mark.parametrize("suffix", ["", ".open"])
def test_a_record_is_found_by_its_place(tmp_path: Path, suffix: str) -> None:
    """Id, date, head and body as they were written."""
    built = make()
    (tmp_path / f"a.warc.gz{suffix}").write_bytes(info_member() + built.members)
    place = PlainResponse("a.warc.gz", len(info_member()) + built.offset, built.length, 3, 4)

    paths = [tmp_path / "elsewhere" / "a.warc.gz", *(tmp_path / name for name in names_of("a.warc.gz"))]
    found = read_answer(paths, PlainResponse.of(place.note()))

    assert found.field("warc-record-id") == built.record_id
    assert found.field("warc-date") == built.date
    assert found.head.startswith(b"HTTP/1.1 200")


def test_what_is_gone_is_said(tmp_path: Path) -> None:
    """No file, another record, a note that is none: each a StorageError."""
    (tmp_path / "a.warc.gz").write_bytes(info_member())
    for place in (PlainResponse("b.warc.gz", 0, 9, 0, 0), PlainResponse("a.warc.gz", 0, len(info_member()), 0, 0)):
        with pytest.raises(StorageError, match="is not at"):
            read_answer([tmp_path / place.filename], place)
    with pytest.raises(StorageError, match="no place"):
        PlainResponse.of("http://a.test")
