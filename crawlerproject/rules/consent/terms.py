"""Decides what the documents beside robots.txt say of a URL's use: TDMRep's tdmrep.json and the licences of RSL.

Of each document its rules alone are kept: a pattern of a path, and words as ``verdict`` judges them. They are part of
the origin's record of robots.txt (``robots.policy``), which names the documents and is asked for first.

TDMRep is W3C's community group report of 10 May 2024, RSL is version 1.0 (rslstandard.org, December 2025).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pyexpat import ExpatError, ParserCreate
from typing import Any, NamedTuple, Self
from urllib.parse import urljoin

import orjson

from crawlerproject.rules.consent.verdict import DOUBT, Note, Source
from crawlerproject.rules.robots.matcher import rule_matches, spelled
from crawlerproject.rules.url.urls import UrlRefused, host_key, parse

TDMREP = "/.well-known/tdmrep.json"
MAX_BYTES = 500 * 1024
"""Of a document: as much as of a robots.txt."""
# Of one document (ours): each rule is tried on each URL, which takes a millisecond at most.
_MAX_RULES = 500
_MAX_WILDCARDS = 50  # each may look through the whole URL
_MAX_CHARACTERS = 32_768
_MAX_WORDS = 400  # characters of one rule: a line of the metadata record holds 500
# Of a licence (ours): the standard's own examples are five deep.
_MAX_DEPTH = 32
_MAX_ELEMENTS = 20_000
_MAX_LICENSES = 3
"""Of one robots.txt, that are asked for, and of all pages of its host: RSL has one."""
_MOST_IN_FEED = 10  # different licences, which are all kept as lines (ours)
_RSL_SPACE = "https://rslstandard.org/rsl"
_LISTS = ("permits", "prohibits")
_OF_PAYMENT = {"free": "", "attribution": "condition: attribution"}  # any other type is one
_NO_JSON = b"<"  # begins the page that a site shows in place of what it does not have

Rule = tuple[str, str]
"""Pattern of a path as in robots.txt, and words."""
ALL = "/"
_TOO_MANY = [(str(Source.LICENSE), f"{DOUBT}: too many licences")]
_UNKNOWN = [(ALL, f"{DOUBT}: not asked for yet")]


class Document(NamedTuple):
    """One document of an origin; ``rules`` None: it has not been asked for."""

    url: str
    rules: Sequence[Rule] | None = None
    of_page: bool = False  # a licence that pages name, and robots.txt does not: it is about those that do


class Terms(NamedTuple):
    """The documents of one origin, in the order in which they are asked for."""

    documents: Sequence[Document]

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """What ``pack`` wrote."""
        return cls([Document(*fields) for fields in orjson.loads(packed)])

    def pack(self) -> bytes:
        """The bytes that the store keeps."""
        return orjson.dumps([tuple(one if one.of_page else one[:2]) for one in self.documents])

    @property
    def next(self) -> int | None:
        """The first document that is to be asked for, from 1; None when there is none."""
        return next((at for at, document in enumerate(self.documents, 1) if document.rules is None), None)

    @property
    def size(self) -> int:
        """Characters of all rules."""
        return sum(len(pattern) + len(words) for one in self.documents for pattern, words in one.rules or ())

    def answered(self, number: int, status: int, body: bytes, host: str) -> Terms:
        """These terms with the answer to document ``number``, from 1; ``host`` is the key of the origin's."""
        documents = list(self.documents)
        one = documents[number - 1]
        documents[number - 1] = one._replace(rules=read_document(one.url, status, body, host))
        return Terms(documents)

    def with_license(self, url: str) -> Terms | None:
        """These terms with one more licence that a page names, to be asked for; None: it is known, or one too many."""
        if any(one.url == url for one in self.documents) or sum(one.of_page for one in self.documents) >= _MAX_LICENSES:
            return None
        return Terms([*self.documents, Document(url, None, True)])

    def license_notes(self, url: str, path: str) -> list[Note] | None:
        """A licence's terms for a path, whichever page names it; None: unknown."""
        known = next((one for one in self.documents if one.url == url and one.rules is not None), None)
        return None if known is None else Terms([known._replace(of_page=False)]).notes(path)

    def notes(self, path: str) -> list[Note]:
        """What those that are not of single pages say of a path (as ``matcher.spelled`` returns it).

        Of tdmrep.json the first rule that matches counts (section 6.1); of a licence the longest (RSL 3.2, RFC 9309),
        and of several of one length each.
        """
        found: list[Note] = []
        for document in self.documents:
            if document.of_page:
                continue
            source = source_of(document.url)
            rules = _UNKNOWN if document.rules is None else document.rules
            matching = [rule for rule in rules if rule_matches(rule[0], path)]
            if source == Source.TDMREP:
                matching = matching[:1]
            longest = max((len(pattern) for pattern, _ in matching), default=0)
            found += [(source, words) for pattern, words in matching if len(pattern) == longest]
        return found


