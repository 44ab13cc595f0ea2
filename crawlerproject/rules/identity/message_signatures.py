"""Signatures of requests: what they cover, how they are made, and whether one is good (RFC 9421, Ed25519 alone).

The profile is draft-ietf-webbotauth-httpsig-protocol-01 (29 October 2026): the member of Signature-Agent is covered
beside the authority, the tag is ``web-bot-auth``, and keys are named by their thumbprint.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from crawlerproject.rules.identity.structured_fields import InnerList, Item, read_dictionary, written

REQUEST_TAG = "web-bot-auth"
AGENT = "signature-agent"
LABEL = "sig1"
"""Of our signature, unless a server asks for another."""
_ALGORITHM = "ed25519"
_SIGNATURE_BYTES = 64  # Ed25519 (RFC 8032 5.1.6)
_ONE_AUTHORITY = frozenset({"@authority", AGENT})
# A nonce is 64 bytes in base64 (draft-meunier-web-bot-auth-architecture-05); a longer one is a server's trick (ours).
_MOST_NONCE_CHARACTERS = 256
_MOST_COMPONENTS = 16  # that a server may ask for (ours)


class Message(NamedTuple):
    """A request as RFC 9421 sees it, or the answer to one (``is_answer``)."""

    method: str
    scheme: str
    authority: str  # host[:port] in lower case, without the scheme's own port
    target: str  # path and query
    fields: Mapping[str, str]  # by name in lower case; several lines joined by ", "
    is_answer: bool = False


# RFC 9421 2.2; of a query's single parameters and of HTTP/1.1's form of the target none is signed.
_DERIVED: dict[str, Callable[[Message], str]] = {
    "@method": attrgetter("method"),
    "@authority": attrgetter("authority"),
    "@scheme": attrgetter("scheme"),
    "@target-uri": lambda message: f"{message.scheme}://{message.authority}{message.target}",
    "@path": lambda message: message.target.partition("?")[0],
    "@query": lambda message: f"?{message.target.partition('?')[2]}",
}


class Covered:
    """The components of a signature under a label, and their names as they are signed."""

    __slots__ = ("items", "label", "names", "of_authority", "sent_fields")

    def __init__(self, label: str, items: tuple[Item, ...]) -> None:
        self.label = label
        self.items = items
        self.names = written(InnerList(items))
        self.of_authority = all(item.value in _ONE_AUTHORITY for item in items)
        """Whether one signature serves every request to an authority."""
        self.sent_fields = any(str(item.value)[0] != "@" and item.value != AGENT for item in items)
        """Whether it covers headers beside our own."""


def member_of(label: str) -> Item:
    """The component that the profile asks for beside the authority."""
    return Item(AGENT, {"key": label})


BY_AUTHORITY = Covered(LABEL, (Item("@authority"), member_of(LABEL)))
BY_PATH = Covered(LABEL, (Item("@authority"), Item("@method"), Item("@path"), member_of(LABEL)))


class Span(NamedTuple):
    """From when to when a signature is good, in epoch seconds."""

    created: int
    expires: int


class SigningKey(NamedTuple):
    """A key, the name that verifiers know it by, and the origin where they find it."""

    private: Ed25519PrivateKey
    keyid: str
    agent: str


class Signing:
    """Signatures by one key with one span; what they share is written once."""

    __slots__ = ("_components", "_head", "_parameters", "_secret", "_sign")

    def __init__(self, key: SigningKey, covered: Covered, span: Span, nonce: str = "") -> None:
        # libsodium signs in 47 µs where OpenSSL takes 72 (benchmarks/signing.py). Crawls that sign nothing load none.
        from nacl.bindings import crypto_sign

        label, member = covered.label, written(Item(key.agent))
        extra = f";nonce={written(Item(nonce))}" if nonce else ""
        parameters = (
            f'{covered.names};created={span.created};expires={span.expires};keyid="{key.keyid}";alg="{_ALGORITHM}"{extra}'
            f';tag="{REQUEST_TAG}"'
        )
        agent = f"{label}={member}"
        head = f"Signature-Agent: {agent}\r\nSignature-Input: {label}={parameters}\r\nSignature: {label}=:"
        self._head = head.encode("ascii")
        self._parameters = f'"@signature-params": {parameters}'
        self._components = [
            (f"{written(item)}: ", _value_of(item, member if item.parameters else agent)) for item in covered.items
        ]
        self._sign = crypto_sign
        self._secret = key.private.private_bytes_raw() + key.private.public_key().public_bytes_raw()

    def of(self, message: Message) -> tuple[bytes, bytes]:
        """The three header lines of a request: what all that are signed so share, and its own signature.

        Raises ValueError when the message has not what is to be covered.
        """
        base = "\n".join([name + value(message) for name, value in self._components])
        signature = self._sign(f"{base}\n{self._parameters}".encode("ascii"), self._secret)[:_SIGNATURE_BYTES]
        return self._head, b2a_base64(signature, newline=False) + b":\r\n"


def _value_of(item: Item, agent: str) -> Callable[[Message], str]:
    """How a component of our requests is found; ``agent`` is what they say of theirs."""
    if item.value == AGENT:
        return lambda _: agent
    return _DERIVED.get(str(item.value)) or partial(component, item=item)


def component(message: Message, item: Item) -> str:
    """The value of one component (RFC 9421 2). Raises ValueError where it is missing or unknown."""
    name, parameters = str(item.value), dict(item.parameters)
    if message.is_answer and name[:1] == "@" and parameters.pop("req", None) is not True:
        raise ValueError(f"{name} is a request's")
    if name[:1] == "@":
        if parameters or name not in _DERIVED:
            raise ValueError(f"{written(item)} is not known")
        return _DERIVED[name](message)
    field = message.fields.get(name)
    if field is None:
        raise ValueError(f"there is no {name}")
    if not parameters:
        return field
    key = parameters.pop("key", None)
    if parameters or not isinstance(key, str):
        raise ValueError(f"{written(item)} is not known")
    member = read_dictionary(field).get(key)
    if member is None:
        raise ValueError(f"{name} has no {key}")
    return written(member)


def signature_base(message: Message, signed: InnerList) -> bytes:
    """What is signed (RFC 9421 2.5). Raises ValueError as ``component`` does, and for what is covered twice."""
    names = [written(item) for item in signed.items]
    if len(set(names)) < len(names):
        raise ValueError("a component is covered twice")
    lines = [f"{name}: {component(message, item)}" for name, item in zip(names, signed.items, strict=True)]
    return "\n".join([*lines, f'"@signature-params": {written(signed)}']).encode("ascii")


class Proof(NamedTuple):
    """One signature of a message; ``flaw`` says in a few words why it is not ours, "" when it is."""

    label: str
    keyid: str
    span: Span
    tag: str
    covers: tuple[str, ...]
    flaw: str

    def at(self, now: float, skew_seconds: float) -> str:
        """Why it is not good at this moment (epoch seconds), "" when it is."""
        if now < self.span.created - skew_seconds:
            return "it was made later"
        return "it has expired" if now > self.span.expires + skew_seconds else ""


def proofs(message: Message, keys: Mapping[str, Ed25519PublicKey]) -> list[Proof]:
    """Each signature that a message carries, judged by ``keys`` (by keyid). ValueError: its fields cannot be read."""
    inputs = read_dictionary(message.fields.get("signature-input", ""))
    signatures = read_dictionary(message.fields.get("signature", ""))
    found = []
    for label, signed in inputs.items():
        if not isinstance(signed, InnerList):
            raise ValueError(f"Signature-Input has no list of components for {label}")
        given = signed.parameters
        span = Span(_seconds(given.get("created")), _seconds(given.get("expires")))
        keyid, covers = str(given.get("keyid", "")), tuple(written(item) for item in signed.items)
        flaw = _flaw(message, signed, signatures.get(label), keys.get(keyid))
        found.append(Proof(label, keyid, span, str(given.get("tag", "")), covers, flaw))
    return found


def _flaw(message: Message, signed: InnerList, value: Item | InnerList | None, key: Ed25519PublicKey | None) -> str:
    if key is None:
        return "its key is not ours"
    if not isinstance(value, Item) or not isinstance(value.value, bytes):
        return "it has no signature"
    if signed.parameters.get("alg", _ALGORITHM) != _ALGORITHM:
        return "it names another algorithm"
    try:
        key.verify(value.value, signature_base(message, signed))
    except (ValueError, UnicodeError) as error:
        return str(error)
    except InvalidSignature:
        return "it does not fit this request"
    return ""


def _seconds(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


class Asked(NamedTuple):
    """What a server wants to be signed, and with which nonce (once); "" for none."""

    covered: Covered
    nonce: str = ""


def asked_for(accept_signature: str, keyid: str) -> Asked | None:
    """What Accept-Signature asks for (RFC 9421 5.1), made to fit the profile; None where we have not what it names."""
    try:
        wanted = read_dictionary(accept_signature)
    except ValueError:
        return None
    for label, member in wanted.items():
        if not isinstance(member, InnerList) or len(member.items) > _MOST_COMPONENTS:
            continue
        given = member.parameters
        nonce = given.get("nonce", "")
        fits = (
            given.get("tag", REQUEST_TAG) == REQUEST_TAG
            and given.get("alg", _ALGORITHM) == _ALGORITHM
            and given.get("keyid", keyid) in (keyid, True)
            and isinstance(nonce, str)
            and len(nonce) <= _MOST_NONCE_CHARACTERS
        )
        if fits and all(_can_cover(item) for item in member.items):
            return Asked(Covered(label, _completed(label, member.items)), str(nonce))
    return None


def _can_cover(item: Item) -> bool:
    """Of an answer, of a trailer or in another writing nothing is covered."""
    name, extra = item.value, set(item.parameters)
    if not isinstance(name, str) or not name or name != name.lower():
        return False
    if name == AGENT:
        return extra <= {"key"}
    return not extra and (name in _DERIVED or name[0] != "@")


def _completed(label: str, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """With the authority and the agent where they are missing, and each once; the agent's member is the label's."""
    kept = [member_of(label) if item.value == AGENT and item.parameters else item for item in items]
    if not any(item.value in ("@authority", "@target-uri") for item in kept):
        kept.insert(0, Item("@authority"))
    if not any(item.value == AGENT for item in kept):
        kept.append(member_of(label))
    return tuple({written(item): item for item in kept}.values())
