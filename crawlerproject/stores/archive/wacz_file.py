"""A crawl in one file, or in parts: WACZ 1.1.1, a zip of WARC files, their index and lists of pages.

Sources: https://specs.webrecorder.net/wacz/1.1.1/, https://specs.webrecorder.net/wacz-auth/0.1.0/. As in Browsertrix's
files ``pages.jsonl`` has the seeds and ``extraPages.jsonl`` the pages that were found from them; a part without a seed
has its pages in the first list, since viewers show that one.
"""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import file_digest, sha256
from itertools import chain, islice
from os import SEEK_END
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from isal import igzip_lib
from xxhash import xxh3_64_hexdigest

from crawlerproject.errors import OperatorError
from crawlerproject.rules.consent.verdict import Verdict, strictest
from crawlerproject.stores.archive.erasure import covered, erased_chunks
from crawlerproject.stores.archive.warc_reader import Progress
from crawlerproject.stores.atomic_files import half_file, whole_file, write_whole
from crawlerproject.stores.crawl_dir import WARC_SUFFIX, CrawlDir, lock_now, lock_or_refuse
from crawlerproject.stores.index.index_files import JOURNAL_SUFFIX, merged_lines
from crawlerproject.stores.operator_files.watched_lists import withdrawn_from

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


VERSION = "1.1.1"
LINES_PER_BLOCK = 1024
"""Lines of the index in one gzip member, as py-wacz has them: a reader unpacks so many to find one."""
_LEVEL = 3  # isal's: lines of an index take a sixth more than by zlib's 9, and a sixteenth of the time (measured)
_AFTER_ID = b"\t"
# A field that says nothing (Android's, of alignment to one byte), in both of an entry's heads. A reader that finds none
# in the zip's directory may take it that the entry's own head has none either (wabac.js 2.27, ziprangereader.ts); there
# the sizes of more than 32 bits stand, whether they are needed or not.
_EXTRA = b"\x35\xd9\x02\x00\x01\x00"
_PAGES_FORMAT = "json-pages-1.0"
# Of the file that names the parts, which replayweb.page opens as one crawl (wabac.js 2.27, multiwacz.ts).
_PARTS_PROFILE = "multi-wacz-package"

# The curve that viewers take a public key to be of, and the bytes of each half of a signature (wabac.js 2.27,
# certutils.ts; WebCrypto 23.4: r and s side by side).
_CURVE, _HALF_BYTES = "secp384r1", 48
_MAKE = f"openssl ecparam -name {_CURVE} -genkey -noout -out"
_SOFTWARE = "crawlerproject"


class WaczPage(NamedTuple):
    """A page of the archive, as a viewer lists it."""

    url: str
    timestamp: str  # YYYYmmddHHMMSS
    title: str
    text: str  # "" where it is not wanted
    seed: bool
    record_id: str = ""  # of the answer in its WARC file
    rendered: bool = False  # no page of its own: title and text of that answer's as its scripts left them
    consent: str = Verdict.UNKNOWN  # on its use


class Packing(NamedTuple):
    """How files are packed."""

    created: float  # epoch seconds
    progress: Progress
    pages_of: Callable[[Path], Iterable[WaczPage]]  # of one WARC file
    has_text: bool = False
    sign: Callable[[str, str], dict[str, str]] | None = None  # of the package's hash and its date: ``signedData``
    title: str = ""  # "": the file's name
    description: str = ""

    def about(self, name: str) -> dict[str, str]:
        """What a package called ``name`` is headed with."""
        return {"title": self.title or name, **({"description": self.description} if self.description else {})}


