"""Structured Fields (RFC 8941) as far as signatures need them: dictionaries of items and inner lists, both ways."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MAX_CHARACTERS = 8_192
"""Of one field; a signature of ours takes 400, and servers commonly refuse a line of 8 KB (ours)."""

_KEY = re.compile(r"[a-z*][a-z0-9_.*-]*")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,3})?")
_TOKEN = re.compile(r"[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*")
_BYTES = re.compile(r":([A-Za-z0-9+/=]*):")
_BLANKS = re.compile(r"[ \t]*")
_SPACES = re.compile(r" *")


class Token(str):
    """A word without quotes."""

    __slots__ = ()


Bare = int | float | str | bytes | bool
Parameters = Mapping[str, Bare]


class Item(NamedTuple):
    """One value with its parameters, in order."""

    value: Bare
    parameters: Parameters = {}


class InnerList(NamedTuple):
    """Items in parentheses, with parameters of the list's own."""

    items: tuple[Item, ...]
    parameters: Parameters = {}


def read_dictionary(text: str) -> dict[str, Item | InnerList]:
    """The members of a dictionary, the last of a name. Raises ValueError for anything else (RFC 8941 4.2.2)."""
    if len(text) > MAX_CHARACTERS or not text.isascii():
        raise ValueError("too long, or not ASCII")
    return _Reader(text.strip(" ")).dictionary()


def written(member: Item | InnerList) -> str:
    """The one way to write it (RFC 8941 4.1)."""
    if isinstance(member, Item):
        return _bare(member.value) + _parameters(member.parameters)
    return f"({' '.join(map(written, member.items))})" + _parameters(member.parameters)


def written_dictionary(members: Iterable[tuple[str, Item | InnerList]]) -> str:
    """A field's value."""
    return ", ".join(f"{name}={written(member)}" for name, member in members)


def _bare(value: Bare) -> str:
    if isinstance(value, bool):
        return f"?{value:d}"
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, bytes):
        return f":{b64encode(value).decode('ascii')}:"
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return str(value)


def _parameters(parameters: Parameters) -> str:
    return "".join(f";{name}" if value is True else f";{name}={_bare(value)}" for name, value in parameters.items())


class _Reader:
    """Goes over a text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def dictionary(self) -> dict[str, Item | InnerList]:
        found: dict[str, Item | InnerList] = {}
        while self._at < len(self._text):
            name = self._match(_KEY)[0]
            member: Item | InnerList
            if self._takes("="):
                member = self._inner_list() if self._takes("(") else self._item()
            else:
                member = Item(True, self._read_parameters())
            found.pop(name, None)
            found[name] = member
            self._match(_BLANKS)
            if self._at == len(self._text):
                break
            self._expect(",")
            self._match(_BLANKS)
            if self._at == len(self._text):
                raise ValueError("a comma at the end")
        return found

    def _inner_list(self) -> InnerList:
        items: list[Item] = []
        while True:
            self._match(_SPACES)
            if self._takes(")"):
                return InnerList(tuple(items), self._read_parameters())
            items.append(self._item())
            if self._text[self._at : self._at + 1] not in (" ", ")"):
                raise ValueError("no blank between two items")

    def _item(self) -> Item:
        return Item(self._value(), self._read_parameters())

    def _read_parameters(self) -> dict[str, Bare]:
        found: dict[str, Bare] = {}
        while self._takes(";"):
            self._match(_SPACES)
            name = self._match(_KEY)[0]
            found.pop(name, None)
            found[name] = self._value() if self._takes("=") else True
        return found

    def _value(self) -> Bare:
        first = self._text[self._at : self._at + 1]
        if first == '"':
            return self._string()
        if first == ":":
            try:
                return b64decode(self._match(_BYTES)[1], validate=True)
            except NotBase64:
                raise ValueError("not base64") from None
        if first == "?":
            self._at += 1
            if self._takes("1"):
                return True
            self._expect("0")
            return False
        if first == "-" or first.isdigit():
            number = self._match(_NUMBER)[0]
            return float(number) if "." in number else int(number)
        return Token(self._match(_TOKEN)[0])

    def _string(self) -> str:
        """What is between quotes, without its escapes."""
        letters: list[str] = []
        self._at += 1
        while not self._takes('"'):
            escaped = self._takes("\\")
            letter = self._text[self._at : self._at + 1]
            if not " " <= letter <= "~" or (escaped and letter not in '"\\'):
                raise ValueError("a string without an end, or with what none may hold")
            letters.append(letter)
            self._at += 1
        return "".join(letters)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise ValueError(f"not a structured field from {self._text[self._at : self._at + 20]!r} on")
        self._at = found.end()
        return found

    def _takes(self, letter: str) -> bool:
        taken = self._text.startswith(letter, self._at)
        self._at += taken
        return taken

    def _expect(self, letter: str) -> None:
        if not self._takes(letter):
            raise ValueError(f"no {letter!r} at {self._text[self._at : self._at + 20]!r}")
