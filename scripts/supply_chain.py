"""Write docs/licences.md and docs/sbom.cdx.json: what a crawl's environment consists of, and under which licences.

``python scripts/supply_chain.py`` reads requirements.txt and, of each pin, what the installed package says of itself.
Run it after a change of a pin: ``tests/scripts/test_supply_chain.py`` fails until then.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "requirements.txt"
PAGE = ROOT / "docs" / "licences.md"
BILL = ROOT / "docs" / "sbom.cdx.json"
_INDIRECT = "# What those need"

# Of direct ones whose use needs a word.
USES = {
    "Protego": "robots.txt, in Scrapy; the second opinion on ours, in `scrapy why`, `scrapy robots` and tests",
    "uvloop": "the event loop, which the settings name and nothing imports",
    "warcio": "cuts the records of archives that other programs wrote; in tests it reads what we write",
}

# What packages write where an SPDX identifier belongs.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "GNU Affero General Public License v3": "AGPL-3.0-only",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
    **{name: name for name in ("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "MIT", "MPL-2.0", "PSF-2.0")},
}
# Of packages that say no more than "BSD", or a text: read in their licence files.
READ = {
    "Automat": "MIT",
    "Jinja2": "BSD-3-Clause",
    "PyDispatcher": "BSD-3-Clause",
    "pypdfium2": "BSD-3-Clause AND Apache-2.0",
    "tinycss2": "BSD-3-Clause",
    "uvloop": "Apache-2.0 OR MIT",
    "webencodings": "BSD-3-Clause",
}


class Component(NamedTuple):
    """One pin."""

    name: str
    version: str
    licence: str  # SPDX expression
    direct: bool
    needs: tuple[str, ...]  # names of other pins


def pins() -> dict[str, tuple[str, bool]]:
    """Name -> version, and whether it is a direct one."""
    direct, _, indirect = PINS.read_text().partition(_INDIRECT)
    found = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)
    return {
        name: (version, is_direct)
        for text, is_direct in ((direct, True), (indirect, False))
        for name, version in found.findall(text)
    }


def components() -> list[Component]:
    """Of every pin. Raises SystemExit where one is not installed as pinned, or does not say its licence."""
    pinned = pins()
    canonical = {canonicalize_name(name): name for name in pinned}
    made = []
    for name, (version, direct) in pinned.items():
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed; run this with Python 3.11, for which all pins count.") from None
        if installed.version != version:
            raise SystemExit(f"{name} {installed.version} is installed, and {version} is pinned.")
        asked = (Requirement(text) for text in installed.requires or [])
        wanted = {canonicalize_name(one.name) for one in asked if not one.marker or one.marker.evaluate({"extra": ""})}
        needs = tuple(sorted(canonical[other] for other in wanted if other in canonical))
        made.append(Component(name, version, licence(name, installed), direct, needs))
    return made


def licence(name: str, installed: Distribution) -> str:
    """Its SPDX expression. Raises SystemExit."""
    facts = installed.metadata
    expressions, kinds, fields = (
        [str(value) for value in facts.get_all(field) or []]
        for field in ("License-Expression", "Classifier", "License")
    )
    if expressions:
        return expressions[0]
    said = {kind.rpartition(" :: ")[2] for kind in kinds if kind.startswith("License ::")}
    said |= {field for field in fields if field in SPDX}
    found = {SPDX[one] for one in said if one in SPDX}
    if name in READ:
        return READ[name]
    if len(found) != 1:
        raise SystemExit(f"{name} does not say one licence ({said or fields}); read it and put it into READ.")
    return found.pop()


def page(made: list[Component]) -> str:
    """The table, in Markdown."""
    lines = [
        "# Licences",
        "",
        "Every pin of `requirements.txt`, by its licence; **bold** is what the crawler itself uses, the others are",
        "needed by those. Versions, and what needs what: [sbom.cdx.json](sbom.cdx.json) (CycloneDX). The crawler is",
        "BSD-3-Clause; the native page reader holds lexbor, Apache-2.0. Look before you hand it on: `surt` is under",
        "the AGPL, and is imported for addresses whose keys `rules/archive/index_rows.py` does not write itself.",
        "Made by `scripts/supply_chain.py`.",
        "",
        "| licence | packages |",
        "|---|---|",
    ]
    named: dict[str, list[str]] = {}
    for one in sorted(made, key=lambda each: (not each.direct, each.name.lower())):
        named.setdefault(one.licence, []).append(f"**{one.name}**" if one.direct else one.name)
    for expression, names in sorted(named.items(), key=lambda each: (-len(each[1]), each[0])):
        lines.append(f"| {expression} | {', '.join(names)} |")
    return "\n".join([*lines, "", *(f"- {name}: {use}" for name, use in USES.items())]) + "\n"


def bill(made: list[Component]) -> dict[str, Any]:
    """CycloneDX 1.6. Nothing of it is of this moment: the same pins give the same file."""
    from crawlerproject.native.build import lexbor_units, lexbor_version

    lexbor_units()
    refs = {one.name: f"pkg:pypi/{canonicalize_name(one.name)}@{one.version}" for one in made}
    root = {"type": "application", "bom-ref": "crawlerproject", "name": "crawlerproject"}
    version = lexbor_version()
    lexbor = _entry("lexbor", version, f"pkg:github/lexbor/lexbor@v{version}", "Apache-2.0")
    entries = [_entry(one.name, one.version, refs[one.name], one.licence) for one in made]
    needs = [{"ref": refs[one.name], "dependsOn": [refs[name] for name in one.needs]} for one in made]
    direct = [refs[one.name] for one in made if one.direct]
    own = {"ref": "crawlerproject", "dependsOn": [*direct, lexbor["bom-ref"]]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid5(NAMESPACE_URL, " ".join(sorted(refs.values()))).urn,
        "version": 1,
        "metadata": {"component": root | _licences("BSD-3-Clause AND Apache-2.0")},
        "components": [*entries, lexbor],
        "dependencies": [own, *needs, {"ref": lexbor["bom-ref"], "dependsOn": []}],
    }


def _entry(name: str, version: str, ref: str, expression: str) -> dict[str, Any]:
    facts = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    return facts | _licences(expression)


def _licences(expression: str) -> dict[str, Any]:
    return {"licenses": [{"expression": expression}]}


def main() -> int:
    """Both files."""
    made = components()
    PAGE.write_text(page(made))
    BILL.write_text(json.dumps(bill(made), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
