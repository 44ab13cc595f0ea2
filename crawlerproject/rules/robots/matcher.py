"""Decides which rule of a robots.txt holds for a path: the longest that matches, in bounded time for any file.

Three kinds of rules, each with its own index:

* plain (``/a/b``): one binary search. Sorted, the prefixes of a path lie around the path's own place, so the rules
  are turned into intervals of paths, each with the best rule that holds in it;
* anchored without a wildcard (``/a/b$``): one dict lookup;
* with wildcards (``/*.pdf$``): tried from the longest on. Where trying all would exceed the budget they are first
  narrowed down to those of which a rare piece is in the path (``Pieces``).

The work that a hostile file and path can still cost is counted, and beyond the budget the verdict is no.
"""

from __future__ import annotations

import pickle
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.rules.robots.parser import Rule

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# The budget of one path, in characters scanned: `str.find` takes 0.5 ns for each on real paths and up to 5 ns on
# text made for it (measured). So a path of 200 characters costs 100 us at most, one of 2,000 (the longest that
# SCOPE_MAX_URL_LENGTH lets in) 240. The largest of 4,231 real files (506 wildcard rules) stays below a fifth of it.
_WORK = 20_000
_WORK_PER_CHARACTER = 16
# What one call of `find` costs apart from its scan, in the same unit.
_CALL = 32
# Beyond this length `find` may compare a needle's start at every place of the path: the scan is charged in proportion.
_SHORT_NEEDLE = 16

# Of a file with more wildcard rules (the largest of 4,231 real ones has 506) the others are read as wider than they
# are: an Allow does not count, a Disallow ends at its first wildcard.
MAX_WILDCARD_RULES = 5_000

# RFC 9309 2.2.2: these octets mean the same escaped or not. Reserved ones (RFC 3986 2.2) do not, but for "*" and "$",
# which a rule must escape (RFC 9309 2.2.3), and "'", which browsers escape in a query alone (URL 1.3). Those that are
# neither reserved nor unreserved have one meaning however they are written: where browsers escape them differs.
_RESERVED = ":/?#[]@!&()+,;="
_BARE = "".join(chr(octet) for octet in range(0x21, 0x7F) if chr(octet) not in "%" + _RESERVED)
_HEX = "0123456789ABCDEFabcdef"
_ESCAPES = {first + second: "%" + (first + second).upper() for first in _HEX for second in _HEX}
_ESCAPES |= {escape: chr(int(escape, 16)) for escape in _ESCAPES if chr(int(escape, 16)) in _BARE}
# Nothing to be done: no escapes, or those of octets beyond ASCII in capitals, which browsers write.
_IS_SPELLED = re.compile(r"[!-$&-~]*+(?:%[89A-F][0-9A-F][!-$&-~]*+)*+").fullmatch
_NEVER_BARE = re.compile(r"[^!-~]++")
# Sorts behind every character of a spelled path.
_END = "\x7f"
_INDEX_PAGE = "/index.html"
_ADDRESSES = ("http://", "https://")

# Characters of a piece: shorter ones only for rules that have no longer literal. With 7 bits a character they are
# numbers below 2**28, and those of different lengths differ, since no character of a spelled path is 0.
LENGTH = 4
# Places at which a rule is considered for its piece.
_CHOICES = 8
# Knuth's multiplier for hashing to the upper bits (The Art of Computer Programming 3, 6.4).
_MULTIPLIER = 2654435761
# Of packed matchers that are shared: beyond it they are rarely equal. A thousand take some 6 MB (ours).
_SHARED_BYTES, _SHARED_KEPT = 1000, 1000
# Places in the table for each rule: one in so many pieces of a path is looked up in vain.
_SPARSE = 16


class PathAccess(Enum):
    """What the rules say of a path. DOUBT: finding out would cost too much, and doubt means no."""

    ALLOW = "allow"
    DENY = "deny"
    DOUBT = "doubt"


