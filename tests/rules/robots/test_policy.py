"""robots.txt: the conformance cases, the cap, hostile files, statuses and the stored record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.politeness.pauses import LONGEST_SECONDS
from crawlerproject.rules.robots.parser import MAX_BYTES
from crawlerproject.rules.robots.policy import (
    ALLOW_ALL,
    RobotsRecord,
    RobotsVerdict,
    may_allow_more,
    parse_robots,
    refusing_line,
    robots_verdict,
    usable_body,
)
from tests.spending import spent

CASES = Path(__file__).parents[2] / "cases" / "robots"
ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|([rnt]))")
PLAIN = {b"r": b"\r", b"n": b"\n", b"t": b"\t"}


@dataclass
class Case:
    """One case of the files in tests/cases/robots."""

    name: str
    lines: list[bytes] = field(default_factory=list)
    bot: str = "foobot"
    checks: list[tuple[str, str]] = field(default_factory=list)


def octets(text: str) -> bytes:
    """The octets a body line of a case stands for."""
    return ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else PLAIN[m[2]], text.encode())


def read_cases() -> Iterator[Case]:
    """Every case of every file."""
    for path in sorted(CASES.glob("*.txt")):
        case: Case | None = None
        for line in path.read_text("utf-8").split("\n"):
            if line.startswith("= "):
                if case is not None:
                    yield case
                case = Case(f"{path.stem}: {line[2:]}")
            elif case is not None and line.startswith("|"):
                case.lines.append(octets(line[2:]))
            elif case is not None and line.strip():
                word, _, value = line.partition(" ")
                if word == "bot":
                    case.bot = value
                else:
                    case.checks.append((word, value))
        if case is not None:
            yield case


ALL_CASES = list(read_cases())


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """Every conformance case holds."""
    rules = parse_robots(b"\n".join(case.lines), case.bot)
    assert case.checks
    for word, value in case.checks:
        if word in ("allow", "deny"):
            assert rules.allowed(value) is (word == "allow"), value
        elif word in ("delay", "rate"):
            seconds = rules.crawl_delay_seconds if word == "delay" else rules.request_rate_seconds
            assert seconds == (None if value == "none" else float(value))
        elif word == "visit":
            assert [f"{a}-{b}" for a, b in rules.visit_times] == ([] if value == "none" else [value])
        else:
            assert value in (rules.sitemaps if word == "sitemap" else rules.content_signals)


def test_there_are_enough_cases() -> None:
    """The case files were found and read."""
    assert len(ALL_CASES) >= 90


def test_sitemaps_are_not_repeated() -> None:
    """A sitemap named twice is one."""
    assert parse_robots(b"Sitemap: /a\nSitemap: /a\nSitemap: /b", "x").sitemaps == ("/a", "/b")


def test_rules_beyond_500_kib_are_not_read() -> None:
    """RFC 9309 2.5: at least 500 KiB are read; we read that much."""
    line = b"Disallow: /a\n"
    body = b"User-agent: *\n" + line * (MAX_BYTES // len(line)) + b"Disallow: /b\n"
    rules = parse_robots(body, "x")
    assert not rules.allowed("/a")
    assert rules.allowed("/b")


def test_a_rule_that_the_cap_cuts_is_dropped() -> None:
    """Half of "Disallow: /private" must not become "Disallow: /"."""
    start = b"User-agent: *\nDisallow: /keep\n#"
    body = start + b"x" * (MAX_BYTES - len(start) - 12) + b"\nDisallow: /private\n"
    rules = parse_robots(body, "x")
    assert not rules.allowed("/keep")
    assert rules.allowed("/other")
    assert rules.allowed("/private")


def test_one_endless_line_is_nothing() -> None:
    """A file without a line end before the cap holds no whole line."""
    assert parse_robots(b"x" * (MAX_BYTES + 1), "x") is ALLOW_ALL


@pytest.mark.parametrize(
    "body",
    [
        b"".join(b"User-agent: a%d\n" % n for n in range(8000)) + b"".join(b"Disallow: /%d\n" % n for n in range(8000)),
        b"User-agent: *\n" + b"Disallow: /" + b"*a" * 250_000,
        b"User-agent: *\n" + b"Disallow: /a*b*c$\n" * 25_000,
        b"\n" * MAX_BYTES,
        b"User-agent: " + b"," * 500_000,
        b":" * MAX_BYTES,
        bytes(range(256)) * 2000,
    ],
    ids=["agents x rules", "stars", "same rule", "blank", "commas", "colons", "all octets"],
)
def test_hostile_files_cost_what_their_length_costs(body: bytes) -> None:
    """The bound is loose, for slow machines: raw Protego takes 81 s for the first of these."""
    assert spent(lambda: parse_robots(body, "foobot").allowed("/" + "a" * 2000)) < 3


def test_equal_rules_share_a_matcher() -> None:
    """A million hosts with WordPress's default need one matcher."""
    body = b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n"
    assert parse_robots(body, "x")._matcher is parse_robots(body + b"Sitemap: /s.xml\n", "x")._matcher


