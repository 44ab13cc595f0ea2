"""Reads the addresses that an XML list names: sitemaps, sitemap indexes, RSS and Atom, in one pass, hostile or broken.

Nothing but what is asked for is built: a 50 MB sitemap is read in pieces and leaves one entry at a time, and of the
elements that are open only the entry, the child of it and its address are known. No entity is expanded but XML's
five, HTML's and numbers, each a character; nothing external is loaded.

What breaks XML's rules does not end the reading, as in feed readers: what is no tag is text, an end tag closes what
is open by its name, an entry ends where the next begins, and a child that was never closed holds nothing back. (Why
not lxml's recovering parser: with entities off, it drops "&amp;" from every address after the first error.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape
from html.entities import html5
from typing import NamedTuple

from crawlerproject.rules.feeds.entry_dates import entry_date
from crawlerproject.rules.url.urls import Base

MAX_TEXT = 4096
"""Characters of one address or date; sitemaps.org allows 2,048 of an address."""
_MAX_TAG = 8192  # characters of a tag that is not whole at a piece's end (ours): two addresses and their names
_MAX_ODD_TAG = 1024  # characters in which the end of a tag is looked for that is not XML's (ours)
_MAX_SCOPES = 64  # of elements with namespaces or bases of their own, and of prefixes (ours): a feed has three, and ten
_MAX_NAMES = 1024  # of elements, that are remembered (ours): a feed has forty

_NAME = r"""[^\x00-@\[-^`{-\x7f][^\s<>/="']*+"""
# A tag to its end, with the text and end tag of an element that holds nothing else; where there is no whole tag, the
# "<". No part begins again where another has failed: each is possessive.
_TAG = re.compile(
    rf"""<(?:/({_NAME})[^<>]*+>"""
    rf"""|({_NAME})((?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+)>(?:(?<!/>)([^<]*+)</\2\s*+>)?"""
    r"""|(!--|!\[CDATA\[|!|\?))?"""
)
_END, _START, _WHOLE, _SPECIAL = 1, 3, 4, 5  # the last group that has matched
# What is a tag to people only: "<" within a value; a quote that is not closed; an end tag without its end.
_ODD_TAG = re.compile(
    rf"""<({_NAME})((?:[^<>"']++|(?<==)"[^"]*+"|(?<==)'[^']*+'|(?<!=)["'])*)>|<(/?{_NAME})([^<>]*+)(>?)"""
)
_DECLARATION = re.compile(r"[^<>\[]*+([>\[])")
_ATTRIBUTE = re.compile(r"""(?<![^\s"'/])([^\s=/"'<>]++)\s*+=\s*+(?:"([^"]*+)(?:"|$)|'([^']*+)(?:'|$)|([^\s"'<>]++))""")
_REFERENCE = re.compile(r"&(?:#[xX][0-9a-fA-F]{1,8}|#[0-9]{1,8}|[A-Za-z_][\w.-]{0,63});")
_CDATA = "]]>"

_SITEMAPS = frozenset({"urlset", "sitemapindex"})
_KINDS = {name.lower(): name for name in (*_SITEMAPS, "rss", "feed", "RDF")} | {"channel": "rss"}
# What a program's warnings leave before the document.
_JUNK = frozenset({"b", "br", "div", "font", "hr", "i", "p", "pre", "span", "strong"})

_OWN, _DATES_ONLY, _FOREIGN = "own", "dates only", "foreign"
# Of namespaces, parts of their names in small letters: wrong years and hosts in them are common.
_SPACES = {
    _FOREIGN: ("/xhtml", "/svg", "/mathml", "/sitemap-", "/mrss", "itunes", "/modules/", "rssnamespace"),
    _DATES_ONLY: ("purl.org/dc/",),
    _OWN: ("/sitemap/", "/atom", "/rss", "netscape.com/", "userland.com/"),
}
# Prefixes that are used without being declared.
_PREFIXES = {"": _OWN, "atom": _OWN, "dc": _DATES_ONLY, "dcterms": _DATES_ONLY}

_NOTHING, _ITEM, _ADDRESS, _DATE = range(4)  # what an element is to us
_DATE_NAMES = dict.fromkeys(("lastmod", "pubdate", "date", "updated", "published", "modified", "issued"), _DATE)
_OF_SITEMAPS = _DATE_NAMES | {"url": _ITEM, "sitemap": _ITEM, "loc": _ADDRESS}
_OF_FEEDS = _DATE_NAMES | {"item": _ITEM, "entry": _ITEM, "link": _ADDRESS, "guid": _ADDRESS, "id": _ADDRESS}
_HTML_TYPES = frozenset({"", "text/html", "application/xhtml+xml"})


class Entry(NamedTuple):
    """One address of a list."""

    url: str  # as written, or resolved by the xml:base that it stands in: a feed's may be relative
    modified: float | None = None  # epoch seconds, as the list claims
    is_index: bool = False  # a sitemap within an index


class _Scope(NamedTuple):
    """What was before an element with ``xmlns`` or ``xml:base``, and is again after its end tag."""

    name: str
    prefixes: dict[str, str]
    roles: dict[str, tuple[int, str]]
    base: Base | None


class _Open:
    """The entry that is open."""

    __slots__ = ("child", "guid", "held", "modified", "name", "other", "same_name", "scopes", "url")

    def __init__(self, name: str, scopes: int) -> None:
        self.name = name  # its tag
        self.scopes = scopes  # how many were open before it
        self.child = ""  # the open element within it that is neither address nor date
        self.same_name = 0  # how many of its name are open, within each other
        self.held = ""  # an address within the child: the entry's, if the child is never closed
        self.url = self.guid = self.other = ""  # other: a page of it that is not HTML
        self.modified: float | None = None


class EntriesReader:
    """Takes pieces of text, gives entries. ``kind`` is the root's name, ``flaw`` what was not read as it stands."""

    def __init__(self, url: str = "") -> None:
        """Of a document at ``url``, which an ``xml:base`` may be relative to."""
        self.kind = ""  # "urlset", "sitemapindex", "rss", "feed", "RDF"; "" before the root
        self.flaw = ""
        self.hubs: list[str] = []  # WebSub hubs that the feed names
        self.self_url = ""  # the feed's own address, as a hub knows it
        self._refused = self._ended = self._declares = False
        self._rest = ""  # of the last piece: what may be half a tag
        self._skip_to = ""  # where the comment, instruction, declaration or CDATA section that is open ends
        self._done: list[Entry] = []
        self._base: Base | None = None  # None: none is named
        self._url = url
        self._names: dict[str, int] = {}
        self._prefixes = _PREFIXES
        self._roles: dict[str, tuple[int, str]] = {}  # by tag: what it is, and its name without prefix
        self._scopes: list[_Scope] = []
        self._item: _Open | None = None
        self._leaf = ""  # the tag of the address or date that is open
        self._attributes = ""  # its
        self._text: list[str] = []  # its
        self._characters = 0
        self._is_blank = True

    def read(self, pieces: Iterable[str]) -> Iterator[Entry]:
        """The entries in order; never raises for what a document holds."""
        for piece in pieces:
            self._read(self._rest + piece)
            yield from self._take()
            if self._refused:
                return
        self._read(self._rest, last=True)
        self._leaf = ""  # what breaks off within an address is not that address
        self._end_item()
        yield from self._take()
        if not self._ended and not self.flaw:
            self.flaw = f"breaks off before </{self.kind}>" if self.kind else "not well-formed XML: no element"

    def _take(self) -> list[Entry]:
        done, self._done = self._done, []
        return done

    def _read(self, text: str, *, last: bool = False) -> None:
        at = since = 0  # since: where the text begins that is not taken yet
        find = _TAG.search
        while not self._refused:
            if self._skip_to:
                at = since = self._skip(text, at, last)
                if self._skip_to:
                    break
            if (tag := find(text, at)) is None:
                at = len(text)
                break
            what = tag.lastindex
            if what == _WHOLE and not self._leaf:
                name, attributes, body = tag.group(2, 3, 4)
                known = self._roles.get(name)
                if known is None or known[0] or "xml" in attributes:  # most say nothing to us
                    self._begin(name, attributes, body)
                at = since = tag.end()
                continue
            start = tag.start()
            if what is None:
                left = len(text) - start
                if not last and (left < _MAX_ODD_TAG or (left < _MAX_TAG and text.find("<", start + 1) < 0)):
                    at = start
                    break
                if (tag := _ODD_TAG.match(text, start, start + _MAX_ODD_TAG)) is None or not self._is_tag(tag):
                    at = start + 1  # it is text
                    continue
            elif what == _SPECIAL and not last and len(text) - start < _MAX_TAG and self._is_half(text, start):
                at = start
                break
            if self._leaf:
                self._add(text[since:start])
            at = since = tag.end()
            if what == _WHOLE:
                self._begin(tag[2], tag[3], tag[4])
            elif what == _START:
                self._begin(tag[2], tag[3], "" if tag[3].endswith("/") else None)
            elif what == _END:
                self._end(tag[1])
            elif what == _SPECIAL:
                at = since = self._special(text, at, tag[5])
            else:
                self._odd(tag)
        if self._leaf and not self._skip_to:
            self._add(text[since:at])
        self._rest = text[at:]

    @staticmethod
    def _is_tag(odd: re.Match[str]) -> bool:
        return odd[1] is not None or bool(odd[5]) or odd[3].startswith("/")

    def _odd(self, tag: re.Match[str]) -> None:
        self.flaw = self.flaw or "not well-formed XML: a tag without its end"
        name, attributes = (tag[1], tag[2]) if tag[1] is not None else (tag[3], tag[4])
        if name.startswith("/"):
            self._end(name[1:])
        else:
            self._begin(name, attributes, "" if attributes.endswith("/") else None)

    @staticmethod
    def _is_half(text: str, start: int) -> bool:
        """Whether a piece ends within the beginning of a comment, a CDATA section or a declaration."""
        if text.startswith(("<!--", "<![CDATA[", "<?"), start):
            return False
        return len(text) - start < 9 or _DECLARATION.match(text, start + 2) is None

    def _special(self, text: str, at: int, mark: str) -> int:
        if mark == "!":
            declaration = _DECLARATION.match(text, at)
            self._skip_to = "]" if declaration is not None and declaration[1] == "[" else ">"
            return declaration.end(1) - (declaration[1] == ">") if declaration is not None else at
        self._skip_to = {"!--": "-->", "?": ">"}.get(mark, _CDATA)
        return at

    def _skip(self, text: str, at: int, last: bool) -> int:
        """Where reading goes on; ``_skip_to`` is empty when the end was found."""
        mark = self._skip_to
        end = text.find(mark, at)
        stop = end if end >= 0 else len(text)
        if mark == _CDATA and self._leaf and (early := text.find("</" + self._leaf, at, stop)) >= 0:
            mark, end, stop = "", early, early  # no address holds its own end tag
        if end < 0 and not last:
            stop = max(at, stop - len(mark) + 1)  # half of the mark
        if mark in ("", _CDATA) and self._leaf:
            written = text[at:stop] if mark else text[at:stop].removesuffix("]]")
            self._add(written.replace("&", "&amp;"))
        elif mark == "]" and "<!entity" in text[at:stop].lower():
            self._declares = True
            self.flaw = self.flaw or "declares entities, which are not read"
        if end >= 0:
            self._skip_to = ""
            return stop + len(mark)
        return stop

    def _add(self, text: str) -> None:
        if text and self._characters <= MAX_TEXT:
            self._text.append(text[: MAX_TEXT + 1])
            self._characters += len(text)
            self._is_blank = self._is_blank and text.isspace()

    def _begin(self, name: str, attributes: str, body: str | None) -> None:
        """A start tag; with ``body`` the whole element."""
        item = self._item
        if item is not None and name == item.name:
            self._end_item()
            item = None
        known = self._roles.get(name) or self._role(name)
        scoped = False
        if "xml" in attributes and (known[1] in self._names or (body is None and item is None)):
            scoped = self._open_scope(name, attributes)
            known = self._role(name)
        role = known[0]
        if not self.kind:
            self._root(name, known[1])
            self._ended = body is not None and self.kind != ""
        elif role == _ITEM:
            if item is None:
                self._item = _Open(name, len(self._scopes) - scoped)
                if body is not None:
                    self._end_item()
                    return
        elif role and (item is not None or known[1] == "link"):
            self._open_leaf(name, known, attributes, body)
        elif item is not None:
            self._open_child(item, name, body)
        if scoped and body is not None:
            self._close_scope()

    def _root(self, name: str, local: str) -> None:
        if local in _KINDS:
            self.kind = _KINDS[local]
            self._names = _OF_SITEMAPS if self.kind in _SITEMAPS else _OF_FEEDS
            if self.kind != "RDF":  # whose items are of another namespace than itself
                self._prefixes = {**self._prefixes, name.rpartition(":")[0].lower(): _OWN}
            self._roles = {}
        elif local not in _JUNK:
            self.kind, self._refused = local, True

    def _open_leaf(self, name: str, known: tuple[int, str], attributes: str, body: str | None) -> None:
        self._close_leaf()
        if self._item is not None and self._item.child and known[0] == _DATE:
            return
        if body is None and "href" in attributes.lower():
            body = ""
        if body is None:
            if self._item is not None:
                self._leaf, self._attributes = name, attributes
        else:
            self._leaf_read(known, attributes, body)

    def _open_child(self, item: _Open, name: str, body: str | None) -> None:
        if self._leaf:
            if self._is_blank:
                self._add(body or "")  # the address stands in an element of its own
                return
            self._close_leaf()  # no address holds elements: its end tag is missing
        if body is None:
            if not item.child:
                item.child, item.same_name = name, 1
            elif name == item.child:
                item.same_name += 1

    def _close_leaf(self) -> None:
        if self._leaf:
            name, text = self._leaf, "".join(self._text)
            self._leaf = ""
            self._text, self._characters, self._is_blank = [], 0, True
            self._leaf_read(self._roles.get(name) or self._role(name), self._attributes, text)
            if self._scopes and self._scopes[-1].name == name:
                self._close_scope()

    def _leaf_read(self, known: tuple[int, str], attributes: str, text: str) -> None:
        """An address or date of the open entry, or a link of the feed itself."""
        role, local = known
        item = self._item
        if len(text) > MAX_TEXT:
            return
        if "&" in text:
            text = _REFERENCE.sub(_character, text)
            if self._declares and _REFERENCE.search(text) is not None:
                return  # what it stands for is not known
        if role == _DATE:
            if item is not None and (moment := entry_date(text)) is not None:
                item.modified = moment if item.modified is None else max(moment, item.modified)
            return
        values = _attributes(attributes) if "=" in attributes else {}
        if local == "link" and "href" in values:
            self._link(values)
        elif item is not None and (text := text.strip()):
            if local in ("guid", "id"):
                is_address = values.get("ispermalink", "true").lower() == "true" and not item.child
                if is_address and text.lower().startswith(("http://", "https://")):
                    item.guid = item.guid or text
            elif item.child:
                item.held = item.held or self._resolved(text)
            else:
                item.url = item.url or self._resolved(text)

    def _link(self, values: dict[str, str]) -> None:
        """Atom's link, which RSS borrows: where it leads is in its attributes."""
        item = self._item
        href = self._resolved(values["href"][:MAX_TEXT].strip())
        rels = (values.get("rel") or "alternate").lower().split()
        if item is None:
            if "hub" in rels:
                self.hubs.append(href)
            elif "self" in rels:
                self.self_url = self.self_url or href
        elif "alternate" not in rels or not href:
            pass
        elif item.child:
            item.held = item.held or href
        elif values.get("type", "").partition(";")[0].strip().lower() in _HTML_TYPES:
            item.url = item.url or href
        else:
            item.other = item.other or href

    def _end(self, name: str) -> None:
        item = self._item
        if self._leaf:
            if name == self._leaf:
                self._close_leaf()
                return
            if not self._encloses(name):
                if name.lower() == self._leaf.lower():
                    self._close_leaf()
                return
            self._close_leaf()
        if item is not None:
            if name == item.name:
                self._end_item()
                return
            if name == item.child:
                item.same_name -= 1
                if not item.same_name:
                    item.child = item.held = ""
                return
            if self._encloses(name):
                self._end_item()
        if name.rpartition(":")[2].lower() == self.kind.lower():
            self._ended = True
        if self._scopes and self._scopes[-1].name == name:
            self._close_scope()

    def _encloses(self, name: str) -> bool:
        """Whether what ends is the entry or around it."""
        if self._item is None or name == self._item.name or name.lower() == self._item.name.lower():
            return True
        return name.rpartition(":")[2].lower() in _KINDS

    def _end_item(self) -> None:
        item = self._item
        if item is None:
            return
        self._close_leaf()
        self._item = None
        if url := item.url or item.guid or item.held or item.other:
            self._done.append(Entry(url, item.modified, item.name.rpartition(":")[2].lower() == "sitemap"))
        while len(self._scopes) > item.scopes:
            self._close_scope()

    def _role(self, name: str) -> tuple[int, str]:
        prefix, _, local = name.rpartition(":")
        local = local.lower()
        role = self._names.get(local, _NOTHING)
        space = self._prefixes.get(prefix.lower(), _FOREIGN)
        if role and (space == _FOREIGN or (space == _DATES_ONLY and role != _DATE)):
            role = _NOTHING
        if len(self._roles) >= _MAX_NAMES:
            self._roles = {}
        self._roles[name] = role, local
        return role, local

    def _open_scope(self, name: str, attributes: str) -> bool:
        if len(self._scopes) >= _MAX_SCOPES:
            return False
        changed = {
            key: value for key, value in _attributes(attributes).items() if key.startswith(("xmlns", "xml:base"))
        }
        if not changed:
            return False
        self._scopes.append(_Scope(name, self._prefixes, self._roles, self._base))
        if (base := changed.pop("xml:base", None)) is not None:
            self._base = self._inner_base(base.strip())
        if changed:
            self._prefixes, self._roles = dict(self._prefixes), {}
            for key, space in changed.items():
                prefix = key.partition(":")[2]
                if len(self._prefixes) < _MAX_SCOPES or prefix in self._prefixes:
                    self._prefixes[prefix] = _space(prefix, space.lower())
        return True

    def _close_scope(self) -> None:
        _, self._prefixes, self._roles, self._base = self._scopes.pop()

    def _resolved(self, url: str) -> str:
        """By the ``xml:base`` in force; as written without one."""
        address = self._base.join(url) if self._base is not None else None
        return url if address is None else address.url

    def _inner_base(self, written: str) -> Base:
        outer = self._base or (Base(self._url) if self._url else None)
        address = outer.join(written) if outer is not None else None
        return Base(written if address is None else address.url)


def _space(prefix: str, namespace: str) -> str:
    for space, parts in _SPACES.items():
        if any(part in namespace for part in parts):
            return space
    return _FOREIGN if prefix else _OWN


def _attributes(text: str) -> dict[str, str]:
    """Values by name in lower case; of several with one name the first."""
    values: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(text):
        values.setdefault(name.lower(), _REFERENCE.sub(_character, double or single or bare))
    return values


def _character(reference: re.Match[str]) -> str:
    """What a reference stands for; itself, where that is no character: "&copy=1" is a query's."""
    text = reference[0]
    if text == "&amp;":  # nearly all
        return "&"
    return unescape(text) if text[1] == "#" or text[1:] in html5 else text
