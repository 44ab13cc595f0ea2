"""Whether a request that a server has seen was the crawler's: by its signature, its time and the request log.

What the operator has published about the crawler, seen from outside: page, keys, ranges, reverse DNS, clock.

Asked are only hosts that the settings name as the operator's own, once each, and DNS servers about own addresses.
"""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scrapy.settings import BaseSettings

from crawlerproject.config.values import identity, own_keys, ranges_of
from crawlerproject.errors import OperatorError
from crawlerproject.fetch.own_pages import Served, served
from crawlerproject.fetch.resolver import names_confirmed
from crawlerproject.rules.identity.key_ring import CLOCK_SECONDS
from crawlerproject.rules.identity.message_signatures import AGENT, REQUEST_TAG, Message, Proof, proofs
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.log_query import attempts

_CLOCK_SECONDS = 60.0  # verifiers of signatures allow no more (draft-ietf-webbotauth-httpsig-protocol-01)
_OLDEST_SECONDS = 48 * 3600.0  # JAFAR asks for a new file daily: one day may have been missed
_MOST_ADDRESSES = 16  # of all ranges, whose names are looked up
_WORD = re.compile(r"[\w-]+")
_LINK = re.compile(r"""<link\b[^>]{0,500}\brel=["']?client-ranges\b[^>]{0,500}>""", re.IGNORECASE)
_HREF = re.compile(r"""\bhref=["']?([^"'\s>]+)""", re.IGNORECASE)
_HEADER = re.compile(r"""<([^<>]{1,2000})>[^,<]{0,500}\brel="?client-ranges\b""", re.IGNORECASE)
_BY_THE_PAGE = {"purpose": "it names your PURPOSE", "clock": "this machine's clock is right"}


class Finding(NamedTuple):
    """One thing that was looked at."""

    about: str
    good: bool | None  # None: it cannot be seen from here
    said: str  # a sentence; where it is not good, what mends it (``doctor --json`` has it under this name)


def findings(settings: BaseSettings) -> Iterator[Finding]:
    """In the order in which they are mended. Blocking; raises OperatorError for settings that cannot be meant."""
    who, ranges = identity(settings), ranges_of(settings)
    if settings["CRAWLER_CONTACT"]:
        yield Finding("contact", True, f"Site owners can write to {settings['CRAWLER_CONTACT']}.")
    else:
        yield Finding("contact", False, "CRAWLER_CONTACT is empty; set an address at which site owners reach you.")
    page = None
    if not (url := str(settings["CRAWLER_INFO_URL"] or "")):
        yield Finding("page", False, "CRAWLER_INFO_URL is empty; publish what scrapy botpage writes, and set its URL.")
    else:
        try:
            page = _published(url, settings)
        except (OSError, ValueError) as error:
            yield Finding("page", False, f"{url} cannot be had ({error}); publish what scrapy botpage writes there.")
    if not settings["WARC_OPERATOR"]:
        yield Finding("operator", False, "WARC_OPERATOR is empty; set it, so that the page says whom it serves.")
    if page is not None:
        yield from _of_page(page, who.token, str(settings["PURPOSE"]))
    else:
        for about, what in _BY_THE_PAGE.items():
            yield Finding(about, None, f"Without a page it is unknown whether {what}.")
    yield from _of_keys(settings)
    yield from _of_ranges(page, ranges, settings)
    yield from _of_addresses(ranges, settings)


def _published(url: str, settings: BaseSettings) -> Served:
    """Raises OSError, ValueError."""
    answer = served(url, settings)
    if answer.status != 200:
        raise OSError(f"status {answer.status}")
    return answer


def _of_page(page: Served, token: str, purpose: str) -> Iterator[Finding]:
    text = page.body.decode("utf-8", "replace")
    named = token.lower() in text.lower()
    yield Finding(
        "page", named, f"{page.url} names {token}." if named else f"{page.url} does not name {token}; publish its page."
    )
    if purpose in _WORD.findall(text):
        yield Finding("purpose", True, f"The page says that the purpose is {purpose}.")
    else:
        yield Finding("purpose", False, f"The page has no word on PURPOSE={purpose}; write it again: scrapy botpage.")
    if (ahead := page.ahead_seconds) is None:
        yield Finding("clock", None, f"{page.url} is answered without a date to compare the clock with.")
    elif abs(ahead) > _CLOCK_SECONDS:
        where = "behind" if ahead > 0 else "ahead of"
        yield Finding(
            "clock", False, f"The clock is {abs(ahead):,.0f} seconds {where} that of {page.url}; set it by NTP."
        )
    else:
        yield Finding("clock", True, f"The clock agrees with that of {page.url}.")


def _of_keys(settings: BaseSettings) -> Iterator[Finding]:
    if not settings["IDENTITY_KEY_FILE"]:
        return
    from crawlerproject.fetch.key_directory import advice, flaws, served_directory  # what does not sign does without

    ring, now = own_keys(settings), time.time()
    assert ring is not None  # asked for where the setting is
    try:
        answer = served_directory(settings, ring)
    except OSError as error:
        text = f"The key directory of {ring.agent} cannot be had ({error}); publish what scrapy botpage writes there."
        yield Finding("keys", False, text)
        return
    wrong = [*flaws(answer, ring, now)] or [*advice(answer, ring, now)]
    yield from (Finding("keys", False, sentence) for sentence in wrong)
    if not wrong:
        yield Finding("keys", True, f"{answer.url} names the keys that sign, and is signed by them.")


