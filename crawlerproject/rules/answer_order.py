"""Decides which answers of a search are shown: by text and rank, one of near duplicates, two of a host first."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from crawlerproject.rules.text_likeness import MAX_BITS, NEAR_BITS, near

MOST_OF_A_HOST = 2
"""Answers of a host that come before those of others (ours; the large engines do it so)."""


class Weights(NamedTuple):
    """How much of what the text scores a page's rank may add, and its host's; why these: docs/batch.md."""

    page: float = 0.1
    host: float = 0.1


class Candidate(NamedTuple):
    """A page that has the words."""

    host: str
    fingerprint: int | None  # of its text; None of a text that is too short for one


class Shown(NamedTuple):
    """An answer."""

    place: int  # among the candidates
    alike: int  # candidates of nearly the same text that it stands for
    more: int  # candidates of its host that are left out, named at the host's last answer


def weighed(score: float, page: float, host: float, weights: Weights) -> float:
    """A text's score with the ranks of page and host, each of 0 (least) to 1."""
    return score * (1.0 + weights.page * page + weights.host * host)


def choose(candidates: Iterable[Candidate], limit: int, most_of_a_host: int = MOST_OF_A_HOST) -> list[Shown]:
    """Of candidates in their order the ``limit`` that are shown. A host's third one waits until others had their turn:
    it is shown where they leave room.
    """
    hosts: list[str] = []  # of those that stand for themselves or for a group
    places: list[int] = []
    alike: Counter[int] = Counter()  # by the place in these lists
    fingerprints = array("Q")
    whose: list[int] = []  # the place in these lists, of each fingerprint
    for place, (host, fingerprint) in enumerate(candidates):
        if fingerprint is not None:
            same = (
                whose[at]
                for at, bits in near(fingerprints, fingerprint, NEAR_BITS)
                if bits <= MAX_BITS or hosts[whose[at]] == host
            )
            if (group := next(same, None)) is not None:
                alike[group] += 1
                continue
            fingerprints.append(fingerprint)
            whose.append(len(hosts))
        hosts.append(host)
        places.append(place)
    seen: Counter[str] = Counter()
    first: list[int] = []
    later: list[int] = []
    for own, host in enumerate(hosts):
        seen[host] += 1
        (first if seen[host] <= most_of_a_host else later).append(own)
    shown = (first + later)[:limit]
    left = seen - Counter(hosts[own] for own in shown)
    last = {hosts[own]: own for own in shown}
    return [Shown(places[own], alike[own], left[hosts[own]] if last[hosts[own]] == own else 0) for own in shown]
