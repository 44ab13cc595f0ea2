"""Seed lists, the options of their lines, and patterns of URLs."""

from __future__ import annotations

import fnmatch
import random
from functools import partial

import pytest

from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import Limits
from crawlerproject.rules.url.scope import (
    MAX_CHARACTERS,
    BadGlob,
    BadOption,
    BadSeed,
    Patterns,
    Scope,
    first_match,
    glob,
    globs,
    host_limits,
    prefix_of,
    rule_of,
    seeds_of,
)
from crawlerproject.rules.url.urls import parse
from tests.spending import spent


def test_lines() -> None:
    """Blank lines and comments are skipped, a fragment is no comment, a page is named once."""
    seeds, problems, _ = seeds_of(
        ["\ufeff# mine\n", "\n", "http://example.org/a#frag  # why\r\n", "http://EXAMPLE.org/a\n", "  # x\n"]
    )
    assert [seed.url for seed in seeds] == ["http://example.org/a"]
    assert problems == []


def test_what_is_no_utf_8_is_no_seed() -> None:
    """It would be asked for as another URL."""
    seeds, (problem,), _ = seeds_of([b"http://a.test/caf\xe9".decode("utf-8", "replace"), "http://a.test/caf%E9"])
    assert [seed.url for seed in seeds] == ["http://a.test/caf%E9"]
    assert (problem.line_number, problem.reason) == (1, Reason.INVALID_URL)


def test_bare_hosts_are_https() -> None:
    """A name without a scheme is asked over https, with its port and path."""
    seeds, *_ = seeds_of(["example.org", "\ufeffexample.org:8443/x?y", "localhost:80", "bücher.example"])
    assert [seed.url for seed in seeds] == [
        "https://example.org/",
        "https://example.org:8443/x?y",
        "https://localhost:80/",
        "https://xn--bcher-kva.example/",
    ]


@pytest.mark.parametrize(
    ("line", "urls"),
    [
        ("http://a.test/ http://b.test/x", ["http://a.test/", "http://b.test/x"]),
        ("http://a.test/\thttps://b.test/  http://c.test/", ["http://a.test/", "https://b.test/", "http://c.test/"]),
        ("a.test b.test", ["https://a.test/", "https://b.test/"]),
        ("http://a.test/my file.pdf", ["http://a.test/my%20file.pdf"]),
        ("a.test/my file.pdf", ["https://a.test/my%20file.pdf"]),
    ],
)
def test_seeds_beside_each_other(line: str, urls: list[str]) -> None:
    """A blank before another URL parts two seeds; one before anything else is part of its URL."""
    seeds, problems, _ = seeds_of([line])

    assert ([seed.url for seed in seeds], problems) == (urls, [])
    assert len(seeds_of([line + " max_pages=3"]).options) == len(urls)


def test_problems_name_the_line() -> None:
    """A line that is no address of ours is reported, and the others still count."""
    seeds, problems, _ = seeds_of(
        ["ftp://example.org/", "nonsense", "http://", "mailto:a@example.org", "http://ok.example/"]
    )
    assert [seed.host for seed in seeds] == ["ok.example"]
    assert problems == [
        BadSeed(1, "ftp://example.org/", Reason.SCHEME),
        BadSeed(2, "nonsense", Reason.INVALID_URL),
        BadSeed(3, "http://", Reason.INVALID_URL),
        BadSeed(4, "mailto:a@example.org", Reason.SCHEME),
    ]


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("/blog/*", "https://example.org/blog/a?b=c", True),
        ("/blog/*", "https://example.org/blog", False),
        ("/blog/*", "https://example.org/x/blog/a", False),
        ("/*?print=*", "https://example.org/a?print=1", True),
        ("/*?print=*", "https://example.org/aprint=1", False),
        ("/", "https://example.org/", True),
        ("/", "https://example.org/?a", False),
        ("*/tag/*", "https://example.org/a/tag/x", True),
        ("*/tag/*", "https://example.org/a/tags/x", False),
        ("*.pdf", "https://example.org/a.pdf", True),
        ("*.pdf", "https://example.org/a.pdf?x", False),
        ("*.example.org/*", "https://www.example.org/", True),
        ("*.example.org/*", "https://example.org/", False),
        ("example.org/a*a", "https://example.org/a", False),
        ("example.org/a*a", "https://example.org/aa", True),
        ("https://example.org/*", "https://example.org/x", True),
        ("https://example.org/*", "http://example.org/x", False),
        ("/ä/*", "https://example.org/%C3%A4/x", True),
        ("*", "https://example.org/", True),
        ("/**a**b*", "https://example.org/a.b", True),
        ("/a.b+(c)[d]", "https://example.org/a.b+(c)[d]", True),
        ("/a.b", "https://example.org/a-b", False),
    ],
)
def test_a_pattern_matches_all_of_its_part(pattern: str, url: str, matches: bool) -> None:
    """Path and query, host and all behind it, or the whole URL; a star is any characters, nothing else is special."""
    assert glob(pattern).matches(url) is matches


