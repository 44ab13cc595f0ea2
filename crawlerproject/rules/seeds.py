"""Decides which addresses a list of seeds names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from crawlerproject.reasons import Reason
from crawlerproject.rules.ports import bad_port
from crawlerproject.rules.urls import Address, UrlRefused, parse

# "example.org", "example.org:8080/x": a name with a dot or localhost, perhaps a port that is digits.
_BARE = re.compile(r"(?:[^\s:/?#@]+\.[^\s:/?#@]+|localhost|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#].*)?")


class Problem(NamedTuple):
    """A line that names no address, or one that is never asked."""

    line_number: int  # from 1
    text: str
    reason: Reason


def read_seeds(text_lines: Iterable[str]) -> tuple[list[Address], list[Problem]]:
    """(addresses in order, each key once; problems).

    One URL a line; blank lines and ``#`` comments are skipped. A bare ``example.org`` is taken as
    ``https://example.org``, the way a browser's address bar does today.
    """
    seeds: dict[bytes, Address] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text_lines, 1):
        text = _without_comment(line)
        if not text:
            continue
        try:
            address = parse(f"https://{text}" if _BARE.fullmatch(text) else text)
        except UrlRefused as refused:
            problems.append(Problem(number, text, refused.reason))
        else:
            if bad_port(address.host):
                problems.append(Problem(number, text, Reason.BAD_PORT))
            else:
                seeds.setdefault(address.key, address)
    return list(seeds.values()), problems


def _without_comment(line: str) -> str:
    text = line.lstrip("\ufeff").strip()
    if text.startswith("#"):
        return ""
    # A "#" after a blank starts a comment; one within a URL is its fragment.
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()
