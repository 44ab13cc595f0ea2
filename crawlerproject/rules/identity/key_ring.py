"""The keys of one crawler over time: which one signs, which ones its directory names, and that directory.

The directory is a JWK Set (RFC 7517) of Ed25519 keys (RFC 8037) named by their thumbprint (RFC 7638), whose answer
carries a signature by each key (draft-ietf-webbotauth-httpsig-protocol-01, "Validating the Domain Binding").
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from crawlerproject.rules.identity.message_signatures import Message, SigningKey, Span, signature_base
from crawlerproject.rules.identity.structured_fields import Bare, InnerList, Item, written_dictionary

DIRECTORY_PATH = "/.well-known/http-message-signatures-directory"
DIRECTORY_TYPE = "application/http-message-signatures-directory+json"
DIRECTORY_TAG = "http-message-signatures-directory"

VALID_SECONDS = 4 * 3600
"""Of a signature that serves an authority. The draft recommends 24 hours at most; it says what may be replayed."""
REUSED_SECONDS = 3 * 3600
"""So long one is sent; the last has an hour left, for caches and clocks on its way."""
VALID_ONCE_SECONDS = 600
"""Of a signature for one request: its time on the way, and clocks (ours)."""
STAMP_SECONDS = 10
"""For so long such signatures bear the same times: they are written once (ours)."""
CLOCK_SECONDS = 60
"""By which clocks may differ: ``created`` lies so far back, since verifiers refuse what is made in the future."""
LOOK_SECONDS = 3600
"""Between two looks of a running crawl at its key file."""
LEAD_SECONDS = 86_400
"""A new key is in the directory for so long before it signs: verifiers keep a copy for a day (the draft's example)."""
DIRECTORY_SIGNED_SECONDS = 90 * 86_400
"""Of the directory's own signature, which a server of files sends as it is; "well beyond" what copies it."""
_MOST_DIRECTORY_KEYS = 100


class OwnKey(NamedTuple):
    """One key. ``d`` is "" once it signs no more: its public part still tells which requests were ours."""

    x: str  # base64url, 32 bytes
    d: str
    signs_from: int  # epoch seconds
    signs_until: int = 0  # 0: until another one does

    @property
    def keyid(self) -> str:
        """Its thumbprint."""
        return thumbprint(self.x)

    @property
    def private(self) -> Ed25519PrivateKey:
        """To sign with."""
        return Ed25519PrivateKey.from_private_bytes(_decoded(self.d))

    @property
    def public(self) -> Ed25519PublicKey:
        """To verify with."""
        return Ed25519PublicKey.from_public_bytes(_decoded(self.x))

    @property
    def leaves_at(self) -> int:
        """When its last signature has expired: one of a crawl that had not looked at the file. 0: not yet known."""
        return self.signs_until + LOOK_SECONDS + REUSED_SECONDS + VALID_SECONDS if self.signs_until else 0


class KeyRing(NamedTuple):
    """The keys of one crawler, oldest first, and the origin that names them."""

    agent: str  # https://host[:port]
    keys: tuple[OwnKey, ...]

    def signing(self, now: float) -> SigningKey:
        """The latest key whose time has come. ``now``: epoch seconds."""
        able = [key for key in self.keys if key.d]
        key = next((key for key in reversed(able) if key.signs_from <= now), able[0])
        return SigningKey(key.private, key.keyid, self.agent)

    def published(self, now: float) -> list[OwnKey]:
        """Those that verifiers may meet, the next one included."""
        return [key for key in self.keys if key.d and not 0 < key.leaves_at <= now]

    def public_keys(self) -> dict[str, Ed25519PublicKey]:
        """All keys that ever were, by keyid."""
        return {key.keyid: key.public for key in self.keys}

    def rotated(self, now: float, new: OwnKey) -> KeyRing:
        """The ring with a new key, which signs from its moment on. What signs no more loses its private part."""
        kept = [key if key in self.published(now) else key._replace(d="") for key in self.keys]
        kept = [key._replace(signs_until=new.signs_from) if key.d and not key.signs_until else key for key in kept]
        return KeyRing(self.agent, (*kept, new))


def new_key(private: Ed25519PrivateKey, signs_from: float) -> OwnKey:
    """A key that begins to sign at this moment (epoch seconds)."""
    x, d = private.public_key().public_bytes_raw(), private.private_bytes_raw()
    return OwnKey(_encoded(x), _encoded(d), int(signs_from))


def agent_of(text: str) -> str:
    """An https origin as RFC 6454 6.2 writes it. ValueError: it is another address."""
    parts = urlsplit(text.strip().lower())
    port = f":{parts.port}" if parts.port not in (None, 443) else ""
    host = parts.hostname or ""
    if parts.scheme != "https" or not host or not text.isascii() or parts.path.strip("/") or parts.query:
        raise ValueError(f"{text!r} is no https origin such as https://bot.example")
    if parts.username is not None or set(host) & set("\"\\' ,;"):
        raise ValueError(f"{text!r} is no https origin such as https://bot.example")
    return f"https://[{host}]{port}" if ":" in host else f"https://{host}{port}"


def thumbprint(x: str) -> str:
    """The keyid of a public key (RFC 7638, RFC 8037 A.3)."""
    members = f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'
    return _encoded(sha256(members.encode("ascii")).digest())


def key_directory(keys: Iterable[OwnKey]) -> bytes:
    """The directory's body."""
    listed = [{"kty": "OKP", "crv": "Ed25519", "kid": key.keyid, "x": key.x, "use": "sig"} for key in keys]
    return json.dumps({"keys": listed}, separators=(",", ":")).encode("ascii")


def directory_fields(ring: KeyRing, now: float) -> dict[str, str]:
    """The headers that its answer is to have: what it is, for how long it may be kept, and a signature by each key."""
    keys = ring.published(now)
    fields = {"content-digest": content_digest(key_directory(keys))}
    message = Message("GET", "https", ring.agent.removeprefix("https://"), DIRECTORY_PATH, fields, is_answer=True)
    span = Span(int(now) - CLOCK_SECONDS, int(now) + DIRECTORY_SIGNED_SECONDS)
    items = (Item("@authority", {"req": True}), Item("content-digest"))
    inputs, signatures = [], []
    for number, key in enumerate(keys):
        given: dict[str, Bare] = {
            "created": span.created,
            "expires": span.expires,
            "keyid": key.keyid,
            "tag": DIRECTORY_TAG,
        }
        signed = InnerList(items, given)
        inputs.append((f"binding{number}", signed))
        signatures.append((f"binding{number}", Item(key.private.sign(signature_base(message, signed)))))
    return {
        "Content-Type": DIRECTORY_TYPE,
        "Cache-Control": f"max-age={LEAD_SECONDS}",
        "Content-Digest": fields["content-digest"],
        "Signature-Input": written_dictionary(inputs),
        "Signature": written_dictionary(signatures),
    }


def content_digest(body: bytes) -> str:
    """RFC 9530."""
    return f"sha-256=:{b64encode(sha256(body).digest()).decode('ascii')}:"


def listed_keys(body: bytes) -> dict[str, str]:
    """The Ed25519 keys that a directory names: keyid to ``x``. ValueError: no directory, or a name is not the key's."""
    try:
        found: Any = json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_DIRECTORY_KEYS:
        raise ValueError("it is no JWK Set")
    keys = {}
    for key in listed:
        if isinstance(key, Mapping) and (key.get("kty"), key.get("crv")) == ("OKP", "Ed25519"):
            x = str(key.get("x", ""))
            if key.get("kid", thumbprint(x)) != thumbprint(x):
                raise ValueError(f"its kid {key.get('kid')!r} is not the thumbprint of its key")
            keys[thumbprint(x)] = x
    return keys


def published_keys(body: bytes) -> dict[str, Ed25519PublicKey]:
    """The public keys that a directory names, by keyid. ValueError."""
    return {keyid: Ed25519PublicKey.from_public_bytes(_decoded(x)) for keyid, x in listed_keys(body).items()}


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
