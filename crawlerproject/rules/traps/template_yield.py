"""Decides by what a host's pages yielded which shapes of its URLs are worth asking for again: traps are learned.

A *template* is a URL without what varies: "/calendar/2031/04?view=day" is "/calendar/{n}/{n}?view=day". Every
template of a host has a budget of pages. A page with text that the host has not shown before adds to it, any
other takes from it; a template whose budget is spent is a trap. So an endless calendar costs some dozens of
requests, and ten thousand numbered articles are fetched whole. The host as a whole has such a budget too,
which ends mazes whose every address has a shape of its own; and so have its lists (sitemaps and feeds), which live
on what the pages that they name yield. No clock and no chance: the same pages in the same order give the same verdicts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import orjson

from crawlerproject.rules.printable import counted
from crawlerproject.rules.text_likeness import Marks

# Ours, measured on the traps of tests/web/profiles/traps.py: small enough that a trap costs less than a minute's worth
# of pages at a page a second, large enough that one dull hour of a good section does not end it.
FIRST_PAGES = 40  # a template's budget before anything is known of it
LEAST_PAGES = 5  # the same at a host that has trapped us often
EARNED_PAGES = 10  # added by a page with new text: a template that yields one in ten goes on for ever
MOST_PAGES = 200  # a budget never exceeds this, nor FIRST_PAGES plus the new texts seen
HOST_FIRST_PAGES = 250  # the whole host's budget
HOST_MOST_PAGES = 500
CUT_COSTS_PAGES = 10  # an answer that was cut for its slowness: a tarpit holds each request for half a minute
# A text of its own that is nearly another page's: shops and handbooks show menus of a thousand words around thirty of
# the page. So many of them cost what one repetition does, and a template needs one wholly new text in eighty.
SIMILAR_COSTS_PAGES = 1 / 8
# Sitemaps, their indexes and feeds that are fetched on trust, and for each page with new text that one of them named.
FIRST_LISTS = 20
EARNED_LISTS = 10
# URLs of sitemaps that may be queued: an index may name 50,000, but each is a row of the queue.
FIRST_NAMED_LISTS = 5_000

LISTS = "sitemaps"
"""Stands for a template where a host's sitemaps and feeds are meant."""

# Bounds of what is kept of one host: templates by level (fine, by first folder, by depth).
_MOST_TEMPLATES = (64, 32, 48)
_MOST_CHARACTERS = 200  # of a template
_LONG_WORD = 30  # longer words are titles written with hyphens
_MOST_SHOWN_VALUE = 16  # a query value up to this long may be a mode ("view=month"); longer ones vary

_CLASS = re.compile(
    r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<date>(?:19|20)\d\d(?P<dash>[-_.]?)[01]\d(?:(?P=dash)[0-3]\d)?)"
    r"|(?P<n>\d+)"
    r"|(?P<hex>(?=[a-f]*\d)[0-9a-f]{8,})",
    re.IGNORECASE,
).fullmatch
_SEPARATORS = re.compile(r"[-_+.~]|%20")
# Session ids and the like: a whole run, looked at from its start only.
_MIXED = re.compile(r"(?<![0-9A-Za-z])(?=[A-Za-z]*+\d)(?=\d*+[A-Za-z])[0-9A-Za-z]{10,}+")
_DIGITS = re.compile(r"\d+")
_EXTENSION = re.compile(r"\.[A-Za-z]{1,5}[0-9]?$")


def template_of(url: str) -> str:
    """The template of an absolute http(s) URL: path and query with everything that varies folded."""
    at = url.find("/", url.find("://") + 3)
    path, mark, query = (url[at:] if at >= 0 else "/").partition("?")
    folded = "/".join(map(_segment, path.split("/")))
    if mark:
        folded += "?" + "&".join(sorted(map(_pair, query.split("&"))))
    return folded[:_MOST_CHARACTERS]


class Trapped(NamedTuple):
    """A template that is not asked for any more."""

    template: str  # "*" is the whole host; LISTS; "@" and a domain: what that domain names
    fetched: int  # pages
    new: int  # of them with new text
    refused: int  # URLs
    why: str


