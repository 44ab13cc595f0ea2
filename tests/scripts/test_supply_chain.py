"""What an environment consists of: every pin has a use, a licence, and a place in the bill of materials."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_rooms import FILES, foreign
from tests.web.running import PROJECT

SCRIPT = runpy.run_path(str(PROJECT / "scripts" / "supply_chain.py"))
PINS: dict[str, tuple[str, bool]] = SCRIPT["pins"]()


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    """The bill of materials."""
    read: dict[str, Any] = json.loads(SCRIPT["BILL"].read_text())
    return read


def test_every_pin_is_in_both_files(bill: dict[str, Any]) -> None:
    """As it is pinned, and nothing else but the parser that the native reader holds."""
    pinned = {name: version for name, (version, _) in PINS.items()}
    rows = re.findall(r"^\| ([A-Z0-9(]\S*.*?) \| (\S.*) \|$", SCRIPT["PAGE"].read_text(), flags=re.MULTILINE)
    licences = {name.strip("*"): licence for licence, names in rows for name in names.split(", ")}

    assert len(pinned) > 60
    assert licences.keys() == pinned.keys()
    billed = {entry["name"]: entry["version"] for entry in bill["components"]}
    assert billed == pinned | {"lexbor": billed["lexbor"]}  # whose version tests/native/test_lexbor.py compares
    for entry in bill["components"]:
        assert entry["licenses"] == [{"expression": licences.get(entry["name"], "Apache-2.0")}]


def test_a_licence_is_an_spdx_expression(bill: dict[str, Any]) -> None:
    """Of identifiers, AND, OR and parentheses: https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/."""
    for entry in bill["components"]:
        expression = entry["licenses"][0]["expression"]
        assert re.fullmatch(r"\(?[A-Z0-9][\w.-]+\)?(?: (?:AND|OR) \(?[A-Z0-9][\w.-]+\)?)*", expression), expression
        assert expression.count("(") == expression.count(")")


def test_the_direct_ones_are_those_that_are_imported(bill: dict[str, Any]) -> None:
    """By the package, but for options and engines of others; each other is needed by one that is there."""
    refs = {entry["bom-ref"]: entry["name"] for entry in bill["components"]}
    needed = {refs[ref] for one in bill["dependencies"] if one["ref"] in refs for ref in one["dependsOn"]}
    modules = {module for path in FILES for module in foreign(path)} - sys.stdlib_module_names
    known = packages_distributions()  # before Python 3.12 it does not know a module that is one compiled file
    imported = {canonicalize_name(name) for module in modules for name in known.get(module, [module])}
    direct = {name for name, (_, is_direct) in PINS.items() if is_direct}
    optional = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"].values()
    engines = re.findall(r"^[\w.-]+(?===)", (PROJECT / "requirements-engines.txt").read_text(), flags=re.MULTILINE)
    options = {Requirement(text).name for texts in optional for text in texts} | set(engines)

    named = {canonicalize_name(name) for name in direct}
    assert named - imported - {"uvloop", "protego"} == set()
    assert imported - named - {canonicalize_name(name) for name in options} == set()
    assert SCRIPT["USES"].keys() <= direct
    assert set(PINS) - direct - needed == set()


def test_what_needs_what_is_all_there(bill: dict[str, Any]) -> None:
    """Each component once, each with what it needs, and the crawler with its direct ones."""
    refs = [entry["bom-ref"] for entry in bill["components"]]
    told = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}

    assert len(set(refs)) == len(refs)
    assert told.keys() == {"crawlerproject", *refs}
    assert {ref for needs in told.values() for ref in needs} <= set(refs)
    own = [name for name, (_, is_direct) in PINS.items() if is_direct]
    assert len(told["crawlerproject"]) == len(own) + 1


def test_every_pin_has_its_hashes() -> None:
    """In requirements.lock, of the same version; what it has besides is for other implementations of Python."""
    locked = re.split(r"^(?=[a-z])", (PROJECT / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]
    hashes = {entry.split()[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})\b", entry) for entry in locked}

    assert {f"{canonicalize_name(name)}=={version}" for name, (version, _) in PINS.items()} <= hashes.keys()
    assert all(hashes.values())
