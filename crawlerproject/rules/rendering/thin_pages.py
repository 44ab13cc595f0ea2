"""Recognises pages that say little: an anti-bot wall, and a shell that needs a browser to say what it has to say.

A wall asks for proof of being human. It is recorded and obeyed, never evaded. It needs evidence that no ordinary page
has: vendors put snippets, headers and cookies into every page that they protect, sites have captchas in their forms,
and a search shows what was looked for. Such marks are soft. They are recorded, and do nothing else.

A browser costs 500 to 1,000 plain fetches, so that ordinary pages must almost never be sent to it: a score of named
signals, none of which is enough alone (of 1,213 real pages 6 % have a root element, 5 % a framework's mark and 5 % a
request to enable JavaScript, and are whole all the same). The figures: docs/rendering.md. Then what renders gained
before, per host and URL template, decides whether one more is worth it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from crawlerproject.rules.archive.http_messages import payload_type
from crawlerproject.rules.page.body import in_utf8, is_bomb
from crawlerproject.rules.page.page import ENOUGH_LINKS, ENOUGH_WORDS, Shell, read_document

# Larger pages are no interstitials: the largest we know of (Cloudflare's) has about 30 KB.
_MAX_WALL_BYTES = 65_536
# A page with status 200 that says more or leads further is a page. The wordiest wall with that status, Anubis's, has
# some 200 words and six links.
_MAX_WORDS = 250
_MAX_LINKS = 10

# What walls answer with beside 200. 412 and 416: walls by Ruishu and Distil; 418 and 428: proofs of work.
_REFUSING = frozenset({202, 401, 403, 405, 406, 412, 416, 418, 428, 429, 503})
_FORBIDDEN = frozenset({403})
_ANY = _REFUSING | {200}
_WALL, _SOFT = True, False
# Where marks were found that no documentation describes.
_SEEN = "answers of such sites that crawlers keep in their tests"
_REPORTED = "block pages that users of WhatWaf sent in"
_WAFW00F = "wafw00f's list"


class _Mark(NamedTuple):
    """Of an answer that has all that is named; a header alone counts with any status."""

    vendor: str
    wall: bool  # evidence, or soft
    statuses: frozenset[int]
    header: str  # "name: a part of its value", in lower case
    body: tuple[bytes, ...]  # as the vendor spells it; where the page shows the first, or its URL has it, it is quoted
    source: str  # where it is described, or was seen

    def __str__(self) -> str:
        parts = [self.header.removesuffix(":")] if self.header else []
        return f"{self.vendor}: " + " + ".join([*parts, *(part.decode() for part in self.body)])


_MARKS = (
    _Mark("cloudflare", _WALL, _ANY, "cf-mitigated: challenge", (), "Cloudflare docs, Detect a Challenge Page"),
    _Mark("cloudflare", _WALL, _ANY, "", (b"_cf_chl_opt", b"/challenge-platform/h/", b"/orchestrate/"), _SEEN),
    _Mark("cloudflare", _WALL, _REFUSING, "", (b"_cf_chl_opt",), _SEEN),
    _Mark("cloudflare", _WALL, _REFUSING, "", (b"/cdn-cgi/challenge-platform/h/", b"/orchestrate/"), _SEEN),
    _Mark("cloudflare", _WALL, _REFUSING, "", (b"cf-browser-verification",), _SEEN),
    _Mark("cloudflare", _WALL, _FORBIDDEN, "", (b'id="cf-error-details"',), _REPORTED),
    _Mark("cloudflare", _SOFT, _ANY, "", (b"/cdn-cgi/challenge-platform/",), "Cloudflare docs, JavaScript Detections"),
    _Mark("cloudflare", _SOFT, _ANY, "", (b"challenges.cloudflare.com/turnstile/",), "Cloudflare docs, Turnstile"),
    _Mark("cloudflare", _SOFT, _ANY, "set-cookie: __cf_bm=", (), "Cloudflare docs, Cookies"),
    _Mark("imperva", _WALL, _ANY, "", (b"/_Incapsula_Resource?", b"incident_id="), _REPORTED),
    _Mark("imperva", _WALL, _ANY, "", (b"/_Incapsula_Resource?", b"Incapsula incident ID"), _SEEN),
    _Mark("imperva", _WALL, _ANY, "", (b"<title>Pardon Our Interruption", b"made us think"), _SEEN),
    _Mark("imperva", _SOFT, _ANY, "", (b"/_Incapsula_Resource?SWJIYLWA=",), _SEEN),
    _Mark("imperva", _SOFT, _ANY, "set-cookie: incap_ses_", (), _SEEN),
    _Mark("datadome", _WALL, _ANY, "x-dd-b:", (), "DataDome docs, Validate Request"),
    _Mark("datadome", _WALL, _ANY, "", (b".captcha-delivery.com/", b"var dd="), _SEEN),
    _Mark("datadome", _WALL, _REFUSING, "", (b".captcha-delivery.com/",), _SEEN),
    _Mark("datadome", _SOFT, _ANY, "x-datadome:", (), "on every answer of its customers"),
    _Mark("datadome", _SOFT, _ANY, "", (b"js.datadome.co/",), "DataDome docs, JavaScript tag"),
    _Mark("datadome", _SOFT, _ANY, "set-cookie: datadome=", (), "DataDome docs, Validate Request"),
    _Mark("aws waf", _WALL, _ANY, "x-amzn-waf-action: challenge", (), "AWS docs, CAPTCHA and Challenge"),
    _Mark("aws waf", _WALL, _ANY, "x-amzn-waf-action: captcha", (), "AWS docs, CAPTCHA and Challenge"),
    _Mark("aws waf", _WALL, _ANY, "", (b"window.gokuProps",), _SEEN),
    _Mark("aws waf", _WALL, _FORBIDDEN, "", (b"Generated by cloudfront", b"Request blocked"), _REPORTED),
    _Mark("aws waf", _SOFT, _ANY, "", (b".awswaf.com/",), "AWS docs, client application integration"),
    _Mark("perimeterx", _WALL, _ANY, "", (b"_pxAppId", b"<title>Access to this page has been denied"), _SEEN),
    _Mark("perimeterx", _WALL, _REFUSING, "", (b"px-captcha",), "block template of HUMAN's enforcers"),
    _Mark("perimeterx", _SOFT, _ANY, "", (b"_pxAppId",), _SEEN),
    _Mark("perimeterx", _SOFT, _ANY, "set-cookie: _pxhd=", (), _SEEN),
    _Mark("akamai", _WALL, _ANY, "", (b"sec-if-cpt-container",), _SEEN),
    _Mark("akamai", _WALL, _ANY, "", (b'"/_sec/cp_challenge/',), _SEEN),
    _Mark("akamai", _WALL, _ANY, "", (b"/_sec/verify", b"?bm-verify="), _SEEN),
    _Mark("akamai", _WALL, _FORBIDDEN, "", (b"errors.edgesuite.net",), _REPORTED),
    _Mark("akamai", _WALL, _FORBIDDEN, "", (b"errors&#46;edgesuite&#46;net",), _SEEN),
    _Mark("akamai", _WALL, _FORBIDDEN, "", (b"<TITLE>Access Denied</TITLE>", b"Reference&#32;&#35;"), _REPORTED),
    _Mark("akamai", _SOFT, _ANY, "", (b"/akam/",), _SEEN),
    _Mark("akamai", _SOFT, _ANY, "set-cookie: _abck=", (), _SEEN),
    _Mark("sucuri", _WALL, _ANY, "", (b"sucuri_cloudproxy_js",), _SEEN),
    _Mark("sucuri", _WALL, _REFUSING, "", (b"Sucuri WebSite Firewall - Access Denied",), _REPORTED),
    _Mark("sucuri", _SOFT, _ANY, "x-sucuri-id:", (), "on every answer of its customers"),
    _Mark("ddos-guard", _WALL, _REFUSING, "", (b"/.well-known/ddos-guard/js-challenge/",), _SEEN),
    _Mark("ddos-guard", _WALL, _REFUSING, "", (b"/.well-known/ddos-guard/ddg-captcha-page/",), _SEEN),
    _Mark("ddos-guard", _SOFT, _ANY, "", (b"check.ddos-guard.net/",), _SEEN),
    _Mark("geetest", _WALL, _REFUSING, "", (b"geetest_challenge",), _SEEN),
    _Mark("geetest", _SOFT, _ANY, "", (b"initGeetest",), _SEEN),
    _Mark("kasada", _WALL, _REFUSING, "", (b"window.KPSDK", b"/ips.js?"), _SEEN),
    _Mark("kasada", _SOFT, _ANY, "x-kpsdk-ct:", (), _SEEN),
    _Mark("kasada", _SOFT, _ANY, "", (b"/149e9513-01fa-4fb0-aad4-566afd725d1b/",), "its script; Vercel's BotID"),
    _Mark("fastly", _WALL, _ANY, "", (b"/_fs-ch-", b"<title>Client Challenge</title>"), _SEEN),
    _Mark("fastly", _SOFT, _ANY, "", (b"/_fs-ch-",), _SEEN),
    _Mark("vercel", _WALL, _ANY, "x-vercel-mitigated: challenge", (), _SEEN),
    _Mark("vercel", _WALL, _REFUSING, "", (b"<title>Vercel Security Checkpoint</title>",), _SEEN),
    _Mark("reblaze", _WALL, _ANY, "", (b"window.rbzns",), _SEEN),
    _Mark("reblaze", _SOFT, _ANY, "set-cookie: rbzid=", (), _WAFW00F),
    _Mark("f5", _WALL, _ANY, "", (b"<title>Request Rejected<", b"support ID is"), "F5 docs, response pages"),
    _Mark("f5", _WALL, _ANY, "", (b"/TSPD/", b'window["bobcmn"]', b"to view the page content"), _SEEN),
    _Mark("f5", _SOFT, _ANY, "", (b"/TSPD/",), _SEEN),
    _Mark("radware", _WALL, _ANY, "", (b".perfdrive.com/", b"<title>Radware Captcha Page"), _SEEN),
    _Mark("radware", _WALL, _ANY, "", (b".perfdrive.com/", b"<title>ShieldSquare Captcha"), _SEEN),
    _Mark("radware", _WALL, _REFUSING, "", (b"captcha.perfdrive.com/",), _SEEN),
    _Mark("radware", _SOFT, _ANY, "", (b".perfdrive.com/",), _SEEN),
    _Mark("qrator", _WALL, _REFUSING, "", (b"/__qrator/qauth",), _SEEN),
    _Mark("qrator", _SOFT, _ANY, "", (b"/__qrator/",), _SEEN),
    _Mark("stackpath", _WALL, _REFUSING, "", (b"<title>StackPath",), _WAFW00F),
    _Mark("stackpath", _WALL, _REFUSING, "", (b"triggered the service and blocked your request",), _WAFW00F),
    _Mark("azure", _WALL, _REFUSING, "", (b"<title>Azure WAF</title>",), _SEEN),
    _Mark("azure", _WALL, _REFUSING, "", (b'content="Azure WAF JS Challenge"',), _SEEN),
    _Mark("azure", _WALL, _FORBIDDEN, "x-azure-ref:", (b"The request is blocked.",), "Azure docs, WAF policy"),
    _Mark("anubis", _WALL, _ANY, "", (b'id="anubis_challenge"',), _SEEN),
    _Mark("anubis", _WALL, _ANY, "", (b"/.within.website/x/cmd/anubis/",), _SEEN),
    _Mark("go-away", _WALL, _REFUSING, "", (b"/git/go-away/cmd/go-away/", b"/.well-known/."), _SEEN),
    _Mark("siteground", _WALL, _ANY, "sg-captcha: challenge", (), _SEEN),
    _Mark("siteground", _WALL, _REFUSING, "", (b"/.well-known/sgcaptcha/",), _SEEN),
    _Mark("aliyun", _WALL, _ANY, "", (b"acw_sc__v2", b"var arg1="), _SEEN),
    _Mark("wordfence", _WALL, _REFUSING, "", (b"Generated by Wordfence",), _SEEN),
    _Mark("hcaptcha", _SOFT, _ANY, "", (b".hcaptcha.com/1/api.js",), "hCaptcha docs, widget"),
    _Mark("recaptcha", _SOFT, _ANY, "", (b"/recaptcha/api.js",), "reCAPTCHA docs, widget"),
    _Mark("unnamed", _SOFT, _ANY, "", (b"hecking your browser before accessing",), "pages that echo it"),
)


def _by_first_part(statuses: frozenset[int]) -> dict[bytes, list[_Mark]]:
    """The marks of bodies that an answer of one of the statuses may have."""
    found: dict[bytes, list[_Mark]] = {}
    for mark in _MARKS:
        if mark.body and mark.statuses & statuses:
            found.setdefault(mark.body[0], []).append(mark)
    return found


def _end(part: bytes) -> bytes:
    """What of a part is looked for first: from a byte on that pages seldom have, unless too little is left."""
    ends = (part[part.index(byte) :] for byte in (b"_", b".") if byte in part)
    return next((end for end in ends if len(end) > len(b".com/")), part)


_IN_HEADERS = tuple(mark for mark in _MARKS if mark.header and not mark.body)
_IN_PAGES = _by_first_part(frozenset({200}))
_IN_REFUSALS = _by_first_part(_REFUSING)
# Patterns that begin with such a byte go from one to the next: 30 µs for a page of 8 KB, where 36 searches take 75.
_ENDS = [_end(part) for part in _IN_PAGES]
_UNDERSCORED = re.compile(b"|".join([re.escape(end) for end in _ENDS if end.startswith(b"_")]))
_DOTTED = re.compile(b"|".join([re.escape(end) for end in _ENDS if end.startswith(b".")]))
_WHOLE = [end for end in _ENDS if not end.startswith((b"_", b"."))]
COOKIES = "set-cookie"
HEADERS = frozenset(mark.header.partition(":")[0] for mark in _IN_HEADERS) - {COOKIES}
"""In lower case: an answer that has none of them, and whose body is not looked at, has no mark."""
MORE_HEADERS = frozenset(mark.header.partition(":")[0] for mark in _MARKS if mark.header) - HEADERS
"""In lower case: they matter where the body does."""

TITLED = {name.title().encode(): name for name in HEADERS | MORE_HEADERS}
"""All of them, as an answer's headers are kept."""


