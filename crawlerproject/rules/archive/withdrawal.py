"""What the owner of a site has asked back: which captures a list of withdrawals covers, and what stands in their place.

A line of the list is a host (with all names below it), a URL as ``scrapy lookup`` finds it, or a URL that ends with
``/*`` (all below it); then the day, how far it is, and, behind ``#``, who asked.

An erased capture is replaced by one record, a tombstone, in a gzip member of the same length: so no other record of
the file moves, and whatever names a place in it, such as the request log and the frontier, stays true. WARC 1.1 5.5
has readers pass over records of types that they do not know. The length is made up by empty stored blocks (RFC 1951
3.2.4), which every inflater takes and which inflate to nothing.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from crawlerproject.rules.archive.http_messages import digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import surt_key
from crawlerproject.rules.archive.warc_members import TOMBSTONE
from crawlerproject.rules.archive.warc_records import one_line
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.rules.url.urls import UrlRefused, host_key, host_name, parse

_BELOW = "/*"
_WITH_PORT = re.compile(r"[^\s/?#@\\]+:\d{1,5}")
_COMMENT = re.compile(r"(?:^|\s)#")
_MOST_WORDS = 4
_CRAWLED = "crawled"

_GZIP_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952 2.3: deflate, no name, no time, system unknown
_EMPTY, _LAST_EMPTY = b"\x00\x00\x00\xff\xff", b"\x01\x00\x00\xff\xff"  # RFC 1951 3.2.4
_GZIP_TAIL_BYTES = 8  # checksum and size
_RAW = -15  # zlib's window bits for deflate without head and tail
_MOST_BLANKS = 200  # each changes the compressed length by less than a byte: five lengths in a row are among them


class State(StrEnum):
    """How far a withdrawal is."""

    WITHDRAWN = "withdrawn"  # shown no more
    ERASING = "erasing"  # its bytes are being cut out
    ERASED = "erased"


class Withdrawal(NamedTuple):
    """One line of the list."""

    what: str  # host, URL, or URL that ends with /*
    day: str  # YYYY-MM-DD
    state: State
    why: str
    crawled: bool = False  # it may be asked for all the same

    def line(self) -> str:
        """The entry's line in the list."""
        crawled = f" {_CRAWLED}" if self.crawled else ""
        return f"{self.what}  {self.day} {self.state}{crawled}  # {self.why}"


class Withdrawn:
    """A list of withdrawals. Immutable."""

    def __init__(self, entries: Iterable[Withdrawal] = ()) -> None:
        self.entries = tuple(entries)
        self._keys: dict[str, Withdrawal] = {}
        self._below: dict[str, Withdrawal] = {}
        self._named: dict[str, Withdrawal] = {}
        for entry in self.entries:
            if "://" not in entry.what:
                self._named.setdefault(entry.what, entry)
            elif entry.what.endswith(_BELOW):
                self._below.setdefault(surt_key(entry.what.removesuffix(_BELOW) + "/").rstrip("/"), entry)
            else:
                self._keys.setdefault(surt_key(entry.what), entry)
        self._hosts = Exclusion(dict.fromkeys(self._named, 0))

    @classmethod
    def parse(cls, lines: Iterable[str]) -> tuple[Withdrawn, list[str]]:
        """Read the lines of a list; those that say nothing understandable are returned."""
        entries, problems = [], []
        for line in lines:
            words, why = _cut(line)
            if not words:
                continue
            try:
                state = State(words[2]) if len(words) > 2 else State.WITHDRAWN
                day = words[1] if len(words) > 1 else ""
                if len(words) > _MOST_WORDS or words[3:] not in ([], [_CRAWLED]):
                    raise ValueError
                entries.append(Withdrawal(selector(words[0]), day, state, why, len(words) == _MOST_WORDS))
            except ValueError:
                problems.append(line.strip())
        return cls(entries), problems

    def of(self, url: str) -> Withdrawal | None:
        """The withdrawal that covers a URL; None when none does."""
        if not self.entries or not url:
            return None
        if self._named and (domain := self._hosts.domain_of(host_name(host_key(url)))) is not None:
            return self._named[domain]
        if not (self._keys or self._below):
            return None
        key = surt_key(url)
        if (found := self._keys.get(key)) is not None or not self._below:
            return found
        ends = (place.start() for place in re.finditer(r"[/?]|$", key))
        return next((self._below[key[:end]] for end in ends if key[:end] in self._below), None)

    def covers(self, url: str) -> bool:
        """Whether a URL was withdrawn."""
        return self.of(url) is not None

    def refuses(self, url: str) -> bool:
        """Whether a URL may not be asked for again."""
        found = self.of(url)
        return found is not None and not found.crawled


def selector(text: str) -> str:
    """A host or URL as the list has it, of HOST:PORT all URLs. Raises ValueError for anything else."""
    if "://" not in text:
        entries, problems = Exclusion.parse([text])
        if problems and _WITH_PORT.fullmatch(text):
            return selector(f"http://{text}{_BELOW}")
        if problems or len(entries) != 1:
            raise ValueError(text)
        (domain,) = entries.domains
        return domain
    below = text.endswith(_BELOW)
    try:
        found = parse(text.removesuffix("*") if below else text)
    except UrlRefused as error:
        raise ValueError(text) from error
    return f"{found.url.rstrip('/')}{_BELOW}" if below else found.url


def _cut(line: str) -> tuple[list[str], str]:
    """The words of a line, and its comment."""
    place = _COMMENT.search(line)
    return (line.split(), "") if place is None else (line[: place.start()].split(), line[place.end() :].strip())


def tombstone(length: int, entry: Withdrawal, record_id: str, *, of: str, date: str) -> bytes:
    """A gzip member of ``length`` bytes with one record, which says what was here once. Raises ValueError: no room.

    ``of``: the id of the answer that was erased, "" where it had none; ``date`` as WARC-Date. No address: it may be
    what was asked back.
    """
    refers = f"WARC-Refers-To: {of}\r\n" if of else ""
    fields = (
        f"WARC/1.1\r\nWARC-Type: {TOMBSTONE}\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {date}\r\n{refers}"
        "Content-Type: application/warc-fields\r\n"
    )
    why = one_line(entry.why)
    for text in (f"erased: {date}\r\nwithdrawn: {entry.day}\r\nreason: {why}\r\n", f"erased: {date}\r\n"):
        for member in _members(fields, text, length):
            return member
    raise ValueError(f"a tombstone has no room in {length} bytes")


def _members(fields: str, text: str, length: int) -> Iterator[bytes]:
    """The record with as many blanks as it takes for the member to have this length."""
    for blanks in range(_MOST_BLANKS):
        block = text.encode() + b" " * blanks
        digest = digest_text(payload_digest(block))
        head = f"{fields}WARC-Block-Digest: sha1:{digest}\r\nContent-Length: {len(block)}\r\n\r\n".encode()
        record = head + block + b"\r\n\r\n"
        packer = zlib.compressobj(9, zlib.DEFLATED, _RAW)
        packed = packer.compress(record) + packer.flush(zlib.Z_SYNC_FLUSH)
        room = length - len(_GZIP_HEAD) - len(packed) - len(_LAST_EMPTY) - _GZIP_TAIL_BYTES
        if room < 0:
            return
        if room % len(_EMPTY) == 0:
            tail = zlib.crc32(record).to_bytes(4, "little") + len(record).to_bytes(4, "little")
            yield b"".join((_GZIP_HEAD, packed, _EMPTY * (room // len(_EMPTY)), _LAST_EMPTY, tail))
