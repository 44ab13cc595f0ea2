"""How rows become bytes: the keys of the queue, queued pages and page records.

Texts of a row are joined and encoded once; the fixed header holds their lengths in characters, so that
no text needs a terminator that it might itself contain. Changing any layout here means a new FORMAT.

The tables of a frontier in RocksDB: per table the key, the value, the host that a row is about, and how it is read.

Moves between workers, copies to Redis, checks and views know rows by this file alone.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Final
from uuid import UUID

from xxhash import xxh3_64_digest

from crawlerproject.rules import text_likeness as across
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.crawl_dir import FORMATS
from crawlerproject.stores.protocols import Box, Due, PageRecord, QueuedPage, host_of_fact

# priority, arrival: big-endian, so that byte order is queue order.
_PLACE = Struct(">BQ")
PLACE_BYTES = _PLACE.size

# Every queue key begins with a hash of the host's name: of one length, as RocksDB's filters for prefixes want it.
# The name follows, so that two hosts of one hash are still two queues.
HASH_BYTES = 8

# A queued page's row begins with its key.
PAGE_KEY_BYTES = 24

# key, depth, tries, flags, characters of url, hops, via. The note is what is left.
_QUEUED = Struct("<24sIHHIII")
# status, fetched_at, bytes of digest, of history, characters of url, reason, etag. Last-Modified is what is left.
_RECORD = Struct("<HdBHIBI")
_DIGEST_LENGTH = 10

# Microseconds since the epoch: big-endian, so that byte order is the order of moments.
_MOMENT = Struct(">Q")

# Table, rotated fingerprint: big-endian, so that those with one front block stand together.
_ROTATED = Struct(">BQ")
_OF_ALL_HOSTS = bytes(HASH_BYTES)
_UUID_DIGITS = 32
FINGERPRINT_BYTES = 8

# The table of messages: a byte that says what a row is, then the box, then of a message its number. Big-endian, so that
# a partition's rows of one kind stand together, and the messages of a box in their order.
_BOX = Struct(">BI16s")
_NUMBER = Struct(">Q")
_LENGTH = Struct("<I")
NUMBER_BYTES = _NUMBER.size
# 0: the outbox of this frontier, which earlier versions kept from start to start.
# 3 and 4: of a frontier whose partitions another worker may take over, the hosts of each, and what was changed in it
# and is not in its journal yet.
MESSAGE_ROW, READ_ROW, HOST_ROW, JOURNAL_ROW = 1, 2, 3, 4
_OF_PARTITION = Struct(">BI")

# Header values come from the web: a lone surrogate must not be able to stop a commit.
_ERRORS = "surrogatepass"


def host_prefix(host: str) -> bytes:
    """What every queue key of this host begins with; no host key contains a NUL."""
    name = host.encode("utf-8", _ERRORS)
    return xxh3_64_digest(name) + name + b"\0"


def host_end(prefix: bytes) -> bytes:
    """The first possible key after all of the host's queue (``prefix`` from ``host_prefix``)."""
    return prefix[:-1] + b"\1"


def queue_key(row: QueuedPage) -> bytes:
    """The row's place: host, then priority, then arrival."""
    name = row.host.encode("utf-8", _ERRORS)
    return xxh3_64_digest(name) + name + b"\0" + _PLACE.pack(row.priority, row.arrival)


def pack_place(row: QueuedPage) -> bytes:
    """The row's place within its host's queue."""
    return _PLACE.pack(row.priority, row.arrival)


def place_after(prefix: bytes, priority: int, arrival: int) -> bytes:
    """The smallest key that sorts behind the row at this place."""
    return prefix + _PLACE.pack(priority, arrival) + b"\0"


def host_of(key: bytes) -> str:
    """The host key that a queue key belongs to."""
    return key[HASH_BYTES : -PLACE_BYTES - 1].decode("utf-8", _ERRORS)


def pack_queued(row: QueuedPage) -> bytes:
    """All of the row that its queue key does not already say."""
    _, key, url, _, _, depth, hops, via, tries, flags, note = row
    header = _QUEUED.pack(key, depth, tries, flags, len(url), len(hops), len(via))
    return header + f"{url}{hops}{via}{note}".encode("utf-8", _ERRORS)


