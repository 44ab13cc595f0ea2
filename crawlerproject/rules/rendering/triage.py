"""Decides whether a page needs a browser to say what it has to say, and by past renders whether one more is worth it.

A browser costs 500 to 1,000 plain fetches, so that ordinary pages must almost never be sent to it: a score of named
signals, none of which is enough alone (of 1,213 real pages 6 % have a root element, 5 % a framework's mark and 5 % a
request to enable JavaScript, and are whole all the same). The figures: docs/rendering.md. Then what renders gained
before, per host and URL template, decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from crawlerproject.rules.page.encoding import in_utf8
from crawlerproject.rules.page.page import ENOUGH_LINKS, ENOUGH_WORDS, Shell, read_document
from crawlerproject.rules.page.parser_bombs import is_bomb

_FEW_WORDS = 50
_LOW_TEXT_SHARE = 0.05  # of the page's bytes; the 5th percentile of ordinary pages is 0.018, the median 0.078
_HIGH_SCRIPT_SHARE = 0.6  # of the page's bytes; the 90th percentile of ordinary pages is 0.46
RENDER_SCORE = 4
UNSURE_SCORE = 3
# Larger pages are never shells (ours: the largest of our 130 has 45 KB), and parsing them would cost more.
_MAX_BYTES = 512 * 1024
# Possessive, and words of bounded length: of a run of letters or blanks nothing is read more than a few times.
_NOTICE = re.compile(
    r"(enable|activate|turn on|requires?|needs?|without|use|support)\s++(your\s++browser'?s?\s++)?+java\s?script"
    r"|java\s?script\s++(is\s++)?+(required|disabled|must be|to be enabled|enabled)"
    r"|javascript\s++(ist\s++)?+(aktivieren|erforderlich|deaktiviert|benötigt)|aktivieren\s++sie\s++java\s?script"
    r"|activer\s++java\s?script|java\s?script\s++(est\s++)?+(désactivé|requis|nécessaire)"
    r"|(habilit\w{1,9}+|activ\w{1,9}+|ative|precisa\s++d[eo])\s++(el\s++|o\s++)?+java\s?script"
    r"|(включите|нужен)\s++javascript|启用\s*+javascript|javascript\s*+を有効",
    re.IGNORECASE,
)
_FRAMEWORK = re.compile(
    rb"__NEXT_DATA__|__NUXT__|__INITIAL_STATE__|/_next/static|/_nuxt/|static/js/main\.|/assets/index-[\w-]+\.js"
    rb"|webpackJsonp|blazor\.webassembly|flutter_bootstrap|ng-version=|data-reactroot|main-[A-Z0-9]{8}\.js|modulepreload"
    rb"|/q-manifest|sveltekit|/_app/immutable/|runtime~main",
)
_SCRIPT = b"<script"
_WEIGHTS = {
    "under 200 words": 1,
    "under 50 words": 1,
    "under 3 links": 1,
    "little text for its size": 1,
    "mostly script": 1,
    "empty application root": 3,
    "asks for JavaScript": 2,
    "framework's mark": 1,
}


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


class RenderNeed(StrEnum):
    """What the plain answer alone tells."""

    PLAIN = "plain"
    UNSURE = "unsure"  # what renders gained before at this host decides
    RENDER = "render"


@dataclass(frozen=True, slots=True)
class Triage:
    """The verdict and the signals that made it, in words for the metadata record and the shell."""

    verdict: RenderNeed
    score: int = 0
    signals: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.verdict} (score {self.score}: {', '.join(self.signals) or 'no signal'})"


PLAIN = Triage(RenderNeed.PLAIN)


def triage(body: bytes, content_type: str | None) -> Triage:
    """Judge one HTML answer with status 200 that has not been read; about 1 ms for a page of 100 KB."""
    if len(body) > _MAX_BYTES or _SCRIPT not in body.lower():
        return PLAIN
    source, _ = in_utf8(body, content_type)
    return PLAIN if is_bomb(source) else judge(read_document(source).shell, body)


def judge(shell: Shell | None, body: bytes) -> Triage:
    """Judge what reading the ``body`` found (``PageFacts.shell``): no further parse."""
    if shell is None or len(body) > _MAX_BYTES or _SCRIPT not in body.lower():
        return PLAIN
    signals = {
        "under 200 words": shell.words < ENOUGH_WORDS,
        "under 50 words": shell.words < _FEW_WORDS,
        "under 3 links": shell.links < ENOUGH_LINKS,
        "little text for its size": shell.shown_characters < _LOW_TEXT_SHARE * shell.source_bytes,
        "mostly script": shell.script_characters > _HIGH_SCRIPT_SHARE * shell.source_bytes,
        "empty application root": shell.empty_root,
        "asks for JavaScript": bool(_NOTICE.search(shell.notice) or _NOTICE.search(shell.shown)),
        "framework's mark": bool(_FRAMEWORK.search(body)),
    }
    score = sum(_WEIGHTS[name] for name, found in signals.items() if found)
    verdict = (
        RenderNeed.RENDER if score >= RENDER_SCORE else RenderNeed.UNSURE if score >= UNSURE_SCORE else RenderNeed.PLAIN
    )
    return Triage(verdict, score, tuple(name for name, found in signals.items() if found))


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
