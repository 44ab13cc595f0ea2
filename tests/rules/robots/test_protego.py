"""robots.txt: a second opinion. Protego, its known faults worked around, gives the same verdicts on real files.

What is worked around: it decodes %3F and invalid escapes, so that "%" is hidden from it; it takes a final "$" literally
too; and its priorities are lengths after quoting, not the octets of the rule (RFC 9309 2.2.2).
"""

from __future__ import annotations

import random
import re

import pytest
from protego import Protego

from crawlerproject.rules.robots.parser import Rule, read_robots_text
from crawlerproject.rules.robots.policy import parse_robots
from tests.rules.robots.test_real_files import FILES

PATHS = 60  # of each file
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SPECIAL = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?]")
_PATTERN_SPECIAL = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~/?*]")


def _spelled(match: re.Match[str]) -> str:
    found = match[0]
    if len(found) == 3 and found[0] == "%":
        octet = int(found[1:], 16)
        return chr(octet) if octet in _UNRESERVED else found.upper()
    return "".join(f"%{octet:02X}" for octet in found.encode("utf-8", "replace"))


def _pattern(pattern: str) -> str:
    if pattern.startswith(("http://", "https://")):
        pattern = "/" + pattern
    anchor = "$" if pattern.endswith("$") else ""
    return _PATTERN_SPECIAL.sub(_spelled, pattern.removesuffix("$")).replace("%", "%25") + anchor


def protego(rules: tuple[Rule, ...]) -> Protego:
    """Protego with one group that holds the rules, its priorities set to the octets of each."""
    lines, octets = ["User-agent: *"], dict[str, int]()
    for rule in rules:
        if pattern := _pattern(rule.pattern):
            octets[pattern] = max(len(rule.pattern), octets.get(pattern, 0))
            lines.append(("Allow: " if rule.allow else "Disallow: ") + pattern)
    matcher = Protego.parse("\n".join(lines))
    for written, url_pattern in matcher._url_patterns.items():
        if url_pattern is not None and written in octets:
            url_pattern.priority = octets[written]
    for group in matcher._user_agents.values():
        group.finalize_rules()
    return matcher


def paths(rules: tuple[Rule, ...], chance: random.Random) -> list[str]:
    """Paths that the rules match, nearly match, or match two of."""
    made = ["/", "/index.html", "/search?q=x&lang=en", "/wp-admin/x", "/caf%C3%A9/"]
    for _ in range(PATHS):
        pattern = chance.choice(rules).pattern.removesuffix("$")
        filling = chance.choices(["", "x", "/", "a/b", "?x=1", "%20", "%e9", "1234"], k=len(pattern))
        path = "".join(fill if message == "*" else message for message, fill in zip(pattern, filling, strict=True))
        at = chance.randrange(len(path) + 1)
        path = chance.choice(
            [
                path,
                path + chance.choice(["x", "/", "?a=b", "/index.html", ".html", "&p=2", "%3F"]),
                path[:at],
                path[:at] + chance.choice("ax/?=&%2F") + path[at + 1 :],
                path + chance.choice(rules).pattern.replace("*", "y"),
            ]
        )
        made.append(path if path.startswith("/") else "/" + path)
    return made


@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("token", ["TestBed", "Googlebot"])
def test_protego_says_the_same(host: str, token: str) -> None:
    """Every verdict on a real file, whatever the path."""
    rules = read_robots_text(FILES[host], token).rules
    if not rules:
        return
    ours, theirs = parse_robots(FILES[host], token), protego(rules)
    for path in paths(rules, random.Random(host)):
        if path.partition("?")[0].partition("#")[0] == "/robots.txt":
            continue
        asked = _SPECIAL.sub(_spelled, path.partition("#")[0]).replace("%", "%25")
        assert ours.allowed(path) is bool(theirs.can_fetch("http://h" + asked, "*")), path
