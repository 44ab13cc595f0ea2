"""What ``make audit`` runs: pip-audit over requirements.lock, against the advisories that PyPI has of each pin.

Exit status 1 when a pin has an advisory, 0 when none has one, or when the data cannot be reached: then it says that,
and that nothing is known. A registry that has packages and no advisories would pass for good news, so an old version
with known advisories is asked about first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build" / "audit"
TOOL = "pip-audit==2.10.1"
#: Has a dozen advisories, of 2019 to 2025.
CANARY = "urllib3==1.24.1"
SECONDS = 600.0


class Verdict(NamedTuple):
    """What is said, and with which exit status."""

    lines: list[str]
    status: int


def advisories(report: Mapping[str, Any]) -> list[str]:
    """A line for each: the pin, the advisory's names, the versions that mend it. Of pip-audit's JSON."""
    return [
        f"{pin['name']} {pin['version']}: {', '.join((found['id'], *found['aliases']))}; "
        f"mended in {', '.join(found['fix_versions']) or 'no version yet'}"
        for pin in report["dependencies"]
        for found in pin.get("vulns", ())
    ]


def passed_over(report: Mapping[str, Any]) -> list[str]:
    """The pins that pip-audit could not judge."""
    return [f"{pin['name']}: {pin['skip_reason']}" for pin in report["dependencies"] if "skip_reason" in pin]


def verdict(canary: Mapping[str, Any] | None, report: Mapping[str, Any] | None) -> Verdict:
    """Of both reports; None for one that could not be made."""
    if canary is None or report is None:
        return Verdict(["Nothing is known: the advisories cannot be reached from here."], 0)
    if not advisories(canary):
        return Verdict([f"Nothing is known: the registry here has no advisory of {CANARY}, which has some."], 0)
    skipped = [f"Not judged: {line}" for line in passed_over(report)]
    if found := advisories(report):
        return Verdict([*found, *skipped], 1)
    return Verdict([f"No advisory of {len(report['dependencies']) - len(skipped)} pins.", *skipped], 0)


def audited(program: Path, requirements: Path) -> dict[str, Any] | None:
    """pip-audit's report; None when it has made none, which is when it could not ask."""
    command = [str(program), "--requirement", str(requirements), "--disable-pip", "--no-deps", "--format", "json"]
    try:
        done = subprocess.run(
            [*command, "--progress-spinner", "off"], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        report: dict[str, Any] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return report


def prepared() -> Path | None:
    """The program, in an environment of its own; None where it cannot be installed."""
    program = ENVIRONMENT / "bin" / "pip-audit"
    if not program.exists():
        venv.create(ENVIRONMENT, with_pip=True)
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", TOOL]
        if subprocess.run(pip, check=False).returncode:
            return None
    return program


def main() -> int:
    """Say the verdict."""
    program = prepared()
    canary = report = None
    if program is not None:
        with TemporaryDirectory() as folder:
            old = Path(folder, "canary.txt")
            old.write_text(f"{CANARY}\n")
            canary, report = audited(program, old), audited(program, ROOT / "requirements.lock")
    said = verdict(canary, report)
    print("\n".join(said.lines))
    return said.status


if __name__ == "__main__":
    sys.exit(main())
