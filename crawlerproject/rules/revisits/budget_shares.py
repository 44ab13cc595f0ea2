"""How the visits of one recrawl are divided among parts of a crawl, each of which knows its own pages only.

Each part counts its due pages by score, in narrow classes; all these counts together say how many visits each part
makes. So the pages that are visited are those whose visit is worth most in the whole crawl, to within the width of a
class, and nowhere are all of them listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import floor, log2
from typing import NamedTuple, TypeVar

# Classes to each doubling of the score: they are 2 % wide, less than what a score is sure to.
_CLASSES = 32

S = TypeVar("S")

Counts = Mapping[int, int]
"""Due pages by the class of their score."""


def score_class(score: float) -> int:
    """The class of a score above 0; a higher score is in the same class or in a higher one."""
    return floor(_CLASSES * log2(score))


def counted(scores: Iterable[float]) -> Counter[int]:
    """How many of the scores, all above 0, are in each class."""
    return Counter(map(score_class, scores))


class Cut(NamedTuple):
    """Which scores a budget reaches: those of the classes above ``last``, and so many of that class itself."""

    last: int
    of_last: int

    def within(self, found: Iterable[S], score: Callable[[S], float]) -> Iterator[S]:
        """Of all that was ``found`` what the budget reaches; of the last class those that come first."""
        left = self.of_last
        for each in found:
            place = score_class(score(each))
            if place == self.last:
                left -= 1
            if place > self.last or (place == self.last and left >= 0):
                yield each


def cut(counts: Counts, budget: int) -> Cut:
    """What a budget reaches when so many are in each class."""
    for each in sorted(counts, reverse=True):
        if counts[each] >= budget:
            return Cut(each, budget)
        budget -= counts[each]
    return Cut(min(counts, default=0) - 1, 0)


def visits_of(parts: Mapping[int, Counts], budget: int) -> dict[int, int]:
    """How many visits each part (by its number) makes: ``budget`` together, or all pages when they are fewer.

    Of the last class that is visited the parts with the lowest numbers make theirs.
    """
    visits = dict.fromkeys(parts, 0)
    for each in sorted({each for counts in parts.values() for each in counts}, reverse=True):
        for number in sorted(parts):
            some = min(parts[number].get(each, 0), budget)
            visits[number] += some
            budget -= some
    return visits
