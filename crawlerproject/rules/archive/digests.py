"""Reads the digests of payloads as archives and their indexes write them: with or without a label, base32 or hex."""

from __future__ import annotations

import binascii
from base64 import b32decode

_SHA1_BYTES = 20
# WARC 1.1 5.8: "sha1:"; RFC 3230 and some indexes spell it with a dash.
_SHA1_LABELS = frozenset({"sha1", "sha-1"})
_BASE32_LETTERS, _HEX_LETTERS = 32, 40  # of a sha1


def sha1_of(text: object) -> bytes:
    """The 20 bytes of ``sha1:3I42…``, ``3I42…`` or ``da39…``.

    b"" for every other digest (sha256, md5), for ``-``, nothing, and what is none: such a payload is not known.
    """
    if not isinstance(text, str):
        return b""
    label, colon, value = text.strip().rpartition(":")
    if colon and label.strip().lower() not in _SHA1_LABELS:
        return b""
    value = value.strip()
    try:
        if len(value) == _HEX_LETTERS:
            return bytes.fromhex(value)
        # A md5 in hex has 32 letters as well, but 0, 1, 8 and 9 are no base32 and one of them is nearly always in it.
        digest = b32decode(value.upper()) if len(value) == _BASE32_LETTERS else b""
    except (binascii.Error, ValueError):
        return b""
    return digest if len(digest) == _SHA1_BYTES else b""
