"""What is good of a WARC file of ours stays whole: captures, and what a browser made of pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.rules.archive.warc_members import Member
from crawlerproject.rules.archive.warc_records import Render
from crawlerproject.stores.archive.recovery import good_spans, mend
from crawlerproject.stores.archive.warc_reader import members
from tests.commands.running import archive_of, write
from tests.foreign_archives import SHAPES, Page
from tests.warc_samples import STARTED_AT

URL = "http://a.example.com/"


def rendered(folder: Path, screenshot: bytes) -> Path:
    """A file with a capture, its render, and another capture."""
    made = archive_of(folder)
    plain = write(made, URL)
    times = STARTED_AT + 1, STARTED_AT + 2
    made.write_render(Render(URL, plain.record_id, b"<p>by a script", *times, [], screenshot))
    write(made, URL + "next")
    made.close()
    (warc,) = (folder / "warc").iterdir()
    return warc


@pytest.mark.parametrize("screenshot", [b"", b"a picture"])
def test_a_render_is_good_as_it_is(tmp_path: Path, screenshot: bytes) -> None:
    """Conversion, screenshot and metadata belong together: nothing of a good file is cut out."""
    warc = rendered(tmp_path, screenshot)

    assert good_spans(warc, whole_captures=True) == [(0, warc.stat().st_size)]


def test_a_render_that_is_not_whole_goes_as_one(tmp_path: Path) -> None:
    """Its metadata is damaged: conversion and screenshot go with it, the captures around it stay."""
    warc = rendered(tmp_path, b"a picture")
    records = [member for member in members(warc) if isinstance(member, Member)]
    kinds = [member.kind for member in records]
    first, last = kinds.index("conversion"), kinds.index("conversion") + 2
    data = bytearray(warc.read_bytes())
    data[records[last].offset + records[last].length // 2] ^= 0xFF
    warc.write_bytes(data)

    spans = good_spans(warc, whole_captures=True)
    mend(warc, spans)

    assert spans == [(0, records[first].offset), (records[last].end, len(data))]
    assert [member.kind for member in members(warc) if isinstance(member, Member)] == kinds[:first] + kinds[last + 1 :]


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if shape.suffix.endswith(".gz")])
def test_a_file_of_another_program_is_good_in_its_own_shape(tmp_path: Path, name: str) -> None:
    """Nothing is cut out of it, and of a torn one what is torn."""
    path = tmp_path / "theirs.warc.gz"
    whole = SHAPES[name].make([Page("http://a.test/", b"<p>1"), Page("http://a.test/2", b"<p>2")])
    path.write_bytes(whole + whole[:40])

    spans = good_spans(path, whole_captures=False)

    assert spans == [(0, len(whole))]
    assert len(mend(path, spans)) == 1
    assert path.read_bytes() == whole
    assert mend(path, good_spans(path, whole_captures=False)) == []


def test_what_is_not_compressed_is_left_as_it_is(tmp_path: Path) -> None:
    """Its records are read where they are; line breaks between them are no damage."""
    path = tmp_path / "theirs.warc.gz"
    path.write_bytes(SHAPES["plain"].make([Page("http://a.test/", b"<p>1")]))

    assert good_spans(path, whole_captures=False) == []
    assert mend(path, []) == ["theirs.warc.gz has no good record; it is left as it is"]