class Wall(NamedTuple):
    """What an answer shows of walls."""

    vendor: str = ""  # whose wall it is; "" for a page
    marks: str = ""  # all that were seen: "vendor: mark; vendor: mark"


_NO_WALL = Wall()


def looks_short(status: int, body_bytes: int, words: int | None, links: int) -> bool:
    """Whether the body of an HTML answer is looked at; ``words`` (None: not counted) and ``links`` are of a 200."""
    if body_bytes > _MAX_WALL_BYTES or status not in _ANY:
        return False
    return status != 200 or ((words is None or words <= _MAX_WORDS) and links <= _MAX_LINKS)


def may_have_mark(body: bytes) -> bool:
    """False only where the body of a 200 has no mark."""
    return bool(_UNDERSCORED.search(body) or _DOTTED.search(body) or any(map(body.__contains__, _WHOLE)))


def wall(status: int, headers: Mapping[str, str], body: bytes, url: str = "", shown: bytes = b"") -> Wall:
    """Whose wall an answer is, and by which marks.

    ``headers`` by name in lower case; ``body`` is empty where it is not ``looks_short``; ``shown`` is its text.
    """
    seen = [mark for mark in _IN_HEADERS if _has_header(mark, headers)] if headers else []
    parts = _IN_REFUSALS if status != 200 else _IN_PAGES if may_have_mark(body) else {}
    if not (seen or parts):
        return _NO_WALL
    found = [
        mark
        for first, marks in parts.items()
        if first in body
        for mark in marks
        if status in mark.statuses and all(part in body for part in mark.body) and _has_header(mark, headers)
    ]
    if any(mark.wall for mark in found):  # the page of a search, or of a text about walls
        quoted = b"%b\n%b" % (shown, unquote_to_bytes(url.replace("+", " ")))
        found = [mark for mark in found if not (mark.wall and mark.body[0] in quoted)]
    seen += found
    vendor = next((mark.vendor for mark in seen if mark.wall), "")
    return Wall(vendor, "; ".join(map(str, seen)))


def robots_wall(status: int, headers: Mapping[bytes, Sequence[bytes]], body: bytes, url: str) -> Wall:
    """Whose wall answered for a robots.txt: such an answer is no word of the owner's.

    ``headers`` have their names in title case. HTML is known by its start alone: rules come under any type.
    """
    found = {name: b"\n".join(headers[title]).decode("latin-1") for title, name in TITLED.items() if title in headers}
    html = looks_short(status, len(body), None, 0) and payload_type(body) == "text/html"
    return wall(status, found, body if html else b"", url)


def _has_header(mark: _Mark, headers: Mapping[str, str]) -> bool:
    """Whether the headers are those of the mark, or it names none."""
    name, _, part = mark.header.partition(":")
    return not name or (name in headers and part.strip() in headers[name].lower())


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
        """The record with one more render."""
        return Gain(self.rendered + 1, self.paid + pays, 0 if pays else self.unpaid_in_a_row + 1)

    def plus(self, other: Gain) -> Gain:
        """Both records together, as of one template."""
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
