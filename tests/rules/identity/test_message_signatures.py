"""Signatures against the vectors of RFC 9421 and of the Web Bot Auth draft, and what a server may ask for."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crawlerproject.rules.identity.message_signatures import (
    BY_AUTHORITY,
    BY_PATH,
    Covered,
    Message,
    Signing,
    SigningKey,
    Span,
    asked_for,
    member_of,
    proofs,
)
from crawlerproject.rules.identity.structured_fields import Item, read_dictionary, written

# RFC 9421 B.1.4; its thumbprint is the draft's keyid.
KEY = Ed25519PrivateKey.from_private_bytes(urlsafe_b64decode("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU="))
KEYID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"
KEYS = {KEYID: KEY.public_key(), "test-key-ed25519": KEY.public_key()}
OURS = SigningKey(KEY, KEYID, "https://bot.example")
NONCE = "n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA=="


@dataclass(frozen=True)
class Vector:
    """A published request and its signature."""

    message: Message
    signed: str
    signature: str


# RFC 9421 B.2.6: a few components of test-request.
B26 = Vector(
    Message(
        "POST",
        "https",
        "example.com",
        "/foo?param=Value&Pet=dog",
        {
            "date": "Tue, 20 Apr 2021 02:07:55 GMT",
            "content-type": "application/json",
            "content-length": "18",
        },
    ),
    'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473'
    ';keyid="test-key-ed25519"',
    "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:",
)
# draft-ietf-webbotauth-httpsig-protocol, "EdDSA Using Curve edwards25519".
DRAFT = Vector(
    Message("GET", "https", "example.com", "/", {"signature-agent": 'agent2="https://signature-agent.test"'}),
    'sig2=("@authority" "signature-agent";key="agent2");created=1735689600'
    f';keyid="{KEYID}";alg="ed25519";expires=4889289600;nonce="{NONCE}";tag="web-bot-auth"',
    "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
)
LEGACY = Vector(
    Message("GET", "https", "example.com", "/", {"signature-agent": '"https://signature-agent.test"'}),
    f'sig2=("@authority" "signature-agent");created=1735689600;keyid="{KEYID}";alg="ed25519";expires=1735693200'
    ';nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg=="'
    ';tag="web-bot-auth"',
    "sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:",
)
DIRECTORY = Vector(
    Message(
        "GET",
        "https",
        "signature-agent.test",
        "/.well-known/http-message-signatures-directory",
        {"content-digest": "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"},
        is_answer=True,
    ),
    'binding=("@authority";req "content-digest");created=1735689600;expires=4889289600'
    f';keyid="{KEYID}";tag="http-message-signatures-directory"',
    "binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:",
)
VECTORS = {"b26": B26, "draft": DRAFT, "legacy": LEGACY, "directory": DIRECTORY}


def flaw(message: Message, signed: str, signature: str) -> str:
    """What is wrong with the one signature of a message."""
    fields = {**message.fields, "signature-input": signed, "signature": signature}
    try:
        found = proofs(message._replace(fields=fields), KEYS)
    except ValueError as error:
        return str(error)
    (proof,) = found
    return proof.flaw


def signed_message(message: Message, lines: tuple[bytes, bytes]) -> Message:
    """A request with what ``Signing`` has made."""
    text = b"".join(lines).decode()
    fields = dict(line.split(": ", 1) for line in text.removesuffix("\r\n").split("\r\n"))
    return message._replace(fields={**message.fields, **{name.lower(): value for name, value in fields.items()}})


@pytest.mark.parametrize("name", VECTORS)
def test_published_signatures_are_good(name: str) -> None:
    """RFC 9421 B.2.6 and the draft's vectors for Ed25519."""
    vector = VECTORS[name]

    assert flaw(vector.message, vector.signed, vector.signature) == ""


@pytest.mark.parametrize("name", VECTORS)
def test_one_character_makes_each_bad(name: str) -> None:
    """Of what is covered, of the parameters, of the signature: each changed letter is refused."""
    vector = VECTORS[name]
    message, label = vector.message, len(vector.signed.partition("=")[0]) + 1
    changed = [message._replace(authority="example.co"), message._replace(method="PUT")][: 2 if name == "b26" else 1]
    changed += [
        message._replace(fields={**message.fields, field: value[:-1] + chr(ord(value[-1]) ^ 1)})
        for field, value in message.fields.items()
    ]

    assert "" not in [flaw(other, vector.signed, vector.signature) for other in changed]
    for at in range(label, len(vector.signed)):
        letter = "0" if vector.signed[at] != "0" else "1"
        assert flaw(message, vector.signed[:at] + letter + vector.signed[at + 1 :], vector.signature) != ""
    for at in range(label + 1, len(vector.signature) - 4):
        letter = "A" if vector.signature[at] != "A" else "B"
        assert flaw(message, vector.signed, vector.signature[:at] + letter + vector.signature[at + 1 :]) != ""


