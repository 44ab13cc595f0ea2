"""Run the suites of peers and standards against ours, and print what differs.

    make conformance [ARGS="SUITE ..."]

Each file of this folder with a tuple ``SUITES`` adds its suites. Sources that they read are pinned in
requirements-conformance-sources.txt and lie unpacked in .venv-conformance/sources. Exit 1 when one differs by fault.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from benchmarks.conformance.suite import Suite, report, run

SOURCES = Path(__file__).resolve().parents[2] / ".venv-conformance" / "sources"


def suites(wanted: list[str]) -> Iterator[Suite]:
    """Those whose names begin with one of the ``wanted``; all without any."""
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name != "__main__":
            for suite in getattr(import_module(f"benchmarks.conformance.{module.name}"), "SUITES", ()):
                if not wanted or suite.name.startswith(tuple(wanted)):
                    yield suite


def main(wanted: list[str]) -> int:
    """Run and print; the exit code is 1 when something differs without a reason."""
    outcomes = [run(suite, SOURCES) for suite in suites(wanted)]
    print("\n".join(report(outcomes)))
    return int(not outcomes or any(outcome.faults for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
