"""Which answers are anti-bot walls."""

import pytest

from crawlerproject.rules.rendering.challenge import challenge

CLOUDFLARE = b"<title>Just a moment...</title><script src='/cdn-cgi/challenge-platform/h/b/x.js'></script>"


@pytest.mark.parametrize(
    ("status", "headers", "body", "vendor"),
    [
        (403, {"cf-mitigated": "challenge"}, b"", "cloudflare"),
        (503, {}, CLOUDFLARE, "cloudflare"),
        (405, {"x-amzn-waf-action": "captcha"}, b"", "aws waf"),
        (403, {}, b"<script src=https://geo.captcha-delivery.com/c.js>", "datadome"),
        (200, {}, b"<iframe src=/_Incapsula_Resource?x=1>", "imperva"),
    ],
)
def test_walls_are_known(status: int, headers: dict[str, str], body: bytes, vendor: str) -> None:
    """By what the wall itself sends."""
    assert challenge(status, headers, body) == vendor


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        pytest.param(403, b"<h1>Forbidden</h1>", None, id="an ordinary refusal"),
        pytest.param(200, CLOUDFLARE, 400, id="an article about walls"),
        pytest.param(404, CLOUDFLARE, None, id="a status that no wall uses"),
        pytest.param(403, CLOUDFLARE + b" " * 70_000, None, id="larger than any interstitial"),
    ],
)
def test_ordinary_answers_are_none(status: int, body: bytes, words: int | None) -> None:
    """A mark alone does not make a wall of a page with something to say."""
    assert challenge(status, {}, body, words) == ""