def documents_of(
    origin: str, licenses: Iterable[str], allowed: Callable[[str], bool], *, tdmrep: bool = True
) -> Sequence[Document]:
    """What an origin is asked for beside robots.txt, whose ``licenses`` are these; another host may have them.

    What its robots.txt forbids (``allowed`` is False) is not asked for: such a licence counts as one that cannot be
    read.
    """
    documents = [Document(origin + TDMREP)] if tdmrep and allowed(origin + TDMREP) else []
    for number, written in enumerate(dict.fromkeys(licenses)):
        url = _resolved(origin, written)
        if not url:
            why = "not an address"
        elif number >= _MAX_LICENSES:
            why = "more than three licences"
        elif host_key(url) == origin.partition("://")[2] and not allowed(url):
            why = "robots.txt does not let us ask"
        else:
            documents.append(Document(url))
            continue
        documents.append(Document(url or written[:100], _doubt(why)))
    return documents


def source_of(url: str) -> str:
    """Where the words of the document at ``url`` are found, as ``verdict`` calls it."""
    return str(Source.TDMREP if url.endswith(TDMREP) else Source.LICENSE)


def read_document(url: str, status: int, body: bytes, host: str = "") -> Sequence[Rule]:
    """The rules of an answer, for a host (its key; "": that of the document). 0 is the status of none.

    Never raises for what the body holds; what is there and cannot be read is doubt.
    """
    is_license = source_of(url) == Source.LICENSE
    if not 200 <= status < 300:
        return _doubt(f"status {status}") if is_license or status == 429 or not 300 <= status < 500 else []
    if len(body) > MAX_BYTES:
        return _doubt("too long")
    try:
        rules = read_rsl(body, host or host_key(url)) if is_license else read_tdmrep(body)
    except (ValueError, ExpatError, LookupError) as error:
        return _doubt(str(error).partition(":")[0][:80])
    if len(rules) > _MAX_RULES or sum(pattern.count("*") for pattern, _ in rules) > _MAX_WILDCARDS:
        return _doubt("too many rules")
    if sum(len(pattern) + len(words) for pattern, words in rules) > _MAX_CHARACTERS:
        return _doubt("too long")
    return rules


def read_tdmrep(body: bytes) -> list[Rule]:
    """The rules of a tdmrep.json, in its order. ValueError for what cannot be read.

    A page of HTML does not count: many sites answer so for all that they do not have.
    """
    if body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == _NO_JSON:
        return []
    try:
        listed = orjson.loads(body)
    except ValueError:
        raise ValueError("not JSON") from None
    rules = []
    for item in listed if isinstance(listed, list) else [listed]:
        if not isinstance(item, dict) or not isinstance(location := item.get("location"), str):
            raise ValueError("a rule without a location")
        reservation, policy = item.get("tdm-reservation"), item.get("tdm-policy")
        words = f"tdm-reservation: {0 if reservation in (0, '0') and reservation is not False else 1}"
        if isinstance(policy, str):
            words += f"; {policy}"
        rules.append((_rooted(location), words[:_MAX_WORDS]))
    return rules


def words_within(body: bytes, url: str, *, feed: bool = False) -> list[Note]:
    """The words of a licence that a page of ``url`` has in itself, on that page; of a ``feed`` those of all entries.

    Never raises; what cannot be read is doubt.
    """
    if len(body) > MAX_BYTES:
        return [(str(Source.LICENSE), f"{DOUBT}: too long")]
    try:
        rules = read_rsl(body, host_key(url), within_feed=feed)
    except (ValueError, ExpatError, LookupError) as error:
        return [(str(Source.LICENSE), f"{DOUBT}: {str(error).partition(':')[0][:80]}")]
    if not feed:
        return Terms([Document(url, rules)]).notes(
            spelled("/" + url.partition("#")[0].partition("://")[2].partition("/")[2])
        )
    words = dict.fromkeys(words for _, words in rules)
    return [(str(Source.LICENSE), each) for each in words] if len(words) < _MOST_IN_FEED else _TOO_MANY


def read_rsl(body: bytes, host: str, *, within_feed: bool = False) -> list[Rule]:
    """The rules of an RSL document for a host, as ``verdict`` judges licences. ExpatError, ValueError, LookupError.

    One that declares a document type is refused before any entity of it is read. ``within_feed``: contents stand
    anywhere, and count whichever host they are of.
    """
    reader = _RslReader(host, within_feed=within_feed)
    parser = ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = reader.begin, reader.end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = reader.text, _refuse_doctype
    parser.Parse(body, True)
    if not reader.rules and not reader.elsewhere and not within_feed:
        raise ValueError("no <content>")
    return reader.rules