@dataclass(slots=True, eq=False)
class Yield:
    """What one template gave. ``left`` pages may still be asked for."""

    left: float
    fetched: int = 0
    new: int = 0
    refused: int = 0

    def take(self, new: bool, cost: float, first: int, most: int) -> bool:
        """One more page: it earns, or it costs. Whether it has cost the last of the budget."""
        self.fetched += 1
        had = self.left > 0
        if new:
            self.new += 1
            self.left = min(max(self.left, 0) + EARNED_PAGES, first + self.new, most)
        else:
            self.left -= cost
        return had and self.left <= 0

    @property
    def spent(self) -> bool:
        """Whether nothing may be asked for any more."""
        return self.left <= 0


@dataclass(slots=True, eq=False)
class ListYield:
    """What the sitemaps and feeds of one host gave. Those that were fetched live on the pages that they named."""

    fetched: int = 0  # files
    new: int = 0  # pages with new text that they named
    named: int = 0  # URLs of sitemaps that were queued
    refused: int = 0

    @property
    def spent(self) -> bool:
        """Whether no further one may be asked for, unless pages that are still to be fetched earn it."""
        return self.fetched >= FIRST_LISTS + EARNED_LISTS * self.new

    @property
    def ahead(self) -> bool:
        """Whether more are queued than may be asked for now: they come after the pages that could earn it."""
        return self.named > FIRST_LISTS + EARNED_LISTS * self.new

    @property
    def full(self) -> bool:
        """Whether no further one may be queued."""
        return self.named >= FIRST_NAMED_LISTS + EARNED_LISTS * self.new