def test_a_file_that_says_nothing_is_the_shared_allow_all() -> None:
    """Comments cost no memory per host."""
    assert parse_robots(b"# hello\nUser-agent: *\nDisallow:\n", "x") is ALLOW_ALL


@given(st.binary(max_size=400), st.text(max_size=60))
def test_no_octets_break_it(body: bytes, path: str) -> None:
    """Whatever a server sends and whatever address is asked, there is a verdict."""
    rules = parse_robots(b"User-agent: *\nDisallow: /" + body, "foobot")
    assert rules.allowed("/" + path) in (True, False)


@given(st.text(alphabet="ab%2Ff~/?&=:*$é", max_size=12))
def test_a_path_is_denied_by_its_own_rule(path: str) -> None:
    """Law: disallowing exactly a path denies it, however it is spelled."""
    rule = path.replace("*", "%2A").replace("$", "%24")
    rules = parse_robots(f"User-agent: *\nDisallow: /x{rule}".encode(), "foobot")
    assert not rules.allowed("/x" + path)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (None, RobotsVerdict.WAIT),
        (0, RobotsVerdict.WAIT),
        (200, RobotsVerdict.PARSE),
        (206, RobotsVerdict.PARSE),
        (301, RobotsVerdict.REDIRECT),
        (308, RobotsVerdict.REDIRECT),
        (304, RobotsVerdict.WAIT),
        (400, RobotsVerdict.ALLOW),
        (401, RobotsVerdict.ALLOW),
        (403, RobotsVerdict.ALLOW),
        (404, RobotsVerdict.ALLOW),
        (410, RobotsVerdict.ALLOW),
        (429, RobotsVerdict.WAIT),
        (500, RobotsVerdict.WAIT),
        (503, RobotsVerdict.WAIT),
        (999, RobotsVerdict.WAIT),
    ],
)
def test_status(status: int | None, verdict: RobotsVerdict) -> None:
    """RFC 9309 2.3.1: what each status class means; 429 waits (Google)."""
    assert robots_verdict(status) is verdict


def test_visit_time_says_how_long_to_wait() -> None:
    """Inside the window 0, before it the rest until it opens; windows may cross midnight."""
    rules = parse_robots(b"User-agent: *\nVisit-time: 2200-0600\n", "x")
    assert rules.seconds_until_open(23 * 3600.0) == 0
    assert rules.seconds_until_open(86400 * 9 + 5 * 3600.0) == 0
    assert rules.seconds_until_open(6 * 3600.0) == 16 * 3600
    assert ALLOW_ALL.seconds_until_open(0) == 0


def test_floor_is_the_longer_wish() -> None:
    """Crawl-delay and Request-rate both hold."""
    assert parse_robots(b"User-agent: *\nCrawl-delay: 3\nRequest-rate: 1/7\n", "x").floor_seconds == 7
    assert ALLOW_ALL.floor_seconds == 0


ROBOTS_LINES = st.lists(
    st.tuples(st.sampled_from(["Allow", "Disallow"]), st.sampled_from(["/", "/a", "/a/", "/a/*b", "/ab$", "/c", "*/d"]))
)


def of_rules(lines: list[tuple[str, str]]) -> bytes:
    """A file with these rules for everyone."""
    return "\n".join(["User-agent: *", *(f"{word}: {path}" for word, path in lines)]).encode()


@given(ROBOTS_LINES, ROBOTS_LINES, st.text("abcd/", max_size=6).map("/".__add__))
def test_what_is_allowed_anew_is_never_overlooked(
    before: list[tuple[str, str]], after: list[tuple[str, str]], path: str
) -> None:
    """Whatever two files say, and whatever is asked for."""
    old, new = of_rules(before), of_rules(after)

    if parse_robots(new, "foobot").allowed(path) and not parse_robots(old, "foobot").allowed(path):
        assert may_allow_more(old, new, "foobot")


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        (b"User-agent: *\nDisallow: /a", b"User-agent: *\nDisallow: /a\nDisallow: /b", False),
        (b"User-agent: *\nDisallow: /a\nDisallow: /b", b"User-agent: *\nDisallow: /b\n\n# today\nDisallow: /a", False),
        (b"User-agent: *\nAllow: /a/b\nDisallow: /a", b"User-agent: *\nDisallow: /a", False),
        (b"User-agent: *\nDisallow: /a", b"User-agent: *\nDisallow: /a\nCrawl-delay: 9", False),
        (b"", b"User-agent: *\nDisallow: /a", False),
        (b"User-agent: *\nDisallow: /a", b"", True),
        (b"User-agent: *\nDisallow: /a", b"User-agent: foobot\nDisallow:\n\nUser-agent: *\nDisallow: /a", True),
        (b"User-agent: *\nCrawl-delay: 9999999", b"User-agent: *\nCrawl-delay: 9", True),
        (b"User-agent: *\nDisallow: /a", b"User-agent: *\nCrawl-delay: 9999999", False),
    ],
)
def test_which_changes_may_allow_more(before: bytes, after: bytes, more: bool) -> None:
    """Not those that forbid more, or change what is no rule for us."""
    assert may_allow_more(before, after, "foobot") is more


