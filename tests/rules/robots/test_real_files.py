"""robots.txt: small real files, two of each oddity among 4,231, and what they must mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawlerproject.rules.robots.policy import parse_robots
from tests.rules.robots.test_growth import calls

CASES = json.loads((Path(__file__).parents[2] / "cases" / "robots" / "real.json").read_text("utf-8"))
FILES = {case["host"]: bytes.fromhex(case["octets"]) if "octets" in case else case["robots"].encode() for case in CASES}


@pytest.mark.parametrize(
    ("host", "path", "allowed"),
    [
        ("www.shoprite.com", "/sitecore/x", False),  # byte order mark
        ("www.mathway.com", "/settings/x", False),
        ("www.myvue.com", "/login/x", False),  # UTF-16
        ("www.myvue.com", "/book-tickets/summary/1", False),
        ("www.myvue.com", "/film", True),
        ("www.prometric.com", "/x", True),  # CR alone
        ("www.regmovies.com", "/", True),  # markup
        ("www.turktelekom.com.tr", "/destek/Sayfalar/gizlilik-guvenlik.aspx", False),  # a no-break space
        ("www.opm.gov", "/Search/x", False),  # two groups for everyone, an absolute address
        ("www.opm.gov", "/tax_calc/", True),
        ("www.wmtransfer.com", "/include/x", False),  # "Disalow"
        ("www.calottery.com", "/sitecore/content/Scratchers%20Games/Ended%20Games/x", False),
        ("ftbwiki.org", "/Special:Random", False),
        ("ftbwiki.org", "/Special%3aRandom", False),
        ("www.president.gov.ua", "/docs/x", False),  # "Allow: *" is shorter
        ("www.kxan.com", "/wp-admin/x", False),
        ("www.kxan.com", "/wp-admin/admin-ajax.php", True),
        ("www.eliteprospects.com", "/intrateam/", True),  # rules that are said to nobody
    ],
)
def test_verdict(host: str, path: str, allowed: bool) -> None:
    """As its owner wrote it."""
    assert parse_robots(FILES[host], "TestBed").allowed(path) is allowed


def test_wishes() -> None:
    """Delays with a comment glued to them, rates and hours; those that are said to nobody do not count."""
    assert parse_robots(FILES["www.kxan.com"], "TestBed").crawl_delay_seconds == 10
    assert parse_robots(FILES["www.nic.ir"], "TestBed").request_rate_seconds == 10
    assert parse_robots(FILES["www.nic.ir"], "TestBed").visit_times == ((0, 300),)
    assert parse_robots(FILES["www.frys.com"], "TestBed").visit_times == ((30, 180),)
    assert parse_robots(FILES["www.eliteprospects.com"], "TestBed").floor_seconds == 0


@pytest.mark.parametrize("host", FILES)
def test_each_costs_what_its_length_costs(host: str) -> None:
    """At most sixty calls a line and ten an octet, whatever is in it; robots.txt itself may always be asked for."""
    body = FILES[host]
    assert calls(body) <= 60 * (body.count(b"\n") + body.count(b"\r") + 1) + 10 * len(body) + 500
    assert parse_robots(body, "TestBed").allowed("/robots.txt")
