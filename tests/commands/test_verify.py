"""``scrapy verify``: what is good is called good, and each kind of damage is named, without a traceback."""

import gzip
import io
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.commands.running import URLS, archive, crawl, scrapy


def warc_of(folder: Path) -> Path:
    """The one WARC file."""
    (path,) = (folder / "warc").glob("*.warc.gz")
    return path


def someone_elses(path: Path, compressed: bool = True) -> None:
    """A WARC as warcio writes it: no request, no metadata, other digests' spelling."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=compressed)
        head = StatusAndHeaders("200 OK", [("Content-Type", "text/plain")], protocol="HTTP/1.1")
        for number in range(3):
            body = io.BytesIO(b"theirs")
            writer.write_record(
                writer.create_warc_record(f"http://{number}.test/", "response", body, http_headers=head)
            )


def spoil(path: Path, at: float) -> None:
    """Turn one byte over."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0xFF
    path.write_bytes(data)


def another_digest(path: Path) -> None:
    """A good gzip member whose record says another digest than it has."""
    members = gzip.decompress(path.read_bytes()).split(b"\r\n\r\nWARC/1.1")
    packed = [gzip.compress((b"WARC/1.1" if n else b"") + m + b"\r\n\r\n") for n, m in enumerate(members[:-1])]
    last = b"WARC/1.1" + members[-1].replace(b"WARC-Block-Digest: sha1:", b"WARC-Block-Digest: sha1:X", 1)
    path.write_bytes(b"".join(packed) + gzip.compress(last))


def one_member(path: Path) -> None:
    """All records in one gzip member, as gzip makes it of a .warc file."""
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())))


def index_of(folder: Path) -> Path:
    """The one CDXJ file."""
    (path,) = (folder / "index").glob("*.cdxj")
    return path


def a_part_of(folder: Path) -> Path:
    """One Parquet part."""
    return sorted((folder / "index").rglob("*.parquet"))[0]


def without_a_line(folder: Path) -> None:
    """The index misses a capture."""
    index_of(folder).write_bytes(index_of(folder).read_bytes().split(b"\n", 1)[1])


def unsorted(folder: Path) -> None:
    """The index has its lines the wrong way round."""
    lines = index_of(folder).read_bytes().splitlines(keepends=True)
    index_of(folder).write_bytes(b"".join(reversed(lines)))


def someones_part(folder: Path) -> None:
    """A part holds the rows of another."""
    one, other = sorted((folder / "index").rglob("*.parquet"))
    shutil.copy(one, other)


# What is done to a good crawl folder, and what verify must say of it.
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda crawl: warc_of(crawl).write_bytes(warc_of(crawl).read_bytes()[:-9]), "torn gzip member"),
    "a bit in the middle": (lambda crawl: spoil(warc_of(crawl), 0.5), "bad gzip member"),
    "zeros at the end": (lambda crawl: warc_of(crawl).write_bytes(warc_of(crawl).read_bytes() + bytes(99)), "bad gzip"),
    "wrong digest": (lambda crawl: another_digest(warc_of(crawl)), "WARC-Block-Digest does not hold"),
    "one gzip member": (lambda crawl: one_member(warc_of(crawl)), "3 lines without a capture"),
    "not compressed": (lambda crawl: someone_elses(warc_of(crawl), compressed=False), "3 lines without a capture"),
    "empty file": (lambda crawl: warc_of(crawl).write_bytes(b""), "lines without a capture"),
    "WARC gone": (
        lambda crawl: shutil.copy(index_of(crawl), crawl / "index" / "gone.cdxj"),
        "gone.warc.gz, which",
    ),
    "no index": (lambda crawl: index_of(crawl).unlink(), "has no index; scrapy index makes it"),
    "index short": (without_a_line, "1 capture without a line"),
    "index unsorted": (unsorted, "is not sorted"),
    "part gone": (lambda crawl: a_part_of(crawl).unlink(), "is missing or none of"),
    "part torn": (lambda crawl: a_part_of(crawl).write_bytes(b"PAR1"), "cannot be read"),
    "part of another": (someones_part, "does not agree with"),
}