def unpack_queued(host: str, key: bytes, value: bytes) -> QueuedPage:
    """The row of this queue key and value."""
    priority, arrival = _PLACE.unpack_from(key, len(key) - PLACE_BYTES)
    page_key, depth, tries, flags, url_end, hops, via = _QUEUED.unpack_from(value)
    text = value[_QUEUED.size :].decode("utf-8", _ERRORS)
    hops_end = url_end + hops
    via_end = hops_end + via
    return QueuedPage(
        host,
        page_key,
        text[:url_end],
        priority,
        arrival,
        depth,
        text[url_end:hops_end],
        text[hops_end:via_end],
        tries,
        flags,
        text[via_end:],
    )


def pack_record(record: PageRecord) -> bytes:
    """The whole page record."""
    url, reason, status, fetched_at, digest, etag, last_modified, history = record
    header = _RECORD.pack(status, fetched_at, len(digest), len(history), len(url), len(reason), len(etag))
    return header + digest + history + (url + reason + etag + last_modified).encode("utf-8", _ERRORS)


def unpack_record(value: bytes) -> PageRecord:
    """What ``pack_record`` packed."""
    status, fetched_at, digest_bytes, history_bytes, url_end, reason, etag = _RECORD.unpack_from(value)
    digest_end = _RECORD.size + digest_bytes
    history_end = digest_end + history_bytes
    text = value[history_end:].decode("utf-8", _ERRORS)
    reason_end = url_end + reason
    etag_end = reason_end + etag
    return PageRecord(
        text[:url_end],
        text[url_end:reason_end],
        status,
        fetched_at,
        value[_RECORD.size : digest_end],
        text[reason_end:etag_end],
        text[etag_end:],
        value[digest_end:history_end],
    )


def digest_of(record: bytes) -> bytes:
    """The digest of a packed page record."""
    return record[_RECORD.size : _RECORD.size + record[_DIGEST_LENGTH]]


def due_key(place: Due) -> bytes:
    """Where the place stands: by moment, then by name."""
    return _MOMENT.pack(place.at) + place.host.encode("utf-8", _ERRORS)


def due_of(key: bytes) -> Due:
    """The place of a ``due_key``."""
    (at,) = _MOMENT.unpack_from(key)
    return Due(at, key[_MOMENT.size :].decode("utf-8", _ERRORS))


def box_key(kind: int, box: Box) -> bytes:
    """The row that says how far a box was read (READ_ROW), or what its messages' keys begin with (MESSAGE_ROW)."""
    return _BOX.pack(kind, *box)


def box_of(key: bytes) -> Box:
    """The box of a row that begins with a ``box_key``."""
    _, partition, outbox = _BOX.unpack_from(key)
    return Box(partition, outbox)


def message_key(box: Box, number: int) -> bytes:
    """The row of one message."""
    return _BOX.pack(MESSAGE_ROW, *box) + _NUMBER.pack(number)


def partition_key(kind: int, partition: int) -> bytes:
    """What the rows of a kind (HOST_ROW, JOURNAL_ROW) that a partition has begin with."""
    return _OF_PARTITION.pack(kind, partition)


def host_row_key(partition: int, host: str) -> bytes:
    """The row that says that a partition has a host."""
    return _OF_PARTITION.pack(HOST_ROW, partition) + host.encode("utf-8", _ERRORS)


def journal_key(partition: int, number: int) -> bytes:
    """The row of one change of a partition."""
    return _OF_PARTITION.pack(JOURNAL_ROW, partition) + _NUMBER.pack(number)


def join_parts(parts: Iterable[bytes]) -> bytes:
    """As ``split_parts`` takes them apart: each behind its length."""
    return b"".join([piece for part in parts for piece in (_LENGTH.pack(len(part)), part)])


def split_parts(joined: bytes) -> Iterator[bytes]:
    """What ``join_parts`` was given."""
    at = 0
    while at < len(joined):
        (length,) = _LENGTH.unpack_from(joined, at)
        at += _LENGTH.size
        yield joined[at : at + length]
        at += length


def pack_number(number: int) -> bytes:
    """How far a box was read, as the value of its row."""
    return _NUMBER.pack(number)


def number_of(packed: bytes) -> int:
    """The number at the end of a message's key, or how far a box was read."""
    return int.from_bytes(packed[-NUMBER_BYTES:], "big")


def host_fingerprints_prefix(host: str) -> bytes:
    """What the rows of this host's fingerprints begin with."""
    return xxh3_64_digest(host.encode("utf-8", _ERRORS))


def host_fingerprint_key(host: str, value: int) -> bytes:
    """The row of one fingerprint of this host."""
    return xxh3_64_digest(host.encode("utf-8", _ERRORS)) + value.to_bytes(FINGERPRINT_BYTES, "big")


