"""``scrapy wacz``: one file with everything in it as it is, whose hashes hold. py-wacz has a test of its own."""

import base64
import gzip
import hashlib
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from crawlerproject.rules.archive.warc_records import Context, Render
from tests.commands.running import archive, archive_of, scrapy, write
from tests.warc_samples import STARTED_AT, exchange

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
        as_they_are = [entry for entry in packed.infolist() if not entry.filename.startswith("pages/")]
        assert {entry.compress_type for entry in as_they_are} == {zipfile.ZIP_STORED}
        (warc,) = (folder / "warc").iterdir()
        assert packed.read(f"archive/{warc.name}") == warc.read_bytes()
        (cdxj,) = (folder / "index").glob("*.cdxj")
        assert gzip.decompress(packed.read("indexes/index.cdx.gz")) == cdxj.read_bytes()
        assert all(entry.extra for entry in packed.infolist())  # or viewers pass over the one in the entry's own head
        check_blocks(packed, cdxj.read_bytes().splitlines(keepends=True))
        about, *pages = listed(packed, "pages")
        assert (about["format"], about["hasText"]) == ("json-pages-1.0", False)
        assert {page["url"] for page in pages} == set(urls)
        assert (pages[0]["ts"], pages[0]["title"]) == ("2026-09-21T14:13:20Z", "A page")
        assert "text" not in pages[0]
        check_hashes(packed)


def test_title_and_description_are_the_crawls_or_those_given(tmp_path: Path) -> None:
    """An option wins over the crawl's file, which wins over the name; parts have them too."""
    folder = archive(tmp_path)

    def headed(*options: str) -> tuple[str, str | None]:
        target = tmp_path / "small.wacz"
        target.unlink(missing_ok=True)
        assert scrapy("wacz", str(folder), "-o", str(target), *options).returncode == 0
        with zipfile.ZipFile(target) as packed:
            package = json.loads(packed.read("datapackage.json"))
        return package["title"], package.get("description")

    assert headed() == ("small", None)
    (folder / "crawl.toml").write_text('[settings]\nCRAWL_TITLE = "Ours"\nCRAWL_DESCRIPTION = "What it is"\n')
    assert headed() == ("Ours", "What it is")
    assert headed("--title", "Another", "--description", "") == ("Another", None)
    assert scrapy("wacz", str(folder), "-o", str(tmp_path / "p.wacz"), "--split-bytes", "1").returncode == 0
    parts = json.loads((tmp_path / "p.json").read_text())
    assert (parts["title"], parts["description"]) == ("Ours", "What it is")


