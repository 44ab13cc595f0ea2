"""Digests as other programs write them."""

from __future__ import annotations

from base64 import b32encode
from hashlib import md5, sha1, sha256, sha512

import pytest

from crawlerproject.rules.archive.digests import sha1_of

BODY = b"a payload"
SHA1 = sha1(BODY).digest()
BASE32 = b32encode(SHA1).decode()


@pytest.mark.parametrize(
    "text",
    [
        BASE32, f"sha1:{BASE32}", f"SHA1:{BASE32}", f"sha-1:{BASE32}", BASE32.lower(), f" sha1: {BASE32} ",
        SHA1.hex(), f"sha1:{SHA1.hex()}", f"sha1:{SHA1.hex().upper()}",
    ],
)  # fmt: skip
def test_a_sha1_in_every_common_form(text: str) -> None:
    """Label or none, base32 (Common Crawl, pywb, warcio) or hex (other indexers), any case."""
    assert sha1_of(text) == SHA1


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "sha1:", "sha1:-", None, 7, {}, "unk", "ä" * 32, "=" * 32, "A" * 31, "0" * 32, "z" * 40,
        f"sha256:{sha256(BODY).hexdigest()}", f"sha-256:{b32encode(sha256(BODY).digest()).decode()}",
        sha256(BODY).hexdigest(), f"sha512:{sha512(BODY).hexdigest()}", f"md5:{md5(BODY).hexdigest()}",
        md5(BODY).hexdigest(), f"md5:{BASE32}", "A" * 30 + "==", "::::", "\x00" * 40,
    ],
)  # fmt: skip
def test_what_is_no_sha1_is_not_known(text: object) -> None:
    """Another algorithm, nothing, or nonsense: no digest, and never an error."""
    assert sha1_of(text) == b""
