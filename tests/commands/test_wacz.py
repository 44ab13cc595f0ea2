"""``scrapy wacz``: one file with everything in it as it is, whose hashes hold. py-wacz has a test of its own."""

import gzip
import hashlib
import json
import zipfile
from pathlib import Path

from tests.commands.running import archive, archive_of, scrapy, write

COUNT = 1500  # captures: more than one block of the index


def test_everything_is_in_it(tmp_path: Path) -> None:
    """The WARC files byte by byte and stored, the index in sorted blocks, the pages, and hashes that hold."""
    urls = ["http://a.example.com/robots.txt", *(f"http://h{n % 7}.example.com/{n}" for n in range(COUNT))]
    folder = archive(tmp_path, urls)
    target = tmp_path / "small.wacz"

    done = scrapy("wacz", str(folder), "-o", str(target))

    assert (done.returncode, done.stderr) == (0, "")
    with zipfile.ZipFile(target) as packed:
        assert packed.testzip() is None
        assert {entry.compress_type for entry in packed.infolist()} == {zipfile.ZIP_STORED}
        (warc,) = (folder / "warc").iterdir()
        assert packed.read(f"archive/{warc.name}") == warc.read_bytes()
        (cdxj,) = (folder / "index").glob("*.cdxj")
        assert gzip.decompress(packed.read("indexes/index.cdx.gz")) == cdxj.read_bytes()
        check_blocks(packed, cdxj.read_bytes().splitlines(keepends=True))
        pages = [json.loads(line) for line in packed.read("pages/pages.jsonl").splitlines()]
        assert pages[0]["format"] == "json-pages-1.0"
        assert {page["url"] for page in pages[1:]} == set(urls)
        assert pages[1]["ts"] == "2026-09-21T14:13:20Z"
        check_hashes(packed)


def check_blocks(packed: zipfile.ZipFile, lines: list[bytes]) -> None:
    """Each block begins with the line that the list of blocks names, at its place."""
    data = packed.read("indexes/index.cdx.gz")
    header, *blocks = packed.read("indexes/index.idx").splitlines()
    assert header.startswith(b"!meta 0 ")
    assert len(blocks) == 2
    found = []
    for block in blocks:
        key, timestamp, fields = block.split(b" ", 2)
        place = json.loads(fields)
        member = data[place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == f"sha256:{hashlib.sha256(member).hexdigest()}"
        unpacked = gzip.decompress(member).splitlines(keepends=True)
        assert unpacked[0].startswith(key + b" " + timestamp)
        found += unpacked
    assert found == lines


def check_hashes(packed: zipfile.ZipFile) -> None:
    """The package lists every file with its size and hash, and its own hash is in the seal."""
    package = packed.read("datapackage.json")
    listed = {each["path"]: (each["bytes"], each["hash"]) for each in json.loads(package)["resources"]}
    names = {name for name in packed.namelist() if not name.startswith("datapackage")}
    assert listed == {
        name: (len(packed.read(name)), f"sha256:{hashlib.sha256(packed.read(name)).hexdigest()}") for name in names
    }
    seal = json.loads(packed.read("datapackage-digest.json"))
    assert seal == {"path": "datapackage.json", "hash": f"sha256:{hashlib.sha256(package).hexdigest()}"}


def test_what_is_refused(tmp_path: Path) -> None:
    """An existing file, a missing index, nothing closed yet: one sentence, and no half file is left."""
    folder = archive(tmp_path)
    target = tmp_path / "x.wacz"
    target.write_bytes(b"mine")
    exists = scrapy("wacz", str(folder), "-o", str(target))
    for index in (folder / "index").glob("*.cdxj"):
        index.unlink()
    unindexed = scrapy("wacz", str(folder), "-o", str(tmp_path / "y.wacz"))
    running = archive_of(tmp_path / "running")
    write(running, "http://a.example.com/")
    nothing = scrapy("wacz", str(tmp_path / "running"))
    running.abandon()

    assert [done.returncode for done in (exists, unindexed, nothing)] == [2, 2, 2]
    assert target.read_bytes() == b"mine"
    assert "exists already" in exists.stderr
    assert "scrapy index makes it" in unindexed.stderr
    assert "has no closed WARC file yet" in nothing.stderr
    assert not list(tmp_path.glob("y.wacz*"))