def listed(packed: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """The lines of a list of pages, the first one about the others."""
    return [json.loads(line) for line in packed.read(f"pages/{name}.jsonl").splitlines()]


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


def test_a_file_that_is_cut_is_named(tmp_path: Path) -> None:
    """It is packed as it is; its pages behind the cut are not listed, and one sentence says so."""
    folder = archive(tmp_path, [f"http://a.example.com/{number}" for number in range(9)])
    (warc,) = (folder / "warc").iterdir()
    with warc.open("r+b") as file:
        file.truncate(warc.stat().st_size // 2)

    done = scrapy("wacz", str(folder), "-o", str(tmp_path / "x.wacz"))

    assert done.returncode == 0
    pages = re.search("1 WARC file, ([1-8]) pages", done.stdout)
    assert pages
    assert re.fullmatch(
        rf"1 WARC file damaged, pages behind that not listed: {warc.name} at byte \d+ \(.+\)\n", done.stderr
    )
    with zipfile.ZipFile(tmp_path / "x.wacz") as packed:
        assert packed.read(f"archive/{warc.name}") == warc.read_bytes()
        assert len(listed(packed, "pages")) == 1 + int(pages[1])


def found_by(folder: Path, number: int, url: str, hops: str = "L") -> None:
    """A worker's closed WARC file with one page."""
    made = archive_of(folder / f"w{number}", lambda: STARTED_AT + number)
    (folder / f"w{number}" / "run.json").write_text("{}")
    page = f"<title>Found by {hops}</title><nav>frame</nav><p>All about {url}".encode()
    made.write(exchange(page), Context(url=url, hops=hops, sample=page))
    made.close()


def test_seeds_are_listed_apart_with_titles_and_text(tmp_path: Path) -> None:
    """Seeds, where redirects of theirs led, links; not robots.txt, nor what a page embeds."""
    for number, hops in enumerate(("", "R", "L", "LLR", "P", "LE")):
        found_by(tmp_path, number, f"http://{hops or 'seed'}.test/", hops)
    target = tmp_path / "x.wacz"

    done = scrapy("wacz", str(tmp_path), "-o", str(target), "--text")

    assert done.returncode == 0, done.stderr
    assert "6 WARC files, 4 pages" in done.stdout
    with zipfile.ZipFile(target) as packed:
        check_hashes(packed)
        (_, *seeds), (about, *others) = (listed(packed, name) for name in ("pages", "extraPages"))
    assert about["hasText"]
    assert {page["url"] for page in seeds} == {"http://seed.test/", "http://R.test/"}
    assert all(page["seed"] for page in seeds)
    assert {(page["url"], page["title"], page["text"]) for page in others} == {
        ("http://L.test/", "Found by L", "All about http://L.test/"),
        ("http://LLR.test/", "Found by LLR", "All about http://LLR.test/"),
    }


def test_a_rendered_page_is_listed_as_its_scripts_left_it(tmp_path: Path) -> None:
    """Though the browser's work stands in a later WARC file. One that scripts leave without a title keeps its own."""
    clock = iter(STARTED_AT + 60 * minute for minute in range(100))
    made = archive_of(tmp_path / "crawl", lambda: next(clock), max_bytes=1)  # a file each
    html = {"apart": b"<title>plain</title><p>words", "untitled": b"<title>kept</title><p>words"}
    for name, plain in html.items():
        url = f"http://{name}.test/"
        written = made.write(exchange(plain), Context(url, sample=plain))
        assert made.warc.roll_if_full() is not None
        shown = b"<title>by a script</title><p>more words" if name == "apart" else b"<p>more words"
        made.write_render(Render(url, written.record_id, shown, STARTED_AT, STARTED_AT + 1, []))
    made.close()
    target = tmp_path / "x.wacz"

    done = scrapy("wacz", str(tmp_path / "crawl"), "-o", str(target), "--text")

    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(target) as packed:
        check_hashes(packed)
        _, *pages = listed(packed, "pages")
    assert {(page["url"], page["title"], page["text"]) for page in pages} == {
        ("http://apart.test/", "by a script", "more words"),
        ("http://untitled.test/", "kept", "more words"),
    }


def key_of(path: Path, curve: ec.EllipticCurve) -> ec.EllipticCurvePublicKey:
    """A new key in a file; its public half."""
    key = ec.generate_private_key(curve)
    form = serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return key.public_key()


def test_a_signature_is_of_the_package_by_the_operators_key(tmp_path: Path) -> None:
    """As the specification and WebCrypto have it: of the hash as it stands there, r and s side by side."""
    public = key_of(tmp_path / "key.pem", ec.SECP384R1())
    target = tmp_path / "x.wacz"

    done = scrapy("wacz", str(archive(tmp_path)), "-o", str(target), "--key", str(tmp_path / "key.pem"))

    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(target) as packed:
        seal = json.loads(packed.read("datapackage-digest.json"))
        created = json.loads(packed.read("datapackage.json"))["created"]
    signed = seal["signedData"]
    assert set(signed) == {"hash", "created", "software", "version", "signature", "publicKey"}
    assert (signed["hash"], signed["created"]) == (seal["hash"], created)
    assert serialization.load_der_public_key(base64.b64decode(signed["publicKey"])) == public
    halves = base64.b64decode(signed["signature"])
    assert len(halves) == 96
    signature = utils.encode_dss_signature(int.from_bytes(halves[:48], "big"), int.from_bytes(halves[48:], "big"))
    public.verify(signature, seal["hash"].encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        public.verify(signature, seal["hash"].encode() + b"0", ec.ECDSA(hashes.SHA256()))


def test_parts_are_whole_files_and_one_that_names_them(tmp_path: Path) -> None:
    """Each holds the WARC files that fit; where one cannot be made, none is left."""
    for number in range(3):
        found_by(tmp_path, number, f"http://h{number}.test/")
    sizes = [path.stat().st_size for path in sorted(tmp_path.glob("*/warc/*"))]
    target = tmp_path / "x.wacz"

    done = scrapy("wacz", str(tmp_path), "-o", str(target), "--split-bytes", str(sum(sizes[:2])))

    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/x.json names 2 files: 3 WARC files, 3 pages" in done.stdout
    whole = json.loads((tmp_path / "x.json").read_text())
    assert [part["path"] for part in whole["resources"]] == ["x-1.wacz", "x-2.wacz"]
    for part, urls in zip(
        whole["resources"], [["http://h0.test/", "http://h1.test/"], ["http://h2.test/"]], strict=True
    ):
        path = tmp_path / part["path"]
        assert part["hash"] == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
        with zipfile.ZipFile(path) as packed:
            check_hashes(packed)
            assert [page["url"] for page in listed(packed, "pages")[1:]] == urls
    next((tmp_path / "w2" / "index").glob("*.cdxj")).unlink()
    failed = scrapy("wacz", str(tmp_path), "-o", str(tmp_path / "y.wacz"), "--split-bytes", "1")
    assert failed.returncode == 2
    assert list(tmp_path.glob("y*")) == []


def test_a_file_that_is_just_being_closed_is_left_out(tmp_path: Path) -> None:
    """A crawl that runs names the file first and writes its index then; until then the journal stands beside it."""
    for number in range(2):
        found_by(tmp_path, number, f"http://h{number}.test/")
    index = next((tmp_path / "w1" / "index").glob("*.cdxj"))
    index.rename(index.with_name(f"{index.name}.open"))

    done = scrapy("wacz", str(tmp_path), "-o", str(tmp_path / "x.wacz"))

    assert (done.returncode, done.stderr) == (0, "The WARC file that is still written is left out.\n")
    assert "x.wacz: 1 WARC file, 1 page" in done.stdout


def test_a_key_that_will_not_do_is_one_sentence(tmp_path: Path) -> None:
    """Missing, none at all, of another curve; nothing is packed."""
    key_of(tmp_path / "other.pem", ec.SECP256R1())
    (tmp_path / "none.pem").write_text("no key")
    folder = archive(tmp_path)
    sentences = {"missing.pem": "cannot be read", "none.pem": "is no private key", "other.pem": "no key of the curve"}
    for name, sentence in sentences.items():
        done = scrapy("wacz", str(folder), "-o", str(tmp_path / "x.wacz"), "--key", str(tmp_path / name))
        assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.glob("x*")) == []