class HostYields:
    """The templates of one host and what they gave. At most some 30 KB."""

    __slots__ = ("_marks", "_spent", "_tables", "example", "host", "lists", "shapes")

    def __init__(self) -> None:
        self.host = Yield(HOST_FIRST_PAGES)
        self.shapes = 0  # links refused by rules/url/refused_urls.py, for their shape alone
        self.example = ""  # one of them
        self.lists = ListYield()
        self._tables: tuple[dict[str, Yield], ...] = ({}, {}, {})
        self._spent = 0  # templates without a budget
        self._marks = Marks()

    def new_text(self, marks: Iterable[int]) -> bool:
        """Whether the host has shown none of a text's marks before; it has shown all of them from now on."""
        new = True
        for mark in marks:
            new &= self._marks.add(mark)
        return new

    def knows_text(self, marks: Iterable[int]) -> bool:
        """Whether the host has shown one of a text's marks before."""
        return any(mark in self._marks for mark in marks)

    def learn(self, url: str, new: bool, cost: float = 1) -> Trapped | None:
        """One page of ``url`` was answered; the template (or "*") that this answer has spent, if one."""
        table, name = self._place(template_of(url))
        found = table.get(name)
        if found is None:
            # Less for what is new at a host that has trapped us before.
            found = table[name] = Yield(max(FIRST_PAGES // (1 + self._spent), LEAST_PAGES))
        was_spent = found.left <= 0
        whole_host = self.host.take(new, cost, HOST_FIRST_PAGES, HOST_MOST_PAGES)
        trapped = found.take(new, cost, FIRST_PAGES, MOST_PAGES)
        self._spent += (found.left <= 0) - was_spent
        if whole_host:
            return _trapped("*", self.host)
        return _trapped(name, found) if trapped else None

    def led_on(self, url: str, new: bool) -> None:
        """Where ``url`` redirected to was answered: with new text, which it is worth too, or by a redirect further on.

        Then it costs nothing. So a site whose links all redirect within it is as good as one whose links do not.
        """
        table, name = self._place(template_of(url))
        found = table.get(name)
        if found is None:
            return
        was_spent = found.spent
        if new:
            found.fetched -= 1
            found.take(True, 0, FIRST_PAGES, MOST_PAGES)
        else:
            found.left += 1
        self._spent += found.spent - was_spent

    @property
    def spends(self) -> bool:
        """Whether ``spent`` may name anything."""
        return self.host.left <= 0 or bool(self._spent)

    def spent(self, url: str) -> str:
        """The template that stands against asking for ``url``, "*" for the whole host; "" when none does."""
        if self.host.left <= 0:
            return "*"
        if not self._spent:
            return ""
        table, name = self._place(template_of(url))
        found = table.get(name)
        return name if found is not None and found.spent else ""

    def refused(self, template: str) -> None:
        """Count a URL that was not asked for."""
        if template == LISTS:
            self.lists.refused += 1
            return
        for table in self._tables:
            if template in table:
                table[template].refused += 1
                return
        self.host.refused += 1

    def trapped(self) -> Iterator[Trapped]:
        """All that is not asked for any more."""
        if self.host.spent:
            yield _trapped("*", self.host)
        for table in self._tables:
            for name, entry in table.items():
                if entry.spent:
                    yield _trapped(name, entry)
        lists = self.lists
        if lists.refused:
            named, fetched = counted(lists.new, "page"), counted(lists.fetched, "file")
            files = f"sitemaps and feeds named {named} with new text in {fetched}"
            yield Trapped(LISTS, lists.fetched, lists.new, lists.refused, f"{files} and their budget is spent")

    def pack(self) -> bytes:
        """The bytes the store keeps: a length, JSON, the marks."""
        tables = [[(name, *_numbers(entry)) for name, entry in table.items()] for table in self._tables]
        head = orjson.dumps([_numbers(self.host), self.shapes, self.example, tables, _list_numbers(self.lists)])
        return _HEAD.pack(_FORMAT, len(head)) + head + self._marks.pack()

    @classmethod
    def unpack(cls, packed: bytes) -> HostYields:
        """What ``pack`` wrote, of this version or the one before it; ValueError for anything else."""
        if len(packed) < _HEAD.size or packed[0] not in (_FORMAT, _WITHOUT_LISTS):
            raise ValueError("not a host's yields of this version")
        _, length = _HEAD.unpack_from(packed)
        numbers, shapes, example, tables, *lists = orjson.loads(packed[_HEAD.size : _HEAD.size + length])
        yields = cls()
        yields.host = Yield(*numbers)
        yields.shapes, yields.example = shapes, example
        if lists:
            yields.lists = ListYield(*lists[0])
        for table, rows in zip(yields._tables, tables, strict=True):
            table.update({name: Yield(*numbers) for name, *numbers in rows})
        yields._marks = Marks.unpack(packed[_HEAD.size + length :])
        yields._spent = sum(entry.spent for table in yields._tables for entry in table.values())
        return yields

    def _place(self, fine: str) -> tuple[dict[str, Yield], str]:
        """Where a URL of this template is counted: there while there is room, else under a coarser one."""
        if fine in self._tables[0] or len(self._tables[0]) < _MOST_TEMPLATES[0]:
            return self._tables[0], fine
        for table, name, most in zip(self._tables[1:], _coarser(fine), _MOST_TEMPLATES[1:], strict=True):
            if name in table or len(table) < most:
                return table, name
        return self._tables[-1], "/…"


_HEAD = struct.Struct("<BI")
_FORMAT, _WITHOUT_LISTS = 2, 1
_numbers, _list_numbers = (
    attrgetter("left", "fetched", "new", "refused"),
    attrgetter("fetched", "new", "named", "refused"),
)


def _trapped(name: str, entry: Yield) -> Trapped:
    what = "the whole host" if name == "*" else "the template"
    why = f"{what} gave {entry.new} new texts in {entry.fetched} pages and its budget is spent"
    return Trapped(name, entry.fetched, entry.new, entry.refused, why)


def _segment(part: str) -> str:
    """One folder or file name, folded; what follows a ";" or "=" is folded by itself."""
    if not part or part.isalpha():
        return part if len(part) <= _LONG_WORD else "{slug}"
    if ";" in part or "=" in part:
        return ";".join(map(_pair, part.split(";")))
    extension = _EXTENSION.search(part)
    if extension is not None and extension.start():
        return _word(part[: extension.start()]) + extension[0]
    return _word(part)


def _pair(piece: str) -> str:
    name, equals, value = piece.partition("=")
    if not equals:
        return _word(name)
    folded = _word(value)
    return f"{_DIGITS.sub('{n}', name)}={folded if len(folded) <= _MOST_SHOWN_VALUE else '{v}'}"


def _word(word: str) -> str:
    found = _CLASS(word)
    if found is not None:
        return f"{{{found.lastgroup}}}"
    if len(word) > _LONG_WORD or len(_SEPARATORS.findall(word)) > 1:
        return "{slug}"
    return _DIGITS.sub("{n}", _MIXED.sub("{id}", word))


def _coarser(template: str) -> tuple[str, str]:
    """By first folder and depth ("/calendar/*/*?…"), and by depth alone ("/*/*/*?…")."""
    path, mark, _ = template.partition("?")
    _, *folders, _ = path.split("/")
    query = "?…" if mark else ""
    first = f"/{folders[0]}" if folders else ""
    rest = "/*" * (len(folders) if folders else 1)
    return f"{first}{rest}{query}", f"{'/*' * (len(folders) + 1)}{query}"
