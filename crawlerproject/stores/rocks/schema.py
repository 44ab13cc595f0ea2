"""The tables of a frontier in RocksDB: per table the key, the value, the host that a row is about, and how it is read.

Moves between workers, copies to Redis, checks and views know rows by this file alone; ``row_codec`` has their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from crawlerproject.rules import near_duplicates as across
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.crawl_dir import FORMATS
from crawlerproject.stores.protocols import host_of_fact
from crawlerproject.stores.row_codec import (
    FINGERPRINT_BYTES,
    HASH_BYTES,
    due_of,
    host_of,
    table_key,
    unpack_original,
    unpack_queued,
    unpack_record,
)

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
    numbers = reversed(range(across.TABLES))
    return [(table_key(number, across.rotated(value, number)), b"" if number else page) for number in numbers]
