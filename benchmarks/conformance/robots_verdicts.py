"""Google's own robots.txt parser on the real files of Protego's tests, and the cases of two parsers' test suites."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.conformance.suite import Case, Suite, unpacked
from crawlerproject.rules.robots.parser import Rule, read_robots_text
from crawlerproject.rules.robots.policy import parse_robots
from crawlerproject.rules.url.urls import UrlRefused, parse
from tests.rules.robots.test_protego import paths
from tests.rules.robots.test_suites import ALL, body

_AGENTS = ("TestBed", "Googlebot")
_MOST_BYTES = 50_000  # Google's parser reads a file again for each address
# What the suite excuses, computed apart from what it judges. RFC 9309 2.2.2: escapes of what is no reserved character
# mean the character; RFC 9309 2.2.3: so do those of "*" and "$"; "'" is escaped by browsers in queries alone.
_KEPT = frozenset(b"%:/?#[]@!&()+,;=")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^!-~]|[\"<>\\^`{|}'$~]")
_STRAY = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ADDRESS = re.compile(r"https?://")


def _plain(text: str) -> str:
    """A path, or a rule's pattern without wildcards, with one spelling for what means the same."""

    def plain(match: re.Match[str]) -> str:
        octets = bytes([int(match[0][1:], 16)]) if len(match[0]) == 3 else match[0].encode()
        is_plain = len(octets) == 1 and octets.isascii() and (chr(octets[0]).isalnum() or octets in b"-._~")
        if octets[0] in _KEPT or not is_plain:
            return "".join(f"%{octet:02X}" for octet in octets)
        return octets.decode()

    return _ESCAPE.sub(plain, text)


def _respelled(rules: tuple[Rule, ...]) -> str:
    """The rules for one agent as Google reads them once they are spelled alike; its length decides, so it is kept."""
    lines = ["User-agent: *"]
    for rule in rules:
        pattern = f"/{rule.pattern}" if _ADDRESS.match(rule.pattern) else rule.pattern
        anchor = "$" * pattern.endswith("$")
        lines.append(("Allow: " if rule.allow else "Disallow: ") + _plain(pattern.removesuffix("$")) + anchor)
    return "\n".join(lines)


def _real_files(sources: Path) -> Iterator[Case]:
    from jwm.robotstxt.googlebot import RobotsMatcher  # of the peers' environment alone

    matcher = RobotsMatcher()
    folder = unpacked(sources, "protego") / "tests/test_data"
    for path in sorted(file for file in folder.rglob("*") if file.is_file() and file.stat().st_size <= _MOST_BYTES):
        octets = path.read_bytes()
        for agent in _AGENTS:
            rules = read_robots_text(octets, agent).rules
            if not rules:
                continue
            ours, respelled = parse_robots(octets, agent), _respelled(rules)
            for made in paths(rules, random.Random(f"{path.name}{agent}")):
                try:
                    url = parse(f"http://a.test{made}").url
                except UrlRefused:
                    continue
                if url.partition("?")[0] == "http://a.test/robots.txt":
                    continue
                theirs = matcher.OneAgentAllowedByRobots(octets, agent, url)
                verdict = ours.allowed(url)
                why = ""
                if verdict != theirs:
                    alike = matcher.OneAgentAllowedByRobots(respelled, agent, _plain(url)) == verdict
                    why = _why(octets, alike, any(_STRAY.search(rule.pattern) for rule in rules))
                yield Case(f"{path.name} {agent} {url}{why}", verdict, theirs)


def _why(octets: bytes, spelled_alike: bool, stray: bool) -> str:
    if octets.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ", UTF-16"
    return ", spelling" if spelled_alike else ", stray" if stray else ""


def _suites(_: Path) -> Iterator[Case]:
    for suite, case in ALL:
        rules = parse_robots(body(case), case["agent"])
        verdicts = dict.fromkeys(case.get("allow", ()), True) | dict.fromkeys(case.get("deny", ()), False)
        decided = {found["url"]: found for found in case.get("decided", ())}
        verdicts |= {url: found["theirs"] == "allow" for url, found in decided.items()}
        for url, theirs in verdicts.items():
            known = ", decided" if url in decided else ""
            yield Case(f"{suite} {case['case']} {url}{known}", rules.allowed(url), theirs)


SUITES = (
    Suite(
        "robots, Google's parser",
        "jwm.robotstxt 1.0.8 (google/robotstxt) on the files of protego 0.7.0",
        _real_files,
        {
            "*, UTF-16": "RFC 9309 asks for UTF-8; crawler-commons reads UTF-16 too, and the owner meant it",
            "*, spelling": "RFC 9309 2.2.2: escapes are compared by what they mean, addresses as paths",
            "*, stray": "a % that begins no escape is the character, not the beginning of any escape",
        },
    ),
    Suite(
        "robots, suites",
        "tests/cases/robots: the verdicts of Google's and crawler-commons' tests",
        _suites,
        {"*, decided": "each with its reason there, and in docs/robots.md"},
        offline=True,
    ),
)
