"""robots.txt: what the public test suites of Google's and crawler-commons' parsers expect, and where we differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.rules.robots.policy import parse_robots

CASES = Path(__file__).parents[2] / "cases" / "robots"
SUITES = ("google", "crawler-commons")


def read(suite: str) -> list[dict[str, Any]]:
    """The cases of one suite."""
    cases: list[dict[str, Any]] = json.loads((CASES / f"{suite}.json").read_text("utf-8"))
    return cases


def body(case: dict[str, Any]) -> bytes:
    """The robots.txt of a case."""
    return bytes.fromhex(case["octets"]) if "octets" in case else case["robots"].encode()


ALL = [(suite, case) for suite in SUITES for case in read(suite)]


@pytest.mark.parametrize(("suite", "case"), ALL, ids=[f"{suite}:{case['case']}:{case['agent']}" for suite, case in ALL])
def test_verdicts_of_the_suite(suite: str, case: dict[str, Any]) -> None:
    """Every verdict is theirs, but for those that are decided otherwise with a reason."""
    rules = parse_robots(body(case), case["agent"])
    expected = dict.fromkeys(case.get("allow", ()), True) | dict.fromkeys(case.get("deny", ()), False)
    expected |= {decided["url"]: decided["ours"] == "allow" for decided in case.get("decided", ())}
    assert expected
    assert {url: rules.allowed(url) for url in expected} == expected


def test_differences_are_few_and_explained() -> None:
    """Each says what theirs is, what ours is, and why; hundreds of verdicts are alike."""
    decided = [found for _, case in ALL for found in case.get("decided", ())]
    verdicts = sum(len(case.get("allow", ())) + len(case.get("deny", ())) for _, case in ALL)
    assert verdicts >= 450
    assert len(decided) == 12
    assert all(found["ours"] != found["theirs"] and len(found["why"]) > 40 for found in decided)