def test_record_survives_the_store() -> None:
    """pack and unpack are inverse, whatever the body."""
    record = RobotsRecord(200, bytes(range(256)), 1.5, 86401.5, "fetched")
    assert RobotsRecord.unpack(record.pack()) == record


def test_a_foreign_record_is_refused() -> None:
    """Bytes of another format are no record."""
    with pytest.raises(ValueError, match="version"):
        RobotsRecord.unpack(b"\x07" * 40)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (b"Crawl-delay: 2678400", 2_678_400.0),  # 31 days: honoured to the second
        (b"Crawl-delay: 1e3", 1_000.0),
        (b"Crawl-delay: 00000000000000000000000000000000000005", 5.0),
        (b"Request-rate: 1/31d", 2_678_400.0),
        (b"Request-rate: 100000000000/1", 1e-11),
    ],
)
def test_any_number_is_a_floor(line: bytes, seconds: float) -> None:
    """However long and however it is written, up to a month."""
    rules = parse_robots(b"User-agent: *\n" + line, "x")
    assert rules.floor_seconds == seconds
    assert not rules.left_alone
    assert rules.allowed("/a")


@pytest.mark.parametrize(
    "line",
    [
        b"Crawl-delay: 1.79e308",
        b"Crawl-delay: 1e400",
        b"Crawl-delay: 1e99999999999",
        b"Crawl-delay: inf",
        b"Crawl-delay: Infinity",
        b"Crawl-delay: " + b"9" * 400,
        b"Crawl-delay: " + b"9" * 100_000,
        b"Crawl-delay: 2678401",
        b"Request-rate: 1/32d",
        b"Request-rate: 1/" + b"9" * 5_000,
        b"Request-rate: " + b"9" * 5_000 + b"/" + b"9" * 5_000,
        b"Allow: /\nCrawl-delay: 5\nCrawl-delay: 99999999",
    ],
)
def test_beyond_a_month_is_to_be_left_alone(line: bytes) -> None:
    """No page is allowed, robots.txt is, and the floor is a number that a clock can bear."""
    body = b"User-agent: *\n" + line
    rules = parse_robots(body, "x")
    assert rules.left_alone
    assert not rules.allowed("/a")
    assert rules.allowed("/robots.txt")
    assert rules.floor_seconds <= LONGEST_SECONDS
    assert "left alone" in refusing_line(body, "x", "/a")


@pytest.mark.parametrize("value", [b"nan", b"often", b"-5", b"infinite", b"information", b"e5", b"0x10x", b""])
def test_what_is_no_number_is_no_pause(value: bytes) -> None:
    """Garbage neither slows the crawl nor ends it (0x10x starts with a number: none)."""
    rules = parse_robots(b"User-agent: *\nCrawl-delay: " + value, "x")
    assert rules.floor_seconds == 0
    assert rules.allowed("/a")


@pytest.mark.parametrize(
    ("flags", "usable"),
    [
        ([], True),
        (["truncated-length"], True),
        (["truncated-time"], False),
        (["truncated-disconnect"], False),
        (["encoding-damaged"], False),
        (["encoding-unknown"], True),  # "Content-Encoding: UTF-8", as some servers say
        (["encoding-wrong"], True),
    ],
)
def test_only_what_came_whole_is_read(flags: list[str], usable: bool) -> None:
    """RFC 9309 2.3.1.4: cut by time or by a broken connection is unreachable; 2.5: by length it is not."""
    body = b"User-agent: *\nDisallow: /a\n"
    assert usable_body(body, flags) == (body if usable else None)


@pytest.mark.parametrize("flag", ["encoding-unknown", "encoding-wrong"])
def test_octets_that_are_no_text_are_not_read(flag: str) -> None:
    """A coding that we cannot undo hides what the owner says."""
    assert usable_body(b"\x28\xb5\x2f\xfd\x00\x01 compressed", [flag]) is None


def test_half_a_line_is_dropped_where_the_length_was_cut() -> None:
    """Half of "Allow: /a/private/x" must not become "Allow: /a"."""
    assert usable_body(b"User-agent: *\r\nDisallow: /a\r\nAllow: /a", ["truncated-length"]) == (
        b"User-agent: *\r\nDisallow: /a\r\n"
    )
    assert usable_body(b"Disallow: /a", ["truncated-length"]) == b""
