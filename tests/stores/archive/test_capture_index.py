"""Captures are found wherever they are: closed files, the open one, and by halving however many lines."""

from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.stores.archive.archive import WarcFiles, new_record_id
from crawlerproject.stores.archive.capture_index import Captures, IndexedCapture, lines_of_key, nearest
from crawlerproject.stores.index.index_files import CdxjFiles
from tests.stores.archive.test_archive import files
from tests.warc_samples import STARTED_AT, exchange, make


class Writing:
    """An archive that is still written, with a hand on the time."""

    def __init__(self, folder: Path) -> None:
        self.index = CdxjFiles(folder / "index")
        self.warc: WarcFiles = files(folder / "warc", index=self.index)

    def add(self, url: str, started_at: float = STARTED_AT, original: Original | None = None) -> str:
        """A capture; its record id."""
        built = make(
            exchange(started_at=started_at),
            url,
            original,
            warcinfo_id=self.warc.warcinfo_id,
            new_id=new_record_id,
            start=(self.warc.state() or self.warc.begin_file()).length,
        )
        position = self.warc.append(built.members)
        self.index.append(position.filename, built.line)
        return built.record_id


@pytest.mark.parametrize("closed", [True, False])
def test_all_captures_of_a_url_by_time(tmp_path: Path, closed: bool) -> None:
    """In two closed files and, or in the open one; http and https, www. and the query's order do not matter."""
    for later in (100.0, 0.0):
        writing = Writing(tmp_path)
        writing.add("http://www.a.example/x?b=2&a=1", STARTED_AT + later)
        writing.add("http://a.example/x")
        if closed or later:
            writing.warc.close()
    writing.index.flush()

    captures = Captures([tmp_path])
    found = captures.of_url("https://a.example/x?a=1&b=2")

    assert [capture.row.timestamp for capture in found] == ["20260921141320", "20260921141500"]
    assert [captures.record(capture).field("warc-target-uri") for capture in found] == [
        "http://www.a.example/x?b=2&a=1"
    ] * 2
    assert captures.of_url("http://a.example/y") == []
    assert captures.of_url("a.example/x")[0].row.url == "http://a.example/x"
    assert captures.unindexed() == []


def test_halving_finds_every_key(tmp_path: Path) -> None:
    """Each key of a file finds its lines and only those, the first and the last included; others find none."""
    path = tmp_path / "x.cdxj"
    keys = [f"test,h{number:03})/" for number in range(200) for _ in range(1 + number % 3)]
    lines = [f"{key} 2026 {{{'x' * (number % 90)}}}\n".encode() for number, key in enumerate(keys)]
    path.write_bytes(b"".join(lines))

    for key in sorted(set(keys)):
        assert list(lines_of_key(path, key)) == [line for line in lines if line.startswith(f"{key} ".encode())]
    for absent in ("", "a", "test,h0", "test,h000)", "test,h0505)/", "zzz"):
        assert list(lines_of_key(path, absent)) == []
    path.write_bytes(b"")
    assert list(lines_of_key(path, "a")) == []


def test_the_body_of_a_revisit(tmp_path: Path) -> None:
    """The capture it refers to is found, by its time and otherwise by its digest; not when it is elsewhere."""
    writing = Writing(tmp_path)
    first = writing.add("http://a.example/", STARTED_AT)
    writing.add("http://a.example/", STARTED_AT + 60)
    date = "2026-09-21T14:14:20.250000Z"
    writing.add("http://a.example/", STARTED_AT + 90, Original(first, "http://a.example/", date))
    writing.add("http://a.example/2", STARTED_AT + 90, Original(first, "http://a.example/", "2020-01-01T00:00:00Z"))
    writing.add("http://a.example/3", STARTED_AT + 90, Original(first, "http://elsewhere.example/", date))
    writing.warc.close()
    captures = Captures([tmp_path])

    def original_of(url: str) -> IndexedCapture | None:
        return captures.original(captures.record(captures.of_url(url)[-1]))

    by_time, by_digest = original_of("http://a.example/"), original_of("http://a.example/2")
    assert by_time and by_time.row.timestamp == "20260921141420"
    assert by_digest and by_digest.row.url == "http://a.example/"
    assert original_of("http://a.example/3") is None


def test_nearest(tmp_path: Path) -> None:
    """Any beginning of a time is a time; nonsense is refused."""
    writing = Writing(tmp_path)
    for later in (0, 86400, 10 * 86400):
        writing.add("http://a.example/", STARTED_AT + later)
    writing.warc.close()
    found = Captures([tmp_path]).of_url("http://a.example/")

    assert nearest(found, "2026") is found[2]
    assert nearest(found, "2020") is found[0]
    assert nearest(found, "2026-09-22") is found[1]
    assert nearest(found, "20260930T000000Z") is found[2]
    for nonsense in ("", "now", "20261399", "123"):
        with pytest.raises(OperatorError, match="is no time"):
            nearest(found, nonsense)


def test_an_index_that_is_wrong(tmp_path: Path) -> None:
    """A missing file, a torn record, another record at the place: each one sentence."""
    writing = Writing(tmp_path)
    writing.add("http://a.example/")
    writing.add("http://b.example/")
    name = writing.warc.close()
    captures = Captures([tmp_path])
    (a,), (b,) = captures.of_url("http://a.example/"), captures.of_url("http://b.example/")

    with pytest.raises(OperatorError, match="another record is there"):
        captures.record(IndexedCapture(a.filename, a.row._replace(offset=b.row.offset, length=b.row.length)))
    with pytest.raises(OperatorError, match="no good record"):
        captures.record(IndexedCapture(a.filename, a.row._replace(offset=a.row.offset + 1)))
    with pytest.raises(OperatorError, match="no good record"):
        captures.record(IndexedCapture(a.filename, a.row._replace(length=a.row.length + b.row.length)))
    (tmp_path / "warc" / str(name)).unlink()
    with pytest.raises(OperatorError, match="which is missing"):
        captures.record(a)