class _RslReader:
    """Takes the events of a parser."""

    def __init__(self, host: str, *, within_feed: bool = False) -> None:
        self._host = host
        self._feed = within_feed
        self._around = 0  # elements of a feed that are open around its contents
        self.rules: list[Rule] = []
        self.elsewhere = False  # contents of other hosts were there
        self._path: list[str] = []
        self._count = 0
        self._pattern: str | None = None
        self._server = False
        self._licenses: list[str] = []
        self._terms: dict[str, dict[str, None]] = {}
        self._list = ""  # the one whose text comes
        self._text: list[str] = []

    def begin(self, name: str, attributes: dict[str, str]) -> None:
        """A start tag."""
        space, _, local = name.rpartition(" ")
        self._count += 1
        if len(self._path) >= _MAX_DEPTH or self._count > _MAX_ELEMENTS:
            raise ValueError("too deep or too long")
        if self._feed and len(self._path) < 2:
            if (local, space) != ("content", _RSL_SPACE):
                self._around += 1
                if self._around >= _MAX_DEPTH:
                    raise ValueError("too deep or too long")
                return
            self._path = ["rsl"]
        if not self._path and (local != "rsl" or space not in ("", _RSL_SPACE)):
            raise ValueError("not RSL")
        self._path.append(local if space in ("", _RSL_SPACE) else "")
        depth = len(self._path)
        if depth == 2 and local == "content":
            self._pattern, self._licenses = self._place(attributes.get("url", "")), []
            self._server = "server" in attributes
        elif depth == 3 and self._path[1:] == ["content", "license"]:
            self._terms = {"server": {"yes": None}} if self._server else {}
        elif depth == 4 and self._path[1:3] == ["content", "license"]:
            kind = attributes.get("type", "").strip().lower()
            if local in _LISTS:
                self._list, self._text = (local if kind in ("", "usage") else _token(kind)), []
            elif local == "payment":
                words = _OF_PAYMENT.get(kind, f"payment: {_token(kind or 'unstated')}")
                if words:
                    self._terms.setdefault(words.partition(": ")[0], {})[words.partition(": ")[2]] = None

    def text(self, text: str) -> None:
        """Text of what is open."""
        if self._list:
            self._text.append(text)

    def end(self, _: str) -> None:
        """An end tag."""
        depth = len(self._path)
        if self._feed and depth < 2:
            self._around -= 1
            return
        if depth == 4 and self._list:
            words = "".join(self._text).replace(",", " ").lower().split()
            if not words and self._list == "permits":
                words = ["nothing"]  # without the element everything would be
            self._terms.setdefault(self._list, {}).update(dict.fromkeys(map(_token, words)))
            self._list = ""
        elif depth == 3 and self._path[1:] == ["content", "license"]:
            self._licenses.append("; ".join(f"{name}: {' '.join(found)}" for name, found in self._terms.items()))
        elif depth == 2 and self._path[1] == "content":
            licence = " | ".join(one or "permits: " for one in self._licenses)
            if not licence or len(licence) > _MAX_WORDS:
                licence = f"{DOUBT}: {'a licence too long' if licence else 'a content without a licence'}"
            if self._pattern is None:
                self.elsewhere = True
            else:
                self.rules.append((self._pattern, licence))
            if len(self.rules) > _MAX_RULES:
                raise ValueError("too many rules")
        self._path.pop()

    def _place(self, written: str) -> str | None:
        """The pattern of a content's paths; None for those of another host. ValueError without one."""
        written = written.strip()
        if not written:
            raise ValueError("a content without an address")
        scheme, separator, rest = written.partition("://")
        if not separator:
            return _rooted(written)
        host, slash, path = rest.partition("/")
        place = "" if self._feed else _resolved("", f"{scheme}://{host}/")
        return _rooted(slash + path) if not place or host_key(place) == self._host else None


def _rooted(pattern: str) -> str:
    return pattern if pattern[:1] in ("/", "*") else "/" + pattern


def _token(word: str) -> str:
    """A word of a vocabulary; what has other characters is not a word."""
    return word if word.replace("-", "").isalnum() and word.isascii() and len(word) <= 40 else "other"


def _doubt(why: str) -> list[Rule]:
    return [(ALL, f"{DOUBT}: {why}")]


def _resolved(origin: str, written: str) -> str:
    try:
        return parse(urljoin(origin + "/", written)).url
    except (UrlRefused, ValueError):
        return ""


def _refuse_doctype(*_: Any) -> None:
    raise ValueError("a document type is declared")
