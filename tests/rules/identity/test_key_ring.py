"""Keys over time, and the directory that names them."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crawlerproject.rules.identity.key_ring import (
    DIRECTORY_PATH,
    LEAD_SECONDS,
    LOOK_SECONDS,
    REUSED_SECONDS,
    VALID_SECONDS,
    KeyRing,
    agent_of,
    content_digest,
    directory_fields,
    key_directory,
    listed_keys,
    new_key,
    thumbprint,
)
from crawlerproject.rules.identity.message_signatures import Message, proofs
from tests.rules.identity.test_message_signatures import KEY, KEYID

NOW = 1_800_000_000.0


def ring() -> KeyRing:
    """One key, of RFC 9421 B.1.4."""
    return KeyRing("https://bot.example", (new_key(KEY, NOW),))


def test_thumbprints_are_the_published_ones() -> None:
    """RFC 8037 A.3, and the draft's for the key of RFC 9421 B.1.4."""
    assert thumbprint("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo") == "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
    assert ring().keys[0].keyid == KEYID


def test_the_directory_is_the_drafts() -> None:
    """To the byte, so that the draft's own digest is ours."""
    body = key_directory(ring().keys)

    assert content_digest(body) == "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
    assert listed_keys(body) == {KEYID: ring().keys[0].x}


def test_each_key_signs_the_directory() -> None:
    """Of two keys the next one too, bound to the origin and to the body."""
    two = ring().rotated(NOW, new_key(Ed25519PrivateKey.generate(), NOW + LEAD_SECONDS))
    fields = {name.lower(): value for name, value in directory_fields(two, NOW).items()}
    message = Message("GET", "https", "bot.example", DIRECTORY_PATH, fields, is_answer=True)

    assert [(proof.keyid, proof.flaw) for proof in proofs(message, two.public_keys())] == [
        (key.keyid, "") for key in two.keys
    ]
    elsewhere = message._replace(authority="copied.example")
    assert all(proof.flaw for proof in proofs(elsewhere, two.public_keys()))


def test_a_new_key_is_published_before_it_signs_and_an_old_one_until_its_signatures_expire() -> None:
    """The order of the draft, "Key Rotation"."""
    begins = NOW + LEAD_SECONDS
    two = ring().rotated(NOW, new_key(Ed25519PrivateKey.generate(), begins))
    old, new = two.keys
    last = begins + LOOK_SECONDS + REUSED_SECONDS + VALID_SECONDS

    assert [two.signing(now).keyid for now in (NOW, begins - 1, begins)] == [old.keyid, old.keyid, new.keyid]
    assert two.published(NOW) == two.published(last - 1) == [old, new]
    assert two.published(last) == [new]
    third = two.rotated(last, new_key(Ed25519PrivateKey.generate(), last))
    assert [bool(key.d) for key in third.keys] == [False, True, True]
    assert third.signing(0).keyid == new.keyid  # a clock that stands at its beginning
    assert third.public_keys().keys() == {key.keyid for key in third.keys}


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("https://Bot.Example/", "https://bot.example"),
        ("https://bot.example:443", "https://bot.example"),
        ("https://bot.example:8443", "https://bot.example:8443"),
        ("https://[2001:db8::1]/", "https://[2001:db8::1]"),
    ],
)
def test_an_agent_is_an_origin(text: str, agent: str) -> None:
    """As RFC 6454 6.2 writes it."""
    assert agent_of(text) == agent


@pytest.mark.parametrize(
    "text", ["http://bot.example", "bot.example", "https://", "https://a/b", "https://u@a", 'https://a"b', "https://é"]
)
def test_no_other_address_is_an_agent(text: str) -> None:
    """No path, no user, no plain http."""
    with pytest.raises(ValueError, match="no https origin"):
        agent_of(text)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"[" * 60_000, b"\xff", b"{}", b'{"keys":1}', json.dumps({"keys": [{}] * 101}).encode()]
)
def test_what_is_no_directory_is_refused(body: bytes) -> None:
    """Not JSON, not a set, or too many keys."""
    with pytest.raises(ValueError, match=r"."):
        listed_keys(body)


def test_a_name_that_is_not_the_keys_is_refused() -> None:
    """The kid is the thumbprint; keys of other kinds are passed over."""
    key = {"kty": "OKP", "crv": "Ed25519", "x": ring().keys[0].x, "kid": "mine"}

    assert listed_keys(b'{"keys":[{"kty":"RSA"}]}') == {}
    with pytest.raises(ValueError, match="thumbprint"):
        listed_keys(json.dumps({"keys": [key]}).encode())
