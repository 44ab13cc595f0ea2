"""The digests of an archive: sha1, as WARC 1.1 (5.8, 5.9) and Common Crawl's index spell it."""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from hashlib import sha1

from crawlerproject import native

_SPREAD_BYTES = 24  # a sha1 has 32 groups of five bits; of six bits each
_BASE32_OF_64 = bytes.maketrans(b"abcdef", b"234567")  # of the values 26 to 31; those before are written alike


def _spreading(groups: int) -> tuple[int, int, int]:
    """Bits to leave and bits to shift, and how far, so that groups of five bits lie six times ``groups`` bits apart."""
    half = (1 << 5 * groups) - 1
    places = range(0, _SPREAD_BYTES * 8, 12 * groups)
    return sum(half << at for at in places), sum(half << at + 5 * groups for at in places), groups


_SPREAD = tuple(_spreading(groups) for groups in (16, 8, 4, 2, 1))


def payload_digest(body: bytes) -> bytes:
    """sha1 of a payload: the body without transfer coding, its Content-Encoding kept."""
    return sha1(body, usedforsecurity=False).digest()


@lru_cache(maxsize=16)  # a payload's is asked for by its record, its index row and its log line
def digest_text(digest: bytes) -> str:
    """A sha1 as WARC and Common Crawl's index write it: 32 letters of base32, without a label.

    Without the native reader each five bits get a sixth, which is zero, and are then written as base64: half the work
    of ``b32encode``.
    """
    if (reader := native.reader()) is not None:
        return reader.base32(digest)
    return _base32(digest)


def _base32(digest: bytes) -> str:
    bits = int.from_bytes(digest)
    for low, high, shift in _SPREAD:
        bits = bits & low | (bits & high) << shift
    return b2a_base64(bits.to_bytes(_SPREAD_BYTES), newline=False).translate(_BASE32_OF_64).decode()


def holds(stated: str, data: bytes | memoryview) -> bool:
    """Whether a digest field holds, in base32 or (as others write it) in hex; what is no sha1 is not checked."""
    label, _, value = stated.partition(":")
    if label.lower() != "sha1":
        return True
    digest = sha1(data, usedforsecurity=False).digest()
    return value.upper() == digest_text(digest) or value.lower() == digest.hex()
