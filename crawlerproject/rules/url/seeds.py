"""Decides which addresses a list of seeds names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.ports import bad_port
from crawlerproject.rules.url.seed_rules import BadOption, rule_of
from crawlerproject.rules.url.urls import Address, UrlRefused, parse

# "example.org", "example.org:8080/x": a name with a dot or localhost, perhaps a port that is digits.
_BARE = re.compile(r"(?:[^\s:/?#@]+\.[^\s:/?#@]+|localhost|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#].*)?")

# Where the options of a line begin; a blank before anything else is part of the URL.
_OPTIONS = re.compile(r"\s(?=[a-z_]{1,20}=)")


class BadSeed(NamedTuple):
    """A line that names no address, or one that is never asked."""

    line_number: int  # from 1
    text: str
    reason: Reason


class Seeds(NamedTuple):
    """What a list of seeds says."""

    addresses: list[Address]  # in order, each key once
    problems: list[BadSeed]
    options: dict[str, str]  # by the seed's URL: ``key=value``, separated by blanks; seeds that have any


def seeds_of(text_lines: Iterable[str]) -> Seeds:
    """One URL a line, options behind it; blank lines and ``#`` comments are skipped. Raises BadOption.

    A bare ``example.org`` is taken as ``https://example.org``, the way a browser's address bar does today.
    """
    seeds: dict[bytes, Address] = {}
    problems: list[BadSeed] = []
    options: dict[str, str] = {}
    for number, line in enumerate(text_lines, 1):
        text, *rest = _OPTIONS.split(_without_comment(line), maxsplit=1)
        if not text:
            continue
        try:
            address = parse(f"https://{text}" if _BARE.fullmatch(text) else text)
        except UrlRefused as refused:
            problems.append(BadSeed(number, text, refused.reason))
        else:
            if bad_port(address.host):
                problems.append(BadSeed(number, text, Reason.BAD_PORT))
            else:
                address = seeds.setdefault(address.key, address)
                if rest:
                    options[address.url] = _checked(number, address, rest[0])
    return Seeds(list(seeds.values()), problems, options)


def _checked(number: int, address: Address, options: str) -> str:
    """The options with one blank between two: a misspelt one would let in what was meant to stay out."""
    try:
        rule_of(address.url, address.host, options)
    except BadOption as error:
        raise BadOption(f"line {number}: {error}") from None
    return " ".join(options.split())


def _without_comment(line: str) -> str:
    text = line.lstrip("\ufeff").strip()
    if text.startswith("#"):
        return ""
    # A "#" after a blank starts a comment; one within a URL is its fragment.
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