def test_it_agrees_with_another_matcher() -> None:
    """fnmatch, of which only the star is used, on texts that nearly match."""
    rng = random.Random(7)
    for _ in range(5_000):
        pattern = "/" + "".join(rng.choice("ab*") for _ in range(rng.randrange(8)))
        path = "/" + "".join(rng.choice("ab") for _ in range(rng.randrange(10)))
        assert glob(pattern).matches("https://x.test" + path) == fnmatch.fnmatchcase(path, pattern), (pattern, path)


@pytest.mark.parametrize("pattern", ["calendar", "pdf$", "a" * (MAX_CHARACTERS + 1) + "*"])
def test_what_matches_nothing_is_refused(pattern: str) -> None:
    """A word without star or slash was meant otherwise; a pattern has a length."""
    with pytest.raises(BadGlob, match="pattern"):
        glob(pattern)


def test_patterns_are_separated_by_blanks() -> None:
    """As a text or as a list; the first that matches is named."""
    patterns = globs(" /a/*  *.pdf ")

    assert [pattern.text for pattern in patterns] == ["/a/*", "*.pdf"] == [one.text for one in globs(["/a/*", "*.pdf"])]
    found = first_match(patterns, "https://example.org/x.pdf")
    assert found is not None
    assert found.text == "*.pdf"
    assert first_match(patterns, "https://example.org/x") is None


@pytest.mark.parametrize(
    ("pattern", "unit"), [("*a" * 100 + "b", "a"), ("/" + "a*" * 100 + "b", "a"), ("*" + "a" * 200 + "b*", "a"),
                          ("*ab*ab*ab*ab*c", "ab"), ("*/" * 50 + "!", "/")],
)  # fmt: skip
def test_time_grows_with_the_url_alone(pattern: str, unit: str) -> None:
    """URLs made to be looked at again and again, a thousand times as long as any that is let in."""
    matcher = glob(pattern)

    def seconds(size: int) -> float:
        url = "https://x.test/" + unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            best = min(best, spent(partial(matcher.matches, url)))
        assert not matcher.matches(url)
        return best

    small, large = seconds(250_000), seconds(1_000_000)
    assert large < max(0.05, 10 * small)  # four times as long; a square would be sixteen
    assert large < 2.0


def scope(mode: str, *lines: str, include: str = "", exclude: str = "") -> Scope:
    """The scope of a crawl with these lines of a seeds file, all of which are rules."""
    seeds = seeds_of(lines)
    rules = [rule_of(one.url, one.host, seeds.options.get(one.url, "")) for one in seeds.addresses]
    return Scope(
        mode, [one.host for one in seeds.addresses], patterns=Patterns(globs(include), globs(exclude), tuple(rules))
    )


def taken(made: Scope, *urls: str) -> list[str]:
    """Those of the URLs that belong to the crawl; of the others it can say why."""
    inside = [url for url in urls if made.refusal(parse(url), 1) is None]
    for url in urls:
        assert bool(made.why(parse(url))) is (url not in inside)
    return inside


@pytest.mark.parametrize(
    ("url", "prefix"),
    [
        ("https://a.test", "/"), ("https://a.test/?x=/y/", "/"), ("https://a.test/blog", "/blog/"),
        ("https://a.test/blog/", "/blog/"), ("https://a.test/blog/index.html?x", "/blog/"),
        ("https://a.test/users/ann", "/users/ann/"),
    ],
)  # fmt: skip
def test_the_folder_that_a_seed_names(url: str, prefix: str) -> None:
    """A last segment with a dot is a file, one without a folder; the query says nothing."""
    assert prefix_of(parse(url).url) == prefix


def test_scope_path() -> None:
    """Below any seed's folder, over http as over https; the folder without its slash; nothing beside it."""
    made = scope("path", "https://a.test/blog", "https://a.test/x/y/z.html", "https://b.test/")
    inside = [
        "http://a.test/blog",
        "https://a.test/blog/1?q",
        "https://a.test/x/y/",
        "https://a.test/x/y",
        "https://b.test/q",
    ]

    assert (
        taken(made, *inside, "https://a.test/", "https://a.test/blogger", "https://a.test/x/", "https://c.test/")
        == inside
    )


def test_patterns_of_the_crawl() -> None:
    """An exclude wins over an include; both are named; sitemaps are judged by their host alone."""
    made = Scope("host", ["a.test"], patterns=Patterns(globs("/blog/* /news/*"), globs("*/tag/*")))

    assert taken(made, "https://a.test/blog/x", "https://a.test/blog/tag/x", "https://a.test/") == [
        "https://a.test/blog/x"
    ]
    assert made.why(parse("https://a.test/blog/tag/x")) == "-a exclude=*/tag/*"
    assert made.why(parse("https://a.test/")) == "no pattern of -a include= matches: /blog/* /news/*"
    assert made.why(parse("https://b.test/blog/")) == "-a scope=host: not of the seeds' hosts"
    assert made.refusal(parse("https://a.test/sitemap.xml"), 1, is_list=True) is None
    assert made.refusal(parse("https://b.test/sitemap.xml"), 1, is_list=True) is Reason.SCOPE


