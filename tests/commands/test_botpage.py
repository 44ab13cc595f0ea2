"""``scrapy botpage FOLDER``: what site owners and their programs find there, in a real browser and by schema."""

from __future__ import annotations

import json
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from crawlerproject.reports.bot_page import CHANGES, RANGES
from crawlerproject.reports.bot_words import LANGUAGES
from crawlerproject.rules.identity.key_ring import DIRECTORY_PATH
from crawlerproject.rules.robots.policy import parse_robots
from tests.commands.browser import axe as axe
from tests.commands.browser import browser as browser
from tests.commands.browser import window
from tests.commands.crawled import scrapy
from tests.commands.status_schema import mistakes
from tests.web.running import PROJECT

RANGES_GIVEN = "192.0.2.0/28,192.0.2.99/32,2001:db8::/32"
SETTINGS = ("-s", "CRAWLER_CONTACT=you@example.org", "-s", "CRAWLER_NAME=foobot", "-s", "PURPOSE=search")
# draft-illyes-webbotauth-jafar-00, section 2; that a prefix has exactly one of the two is looked at below.
JAFAR: dict[str, Any] = {
    "type": "object",
    "required": ["formatVersion", "creationTime", "prefixes"],
    "properties": {
        "formatVersion": {"const": "1.0"},
        "creationTime": {"type": "string"},
        "prefixes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("ipv4Prefix", "ipv6Prefix", "service")},
            },
        },
    },
}
# RFC 7517, section 5, and RFC 8037, section 2; no other member, so no private one.
JWKS: dict[str, Any] = {
    "type": "object",
    "required": ["keys"],
    "properties": {
        "keys": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["kty", "crv", "x", "kid"],
                "properties": {
                    "kty": {"const": "OKP"},
                    "crv": {"const": "Ed25519"},
                    **{name: {"type": "string"} for name in ("x", "kid", "use", "alg")},
                    **{name: {"type": "integer"} for name in ("nbf", "exp")},
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written twice: the second time with another contact, as if on a later day."""
    public = tmp_path_factory.mktemp("bot") / "public"
    assert scrapy("botpage", str(public), "-s", "CRAWLER_CONTACT=old@example.org", *SETTINGS[2:]).returncode == 0
    entries = json.loads((public / CHANGES).read_text())
    entries[0]["date"] = "2026-01-31"
    (public / CHANGES).write_text(json.dumps(entries))
    other = (
        "ROBOTS_TTL_SECONDS=7200",
        "FETCH_MAX_BYTES=1000000",
        "QUIET_HOURS=False",
        f"IDENTITY_RANGES={RANGES_GIVEN}",
    )
    again = scrapy("botpage", str(public), *SETTINGS, *(part for each in other for part in ("-s", each)))
    assert again.returncode == 0, again.stderr
    assert "does not say whom the crawler serves: WARC_OPERATOR would" in again.stderr
    return public


def test_the_ranges_are_as_the_draft_has_them(folder: Path) -> None:
    """JAFAR: each prefix one network of its family, the time in UTC; linked from every page."""
    found = json.loads((folder / RANGES).read_text())

    assert list(mistakes(found, JAFAR)) == []
    datetime.strptime(found["creationTime"], "%Y-%m-%dT%H:%M:%SZ")
    networks = []
    for prefix in found["prefixes"]:
        (name,) = prefix.keys() & {"ipv4Prefix", "ipv6Prefix"}
        networks.append(ip_network(prefix[name]))
        assert name == f"ipv{networks[-1].version}Prefix"
    assert networks == [ip_network(text) for text in RANGES_GIVEN.split(",")]
    for page in folder.glob("*.html"):
        assert f'<link rel="client-ranges" type="application/json" href="{RANGES}">' in page.read_text()


def test_what_changed_stands_on_the_page_by_date(folder: Path) -> None:
    """What an owner relies on, from one writing to the next; the day of the first publication last."""
    page = (folder / "index.html").read_text()

    assert "contact: old@example.org → you@example.org" in page
    assert "addresses: – → 192.0.2.0/28, 192.0.2.99, 2001:db8::/32" in page
    assert "hours until robots.txt is read again: 24 → 2" in page
    assert "most bytes of a page: 5,242,880 → 1,000,000" in page
    assert "pause in busy hours: × 3 → –" in page
    assert page.index("contact: old@") < page.index("2026-01-31: first published")


def test_keys_are_published_with_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JWK Set (RFC 7517, RFC 8037), of which the page speaks when requests are signed; without private parts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    key, public = tmp_path / "identity.json", tmp_path / "public"
    signing = ("-s", f"IDENTITY_KEY_FILE={key}")
    assert scrapy("identity", "init", "https://bot.example", str(tmp_path / "first"), *signing).returncode == 0
    assert scrapy("botpage", str(public), *SETTINGS, *signing).returncode == 0
    found = json.loads((public / DIRECTORY_PATH[1:]).read_text())

    assert list(mistakes(found, JWKS)) == []
    assert (len(found["keys"]), len(found["keys"][0]["x"])) == (1, 43)
    assert DIRECTORY_PATH in (public / "_headers").read_text()
    assert f'href="{DIRECTORY_PATH}"' in (public / "index.html").read_text()


@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_and_used(folder: Path, browser: Browser, width: int) -> None:
    """In every language on a screen and on a phone: nothing cut, nothing wrong; the form tests a robots.txt."""
    for code in LANGUAGES:
        with window(browser, width) as seen:
            seen.page.goto((folder / ("index.html" if code == "en" else f"{code}.html")).as_uri())
            assert seen.width <= width
            assert seen.clipped() == []
            assert seen.page.locator("html").get_attribute("lang") == code
            assert seen.page.locator("nav a").count() == len(LANGUAGES)
            seen.page.fill("textarea", "User-agent: *\nDisallow: /\n\nUser-agent: FooBot\nDisallow: /a\nCrawl-delay: 7")
            answers = []
            for address in ("https://site.example/ab", "/b", "http://["):
                seen.page.fill("input", address)
                seen.page.click("button")
                answers.append(seen.page.inner_text("output"))
            said = seen.page.locator("output")
            words = [str(said.get_attribute(f"data-{name}")) for name in ("blocked", "allowed", "unread")]
            delay = "Crawl-delay: 7 s"
            assert answers == [f"{words[0]} · Disallow: /a · {delay}", f"{words[1]} · {delay}", words[2]]
            assert (seen.messages, len(seen.requests)) == ([], 1)


def test_it_is_accessible(folder: Path, browser: Browser, axe: str) -> None:
    """In every language."""
    with window(browser, 390) as seen:
        for path in sorted(folder.glob("*.html")):
            seen.page.goto(path.as_uri())
            assert seen.inaccessible(axe) == [], path.name


def test_the_form_judges_as_the_crawler_does(folder: Path, browser: Browser) -> None:
    """On the published cases of two other parsers, which the crawler's own rules are tested with."""
    cases = [
        (case["robots"], case["agent"], url)
        for name in ("google", "crawler-commons")
        for case in json.loads((PROJECT / "tests" / "cases" / "robots" / f"{name}.json").read_text())
        for url in (*case.get("allow", ()), *case.get("deny", ()))
        if "robots" in case and url
    ]
    with window(browser, 1280) as seen:
        seen.page.goto((folder / "index.html").as_uri())
        theirs = seen.page.evaluate("(cases) => cases.map((each) => verdict(...each).allowed)", cases)
    ours = [parse_robots(robots.encode(), agent).allowed(url) for robots, agent, url in cases]

    assert len(cases) > 100
    different = [case for case, page, crawl in zip(cases, theirs, ours, strict=True) if page != crawl]
    assert different == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-s", "IDENTITY_RANGES=192.168.1.0/24"], "IDENTITY_RANGES has '192.168.1.0/24', which is not public"),
        (["-s", "IDENTITY_RANGES=bot.example"], "IDENTITY_RANGES has 'bot.example', which is no network"),
        (["-s", "PURPOSE=foo"], "PURPOSE is 'foo'; use one of archive, search"),
    ],
)
def test_what_says_nothing_is_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    """Status 2, and nothing is written."""
    ended = scrapy("botpage", str(tmp_path / "public"), *SETTINGS, *arguments)

    assert (ended.returncode, (tmp_path / "public").exists()) == (2, False)
    assert sentence in ended.stderr


def test_changes_that_were_edited_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    """A list that cannot be read is not written over."""
    (tmp_path / CHANGES).write_text('[{"date": "tomorrow"}]')
    ended = scrapy("botpage", str(tmp_path), *SETTINGS)

    assert (ended.returncode, "is not what was written here" in ended.stderr) == (2, True)
