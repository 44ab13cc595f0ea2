"""deploy/prometheus: rules that ask for what a crawl shows, each with its test and its page, and promtool's word."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.reports.exposed import exposed
from tests.web.running import PROJECT

FOLDER = PROJECT / "deploy" / "prometheus"
RULES = (FOLDER / "alerts.yml").read_text()
TESTS = (FOLDER / "alerts_test.yml").read_text()
ALERTS = re.findall(r"^ +- alert: (\w+)$", RULES, flags=re.MULTILINE)
# What Prometheus adds to what it scrapes, and the metric that it makes itself.
THEIRS = frozenset({"job", "instance"})
UP = "up"
#: Where ``make alerts`` has it; Debian's package of Prometheus has it on the path.
PROMTOOL = shutil.which(
    "promtool", path=os.pathsep.join((str(PROJECT / "build/prometheus/usr/bin"), os.environ["PATH"]))
)

SELECTOR = re.compile(r"\b((?:crawler|process)_\w+|up\b)(?:\{([^}]*)\})?")


def asked(text: str) -> list[tuple[str, frozenset[str]]]:
    """Each metric that is asked for, with the labels by which it is selected."""
    return [(name, frozenset(re.findall(r"(\w+) ?(?:=|!)", found))) for name, found in SELECTOR.findall(text)]


@pytest.mark.parametrize("text", [RULES, TESTS], ids=["rules", "tests"])
def test_rules_ask_for_what_there_is(text: str) -> None:
    """Every metric is one that a crawl shows, and every label one that it has."""
    expressions = "\n".join(line for line in text.splitlines() if "runbook_url" not in line and "summary" not in line)
    found = [(name, labels - THEIRS) for name, labels in asked(expressions) if name != UP]

    assert len(found) > 40
    assert {name for name, _ in found} <= exposed().keys()
    assert [(name, labels) for name, labels in found if not labels <= exposed()[name]] == []


def test_sums_keep_labels_that_there_are() -> None:
    """``by (...)`` names no label that no metric of its rule has."""
    for rule in RULES.split("- alert: ")[1:]:
        known = THEIRS.union(*(exposed().get(name, frozenset()) for name, _ in asked(rule)))
        for names in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule):
            assert set(names.split(", ")) <= known, rule


def test_each_alert_has_a_test_and_a_page() -> None:
    """Shown firing and not firing, and explained under its own heading, where its link leads."""
    page = (PROJECT / "docs" / "alerts.md").read_text()

    assert re.findall(r"^### (\w+)$", page, flags=re.MULTILINE) == ALERTS
    assert re.findall(r"runbook_url: docs/alerts.md#(\w+)", RULES) == [alert.lower() for alert in ALERTS]
    assert set(re.findall(r'ALERTS\{alertname="(\w+)", alertstate="firing"', TESTS)) == set(ALERTS)
    assert set(re.findall(r'ALERTS\{alertname="(\w+)", (?:instance|crawl)="good"', TESTS)) == set(ALERTS)
    assert len(set(ALERTS)) == len(ALERTS) > 20


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: make alerts brings it")
@pytest.mark.parametrize("arguments", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")])
def test_promtool_agrees(arguments: tuple[str, ...]) -> None:
    """Each rule is well formed, fires for the crawler in trouble and leaves the other alone."""
    assert PROMTOOL is not None
    done = subprocess.run(
        [Path(PROMTOOL), *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
