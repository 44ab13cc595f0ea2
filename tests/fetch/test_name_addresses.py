"""Addresses of names before a crawl: hosts file and literals without a question, the DNS when it is asked for."""

from __future__ import annotations

from pathlib import Path

from scrapy.settings import Settings

from crawlerproject.fetch.name_addresses import known_addresses, resolved_addresses

NAMES = ["a.test", "b.test", "[2001:db8::1]", "192.0.2.9", "nowhere.invalid"]


def settings(tmp_path: Path) -> Settings:
    """Two names that share two addresses; nothing listens where the DNS should be (RFC 863: discard)."""
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 a.test b.test\n192.0.2.2 a.test b.test\n")
    servers, rate = ["127.0.0.1:9"], 500.0
    return Settings({"FETCH_HOSTS_FILE": str(hosts), "FETCH_DNS_SERVERS": servers, "FETCH_DNS_MAX_PER_SECOND": rate})


def test_what_is_known_needs_no_question(tmp_path: Path) -> None:
    """Of several addresses the one with the fewest names, as the crawl chooses; a name that is unknown is left out."""
    assert known_addresses(NAMES, settings(tmp_path)) == {
        "a.test": "192.0.2.1",
        "b.test": "192.0.2.2",
        "[2001:db8::1]": "2001:db8::1",
        "192.0.2.9": "192.0.2.9",
    }


def test_a_dns_that_does_not_answer_is_no_error(tmp_path: Path) -> None:
    """What it would have known is unknown."""
    assert resolved_addresses(NAMES, settings(tmp_path)) == known_addresses(NAMES, settings(tmp_path))
