"""Rows of a partition as the bytes that Redis has: by table and by column, so that like stands beside like.

What rows say twice is written once. The key of a page is mostly the digests of its host and of its URL: what differs
from them is written. That a page is known follows from its being queued or decided. A fingerprint, and the first
capture of a payload, refer to a page beside them. Rows that are made in another way are written as they are.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, groupby, islice, repeat
from operator import attrgetter, sub
from struct import Struct
from typing import NamedTuple

from xxhash import xxh3_64_digest, xxh3_128_digest

from crawlerproject.stores.row_codec import (
    FINGERPRINT_BYTES,
    HASH_BYTES,
    MESSAGES,
    PAGE_KEY_BYTES,
    PAGES,
    PAYLOADS,
    PLACE_BYTES,
    PRINTS,
    QUEUE,
    SEEN,
    TABLES,
)

Row = tuple[str, bytes, bytes | None]
"""Table, key, value; None: the row is removed."""

# zlib's fastest for what goes into journals; for copies a tenth smaller, for 3 µs a row.
_JOURNAL_LEVEL, _COPY_LEVEL = 1, 6
_COMPRESSED = b"\x78"  # as zlib's begin; no section does

_Put = tuple[bytes, bytes]

# What a section has: a table's rows as they are (its number), the keys of those removed (with this bit), or one of six.
_REMOVED = 0x20
_DEQUEUED, _QUEUED, _DECIDED, _PRINTED, _CAPTURED, _ROW_BY_ROW = 0x40, 0x41, 0x42, 0x43, 0x44, 0x45
_SECTION = Struct("<BI")  # and how many; row by row: bytes
# Of one row: its table, bytes of the key and of the value.
_ROW = Struct("<BHI")
_GONE = 0xFFFF_FFFF
_WITHOUT_KEY = 0x80  # of its page, or what follows of it from the URL
# The rows of hosts first: they lead to all others of a partition that was taken in by half.
_NUMBERS = {name: TABLES.index(name) for name in (MESSAGES, *TABLES)}

# As row_codec.py packs a queued page behind its key, and the record of a page.
_QUEUED_HEAD, _RECORD_HEAD = Struct("<HHIIII"), Struct("<HdBHIBI")
_TEXT_OF_QUEUED = PAGE_KEY_BYTES + _QUEUED_HEAD.size
_PLACE = Struct(">BQ")
_MOST = 0xFFFF_FFFF_FFFF_FFFF
_IDENTITY_BYTES = 16  # of the record of a capture


def pack_rows(rows: Iterable[Row]) -> bytes:
    """Rows that are put or removed in this order: of those with one key the last counts."""
    tables: defaultdict[str, dict[bytes, bytes | None]] = defaultdict(dict)
    for table, key, value in rows:
        tables[table][key] = value
    removed = {table: [key for key, value in kept.items() if value is None] for table, kept in tables.items()}
    puts: dict[str, list[_Put]] = {
        table: [(key, value) for key, value in kept.items() if value is not None] for table, kept in tables.items()
    }
    out: list[bytes] = []
    if gone := removed.get(QUEUE):
        removed[QUEUE] = [key for key in gone if not _is_queue_key(key)]
        if alike := [key for key in gone if _is_queue_key(key)]:
            out.append(_SECTION.pack(_DEQUEUED, len(alike)))
            _add_places(out, alike)
    known = _add_queued(out, puts)
    pages = _add_decided(out, puts)
    if seen := puts.get(SEEN):
        known.update(page.key for page in pages)
        puts[SEEN] = [put for put in seen if put[1] or put[0] not in known]
    if pages:
        _add_printed(out, puts, pages)
        _add_captured(out, puts, pages)
    plain: list[bytes] = []
    for table, number in _NUMBERS.items():
        if keys := removed.get(table):
            plain += (_SECTION.pack(_REMOVED | number, len(keys)), _lengths(keys), *keys)
        if some := puts.get(table):
            keys, values = [key for key, _ in some], [value for _, value in some]
            plain += (_SECTION.pack(number, len(some)), _lengths(keys), _lengths(values), *keys, *values)
    return zlib.compress(b"".join(plain + out), _COPY_LEVEL)


def pack_changes(changes: Sequence[Iterable[Row]]) -> list[bytes]:
    """Changes that follow each other: the rows of all stand in the first, one by one: few for columns."""
    if not changes:
        return []
    parts = [b""]
    for table, key, value in chain.from_iterable(changes):
        number = _NUMBERS[table]
        if value is None:
            parts += (_ROW.pack(number, len(key), _GONE), key)
            continue
        # As far as it is short: URLs are plain.
        if table == QUEUE and value[:PAGE_KEY_BYTES] == key[:HASH_BYTES] + xxh3_128_digest(_url_of_queued(value)):
            number, value = number | _WITHOUT_KEY, value[PAGE_KEY_BYTES:]
        elif table == PAGES and key[HASH_BYTES:] == xxh3_128_digest(_url_of_record(value)):
            number, key = number | _WITHOUT_KEY, key[:HASH_BYTES]
        parts += (_ROW.pack(number, len(key), len(value)), key, value)
    parts[0] = _SECTION.pack(_ROW_BY_ROW, sum(map(len, parts)))
    return [b"".join(parts), *([b""] * (len(changes) - 1))]


def compressed(changes: Sequence[bytes]) -> list[bytes]:
    """The same changes, of whatever ``pack_changes`` has packed: all rows stand in the last.

    Where another has put the first of them before, they come once more, in their order, and none is missing.
    """
    return [*([b""] * (len(changes) - 1)), zlib.compress(b"".join(changes), _JOURNAL_LEVEL)]


def _row_by_row(data: _Columns) -> Iterator[Row]:
    while data.left:
        number, key_bytes, value_bytes = _ROW.unpack(data.take(_ROW.size))
        table, key = TABLES[number & ~_WITHOUT_KEY], data.take(key_bytes)
        if value_bytes == _GONE:
            yield table, key, None
            continue
        value = data.take(value_bytes)
        if number & _WITHOUT_KEY and table == QUEUE:
            url = _url_of_queued(bytes(PAGE_KEY_BYTES) + value)
            value = b"".join((key[:HASH_BYTES], xxh3_128_digest(url), value))
        elif number & _WITHOUT_KEY:
            key += xxh3_128_digest(_url_of_record(value))
        yield table, key, value
        if table in (QUEUE, PAGES):
            yield SEEN, value[:PAGE_KEY_BYTES] if table == QUEUE else key, b""


def _url_of_queued(value: bytes) -> bytes:
    """As many bytes as it has characters."""
    if len(value) < _TEXT_OF_QUEUED:
        return b""
    return value[_TEXT_OF_QUEUED : _TEXT_OF_QUEUED + _QUEUED_HEAD.unpack_from(value, PAGE_KEY_BYTES)[3]]


def _url_of_record(value: bytes) -> bytes:
    if len(value) < _RECORD_HEAD.size:
        return b""
    _, _, digest, history, characters, _, _ = _RECORD_HEAD.unpack_from(value)
    begin = _RECORD_HEAD.size + digest + history
    return value[begin : begin + characters]


def unpack_rows(packed: bytes) -> Iterator[Row]:
    """What ``pack_rows`` packed, in any order: no two have one key; or what ``pack_changes`` did, in theirs."""
    data = _Columns(zlib.decompress(packed) if packed.startswith(_COMPRESSED) else packed)
    pages = list[tuple[bytes, bytes, bytes]]()
    while data.left:
        kind, count = _SECTION.unpack(data.take(_SECTION.size))
        if kind == _ROW_BY_ROW:
            yield from _row_by_row(_Columns(data.take(count)))
        elif kind == _DEQUEUED:
            yield from ((QUEUE, key, None) for key, _ in data.places(count))
        elif kind == _QUEUED:
            yield from _queued(data, count)
        elif kind == _DECIDED:
            for key, value, digest, url in _decided(data, count):
                pages.append((key, digest, url))
                yield PAGES, key, value
                yield SEEN, key, b""
        elif kind == _PRINTED:
            values, numbers = data.take(FINGERPRINT_BYTES * count), accumulate(data.ints(count))
            for at, number in zip(range(0, len(values), FINGERPRINT_BYTES), numbers, strict=True):
                key = pages[number][0]
                yield PRINTS, key[:HASH_BYTES] + values[at : at + FINGERPRINT_BYTES], key
        elif kind == _CAPTURED:
            identities, places = data.take(_IDENTITY_BYTES * count), list(accumulate(data.ints(count)))
            for place, (number, date) in enumerate(zip(places, data.texts(data.ints(count)), strict=True)):
                _, digest, url = pages[number]
                identity = identities[place * _IDENTITY_BYTES : (place + 1) * _IDENTITY_BYTES]
                yield PAYLOADS, digest, b"%b%b %b" % (identity, date, url)
        elif kind & _REMOVED:
            table = TABLES[kind & ~_REMOVED]
            yield from ((table, key, None) for key in data.texts(data.ints(count)))
        else:
            lengths = data.ints(count), data.ints(count)
            keys, values_of = (list(data.texts(some)) for some in lengths)
            yield from zip(repeat(TABLES[kind]), keys, values_of, strict=False)


# --- queued pages ---------------------------------------------------------------------------------


def _is_queue_key(key: bytes) -> bool:
    end = len(key) - PLACE_BYTES - 1
    return end >= HASH_BYTES and not key[end] and key[:HASH_BYTES] == xxh3_64_digest(key[HASH_BYTES:end])


def _add_places(out: list[bytes], keys: Sequence[bytes]) -> None:
    """Keys of queues: the hosts, and how many of each; priorities; how far each arrival is from the one before."""
    runs = [(name, len(list(some))) for name, some in groupby([key[HASH_BYTES : -PLACE_BYTES - 1] for key in keys])]
    out += (_ints([len(runs)]), _ints([count for _, count in runs]), _lengths([name for name, _ in runs]))
    out += (name for name, _ in runs)
    places = list(_PLACE.iter_unpack(b"".join([key[-PLACE_BYTES:] for key in keys])))
    arrivals = [arrival for _, arrival in places]
    apart = [(after - before) & _MOST for before, after in zip([0, *arrivals], arrivals, strict=False)]
    out += (bytes([priority for priority, _ in places]), _by_byte(_little(array("Q", apart)), 8))


def _add_queued(out: list[bytes], puts: dict[str, list[_Put]]) -> set[bytes]:
    """Those that are packed as such; the keys of their pages."""
    keys, others = list[bytes](), list[_Put]()
    heads, more, pages = list[bytes](), list[int](), list[bytes]()
    usual, urls, tails = list[bytes](), list[bytes](), list[bytes]()
    for put in puts.get(QUEUE, ()):
        key, value = put
        if len(value) >= _TEXT_OF_QUEUED and _is_queue_key(key):
            *_, characters, hops, via = _QUEUED_HEAD.unpack_from(value, PAGE_KEY_BYTES)
            end = _TEXT_OF_QUEUED + characters
            if (extra := len(value) - end - hops - via) >= 0:
                url = value[_TEXT_OF_QUEUED:end]
                keys.append(key)
                heads.append(value[PAGE_KEY_BYTES:_TEXT_OF_QUEUED])
                more.append(extra)
                pages.append(value[:PAGE_KEY_BYTES])
                usual += (key[:HASH_BYTES], xxh3_128_digest(url))
                urls.append(url)
                tails.append(value[end:])
                continue
        others.append(put)
    if keys:
        out.append(_SECTION.pack(_QUEUED, len(keys)))
        _add_places(out, keys)
        out += (_by_byte(b"".join(heads), _QUEUED_HEAD.size), _ints(more), _apart(b"".join(pages), b"".join(usual)))
        out += (*urls, *tails)
        puts[QUEUE] = others
    return set(pages)


def _queued(data: _Columns, count: int) -> Iterator[Row]:
    places = list(data.places(count))
    heads = data.rows(count, _QUEUED_HEAD.size)
    more, differing = data.ints(count), data.take(PAGE_KEY_BYTES * count)
    numbers = list(_QUEUED_HEAD.iter_unpack(heads))
    urls = list(data.texts([each[3] for each in numbers]))
    tails = data.texts([each[4] + each[5] + extra for each, extra in zip(numbers, more, strict=True)])
    usual = [part for (_, hashed), url in zip(places, urls, strict=True) for part in (hashed, xxh3_128_digest(url))]
    pages = _apart(b"".join(usual), differing)
    for number, ((key, _), url, tail) in enumerate(zip(places, urls, tails, strict=True)):
        page = pages[number * PAGE_KEY_BYTES : (number + 1) * PAGE_KEY_BYTES]
        head = heads[number * _QUEUED_HEAD.size : (number + 1) * _QUEUED_HEAD.size]
        yield QUEUE, key, b"".join((page, head, url, tail))
        yield SEEN, page, b""


# --- decided pages, and what refers to them -------------------------------------------------------


class _Page(NamedTuple):
    url: bytes
    key: bytes
    head: bytes
    digest: bytes
    history: bytes
    tail: bytes
    extra: int  # bytes of the tail that its lengths do not tell


def _add_decided(out: list[bytes], puts: dict[str, list[_Put]]) -> list[_Page]:
    """Those that are packed as such, in the order of their URLs."""
    found, others = list[_Page](), list[_Put]()
    for put in puts.get(PAGES, ()):
        key, value = put
        if len(key) == PAGE_KEY_BYTES and len(value) >= _RECORD_HEAD.size:
            _, _, digest, history, characters, reason, etag = _RECORD_HEAD.unpack_from(value)
            behind = _RECORD_HEAD.size + digest
            begin = behind + history
            end = begin + characters
            if (extra := len(value) - end - reason - etag) >= 0:
                head, payload, visits = (
                    value[: _RECORD_HEAD.size],
                    value[_RECORD_HEAD.size : behind],
                    value[behind:begin],
                )
                found.append(_Page(value[begin:end], key, head, payload, visits, value[end:], extra))
                continue
        others.append(put)
    if found:
        puts[PAGES] = others
        found.sort()
        out.append(_SECTION.pack(_DECIDED, len(found)))
        out += (_by_byte(b"".join([page.head for page in found]), _RECORD_HEAD.size), _ints([p.extra for p in found]))
        out.append(_apart(b"".join([page.key for page in found]), _usual_keys([page.url for page in found])))
        for column in ("digest", "history", "url", "tail"):
            out += map(attrgetter(column), found)
    return found


def _decided(data: _Columns, count: int) -> Iterator[tuple[bytes, bytes, bytes, bytes]]:
    """Key, record, digest and URL of each."""
    size = _RECORD_HEAD.size
    heads = data.rows(count, size)
    more, differing = data.ints(count), data.take(PAGE_KEY_BYTES * count)
    numbers = list(_RECORD_HEAD.iter_unpack(heads))
    digests, histories, urls = (list(data.texts([each[column] for each in numbers])) for column in (2, 3, 4))
    tails = data.texts([each[5] + each[6] + extra for each, extra in zip(numbers, more, strict=True)])
    keys = _apart(_usual_keys(urls), differing)
    for number, (digest, history, url, tail) in enumerate(zip(digests, histories, urls, tails, strict=True)):
        record = b"".join((heads[number * size : (number + 1) * size], digest, history, url, tail))
        yield keys[number * PAGE_KEY_BYTES : (number + 1) * PAGE_KEY_BYTES], record, digest, url


def _usual_keys(urls: Sequence[bytes]) -> bytes:
    """The keys that pages of these URLs have, but for those that are written in several ways."""
    parts, last, hashed = list[bytes](), None, b""
    for url in urls:
        host = url[: (url.find(b"/", url.find(b"/") + 2) + 1 or 1) - 1].rpartition(b"/")[2]
        if host != last:
            last, hashed = host, xxh3_64_digest(host)
        parts += (hashed, xxh3_128_digest(url))
    return b"".join(parts)


def _add_printed(out: list[bytes], puts: dict[str, list[_Put]], pages: Sequence[_Page]) -> None:
    place = {page.key: number for number, page in enumerate(pages)}
    found, others = list[tuple[int, bytes]](), list[_Put]()
    for put in puts.get(PRINTS, ()):
        key, page = put
        if page in place and len(key) == HASH_BYTES + FINGERPRINT_BYTES and key[:HASH_BYTES] == page[:HASH_BYTES]:
            found.append((place[page], key[HASH_BYTES:]))
        else:
            others.append(put)
    if found:
        puts[PRINTS] = others
        found.sort()
        out += (_SECTION.pack(_PRINTED, len(found)), *(value for _, value in found))
        out.append(_ints(_steps([number for number, _ in found])))


def _add_captured(out: list[bytes], puts: dict[str, list[_Put]], pages: Sequence[_Page]) -> None:
    place = {page.digest: number for number, page in enumerate(pages)}
    found, others = list[tuple[int, bytes, bytes]](), list[_Put]()
    for put in puts.get(PAYLOADS, ()):
        digest, value = put
        date, space, url = value[_IDENTITY_BYTES:].partition(b" ")
        if space and (number := place.get(digest)) is not None and pages[number].url == url:
            found.append((number, value[:_IDENTITY_BYTES], date))
        else:
            others.append(put)
    if found:
        puts[PAYLOADS] = others
        found.sort()
        out += (_SECTION.pack(_CAPTURED, len(found)), *(identity for _, identity, _ in found))
        out += (_ints(_steps([number for number, _, _ in found])), _lengths([date for _, _, date in found]))
        out += (date for _, _, date in found)


# --- columns --------------------------------------------------------------------------------------


class _Columns:
    """What is left to be read."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        begin, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise ValueError("packed rows end too soon")
        return self._data[begin : self._at]

    def rows(self, count: int, size: int) -> bytes:
        """What ``_by_byte`` has turned round."""
        return _by_byte(self.take(count * size), count)

    def ints(self, count: int) -> Sequence[int]:
        found = array("I", self.rows(count, 4))
        if sys.byteorder == "big":
            found.byteswap()
        return found

    def texts(self, lengths: Iterable[int]) -> Iterator[bytes]:
        """One behind the other."""
        lengths = list(lengths)
        data, end = self.take(sum(lengths)), 0
        for length in lengths:
            begin, end = end, end + length
            yield data[begin:end]

    def places(self, count: int) -> Iterator[tuple[bytes, bytes]]:
        """Keys of queues, and the digest of the host of each."""
        (runs,) = self.ints(1)
        counts = self.ints(runs)
        names = list(self.texts(self.ints(runs)))
        priorities, apart = self.take(count), array("Q", self.rows(count, 8))
        if sys.byteorder == "big":
            apart.byteswap()
        arrival, places = 0, zip(priorities, apart, strict=True)
        for name, some in zip(names, counts, strict=True):
            hashed = xxh3_64_digest(name)
            prefix = hashed + name + b"\0"
            for priority, step in islice(places, some):
                arrival = (arrival + step) & _MOST
                yield prefix + _PLACE.pack(priority, arrival), hashed


def _by_byte(rows: bytes, size: int) -> bytes:
    """All first bytes of rows of this size, then all second ones, and so on."""
    return b"".join([rows[byte::size] for byte in range(size)])


def _little(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _ints(numbers: Iterable[int]) -> bytes:
    return _by_byte(_little(array("I", numbers)), 4)


def _lengths(texts: Iterable[bytes]) -> bytes:
    return _ints(map(len, texts))


def _steps(ascending: Sequence[int]) -> Iterator[int]:
    """What ``accumulate`` makes the numbers of again."""
    return map(sub, ascending, [0, *ascending])


def _apart(some: bytes, others: bytes) -> bytes:
    """The bits in which they differ; with one of the two, the other."""
    differing = int.from_bytes(some, "little") ^ int.from_bytes(others, "little")
    return differing.to_bytes(len(some), "little")
