"""Draws CPU a page of every crawler; runs in the environment of the peers: ``plot.py OUT.svg``, runs on stdin."""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # after the choice of what draws

_HATCHES = ["", "//", "..", "xx"]  # distinguishable without colour
matplotlib.rcParams["svg.hashsalt"] = "bench"  # the same figures give the same file


def draw(runs: list[dict[str, object]], path: str) -> None:
    """One group of bars a case, with the least and greatest of the rounds as a line."""
    cost: dict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        cost[str(run["case"]), str(run["crawler"])].append(float(run["cpu_ms"]))  # type: ignore[arg-type]
    cases = list(dict.fromkeys(case for case, _ in cost))
    names = list(dict.fromkeys(name for _, name in cost))
    figure, axes = pyplot.subplots(figsize=(7, 3.2))
    width = 0.8 / len(names)
    for number, name in enumerate(names):
        for position, case in enumerate(cases):
            values = cost.get((case, name))
            if not values:
                continue
            middle = statistics.median(values)
            spread = [[middle - min(values)], [max(values) - middle]]
            label = name if position == 0 else None
            at = position + number * width
            axes.bar(at, middle, width, yerr=spread, label=label, color=f"C{number}", hatch=_HATCHES[number])
            axes.text(at, middle, f"{middle:.1f}", ha="center", va="bottom", fontsize=8)
    axes.set_xticks([position + 0.4 - width / 2 for position in range(len(cases))], [f"({case})" for case in cases])
    axes.set_ylabel("CPU ms a page")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    draw(json.load(sys.stdin), sys.argv[1])
