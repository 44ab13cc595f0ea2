"""Decides from the plain answer alone whether a page needs a browser to say what it has to say.

A browser costs 500 to 1,000 plain fetches, so that ordinary pages must almost never be sent to it: a score of named
signals, none of which is enough alone (of 1,213 real pages 6 % have a root element, 5 % a framework's mark and 5 % a
request to enable JavaScript, and are whole all the same). The figures: docs/rendering.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

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
        "asks for JavaScript": _asks_for_scripts(shell.notice) or _asks_for_scripts(shell.shown),
        "framework's mark": bool(_FRAMEWORK.search(body)),
    }
    score = sum(_WEIGHTS[name] for name, found in signals.items() if found)
    verdict = (
        RenderNeed.RENDER if score >= RENDER_SCORE else RenderNeed.UNSURE if score >= UNSURE_SCORE else RenderNeed.PLAIN
    )
    return Triage(verdict, score, tuple(name for name, found in signals.items() if found))


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


def _asks_for_scripts(text: str) -> bool:
    return _NOTICE.search(text) is not None
