"""robots.txt: the index of rules says what trying them one by one says, and bounds what a hostile file costs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.robots.matcher import MAX_WILDCARD_RULES, Matcher, PathAccess, rule_matches, spelled
from crawlerproject.rules.robots.parser import MAX_BYTES, Rule
from crawlerproject.rules.robots.policy import deciding_rule, parse_robots, refusing_line
from tests.robots_files import WORST_FILES, worst_file, worst_paths
from tests.spending import bounded

# --- the oracle: RFC 9309 2.2.2 and 2.2.3, one rule after the other, one character after the other ----------------

# RFC 3986 2.2 without "*" and "$", which rules must escape, and "'", which browsers escape in queries.
BARE = {chr(octet) for octet in range(0x21, 0x7F)} - set("%:/?#[]@!&()+,;=")


def tokens(text: str, *, pattern: bool = False) -> list[str]:
    """A path or pattern as characters that can be compared; of a pattern, "*" is WILD."""
    found, at = [], 0
    while at < len(text):
        escape = text[at + 1 : at + 3]
        if text[at] == "%" and len(escape) == 2 and all(digit in "0123456789abcdefABCDEF" for digit in escape):
            character = chr(int(escape, 16))
            found.append(character if character in BARE else "%" + escape.upper())
            at += 3
            continue
        if pattern and text[at] == "*":
            found.append("WILD")
        elif "!" <= text[at] <= "~" and text[at] != "%":
            found.append(text[at])
        else:
            found += [f"%{octet:02X}" for octet in text[at].encode()]
        at += 1
    return found


def simply_matches(pattern: str, path: str) -> bool:
    """All places of the pattern that a path's characters can lead to, kept side by side."""
    anchored = pattern.endswith("$")
    wanted = tokens(pattern.removesuffix("$"), pattern=True)
    places = {0}
    for character in [*tokens(path), "END"]:
        places |= {place + 1 for place in places if place < len(wanted) and wanted[place] == "WILD"}
        for _ in wanted:  # wildcards in a row
            places |= {place + 1 for place in places if place < len(wanted) and wanted[place] == "WILD"}
        if len(wanted) in places and (not anchored or character == "END"):
            return True
        if len(wanted) in places and wanted and wanted[-1] == "WILD":
            return True
        places = {
            place + (wanted[place] != "WILD")
            for place in places
            if place < len(wanted) and wanted[place] in ("WILD", character)
        }
    return False


def simply_allowed(rules: list[Rule], path: str) -> bool:
    """The longest rule that matches decides, Allow before Disallow; an index.html that is allowed is its folder too."""
    folders = [
        Rule(True, rule.pattern.removesuffix("index.html") + "$")
        for rule in rules
        if rule.allow and rule.pattern.endswith("/index.html")
    ]
    matching = [rule for rule in [*rules, *folders] if simply_matches(rule.pattern, path)]
    best = max(matching, key=lambda rule: (len(rule.pattern), rule.allow), default=Rule(True, ""))
    return best.allow


LETTERS = "/aab.?=%41623dDé*$ "
PATTERNS = st.text(LETTERS.replace(" ", ""), min_size=1, max_size=8).map(
    lambda text: "".join(f"%{octet:02X}" if octet > 127 else chr(octet) for octet in ("/" + text).encode())
)
RULES = st.lists(st.builds(Rule, st.booleans(), PATTERNS | st.sampled_from(["*", "/*", "$", "/$", "/a/index.html"])))
PATHS = st.text(LETTERS, max_size=14).map(lambda text: "/" + text)


@given(RULES, PATHS)
def test_as_trying_them_one_by_one(rules: list[Rule], path: str) -> None:
    """Law: the same verdict as the oracle's, whatever the rules and the path."""
    assert Matcher(rules).verdict(spelled(path)) is (
        PathAccess.ALLOW if simply_allowed(rules, path) else PathAccess.DENY
    )


@given(RULES, PATHS, st.booleans())
def test_as_trying_them_one_by_one_among_many(rules: list[Rule], path: str, lower: bool) -> None:
    """Law: the same where so many wildcard rules stand beside them that they are found by their pieces."""
    others = [Rule(bool(n & 1), f"/zz*{n}{'z' * (not lower) * 20}") for n in range(400)]
    expected = simply_allowed(rules, path)
    assert Matcher([*others, *rules]).verdict(spelled(path)) is (PathAccess.ALLOW if expected else PathAccess.DENY)