def table_key(table: int, rotated: int) -> bytes:
    """The row of a fingerprint in one of the tables of all hosts."""
    return _OF_ALL_HOSTS + _ROTATED.pack(table, rotated)


def fingerprints_of(keys: list[bytes]) -> array[int]:
    """The fingerprints, rotated in a table of all hosts, that rows are of."""
    values = array("Q", b"".join([key[-FINGERPRINT_BYTES:] for key in keys]))
    if sys.byteorder == "little":
        values.byteswap()
    return values


def pack_original(original: Original) -> bytes:
    """The whole of it; the record id as its 16 bytes."""
    record_id = original.record_id
    if record_id.startswith("<urn:uuid:") and len(digits := record_id[10:-1].replace("-", "")) == _UUID_DIGITS:
        identity = bytes.fromhex(digits)  # as we write it
    else:
        identity = UUID(record_id.strip("<>")).bytes
    return identity + f"{original.date} {original.url}".encode("utf-8", _ERRORS)


def unpack_original(value: bytes) -> Original:
    """What ``pack_original`` packed."""
    date, _, url = value[16:].decode("utf-8", _ERRORS).partition(" ")
    return Original(f"<{UUID(bytes=value[:16]).urn}>", url, date)


FORMAT = FORMATS["frontier"]
"""The layout of rows and tables; a store with another number was written by another version of this project."""
FORMAT_FACT = "format"

FACTS: Final = ""  # name -> a crawl-wide fact, or one of a host (host_facts.py); RocksDB's default table
QUEUE: Final = "queue"  # hash host NUL priority arrival -> a queued page
SEEN: Final = "seen"  # page key -> nothing
PAGES: Final = "pages"  # page key -> the record of its last fate
HOSTS: Final = "hosts"  # host key -> packed host state
ROBOTS: Final = "robots"  # origin -> packed robots record
PRINTS: Final = "fingerprints"  # hash host, fingerprint -> page key; for all hosts: zeros, table, rotated fingerprint
PAYLOADS: Final = "payloads"  # sha1 of a payload -> its first capture
DUE: Final = "due"  # moment, host key -> nothing
MESSAGES: Final = "messages"  # see row_codec.py: messages for other workers, how far theirs were read
NAMED: Final = (QUEUE, SEEN, PAGES, HOSTS, ROBOTS, PRINTS, PAYLOADS, DUE, MESSAGES)
TABLES: Final = (FACTS, *NAMED)

TEXT: Final = ("utf-8", "surrogatepass")
"""How names are encoded."""

HOST_OF: Final[dict[str, Callable[[bytes, bytes], str]]] = {
    HOSTS: lambda key, value: key.decode(*TEXT),
    QUEUE: lambda key, value: host_of(key),  # a robots.txt may wait at another host than its page key tells of
    PAGES: lambda key, value: host_key(unpack_record(value).url),  # whatever its key says
    ROBOTS: lambda key, value: key.decode(*TEXT).rpartition("://")[2],
    PAYLOADS: lambda key, value: host_key(unpack_original(value).url),
    DUE: lambda key, value: due_of(key).host,
    FACTS: lambda key, value: host_of_fact(key.decode(*TEXT)),
}
"""The host that a row is about; "" for a fact of the crawl. Rows of the other tables know hosts by a hash alone, or are
for a partition."""

READ: Final[dict[str, Callable[[bytes, bytes], object]]] = {
    QUEUE: lambda key, value: unpack_queued(host_of(key), key, value),
    PAGES: lambda key, value: unpack_record(value),
}
"""What a row says; raises ValueError, IndexError or struct.error for a malformed one. The frontier reads hosts."""

OF_ALL_HOSTS: Final = table_key(0, 0)[:HASH_BYTES]
"""What fingerprints for all hosts begin with, in place of the hash of a host."""
FIRST_TABLE: Final = table_key(0, 0)[:-FINGERPRINT_BYTES]
"""What those in the first table of all hosts begin with, whose rows have the page's key."""


def rows_of_all_hosts(value: int, page: bytes) -> list[tuple[bytes, bytes]]:
    """The rows of a fingerprint in the tables of all hosts, that with the page's key last."""
    rows, pack = [], _ROTATED.pack
    for number in reversed(range(across.TABLES)):
        rows.append((_OF_ALL_HOSTS + pack(number, across.rotated(value, number)), b"" if number else page))
    return rows
