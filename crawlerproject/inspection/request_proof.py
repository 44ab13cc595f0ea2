"""Whether a request that a server has seen was the crawler's: by its signature, its time and the request log."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.errors import OperatorError
from crawlerproject.rules.identity.key_ring import CLOCK_SECONDS
from crawlerproject.rules.identity.message_signatures import AGENT, REQUEST_TAG, Message, Proof, proofs
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.log_query import attempts

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

# A string of RFC 9651, alone or as a member of a dictionary: drafts have had both.
_AGENT = re.compile(r'"(https://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?)/?"')
# Of what is pasted; headers of real requests take a few KB.
_MOST_BYTES = 262_144
# As curl -v and HTTP/2 tools show them: "> GET / HTTP/1.1", ":path: /".
_REQUEST_LINE = re.compile(r"([A-Z]{3,10}) (\S+) HTTP/\d")
_HEADER = re.compile(r"(:?[A-Za-z0-9_-]{1,100}):[ \t]*(.*)")
_PORTS = {"http": ":80", "https": ":443"}


class Known(NamedTuple):
    """The keys that a signature is compared with."""

    keys: Mapping[str, Ed25519PublicKey]  # by keyid
    publisher: str = ""  # of whom they are; "": they are ours


class Judgement(NamedTuple):
    """What is known of a request."""

    ours: bool  # or of the one that publishes the keys
    sentence: str
    signatures: list[Proof]
    logged: list[dict[str, Any]]  # lines of the request log that it may be


def pasted(path: str) -> str:
    """The text of a file, or of standard input for ``-``. Raises OperatorError."""
    try:
        data = sys.stdin.buffer.read(_MOST_BYTES + 1) if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise OperatorError(f"{path} cannot be read ({error.strerror}).") from error
    if len(data) > _MOST_BYTES:
        raise OperatorError(f"{path} is no request's headers: it has more than {_MOST_BYTES:,} bytes.")
    return data.decode("utf-8", "replace")


def read_request(text: str, url: str = "") -> Message:
    """Headers as a server or a tool shows them; ``url`` fills in what they do not say. Raises OperatorError.

    Without a request line the target is "": any of the host's.
    """
    fields: dict[str, str] = {}
    method, target, name = "GET", "", ""
    for line in text.splitlines():
        line = line.removeprefix("> ").rstrip()
        if found := _REQUEST_LINE.match(line):
            method, target = found.groups()
        elif line[:1] in (" ", "\t") and name:  # folded, by a mail program for example
            fields[name] = f"{fields[name]} {line.strip()}"
        elif found := _HEADER.match(line):
            name = found[1].lower()
            fields[name] = f"{fields[name]}, {found[2]}" if name in fields else found[2]
    method, target = fields.get(":method", method), fields.get(":path", target)
    if "://" in target:  # as a proxy has it
        url, target = target, ""
    given = re.match(r"(https?)://([^/?#]+)([^#]*)", url)
    scheme = fields.get(":scheme", given[1] if given else "https")
    authority = fields.get(":authority", fields.get("host", given[2] if given else "")).lower()
    if not authority:
        raise OperatorError("There is no Host header; give the URL that was asked for with --url.")
    if given and not target:
        target = given[3] if given[3].startswith("/") else f"/{given[3]}"
    return Message(method, scheme, authority.removesuffix(_PORTS.get(scheme, "")), target, fields)


def agent_of(message: Message) -> str:
    """The https origin whose directory has the keys, as the request says; "" when it names none."""
    named = _AGENT.search(message.fields.get(AGENT, ""))
    return named[1].lower() if named else ""


def judge(message: Message, known: Known, folders: Sequence[CrawlDir]) -> Judgement:
    """Compare with the keys and with the request logs in ``folders``, which only their owner has."""
    try:
        found = [proof for proof in proofs(message, known.keys) if proof.tag == REQUEST_TAG]
    except ValueError as error:
        return Judgement(False, f"Its signature headers cannot be read: {error}.", [], [])
    good = [proof for proof in found if not proof.flaw]
    if not good:
        flaws = "; ".join(f"{proof.label}: {proof.flaw}" for proof in found)
        logged = _logged(folders, message, "", "")
        whose = f"by a key that {known.publisher} publishes" if known.publisher else "ours"
        sentence = f"The signature is not {whose} ({flaws})." if found else "It has no signature of a crawler."
        if not found and logged:
            sentence += " The log has requests for this URL; whether this was one of them, only their times can tell."
        return Judgement(False, sentence, found, logged)
    span = good[0].span
    between = f"between {moment_of(span.created)} and {moment_of(span.expires)} UTC"
    if known.publisher:
        sentence = f"It was signed with a key that {known.publisher} publishes, to be sent {between}."
        return Judgement(True, sentence, found, [])
    logged = _logged(folders, message, moment_of(span.created), moment_of(span.expires + CLOCK_SECONDS))
    if logged:
        return Judgement(True, f"It was ours: signed with our key, and in the request log {between}.", found, logged)
    sentence = (
        f"The signature is ours, but no request log here has such a request {between}. What is signed for a whole "
        "host can be sent again, until it expires, by a program that has seen it."
    )
    return Judgement(False, sentence, found, [])


def moment_of(seconds: float) -> str:
    """As the request log writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _logged(folders: Sequence[CrawlDir], message: Message, since: str, until: str) -> list[dict[str, Any]]:
    """Requests to this URL, or to any of the host where the target is not known; by http or https."""
    if not folders:
        return []
    found = attempts([folder.log for folder in folders], host=message.authority, since=since, until=until)
    ends = f"://{message.authority}{message.target}"
    return [row for row in found if row["ip"] and (not message.target or row["url"].endswith(ends))]