def test_a_line_governs_its_own_host() -> None:
    """In a crawl of any host it narrows that host alone; two lines of one host take in what either does."""
    made = scope("any", "https://a.test/blog/ scope=path exclude=*.pdf", "https://a.test/shop/ include=/shop/*")

    assert taken(
        made,
        "https://a.test/blog/x",
        "https://a.test/blog/x.pdf",
        "https://a.test/shop/x.pdf",
        "https://a.test/",
        "https://b.test/",
    ) == ["https://a.test/blog/x", "https://a.test/shop/x.pdf", "https://b.test/"]
    assert made.why(parse("https://a.test/blog/x.pdf")) == (
        "no include= of the seed https://a.test/shop/ matches: /shop/*; exclude=*.pdf of the seed https://a.test/blog/"
    )


def test_a_line_with_a_domain_governs_its_subdomains() -> None:
    """But not a host that has a line of its own."""
    made = scope(
        "host", "https://www.example.org/ scope=domain exclude=*/tag/*", "https://blog.example.org/ include=/a/*"
    )

    assert taken(
        made,
        "https://x.example.org/",
        "https://x.example.org/tag/1",
        "https://blog.example.org/b",
        "https://example.com/",
    ) == ["https://x.example.org/"]


@pytest.mark.parametrize(
    ("target", "inside", "outside"),
    [
        ("https://www.a.test/blog/", "https://www.a.test/blog/x", "https://www.a.test/"),
        ("https://www.a.test/", "https://www.a.test/blog/x", "https://www.a.test/shop"),  # a front page
        ("https://a.test/en/blog/", "https://a.test/en/blog/x", "https://a.test/en/"),
        ("https://www.a.test/en/", "https://www.a.test/en/x", "https://www.a.test/en/tag/x"),
    ],
)
def test_a_seed_that_moves_takes_its_rules_along(target: str, inside: str, outside: str) -> None:
    """To the folder of the target, with its patterns; said once; its old place stays."""
    made = scope("path", "https://a.test/blog exclude=*/tag/*")

    assert made.move("https://a.test/blog", target)
    assert not made.move("https://a.test/blog", target)
    assert taken(made, inside, outside, "https://a.test/blog/y") == [inside, "https://a.test/blog/y"]


def test_a_move_within_the_place_changes_nothing() -> None:
    """From http to https, or with a slash; and where no seed has rules there is nothing to move."""
    assert not scope("path", "http://a.test/blog").move("http://a.test/blog", "https://a.test/blog/")
    assert not Scope("host", ["a.test"]).move("http://a.test/", "http://b.test/")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("https://a.test/ sope=path", "line 2: 'sope=path' is no option"),
        ("https://a.test/ scope=planet", "the scope 'planet' is unknown"),
        ("https://a.test/ scope=path exclude", "'exclude' is no option"),
        ("https://a.test/ exclude=calendar", "would match no URL"),
        ("https://a.test/ max_pages=many", "max_pages is 'many'"),
    ],
)
def test_an_option_that_cannot_hold_is_refused(line: str, said: str) -> None:
    """With its line: what it was to keep out would come in."""
    with pytest.raises(BadOption, match=said):
        seeds_of(["https://ok.test/", line])


def test_options_and_urls_with_blanks_are_told_apart() -> None:
    """A blank before anything but an option is the URL's; a comment ends the line."""
    seeds = seeds_of(["example.org/a b  max_pages=5   exclude=*x*  # why", "https://a.test/?a=1 b"])

    assert [one.url for one in seeds.addresses] == ["https://example.org/a%20b", "https://a.test/?a=1%20b"]
    assert seeds.options == {"https://example.org/a%20b": "max_pages=5 exclude=*x*"}
    assert host_limits([rule_of("https://example.org/", "example.org", "max_pages=5")]) == {"example.org": Limits(5)}


def test_a_host_of_ten_thousand_seeds_costs_a_lookup_a_folder() -> None:
    """A link is not held against each seed: some microseconds, whatever their number."""
    made = scope("path", *(f"https://a.test/users/u{number}/" for number in range(10_000)))
    links = [parse(f"https://a.test/users/u{number}/p/{number}") for number in range(0, 20_000, 10)]
    inside: list[bool] = []

    seconds = spent(lambda: inside.extend(made.refusal(link, 1) is None for link in links))

    assert sum(inside) == 1000
    assert seconds / len(links) < 100e-6
