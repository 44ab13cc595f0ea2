"""Decides from the plain answer alone whether a page needs a browser to say what it has to say.

A browser costs 500 to 1,000 plain fetches, so that ordinary pages must almost never be sent to it: a score of named
signals, none of which is enough alone (of 1,213 real pages 6 % have a root element, 5 % a framework's mark and 5 % a
request to enable JavaScript, and are whole all the same). The figures: docs/rendering.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page.encoding import in_utf8
from crawlerproject.rules.page.parser_bombs import is_bomb
from crawlerproject.rules.page.visible_text import UNSEEN_TAGS
from crawlerproject.rules.page.words import count_words

# "Web Crawler" asks for a browser under 200 words or under 3 links; as an alternative that is 28 % of a manual's pages,
# so it is the entrance to the score, not the verdict.
ENOUGH_WORDS = 200
ENOUGH_LINKS = 3
_FEW_WORDS = 50
_LOW_TEXT_SHARE = 0.05  # of the page's bytes; the 5th percentile of ordinary pages is 0.018, the median 0.078
_HIGH_SCRIPT_SHARE = 0.6  # of the page's bytes; the 90th percentile of ordinary pages is 0.46
_EMPTY_ROOT_WORDS = 20  # "Loading …" and the like
RENDER_SCORE = 4
UNSURE_SCORE = 3
# Larger pages are never shells (ours: the largest of our 130 has 45 KB), and parsing them would cost more.
_MAX_BYTES = 512 * 1024
# Elements of a kind whose text is looked at: a page has one or two, and what lies within each other is read each time.
_MOST_ELEMENTS = 20
# Characters in which a request to enable JavaScript is looked for: fewer than 200 words are all in them.
_MOST_NOTICE = 20_000

_ROOTS = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#app-root,#react-root,#q-app,#main-app,#application,app-root,"
    "[ng-app],[ng-version],[data-v-app],[data-reactroot],flt-glass-pane,my-app,#elm,#ember-app,#single-spa-application"
)
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
# Types of a script element that are executed (HTML, "prepare the script element"); the rest is data.
_EXECUTED = frozenset(
    {"", "module", "text/javascript", "application/javascript", "text/ecmascript", "application/ecmascript"}
)


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


def looks_whole(words: int, links: int) -> bool:
    """Whether a page has enough of both: then nothing else is looked at."""
    return words >= ENOUGH_WORDS and links >= ENOUGH_LINKS


def triage(body: bytes, content_type: str | None) -> Triage:
    """Judge one HTML answer with status 200; about 1 ms for a page of 100 KB, and no parse without a script."""
    if len(body) > _MAX_BYTES or b"<script" not in body.lower():
        return PLAIN
    source, _ = in_utf8(body, content_type)
    if is_bomb(source):
        return PLAIN
    tree = LexborHTMLParser(source)
    scripts = [node for node in tree.css("script") if _executed(node.attributes.get("type"))]
    if not scripts:
        return PLAIN
    links = len({_crawlable(node.attributes.get("href")) for node in tree.css("a[href],area[href]")} - {""})
    script_bytes = sum(len(node.text(deep=True)) for node in scripts)
    notice = " ".join(node.text(separator=" ") for node in tree.css("noscript")[:_MOST_ELEMENTS])
    tree.strip_tags(UNSEEN_TAGS, recursive=True)
    shown = tree.body.text(separator=" ", skip_empty=True) if tree.body is not None else ""
    words = count_words(shown)
    if looks_whole(words, links):
        return PLAIN
    signals = {
        "under 200 words": words < ENOUGH_WORDS,
        "under 50 words": words < _FEW_WORDS,
        "under 3 links": links < ENOUGH_LINKS,
        "little text for its size": len(shown) < _LOW_TEXT_SHARE * len(source),
        "mostly script": script_bytes > _HIGH_SCRIPT_SHARE * len(source),
        "empty application root": _empty_root(tree),
        "asks for JavaScript": _asks_for_scripts(notice) or (words < ENOUGH_WORDS and _asks_for_scripts(shown)),
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


def _executed(kind: str | None) -> bool:
    return (kind or "").partition(";")[0].strip().lower() in _EXECUTED


def _crawlable(href: str | None) -> str:
    target = (href or "").strip().partition("#")[0]
    try:
        return target if urlsplit(target).scheme in ("", "http", "https") else ""
    except ValueError:
        return ""


def _asks_for_scripts(text: str) -> bool:
    return _NOTICE.search(text, 0, _MOST_NOTICE) is not None


def _empty_root(tree: LexborHTMLParser) -> bool:
    return any(count_words(node.text(separator=" ")) < _EMPTY_ROOT_WORDS for node in tree.css(_ROOTS)[:_MOST_ELEMENTS])
