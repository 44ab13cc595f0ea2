"""Decides when a crawl, or one host of it, has had as much as its operator wants: pages, seconds, bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

CRAWL_LIMITS = ("max_pages", "max_time", "max_bytes")
"""The arguments of a crawl, in the order of ``Limits``."""
PER_HOST = "_per_host"
HOST_LIMITS = tuple(name + PER_HOST for name in CRAWL_LIMITS)
LIMITS = (*CRAWL_LIMITS, *HOST_LIMITS)

_AMOUNT = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]{0,3})")
_BYTES = {
    "": 1, "b": 1, "k": 10**3, "kb": 10**3, "m": 10**6, "mb": 10**6, "g": 10**9, "gb": 10**9, "t": 10**12,
    "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_UNITS: dict[str, Mapping[str, int]] = {
    "max_pages": {"": 1, "k": 10**3, "m": 10**6},
    "max_time": _SECONDS,
    "max_bytes": _BYTES,
}
_EXAMPLES = {"max_pages": "1000", "max_time": "90min, 8h or 2d", "max_bytes": "500MB or 10GB"}


class BadLimit(ValueError):
    """An amount that cannot be read; the message is a sentence for the operator."""


class Limits(NamedTuple):
    """How much at most; 0: as much as there is."""

    pages: int = 0
    seconds: float = 0.0
    bytes: int = 0


class Spent(NamedTuple):
    """How much it was so far."""

    pages: int
    seconds: float
    bytes: int


def amount(name: str, text: str | float) -> float:
    """The number that a limit's argument stands for: ``10GB``, ``8h``, ``1000``; 0 for none. Raises BadLimit."""
    kind = name.removesuffix(PER_HOST)
    found = _AMOUNT.fullmatch(str(text).strip())
    factor = _UNITS[kind].get(found[2].lower()) if found else None
    number = float(found[1]) * factor if found is not None and factor is not None else None
    if number is None or (kind != "max_time" and 0 < number < 1):  # half a page would be rounded to no limit
        raise BadLimit(f"{name} is {str(text)[:40]!r}; give for example {_EXAMPLES[kind]}, or 0 for no limit.")
    return number if kind == "max_time" else float(int(number))


def limits_of(given: Mapping[str, str | float], *, per_host: bool = False) -> Limits:
    """The limits of a crawl, or ``per_host`` those of each host, from its arguments. Raises BadLimit."""
    names = HOST_LIMITS if per_host else CRAWL_LIMITS
    pages, seconds, most = (amount(name, given[name]) if given.get(name) else 0.0 for name in names)
    return Limits(int(pages), seconds, int(most))


def reached(limits: Limits, spent: Spent) -> str:
    """The limit that is reached, as ``max_pages=100``; "" while none is."""
    for name, most, so_far in zip(CRAWL_LIMITS, limits, spent, strict=True):
        if most and so_far >= most:
            return f"{name}={most:g}" if most < 1e6 else f"{name}={most:.0f}"
    return ""
