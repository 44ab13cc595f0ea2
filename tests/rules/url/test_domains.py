"""Registered domains: the suffix of a name is the one that tldextract finds."""

import random

import pytest
import tldextract

from crawlerproject.rules.url import domains
from crawlerproject.rules.url.domains import domain_of

ORACLE = tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())
RULES = sorted({rule for private in (False, True) for rule in ORACLE._get_tld_extractor().tlds(private)})
ODD = [
    *("", ".", "..", "localhost", "example.invalid", "127.0.0.1", "1.2.3.4.5", "[::1]", "[::1", "under_score.co.uk"),
    *("EXAMPLE.Co.UK", "example.com.", "a..com", "user@example.com", "example.com:80", "a b.com", "exämple.de"),
    *("xn--55qx5d.cn", "www.xn--55qx5d.cn", "xn--.cn", "a。com", "www.ck", "a.ck", "ck", "city.kawasaki.jp", "-.com"),
]


def names() -> list[str]:
    """Every exception and wildcard, and some of the other rules: each bare, with labels more, with one missing."""
    chance = random.Random(17)
    wild = [rule for rule in RULES if rule[0] in "*!"]
    made = []
    for rule in wild + chance.sample(RULES, 700):
        bare = rule.removeprefix("!").removeprefix("*.")
        made += [bare, f"a.{bare}", f"www.a.{bare}", f"x.www.a.{bare}", bare.partition(".")[2], f"{bare}.com"]
    return made + ODD


@pytest.mark.parametrize("private", [False, True])
def test_it_is_what_tldextract_says(private: bool) -> None:
    """The whole answer, for names of every kind of rule and for names that are none."""
    differing = []
    for name in names():
        said = ORACLE(name, include_psl_private_domains=private)
        if domain_of(name, private=private) != (said.top_domain_under_public_suffix, said.suffix):
            differing.append(name)

    assert differing == []


def test_a_list_elsewhere_is_tldextracts_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file is not, tldextract is asked."""
    monkeypatch.setattr(domains, "_by_top_level", lambda **_: None)

    assert domain_of("a.b.example.co.uk", private=True) == ("example.co.uk", "co.uk")


def test_the_list_is_found() -> None:
    """Of the version that is pinned: or each start would pay for tldextract."""
    rules = domains._by_top_level(private=True)

    assert rules is not None
    assert sorted(rule for found in rules.values() for rule in set(found)) == RULES