def files_of(folder: Path) -> dict[Path, bytes]:
    """Everything in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_good_folder(tmp_path: Path) -> None:
    """Counts, and that all is well; without a frontier that is said. Nothing is changed."""
    folder = archive(tmp_path)
    before = files_of(folder)

    done = scrapy("verify", str(folder))

    assert done.returncode == 0
    assert done.stdout == f"{folder}: 1 WARC file, 10 records, {len(URLS)} captures: all is well\n"
    assert done.stderr == "There is no frontier to compare with; only WARC files and index are checked\n"
    assert files_of(folder) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_named(tmp_path: Path, damage: str) -> None:
    """Exit status 1, the damage in words, no traceback, and no file is changed."""
    folder = archive(tmp_path)
    do, words = DAMAGES[damage]
    do(folder)
    before = files_of(folder)

    done = scrapy("verify", str(folder))

    assert done.returncode == 1, done.stdout + done.stderr
    assert words in done.stderr
    assert files_of(folder) == before


def test_a_file_of_someone_elses(tmp_path: Path) -> None:
    """A good WARC of another writer is good, with a note; a file that is none is not."""
    path = tmp_path / "theirs.warc.gz"
    someone_elses(path)

    good = scrapy("verify", str(path))
    path.write_bytes(b"<html>no WARC at all")
    bad = scrapy("verify", str(path))

    assert (good.returncode, good.stdout) == (0, "1 WARC file, 3 records: all is well\n")
    assert "written by another program" in good.stderr
    assert bad.returncode == 1
    assert "byte 0: no WARC or ARC record" in bad.stderr


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "holds no crawl: there is no WARC file in"),
        (lambda path: None, "There is no folder"),
        (lambda path: path.with_name("frontier").mkdir(), "There is no folder"),
    ],
)
@pytest.mark.parametrize("command", ["verify", "index", "lookup"])
def test_no_crawl_there(tmp_path: Path, make: Callable[[Path], None], words: str, command: str) -> None:
    """An empty folder, or none: one sentence and exit status 2."""
    folder = tmp_path / "crawl"
    make(folder)
    where = ["http://a.test/", "-s", f"CRAWL_DIR={folder}"] if command == "lookup" else [str(folder)]

    done = scrapy(command, *where)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("truncated", "status"), [(None, 1), ("time", 1), ("disconnect", 0)])
def test_a_record_that_is_gone(tmp_path: Path, truncated: str | None, status: int) -> None:
    """A frontier that has a page's key and not its record has lost a table: said, with what makes it again.

    But a page that broke off may have no record yet: it waits in its queue for a second try.
    """
    folder = tmp_path / "crawl"
    urls = crawl(folder, truncated=truncated)
    store = RocksStore(folder / "frontier")
    store._tables.pages.delete(parse(urls[3]).key)
    store.close()

    done = scrapy("verify", str(folder))

    assert done.returncode == status
    said = "1 archived pages are not known to the frontier (scrapy recover --frontier makes it again), the first is"
    assert (f"{said} {urls[3]}" in done.stdout + done.stderr) == bool(status)


def test_two_workers_find_the_same(tmp_path: Path) -> None:
    """Each file in another process; what is said stands in the order of the files."""
    folder = archive(tmp_path)
    warc = warc_of(folder)
    for number in ("-00001-", "-00002-"):
        shutil.copyfile(warc, warc.with_name(warc.name.replace("-00000-", number)))
    spoil(warc, 0.5)
    answers = [scrapy("verify", str(folder), "--workers", workers) for workers in ("1", "3")]
    # On a busy machine one of them may say how far it is.
    told = [[line for line in done.stderr.splitlines() if not line.startswith("Verifying: ")] for done in answers]
    said = [(done.returncode, done.stdout, lines) for done, lines in zip(answers, told, strict=True)]

    assert said[0] == said[1]
    assert said[0][0] == 1
    assert said[0][1].startswith(f"{folder}: 3 WARC files, ")