class _Pattern(NamedTuple):
    """A rule with wildcards, taken apart at them."""

    rank: int  # twice the rule's octets, 1 more for Allow: of the rules that match, the greatest decides
    needle: str  # the end of its longest literal, at most _SHORT_NEEDLE characters: looked for first
    head: str  # before the first wildcard
    parts: tuple[str, ...]  # behind it, none empty
    tail: str  # what the path must end with; "" when it may end with anything
    least: int  # characters of a path that can match
    calls: int  # work of a trial apart from scanning
    scan: int  # work of a trial for each character of the path


MatcherIndex = tuple[list[str], list[int], dict[str, int], list[_Pattern], int, int]
"""Edges, sorted, and the rank from each on, the first that below all of them; ranks of whole paths; patterns by rank.
Then the budget that trying all patterns leaves: of any path, and of each of its characters."""


class Matcher:
    """The rules of one group. Immutable but for an index that is built when first needed."""

    __slots__ = ("_calls", "_edges", "_exact", "_patterns", "_pieces", "_ranks", "_scan")

    def __init__(self, rules: Iterable[Rule]) -> None:
        plain: dict[str, int] = {}
        exact: dict[str, int] = {}
        starred: dict[tuple[tuple[str, ...], bool], int] = {}
        for allow, pattern in _with_index_pages(rules):
            rank = 2 * len(pattern) + allow
            literals, anchored = literals_of(pattern)
            if len(literals) == 1:
                found, literal = (exact if anchored else plain), literals[0]
                if rank > found.get(literal, 0):
                    found[literal] = rank
            elif len(starred) < MAX_WILDCARD_RULES:
                key = (literals, anchored)
                starred[key] = max(rank, starred.get(key, 0))
            elif not allow:  # anything that starts as it does
                plain[literals[0]] = max(rank, plain.get(literals[0], 0))
        self._exact = exact
        self._edges, self._ranks = _intervals(plain)
        self._patterns = [_pattern(rank, *key) for key, rank in starred.items()]
        self._patterns.sort(key=lambda pattern: pattern.rank, reverse=True)
        self._calls = sum(pattern.calls for pattern in self._patterns)
        self._scan = sum(pattern.scan for pattern in self._patterns)
        self._pieces: Pieces | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Packed: small ones that are equal share one again, as those that are made of equal rules do."""
        packed = pickle.dumps([getattr(self, name) for name in self.__slots__])
        return _shared if len(packed) <= _SHARED_BYTES else _unpacked, (packed,)

    def verdict(self, path: str) -> PathAccess:
        """What the longest rule says that matches ``path`` (as ``spelled`` returns it)."""
        rank = self._ranks[bisect_right(self._edges, path)]
        if self._exact:
            rank = max(rank, self._exact.get(path, 0))
        patterns = self._patterns
        if patterns and patterns[0].rank > rank:
            budget = _WORK + _WORK_PER_CHARACTER * len(path)
            if self._calls + self._scan * len(path) > budget:
                return self._of_many(path, rank, budget)
            for pattern in patterns:
                if pattern.rank <= rank:
                    break
                if pattern.needle in path and _matches(pattern, path):
                    rank = pattern.rank
                    break
        return PathAccess.ALLOW if rank & 1 or not rank else PathAccess.DENY

    def index(self) -> MatcherIndex:
        """All that ``verdict`` looks at while its budget lasts, for the native filter."""
        calls, scan = _WORK - self._calls, _WORK_PER_CHARACTER - self._scan
        return self._edges, self._ranks, self._exact, self._patterns, calls, scan

    def _of_many(self, path: str, rank: int, budget: int) -> PathAccess:
        """The verdict when not all patterns can be tried; ``rank`` is the best of the others."""
        patterns = self._patterns
        if self._pieces is None:
            self._pieces = Pieces((pattern.head, *pattern.parts, pattern.tail) for pattern in patterns)
        before = bisect_right(patterns, -rank - 1, key=lambda pattern: -pattern.rank)
        places = self._pieces.found(path, before, budget // _CALL)
        if places is None:
            return PathAccess.DOUBT
        length = len(path)
        for place in places:
            pattern = patterns[place]
            budget -= _CALL
            if pattern.least > length or not path.startswith(pattern.head) or not path.endswith(pattern.tail):
                continue
            budget -= length
            if budget < 0:
                return PathAccess.DOUBT
            if pattern.needle not in path:
                continue
            budget -= pattern.calls + pattern.scan * length
            if budget < 0:
                return PathAccess.DOUBT
            if _matches(pattern, path):
                rank = pattern.rank
                break
        return PathAccess.ALLOW if rank & 1 or not rank else PathAccess.DENY


def _unpacked(packed: bytes) -> Matcher:
    matcher = Matcher.__new__(Matcher)
    for name, value in zip(Matcher.__slots__, pickle.loads(packed), strict=True):  # which we have made
        setattr(matcher, name, value)
    return matcher


@lru_cache(maxsize=_SHARED_KEPT)
def _shared(packed: bytes) -> Matcher:
    return _unpacked(packed)


class Pieces:
    """Which of many wildcard rules can match a path: those of which a piece of up to four characters is in it.

    Each rule, known by its place in the sequence given, is filed under one piece of its literals, the one that fewest
    other rules are filed under. A path is looked through once for all pieces at a time, so that what it costs does not
    grow with the number of rules. Loads numpy, for one real file in thousands.
    """

    __slots__ = ("_always", "_filed", "_shift", "_table")

    def __init__(self, literals: Iterable[Sequence[str]]) -> None:
        import numpy as np

        filed: dict[int, list[int]] = {}
        always: list[int] = []  # no literal at all
        count = 0
        for place, texts in enumerate(literals):
            count += 1
            choices = _choices(texts)
            if not choices:
                always.append(place)
                continue
            best = min(choices, key=lambda piece: len(filed.get(piece, ())))
            filed.setdefault(best, []).append(place)
        bits = max(10, (count * _SPARSE).bit_length())
        self._filed, self._always = filed, always
        self._shift = 32 - bits
        self._table: npt.NDArray[np.bool_] = np.zeros(1 << bits, dtype=np.bool_)
        self._table[self._hashed(np.fromiter(filed, dtype=np.uint32, count=len(filed)))] = True

    def found(self, path: str, before: int, at_most: int) -> list[int] | None:
        """Places below ``before`` of rules that may match ``path`` (ASCII), in order; None when over ``at_most``."""
        pieces = _pieces(path)
        hits = pieces[self._table[self._hashed(pieces)]]
        lists = [self._always, *(self._filed.get(piece, ()) for piece in set(hits.tolist()))]
        places: list[int] = []
        for filed in lists:
            end = bisect_left(filed, before)
            if len(places) + end > at_most:
                return None
            places += filed[:end]
        places.sort()
        return places

    def _hashed(self, pieces: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return pieces * _MULTIPLIER >> self._shift


def _choices(texts: Sequence[str]) -> list[int]:
    """Some pieces that a path must have, as numbers; none when no text has a character."""
    long = list(islice((text for text in texts if len(text) >= LENGTH), _CHOICES))
    if not long:
        text = max(texts, key=len, default="")
        return [_number(text)] if text else []
    each = _CHOICES // len(long)
    return [
        _number(text[start : start + LENGTH])
        for text in long
        for start in islice(range(len(text) - LENGTH, -1, -max(1, (len(text) - LENGTH) // each)), each)
    ]


def _number(piece: str) -> int:
    number = 0
    for character in piece:
        number = number << 7 | ord(character)
    return number


def _pieces(path: str) -> npt.NDArray[Any]:
    """The numbers of all pieces of a path, of one to ``LENGTH`` characters."""
    import numpy as np

    characters = np.frombuffer(path.encode(), dtype=np.uint8).astype(np.uint32)
    longer: list[npt.NDArray[Any]] = [characters]
    for length in range(1, min(LENGTH, len(path))):
        longer.append(longer[-1][:-1] << 7 | characters[length:])
    return np.concatenate(longer)


def spelled(text: str) -> str:
    """The one spelling of a path, or of a pattern's literal: escapes in capitals, and only where they matter."""
    if _IS_SPELLED(text):
        return text
    first, *others = text.split("%")
    escapes = [escape + other[2:] if (escape := _ESCAPES.get(other[:2])) else "%25" + other for other in others]
    return _NEVER_BARE.sub(
        lambda match: "".join(f"%{octet:02X}" for octet in match[0].encode("utf-8", "replace")),
        first + "".join(escapes),
    )


