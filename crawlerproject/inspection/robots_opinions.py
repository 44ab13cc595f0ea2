"""What a robots.txt says about one URL: our verdict with the line that decides, and Protego's as a second opinion.

Protego is Scrapy's own parser, so a site's owner who doubts our reading has another one beside it. Nothing follows from
it: docs/robots.md says where the two differ, and why a crawl asks ours alone.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crawlerproject.rules.robots.parser import Rule, read_robots_text
from crawlerproject.rules.robots.policy import KEPT_BYTES, deciding_rule, parse_robots, refusing_line

# Protego tries each rule as a regular expression whose steps grow with each wildcard's power of the address: a hostile
# file kept it busy for 81 s (tests/rules/robots). So many steps are a tenth of a second.
_MOST_STEPS = 5_000_000
_LINE_ENDS = re.compile(rb"\r\n|\r|\n")
_ANOTHER_RULE = b"Disallow: /another-line-of-this-file"


class Opinions(NamedTuple):
    """Two verdicts on one URL."""

    allowed: bool
    rule: str  # what decides, as its owner wrote it or in our words; "" when no rule matches
    line: int  # where it stands, from 1; 0 when no single line decides
    protego: bool | None  # whether Protego allows it; None when it was not asked

    @property
    def differ(self) -> bool:
        """Whether Protego says otherwise."""
        return self.protego is not None and self.protego != self.allowed

    def text(self) -> str:
        """In one line, for people."""
        rule = self.rule or "no rule matches"
        at = f" (line {self.line})" if self.line else ""
        second = f"{'allows' if self.protego else 'forbids'} it {'all the same' if self.differ else 'too'}"
        if self.protego is None:
            second = "is not asked, its time for these wildcards has no bound"
        return f"{'allowed' if self.allowed else 'forbidden'}: {rule}{at}; Protego {second}"

    def values(self) -> dict[str, object]:
        """For programs."""
        return {
            "robots_allowed": self.allowed,
            "robots_rule": self.rule or None,
            "robots_line": self.line or None,
            "protego_allowed": self.protego,
        }


def opinions(body: bytes, token: str, url: str) -> Opinions:
    """Ask both about ``url`` as the crawler of this product token."""
    body = body[:KEPT_BYTES]
    allowed = parse_robots(body, token).allowed(url)
    rule = deciding_rule(body, token, url)
    words = refusing_line(body, token, url)
    if rule is not None and rule.allow == allowed:
        words = f"{'Allow' if rule.allow else 'Disallow'}: {rule.pattern}"
        return Opinions(allowed, words, _line_of(body, token, rule), _protego(body, token, url))
    return Opinions(allowed, words, 0, _protego(body, token, url))


def _line_of(body: bytes, token: str, rule: Rule) -> int:
    """The first line that gives this rule to the token: of equal lines that of a group which names it."""
    lines = _LINE_ENDS.split(body)
    equal = [
        place
        for place, line in enumerate(lines)
        if b":" in line and read_robots_text(b"User-agent: *\n" + line, token).rules == (rule,)
    ]
    for place in equal:
        alone = [_ANOTHER_RULE if other in equal and other != place else line for other, line in enumerate(lines)]
        if rule in read_robots_text(b"\n".join(alone), token).rules:
            return place + 1
    return 0


def _protego(body: bytes, token: str, url: str) -> bool | None:
    from protego import Protego  # nothing but these questions needs it

    rules = read_robots_text(body, token).rules
    if sum(min(len(url), 1000) ** rule.pattern.count("*") for rule in rules if "*" in rule.pattern) > _MOST_STEPS:
        return None
    return bool(Protego.parse(body.decode("utf-8-sig", "ignore")).can_fetch(url, token))
