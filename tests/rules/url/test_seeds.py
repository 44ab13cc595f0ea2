"""rules/seeds: one URL a line, comments, bare hosts, and what is wrong with the rest."""

from crawlerproject.reasons import Reason
from crawlerproject.rules.url.seeds import BadSeed, seeds_of


def test_lines() -> None:
    """Blank lines and comments are skipped, a fragment is no comment, a page is named once."""
    seeds, problems, _ = seeds_of(
        ["\ufeff# mine\n", "\n", "http://example.org/a#frag  # why\r\n", "http://EXAMPLE.org/a\n", "  # x\n"]
    )
    assert [seed.url for seed in seeds] == ["http://example.org/a"]
    assert problems == []


def test_bare_hosts_are_https() -> None:
    """A name without a scheme is asked over https, with its port and path."""
    seeds, *_ = seeds_of(["example.org", "\ufeffexample.org:8443/x?y", "localhost:80", "bücher.example"])
    assert [seed.url for seed in seeds] == [
        "https://example.org/",
        "https://example.org:8443/x?y",
        "https://localhost:80/",
        "https://xn--bcher-kva.example/",
    ]


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