class WaczWriter:
    """Writes the files of one WACZ and remembers their hashes."""

    def __init__(self, archive: zipfile.ZipFile, packing: Packing) -> None:
        self._zip = archive
        self._packing = packing
        self._created = datetime.fromtimestamp(packing.created, UTC)
        self._resources: list[dict[str, Any]] = []

    def add(self, path: str, chunks: Iterable[bytes], *, listed: bool = True, packed: bool = False) -> str:
        """Add one file; its hash. Only texts are ``packed``: readers look into WARC files by their bytes."""
        entry = zipfile.ZipInfo(path, self._created.timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        entry.extra = _EXTRA
        digest, size = sha256(), 0
        with self._zip.open(entry, "w", force_zip64=True) as target:
            for chunk in chunks:
                target.write(chunk)
                digest.update(chunk)
                size += len(chunk)
        hashed = f"sha256:{digest.hexdigest()}"
        if listed:
            name = path.rpartition("/")[2].lower()
            self._resources.append({"name": name, "path": path, "hash": hashed, "bytes": size})
        return hashed

    def add_warc(self, warc: Path) -> None:
        """Add a WARC file as it is, but for what was withdrawn: tombstones stand in its place."""
        spans = list(covered(warc, withdrawn_from(warc)))
        self.add(f"archive/{warc.name}", erased_chunks(warc, spans, self._packing.created, self._packing.progress))

    def add_index(self, indexes: Sequence[Path]) -> int:
        """Merge sorted CDXJ files into one of gzip blocks, with the list of its blocks; how many lines."""
        blocks: list[bytes] = [b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n']
        count = 0

        def packed() -> Iterator[bytes]:
            nonlocal count
            offset = 0
            lines = merged_lines(indexes)
            while block := list(islice(lines, LINES_PER_BLOCK)):
                count += len(block)
                data = igzip_lib.compress(b"".join(block), _LEVEL, igzip_lib.COMP_GZIP)
                place = {"offset": offset, "length": len(data), "digest": f"sha256:{sha256(data).hexdigest()}"}
                key = b" ".join(block[0].split(b" ", 2)[:2])
                blocks.append(b"%b %b\n" % (key, json.dumps({**place, "filename": "index.cdx.gz"}).encode()))
                offset += len(data)
                yield data

        self.add("indexes/index.cdx.gz", packed())
        self.add("indexes/index.idx", blocks)
        return count

    def add_pages(self, warcs: Sequence[Path]) -> int:
        """Add the lists of pages: every HTML answer with status 200; how many."""
        count = seeds = 0
        with TemporaryFile() as of_seeds, TemporaryFile() as of_others, TemporaryFile() as of_renders:
            renders = _Renders(of_renders)
            for page in chain.from_iterable(map(self._packing.pages_of, warcs)):
                if page.rendered:
                    renders.add(page)
                    continue
                (of_seeds if page.seed else of_others).write(page.record_id.encode() + _AFTER_ID + self._line(page))
                count += 1
                seeds += page.seed
            first, second = (of_seeds, of_others) if seeds else (of_others, of_seeds)
            self._add_list("pages", "Seeds" if seeds else "All pages", renders.shown(first))
            if seeds < count and seeds:
                self._add_list("extraPages", "Other pages", renders.shown(second))
        return count

    def _line(self, page: WaczPage) -> bytes:
        stamp = page.timestamp
        time = f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
        # Checkers take the list for a table whose columns are those of its first line: each page needs one of them.
        line: dict[str, Any] = {"id": xxh3_64_hexdigest(f"{page.url} {stamp}".encode()), "url": page.url, "ts": time}
        line["title"], line["consent"] = page.title, page.consent
        if self._packing.has_text:
            line["text"] = page.text
        if page.seed:
            line["seed"] = True
        return json.dumps(line).encode() + b"\n"

    def _add_list(self, name: str, title: str, lines: Iterable[bytes]) -> None:
        about = {"format": _PAGES_FORMAT, "id": name, "title": title, "hasText": self._packing.has_text}
        self.add(f"pages/{name}.jsonl", chain([json.dumps(about).encode() + b"\n"], lines), packed=True)

    def finish(self, name: str) -> None:
        """Add what lists and seals the rest."""
        created = self._created.strftime("%Y-%m-%dT%H:%M:%SZ")
        about = {"profile": "data-package", **self._packing.about(name), "wacz_version": VERSION, "software": _SOFTWARE}
        package = json.dumps({**about, "created": created, "resources": self._resources}, indent=2).encode()
        hashed = self.add("datapackage.json", [package], listed=False)
        seal: dict[str, Any] = {"path": "datapackage.json", "hash": hashed}
        if self._packing.sign is not None:
            seal["signedData"] = self._packing.sign(hashed, created)
        self.add("datapackage-digest.json", [json.dumps(seal).encode()], listed=False)


class _Renders:
    """Titles and texts of pages as their scripts left them, in a file until the lists of pages are made."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._places: dict[bytes, tuple[int, int]] = {}

    def add(self, page: WaczPage) -> None:
        """The last one of a page counts."""
        shown = json.dumps({"title": page.title, "text": page.text, "consent": page.consent}).encode()
        self._places[page.record_id.encode()] = self._file.seek(0, SEEK_END), len(shown)
        self._file.write(shown)

    def shown(self, lines: IO[bytes]) -> Iterator[bytes]:
        """The lines of a list, each behind the id of its record until here, as a reader of the page sees it."""
        lines.seek(0)
        for known in lines:
            record_id, _, line = known.partition(_AFTER_ID)
            place = self._places.get(record_id)
            yield line if place is None else self._changed(line, *place)

    def _changed(self, line: bytes, start: int, length: int) -> bytes:
        self._file.seek(start)
        shown, page = json.loads(self._file.read(length)), json.loads(line)
        shown["consent"] = strictest(shown["consent"], page["consent"])
        return json.dumps({name: shown.get(name) or value for name, value in page.items()}).encode() + b"\n"


def parts_of(warcs: Sequence[Path], most_bytes: int) -> list[list[Path]]:
    """The WARC files in their order, in groups of at most so many bytes, or of one file that is larger."""
    parts: list[list[Path]] = []
    left = 0
    for warc in warcs:
        size = warc.stat().st_size
        if not parts or size > left:
            parts.append([])
            left = most_bytes
        parts[-1].append(warc)
        left -= size
    return parts


def write_parts(target: Path, parts: Sequence[Sequence[Path]], packing: Packing) -> int:
    """``NAME-1.wacz``, …, and ``NAME.json``, which names them, for ``target`` NAME.wacz; how many pages they list.

    Raises OperatorError as ``write_wacz``; then, or when it is interrupted, none of them is left.
    """
    names = [target.with_name(f"{target.stem}-{number}{target.suffix}") for number in range(1, len(parts) + 1)]
    whole = target.with_suffix(".json")
    for path in (*names, whole):
        _refuse_existing(path)
    try:
        pages = sum(write_wacz(name, part, packing) for name, part in zip(names, parts, strict=True))
        resources = [
            {"name": name.name, "path": name.name, "hash": _hash_of(name), "bytes": name.stat().st_size}
            for name in names
        ]
        about = {"profile": _PARTS_PROFILE, **packing.about(target.stem), "resources": resources}
        write_whole(whole, json.dumps(about, indent=2).encode())
    except BaseException:
        for path in names:
            path.unlink(missing_ok=True)
        raise
    return pages


def is_being_closed(warc: Path) -> bool:
    """Whether a crawl that runs has given the file its final name, and not yet written its index."""
    index = _index_of(warc)
    return not index.exists() and index.with_suffix(JOURNAL_SUFFIX).exists()


def _index_of(warc: Path) -> Path:
    return CrawlDir(warc.parent.parent).index / f"{warc.name.removesuffix(WARC_SUFFIX)}.cdxj"


def write_wacz(target: Path, warcs: Sequence[Path], packing: Packing) -> int:
    """Pack closed WARC files with their index, which is beside them, into ``target``; how many pages it lists.

    Raises OperatorError when the target exists or a file has no index. A crash leaves no half file under that name.
    """
    _refuse_existing(target)
    indexes = [_index_of(warc) for warc in warcs]
    if arcs := [warc.name for warc in warcs if not warc.name.endswith((".warc", ".warc.gz"))]:
        raise OperatorError(f"{arcs[0]} is no WARC, and a WACZ holds nothing else; warcio recompress makes one of it.")
    missing = [index for index in indexes if not index.exists()]
    if missing:
        raise OperatorError(f"{missing[0].name} is missing in {missing[0].parent}; scrapy index makes it.")
    with whole_file(target) as file, zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        lock_now(file.fileno())  # of the half file: ``_refuse_existing`` finds it held
        writer = WaczWriter(archive, packing)
        for warc in warcs:
            writer.add_warc(warc)
        writer.add_index(indexes)
        pages = writer.add_pages(warcs)
        writer.finish(target.stem)
    return pages


def _refuse_existing(target: Path) -> None:
    if target.exists():
        raise OperatorError(f"{target} exists already; remove it, or name another file with -o.")
    with suppress(FileNotFoundError), half_file(target).open("rb") as half:
        lock_or_refuse(half.fileno(), f"Another scrapy wacz is writing {target}; let it end, or name another file.")


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{file_digest(file, 'sha256').hexdigest()}"


class WaczSigner:
    """Signs with the key of a PEM file. Raises OperatorError when there is none, or one of another kind."""

    def __init__(self, key_file: Path, version: str) -> None:
        from cryptography.hazmat.primitives import serialization

        self._key, self._version = _key_in(key_file), version
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.public_key = base64.b64encode(public).decode()

    def sign(self, package_hash: str, created: str) -> dict[str, str]:
        """``signedData`` of a package's hash (``sha256:…``) and its date."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, utils

        r, s = utils.decode_dss_signature(self._key.sign(package_hash.encode(), ec.ECDSA(hashes.SHA256())))
        halves = r.to_bytes(_HALF_BYTES, "big") + s.to_bytes(_HALF_BYTES, "big")
        return {
            "hash": package_hash,
            "created": created,
            "software": _SOFTWARE,
            "version": self._version,
            "signature": base64.b64encode(halves).decode(),
            "publicKey": self.public_key,
        }


def _key_in(path: Path) -> EllipticCurvePrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except OSError as error:
        raise OperatorError(f"The key {path} cannot be read ({error.strerror}); {_MAKE} {path} makes one.") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise OperatorError(f"{path} is no private key in PEM without a password; {_MAKE} FILE makes one.") from None
    if not isinstance(key, EllipticCurvePrivateKey) or key.curve.name != _CURVE:
        raise OperatorError(f"{path} is no key of the curve {_CURVE}, which viewers want; {_MAKE} FILE makes one.")
    return key