@given(PATTERNS, PATHS)
def test_one_rule(pattern: str, path: str) -> None:
    """Law: a single rule, tried for people, matches as the oracle says."""
    assert rule_matches(pattern, spelled(path)) is simply_matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/fish*.php", "/fish/salmon.php?x", True),  # the table of RFC 9309's and Google's documentation
        ("/*.php$", "/a.php?x", False),
        ("/*.php$", "/a.php.php", True),
        ("/a*a", "/a", False),
        ("/ab*bc$", "/abc", False),  # head and tail may not share a character
        ("/a**b*", "/axb", True),
        ("/a*$", "/abc", True),
        ("*$", "/", True),
        ("/%2a", "/*", True),
        ("/a%2Fb", "/a/b", False),
        ("/a%3D", "/a=", False),
        ("/a%3d", "/a%3D", True),
        ("/%7e%7B'", "/~{%27", True),
        ("/%", "/%25", True),
        ("/a?", "/a%3F", False),
        ("http://a.test/x", "/http://a.test/x", True),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    """Wildcards, anchors and escapes, as written by owners."""
    assert rule_matches(pattern, spelled(path)) is matches
    assert Matcher([Rule(False, pattern)]).verdict(spelled(path)) is (PathAccess.DENY if matches else PathAccess.ALLOW)


# --- bounds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WORST_FILES)
def test_the_worst_files(name: str) -> None:
    """Reading one takes a fraction of a second, and a path less than three milliseconds (100 us measured)."""
    body = worst_file(name)
    with bounded(3.0):
        rules = parse_robots(body, "foobot")
        rules.allowed("/")
    for path in worst_paths().values():
        with bounded(0.6):
            for _ in range(200):
                rules.allowed(path)


@pytest.mark.parametrize("name", WORST_FILES)
def test_doubt_only_ever_means_no(name: str) -> None:
    """What the worst files are not read to the end for is never allowed when one of their rules forbids it."""
    body, chance = worst_file(name), random.Random(1)
    rules = parse_robots(body, "foobot")
    said = [line[line.find(b":") + 1 :].strip() for line in body.split(b"\n")[1:] if line.startswith(b"Dis")]
    for pattern in chance.sample(said, min(len(said), 50)):
        path = pattern.decode("latin-1").replace("*", "").removesuffix("$")
        if name not in ("allowed within disallowed", "octets", "blanks"):
            assert rules.verdict(path if path.startswith("/") else "/" + path) is not PathAccess.ALLOW


def test_many_rules_are_found_by_what_is_rare_in_them() -> None:
    """Of 4,000 wildcard rules the one that matches decides, and none does for other paths: no doubt."""
    rules = parse_robots(worst_file("one star, four thousand"), "foobot")
    assert rules.verdict("/item/3999.html") is PathAccess.DENY
    assert rules.verdict("/item/seven.html") is PathAccess.ALLOW
    assert rules.verdict("/shop/category/item-12345.htm?sort=price&page=2") is PathAccess.ALLOW


def test_beyond_the_budget_doubt_means_no() -> None:
    """Rules that all fit nearly are not all tried: the verdict is no, and people are told why."""
    body = worst_file("a thousand stars, again and again")
    rules, path = parse_robots(body, "foobot"), "/" + "a" * 800 + "b" * 200 + "".join(f"a{n}" for n in range(100))
    assert rules.verdict(path) is PathAccess.DOUBT
    assert not rules.allowed(path)
    assert "doubt means no" in refusing_line(body, "foobot", path)


def test_beyond_the_number_of_wildcard_rules_the_others_are_read_wider() -> None:
    """A Disallow ends at its first wildcard, an Allow is none; both are told to people."""
    lines = b"".join(b"Disallow: /*x%d\n" % n for n in range(MAX_WILDCARD_RULES))
    body = b"User-agent: *\n" + lines + b"Disallow: /late*end\nAllow: /late/*/allowed\nDisallow: /x*y\nAllow: /x*yz\n"
    rules = parse_robots(body, "foobot")
    assert len(body) < MAX_BYTES
    assert not rules.allowed("/late/beginning")
    assert not rules.allowed("/xyz")
    assert rules.allowed("/other")
    assert deciding_rule(body, "foobot", "/late/beginning") is None
    assert "wildcard rules" in refusing_line(body, "foobot", "/late/beginning")


def test_a_path_that_is_escaped_in_small_letters_is_the_same() -> None:
    """Escapes are read in either case, and only where they mean something."""
    rules = parse_robots(b"User-agent: *\nDisallow: /caf%C3%A9/\nDisallow: /%7Ejoe\nDisallow: /a%2Fb\n", "x")
    assert not rules.allowed("/caf%c3%a9/x")
    assert not rules.allowed("/café/x")
    assert not rules.allowed("/~joe")
    assert rules.allowed("/a/b")
