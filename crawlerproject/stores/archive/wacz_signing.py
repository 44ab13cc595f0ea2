"""The operator's signature on a WACZ: ``signedData`` of an anonymous signature, and the key that makes it.

Source: https://specs.webrecorder.net/wacz-auth/0.1.0/, "Anonymous Signature". Who can compare the public key knows who
has packed the file; the certificate of a domain and a stamp of the time, the other kind there, need a service.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from crawlerproject.errors import OperatorError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

# The curve that viewers take a public key to be of, and the bytes of each half of a signature (wabac.js 2.27,
# certutils.ts; WebCrypto 23.4: r and s side by side).
_CURVE, _HALF_BYTES = "secp384r1", 48
_MAKE = f"openssl ecparam -name {_CURVE} -genkey -noout -out"
_SOFTWARE = "crawlerproject"


class WaczSigner:
    """Signs with the key of a PEM file. Raises OperatorError when there is none, or one of another kind."""

    def __init__(self, key_file: Path, version: str) -> None:
        from cryptography.hazmat.primitives import serialization

        self._key, self._version = _read(key_file), version
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


def _read(path: Path) -> EllipticCurvePrivateKey:
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
