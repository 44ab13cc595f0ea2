"""docs/grafana.json: what its script writes, asking for what a crawl shows, with every panel in its place."""

from __future__ import annotations

import json
import re
import runpy
from typing import Any

import pytest

from tests.reports.exposed import exposed
from tests.web.running import PROJECT

SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "grafana.py"))
# What Prometheus adds to what it scrapes.
THEIRS = frozenset({"job", "instance"})


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    """The dashboard as it lies in docs."""
    read: dict[str, Any] = json.loads((PROJECT / "docs" / "grafana.json").read_text())
    return read


def metrics(text: str) -> set[str]:
    """Names of the metrics that are asked for."""
    return set(re.findall(r"\b(?:crawler|process)_\w+", text))


def test_the_dashboard_is_of_its_script() -> None:
    """To mend: python scripts/grafana.py."""
    assert (PROJECT / "docs" / "grafana.json").read_text() == SCRIPT["text"]()


def test_the_dashboard_asks_for_what_there_is(board: dict[str, Any]) -> None:
    """Every metric is one that a crawl shows; every label, in sums and in legends, one that its metric has."""
    asked = [(target["expr"], target["legendFormat"]) for panel in board["panels"] for target in panel["targets"]]
    for expression, legend in asked:
        labels = THEIRS.union(*(exposed()[name] for name in metrics(expression)))
        assert metrics(expression)
        named = re.findall(r"\bby \((\w+)\)", expression) + re.findall(r"\{\{(\w+)\}\}", legend)
        assert set(named) <= labels, expression
        assert expression.count("{") == len(re.findall(r'\{job=~"\$job",instance=~"\$instance"\}', expression)) > 0
    others = [variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
    others += [each["expr"] for each in board["annotations"]["list"]]
    assert len(others) == 3
    assert metrics(" ".join(others)) <= exposed().keys()
    assert len(asked) > 40


def test_panels_do_not_lie_on_each_other(board: dict[str, Any]) -> None:
    """Nor beside the grid; ids and titles name one each."""
    places = [
        (x, y) for panel in board["panels"] for at in [panel["gridPos"]]
        for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    ]  # fmt: skip
    assert len(places) == len(set(places))
    assert max(x for x, _ in places) < SCRIPT["GRID_COLUMNS"]
    assert len({panel["title"] for panel in board["panels"]}) == len(board["panels"])
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