def _of_ranges(
    page: Served | None, ranges: list[IPv4Network | IPv6Network], settings: BaseSettings
) -> Iterator[Finding]:
    if not ranges:
        yield Finding("ranges", False, "IDENTITY_RANGES is empty; set the public addresses from which you crawl.")
        yield Finding("reverse-dns", None, "Without ranges it is unknown whether their names lead back.")
    elif page is None:
        yield Finding("ranges", None, "Without a page it is unknown whether it links the ranges.")
    if page is None or not ranges:
        return
    found = _HEADER.search(page.fields.get("link", ""))
    if found is None and (link := _LINK.search(page.body.decode("utf-8", "replace"))):
        found = _HREF.search(link[0])
    if found is None:
        yield Finding("ranges", False, f"{page.url} has no link client-ranges; publish what scrapy botpage writes.")
        return
    url = urljoin(page.url, found[1])
    try:
        document = orjson.loads(_published(url, settings).body)
        listed = {str(one.get("ipv4Prefix") or one.get("ipv6Prefix")) for one in document["prefixes"]}
        age_seconds = time.time() - datetime.fromisoformat(document["creationTime"]).astimezone(UTC).timestamp()
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        yield Finding("ranges", False, f"{url} cannot be read ({error}); publish what scrapy botpage writes.")
        return
    if listed != set(map(str, ranges)):
        lack = ", ".join(sorted(listed ^ set(map(str, ranges))))
        yield Finding("ranges", False, f"{url} and IDENTITY_RANGES differ in {lack}; write it again: scrapy botpage.")
    elif age_seconds > _OLDEST_SECONDS:
        yield Finding("ranges", False, f"{url} is {age_seconds / 86400:.0f} days old; have scrapy botpage run daily.")
    else:
        yield Finding("ranges", True, f"{url} lists IDENTITY_RANGES.")


def _of_addresses(ranges: list[IPv4Network | IPv6Network], settings: BaseSettings) -> Iterator[Finding]:
    own = ip_address(local) if (local := _leaves_from()) else None
    if own is not None and own.is_global and ranges:
        within = any(own in network for network in ranges)
        sentence = f"IDENTITY_RANGES has {own}, from which this machine asks."
        yield Finding(
            "address", within, sentence if within else f"This machine asks from {own}; add it to IDENTITY_RANGES."
        )
    elif ranges:
        yield Finding("address", None, "From which public address this machine asks cannot be seen from here.")
    some = list(islice((str(address) for network in ranges for address in islice(network.hosts(), 2)), _MOST_ADDRESSES))
    domains: set[str] = set()
    bad = []
    for address, names in names_confirmed(some, settings).items():
        good = [name for name, leads_back in names.items() if leads_back]
        domains |= {registered_domain(name) for name in good}
        if not good:
            why = f"has the name {next(iter(names))}, which does not lead back" if names else "has no name"
            bad.append(f"{address} {why}")
    if bad:
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        yield Finding("reverse-dns", False, f"{bad[0]}{more}; have names of your domain set both ways in the DNS.")
    elif len(domains) > 1:
        several = ", ".join(sorted(domains))
        yield Finding(
            "reverse-dns", False, f"The names of your addresses are below {several}; sites expect one domain."
        )
    elif some:
        yield Finding("reverse-dns", True, f"{len(some)} addresses have names below {domains.pop()} that lead back.")


def _leaves_from() -> str:
    """The address from which the public internet is asked; "" where there is no way to it. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
            trial.connect(("192.0.2.1", 9))  # of documentation: only the way is looked up
            return str(trial.getsockname()[0])
    except OSError:
        return ""


# A string of RFC 9651, alone or as a member of a dictionary: drafts have had both.
_AGENT = re.compile(r'"(https://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?)/?"')
# Of what is pasted; headers of real requests take a few KB.
_MOST_BYTES = 262_144
# As curl -v and HTTP/2 tools show them: "> GET / HTTP/1.1", ":path: /".
_REQUEST_LINE = re.compile(r"([A-Z]{3,10}) (\S+) HTTP/\d")
_PASTED_HEADER = re.compile(r"(:?[A-Za-z0-9_-]{1,100}):[ \t]*(.*)")
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
        elif found := _PASTED_HEADER.match(line):
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
    """Epoch seconds in the request log's form."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _logged(folders: Sequence[CrawlDir], message: Message, since: str, until: str) -> list[dict[str, Any]]:
    """Requests to this URL, or to any of the host where the target is not known; by http or https."""
    if not folders:
        return []
    found = attempts([folder.log for folder in folders], host=message.authority, since=since, until=until)
    ends = f"://{message.authority}{message.target}"
    return [row for row in found if row["ip"] and (not message.target or row["url"].endswith(ends))]
