"""Recognises an anti-bot wall: a page that asks for proof of being human. It is recorded and obeyed, never evaded.

Marks are what the common walls themselves send: their headers, or script and element names of their interstitials.
"""

from __future__ import annotations

from collections.abc import Mapping

# What walls answer with; a 200 that is a wall has next to no words of its own.
_STATUSES = (200, 202, 401, 403, 405, 429, 503)
# Larger pages are no interstitials (the largest we know of has about 30 KB); ordinary ones may talk about walls.
_MAX_BYTES = 65_536
_MAX_WORDS = 150

# Header name in lower case, part of its value -> whose wall.
_HEADERS = (
    ("cf-mitigated", "challenge", "cloudflare"),
    ("x-amzn-waf-action", "challenge", "aws waf"),
    ("x-amzn-waf-action", "captcha", "aws waf"),
    ("x-datadome", "protected", "datadome"),
)
HEADERS = frozenset(name for name, _, _ in _HEADERS)
"""In lower case: the headers that ``challenge`` looks at."""
_MARKS = (
    (b"/cdn-cgi/challenge-platform/", "cloudflare"),
    (b"cf-browser-verification", "cloudflare"),
    (b"cf_chl_opt", "cloudflare"),
    (b"_incapsula_resource", "imperva"),
    (b"px-captcha", "perimeterx"),
    (b"captcha-delivery.com", "datadome"),
    (b"awswafintegration", "aws waf"),
    (b"ddos-guard", "ddos-guard"),
    (b"sucuri_cloudproxy_js", "sucuri"),
    (b"geetest_challenge", "geetest"),
    (b"akamai/sec_cpt", "akamai"),
    (b"/_sec/cp_challenge/", "akamai"),
    (b"checking your browser before accessing", "unnamed"),
)


def challenge(status: int, headers: Mapping[str, str], body: bytes, words: int | None = None) -> str:
    """Whose wall an answer is, "" when it is none; ``headers`` are those of HEADERS that it has."""
    if status not in _STATUSES:
        return ""
    for name, part, vendor in _HEADERS:
        if part in headers.get(name, "").lower():
            return vendor
    if len(body) > _MAX_BYTES or (words is not None and words > _MAX_WORDS):
        return ""
    lower = body.lower()
    return next((vendor for mark, vendor in _MARKS if mark in lower), "")
