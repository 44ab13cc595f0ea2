"""Which Python ``make`` prepares the environment with, and what it says about it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.scripts.loading import loaded
from tests.web.running import PROJECT

# Stands for a Python of another version and build: runs the script that it is given as that one.
FAKE = """#!/bin/sh
exec {python} -c '
import runpy, sys, sysconfig
sys.version_info, sys.base_prefix = ({version}), "/opt/python"
sysconfig.get_config_var = lambda name: "{arguments}"
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")' "$@"
"""
OPTIMISED = "--enable-optimizations"


def recipe(folder: Path, pythons: dict[str, str], *arguments: str) -> str:
    """What ``make crawl`` would run in a fresh copy where these are on PATH, by their names: version, and how built.

    A name with a folder is in a folder of its own, which PATH names later.
    """
    (folder / "scripts").mkdir()
    for each in ("Makefile", "scripts/python_build.py"):
        shutil.copyfile(PROJECT / each, folder / each)
    for name in ("id", "sh", "uname"):
        _place(folder / "programs" / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    for name, what in pythons.items():
        version, _, build = what.partition(" with ")
        program = _place(folder / "programs" / name)
        program.write_text(FAKE.format(python=sys.executable, version=version, arguments=build))
        program.chmod(0o755)
    (folder / "requirements.txt").touch()
    folders = [folder / "programs", *sorted(each for each in (folder / "programs").iterdir() if each.is_dir())]
    done = subprocess.run(
        [shutil.which("make") or "make", "-n", "crawl", *arguments],
        cwd=folder, env={"PATH": ":".join(map(str, folders))}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.replace(f"{folder}/programs/", "")


def _place(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        ({"python3": "3, 11", "python3.12": "3, 12", "python3.13": "3, 13"}, "python3.13"),
        ({"python3": "3, 11", "python3.14": "3, 14", "python3.13": "3, 13"}, "python3.14"),
        ({"python3": "3, 15", "python3.11": "3, 11"}, "python3.11"),  # newer than what has been tried
        ({"python3": "3, 12"}, "python3"),
        ({"python3": "3, 10"}, "python3"),  # and the recipe refuses it
        ({"python3.13": "3, 13", "python3.11": f"3, 11 with {OPTIMISED}"}, "python3.11"),
        ({"python3.11": "3, 11", "system/python3.11": f"3, 11 with {OPTIMISED}"}, "system/python3.11"),
        ({"python3.11": "3, 11", "python3.10": f"3, 10 with {OPTIMISED}"}, "python3.11"),
    ],
)
def test_the_newest_that_is_supported(tmp_path: Path, pythons: dict[str, str], taken: str) -> None:
    """Of the optimised ones, if PATH has one at all; whatever ``python3`` may be."""
    assert f"\n{taken} -m venv .venv\n" in recipe(tmp_path, pythons)


def test_one_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    """As a name that a version manager holds without the version."""
    assert "\npython3 -m venv .venv\n" in recipe(tmp_path, {"python3.14": "no version", "python3": "3, 11"})


def test_the_one_that_is_named_is_taken(tmp_path: Path) -> None:
    """By ``make PYTHON=…``."""
    assert "\npython3.12 -m venv .venv\n" in recipe(
        tmp_path, {"python3.12": "3, 12", "python3.13": "3, 13"}, "PYTHON=python3.12"
    )


def test_an_environment_that_is_there_is_kept(tmp_path: Path) -> None:
    """Its own Python brings it up to date, however old it is."""
    _place(tmp_path / ".venv" / "bin" / "python").touch()

    assert "\n.venv/bin/python -m venv .venv\n" in recipe(tmp_path, {"python3.13": "3, 13"})


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """scripts/python_build.py as a module."""
    return loaded("python_build")


@pytest.mark.parametrize(
    ("arguments", "prefix", "said"),
    [
        ("'--enable-shared' '--prefix=/opt/python'", "/opt/python", True),
        ("", "/usr/local", True),
        ("'--enable-optimizations' '--with-lto'", "/usr/local", False),
        ("'--with-computed-gotos' '--without-ensurepip'", "/usr", False),  # Debian's, which is optimised
        (None, "/opt/python", False),  # of another build system: nothing is known
    ],
)
def test_an_unoptimised_build_is_named_with_its_price(
    script: ModuleType, arguments: str | None, prefix: str, said: bool
) -> None:
    """In one line, and only where it is certain."""
    line = script.line("3.11.7", arguments, prefix)

    assert bool(line) == said
    assert "\n" not in line
    assert not said or f"Python 3.11.7 in {prefix} was built without --enable-optimizations: a page costs 10 to" in line
