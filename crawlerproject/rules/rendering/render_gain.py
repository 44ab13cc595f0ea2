"""Decides by what renders gained before, per host and URL template, whether one more is worth its price."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from crawlerproject.rules.rendering.triage import RenderNeed

# A render pays when it finds a fifth more words, or links that the plain answer lacks (facts of our measurements:
# whole pages gain nothing at all, shells gain everything; anything between would do).
_MIN_GAIN = 1.2
_MIN_NEW_WORDS = 20
_MIN_NEW_LINKS = 2
# A template whose last so many renders did not pay is stopped.
_PROVEN = 5
# Of a stopped template so many are rendered all the same: sites change.
PROBE_SHARE = 0.02
# Doubtful pages of a template that are tried before anything is known of it, and the share of them later.
_TRIALS = 2
_DOUBT_SHARE = 0.1

_VARIES = re.compile(r"\d|^.{25,}$")


@dataclass(frozen=True, slots=True)
class Gain:
    """What is remembered of a template."""

    rendered: int = 0
    paid: int = 0
    unpaid_in_a_row: int = 0

    def learned(self, *, pays: bool) -> Gain:
        """With one more render."""
        return Gain(self.rendered + 1, self.paid + pays, 0 if pays else self.unpaid_in_a_row + 1)

    def plus(self, other: Gain) -> Gain:
        """Both together, as of one template."""
        return replace(self, rendered=self.rendered + other.rendered, paid=self.paid + other.paid)


def template(url: str) -> str:
    """The shape of a URL's path: parts that vary become ``*``, the last one always does, but for its extension."""
    *folders, last = urlsplit(url).path.strip("/").split("/")
    if not last and not folders:
        return "/"
    _, dot, extension = last.rpartition(".")
    names = ["*" if _VARIES.search(name) else name for name in folders]
    return "/" + "/".join([*names, f"*.{extension}" if dot and extension.isalpha() else "*"])


def pays(plain_words: int, plain_links: int, words: int, links: int) -> bool:
    """Whether a render found enough beyond the plain answer."""
    more_words = words >= plain_words + _MIN_NEW_WORDS and words > plain_words * _MIN_GAIN
    return more_words or (links >= plain_links + _MIN_NEW_LINKS and links > plain_links * _MIN_GAIN)


def worth_a_render(verdict: RenderNeed, gain: Gain, host: Gain, chance: float) -> bool:
    """The decision for one page; ``gain`` of its template, ``host`` of all its host's, ``chance`` in [0, 1)."""
    if verdict is RenderNeed.PLAIN:
        return False
    if gain.unpaid_in_a_row >= _PROVEN:
        return chance < PROBE_SHARE
    if verdict is RenderNeed.RENDER or gain.paid:
        return True
    return host.paid > 0 or gain.rendered < _TRIALS or chance < _DOUBT_SHARE