def literals_of(pattern: str) -> tuple[tuple[str, ...], bool]:
    """A rule's pattern as the spelled literals between its wildcards, and whether it ends with the path.

    The first literal starts the path and may be empty; a wildcard that ends a pattern says nothing and is left out.
    """
    if pattern.startswith(_ADDRESSES):
        pattern = "/" + pattern  # written by mistake: paths that hold the address are denied, as Protego does
    spell = str if _IS_SPELLED(pattern) else spelled
    anchored = pattern.endswith("$")
    if anchored:
        pattern = pattern[:-1]
    if "*" not in pattern:
        return (spell(pattern),), anchored
    head, *others = pattern.split("*")
    anchored = anchored and bool(others[-1])
    return (spell(head), *[spell(other) for other in others if other]), anchored


def rule_matches(pattern: str, path: str) -> bool:
    """Whether one rule's pattern matches ``path`` (as ``spelled`` returns it), whatever it costs."""
    literals, anchored = literals_of(pattern)
    if len(literals) == 1:
        return path == literals[0] if anchored else path.startswith(literals[0])
    return _matches(_pattern(0, literals, anchored), path)


def _matches(pattern: _Pattern, path: str) -> bool:
    """Whether the head starts the path, the parts follow in their order, and the tail ends it.

    The first place of each part is the best one for those behind it, so nothing is tried twice.
    """
    _, _, head, parts, tail, least, _, _ = pattern
    if len(path) < least or not path.startswith(head) or not path.endswith(tail):
        return False
    at, end = len(head), len(path) - len(tail)
    for part in parts:
        at = path.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _pattern(rank: int, literals: tuple[str, ...], anchored: bool) -> _Pattern:
    head, *parts = literals
    tail = parts.pop() if anchored else ""
    slow = max(map(len, parts), default=0) // _SHORT_NEEDLE
    return _Pattern(
        rank,
        max(literals, key=len)[-_SHORT_NEEDLE:],
        head,
        tuple(parts),
        tail,
        sum(map(len, literals)),
        _CALL * (2 + len(parts)) // 2,
        2 * (1 + slow),
    )


def _with_index_pages(rules: Iterable[Rule]) -> Iterable[Rule]:
    """The rules, and one for the folder of each index.html that is allowed (as Google's parser reads it)."""
    for rule in rules:
        yield rule
        if rule.allow and rule.pattern.endswith(_INDEX_PAGE):
            yield Rule(True, rule.pattern.removesuffix(_INDEX_PAGE) + "/$")


def _intervals(plain: dict[str, int]) -> tuple[list[str], list[int]]:
    """Edges between intervals of paths, sorted, and the rank that holds from each (the first: below all edges)."""
    edges: list[str] = []
    ranks = [0]
    within: list[tuple[str, int]] = []  # prefixes that hold here, each with the rank that held outside it
    for prefix in sorted(plain):
        while within and not prefix.startswith(within[-1][0]):
            ended, outside = within.pop()
            edges.append(ended + _END)
            ranks.append(outside)
        if plain[prefix] > ranks[-1]:
            within.append((prefix, ranks[-1]))
            edges.append(prefix)
            ranks.append(plain[prefix])
    while within:
        ended, outside = within.pop()
        edges.append(ended + _END)
        ranks.append(outside)
    return edges, ranks