@pytest.mark.parametrize("chosen", [BY_AUTHORITY, BY_PATH], ids=["authority", "path"])
def test_what_we_sign_is_good_for_what_it_covers(chosen: Covered) -> None:
    """By authority it serves each path, by path one; never another authority, nor another agent."""
    message = Message("GET", "https", "a.example", "/x?y", {})
    made = signed_message(message, Signing(OURS, chosen, Span(100, 200)).of(message))

    (proof,) = proofs(made, KEYS)
    assert (proof.flaw, proof.span, proof.tag, proof.keyid) == ("", Span(100, 200), "web-bot-auth", KEYID)
    assert [proof.at(now, 10) for now in (80, 95, 205)] == ["it was made later", "", ""]
    assert proof.at(220, 10) == "it has expired"
    (elsewhere,) = proofs(made._replace(target="/z"), KEYS)
    assert (elsewhere.flaw == "") is (chosen is BY_AUTHORITY)
    assert proofs(made._replace(authority="b.example"), KEYS)[0].flaw
    agent = {**made.fields, "signature-agent": 'sig1="https://other.example"'}
    assert proofs(made._replace(fields=agent), KEYS)[0].flaw
    assert proofs(made, {})[0].flaw == "its key is not ours"


def test_the_draft_is_signed_to_the_letter() -> None:
    """Ed25519 has one signature a message: ours of the draft's request is the draft's."""
    covered = Covered("agent2", (Item("@authority"), member_of("agent2")))
    key = SigningKey(KEY, KEYID, "https://signature-agent.test")
    head, _ = Signing(key, covered, Span(1735689600, 4889289600), NONCE).of(DRAFT.message)
    ours = head.decode().split("Signature-Input: agent2=")[1].split("\r\n")[0]

    assert read_dictionary(f"sig2={ours}") == read_dictionary(DRAFT.signed)


@pytest.mark.parametrize(
    ("asked", "covers", "nonce"),
    [
        ('sig1=("@authority");created;expires;tag="web-bot-auth"', '"@authority" "signature-agent";key="sig1"', ""),
        ('s2=("@method" "@path");nonce="abc"', '"@authority" "@method" "@path" "signature-agent";key="s2"', "abc"),
        ('a=("@target-uri" "signature-agent")', '"@target-uri" "signature-agent"', ""),
        ('a=("signature-agent";key="other" "@authority")', '"signature-agent";key="a" "@authority"', ""),
        ('a=("@query" "user-agent")', '"@authority" "@query" "user-agent" "signature-agent";key="a"', ""),
        ('a=("@authority");tag="other", b=()', '"@authority" "signature-agent";key="b"', ""),
        (f'a=("@authority");keyid="{KEYID}";alg="ed25519"', '"@authority" "signature-agent";key="a"', ""),
    ],
)
def test_a_server_gets_what_it_asks_for(asked: str, covers: str, nonce: str) -> None:
    """Its components and nonce, under its label, with what the profile wants beside them."""
    found = asked_for(asked, KEYID)

    assert found is not None
    assert (" ".join(map(written, found.covered.items)), found.nonce) == (covers, nonce)


@pytest.mark.parametrize(
    "asked",
    [
        'a=("@status")',
        'a=("@query-param";name="x")',
        'a=("content-digest";sf)',
        'a=("@authority";req)',
        'a=("@authority");keyid="another"',
        'a=("@authority");alg="rsa-pss-sha512"',
        'a=("@authority");tag="another"',
        'a=("@authority");nonce=5',
        f'a=("@authority");nonce="{"n" * 257}"',
        "a=(" + '"x" ' * 17 + ")",
        'a="@authority"',
        'a=("Date")',
        "a=(",
        "",
        "\x00",
        'a=("@authority")' * 1000,
    ],
)
def test_a_server_that_asks_for_what_we_have_not_gets_nothing_new(asked: str) -> None:
    """Other keys, algorithms, profiles, components of answers, or no structured field at all."""
    assert asked_for(asked, KEYID) is None


@pytest.mark.parametrize(
    ("signed", "signature", "why"),
    [
        ('a=("@authority" "@authority");keyid="test-key-ed25519"', "a=:AA==:", "a component is covered twice"),
        ('a=("nothing");keyid="test-key-ed25519"', "a=:AA==:", "there is no nothing"),
        ('a=("@authority");keyid="test-key-ed25519"', "b=:AA==:", "it has no signature"),
        ('a=("@authority");keyid="test-key-ed25519"', 'a="text"', "it has no signature"),
        ('a=("@authority");keyid="test-key-ed25519";alg="x"', "a=:AA==:", "it names another algorithm"),
        ('a=("@status");keyid="test-key-ed25519"', "a=:AA==:", '"@status" is not known'),
        ('a="x"', "a=:AA==:", "Signature-Input has no list of components for a"),
    ],
)
def test_a_flaw_is_named(signed: str, signature: str, why: str) -> None:
    """In a few words for whoever looks into a request."""
    assert flaw(Message("GET", "https", "a.example", "/", {}), signed, signature) == why
