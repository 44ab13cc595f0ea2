"""Released versions as wheels, and the packages that they need."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.fresh_root.places import Place
from tests.web.running import PROJECT


def released(version: str) -> str:
    """The commit that gave the package this version; anything but a version is a revision as git calls it."""
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version):
        return version
    pattern = f'__version__ = "{version}"'
    log = ["git", "log", "--format=%H", "--reverse", f"-S{pattern}", "--", "crawlerproject/__init__.py"]
    found = subprocess.run(log, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split()
    if not found:
        raise SystemExit(f"There is no commit of version {version} in this clone's history.")
    return found[0]


def source_of(revision: str, folder: Path) -> Path:
    """The files of a revision, into an empty ``folder``."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", revision], cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)
    return folder


def wheel_of(revision: str, work: Path) -> Path:
    """Its wheel, built from its source distribution."""
    source, built = source_of(revision, work / "source"), work / "built"
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(built)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (sdist,) = built.glob("*.tar.gz")
    made = [sys.executable, "-m", "pip", "-q", "wheel", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*made, str(sdist), "-w", str(work)], cwd=work, check=True)
    (wheel,) = work.glob("*.whl")
    return wheel


def packages(folder: Path) -> None:
    """All pins as wheels, by their hashes; those that are there are kept."""
    pip = [sys.executable, "-m", "pip", "-q", "wheel", "--require-hashes", "--no-build-isolation"]
    pip += ["--only-binary", ":all:", "--no-binary", "surt"]  # which has no wheel
    subprocess.run([*pip, "-r", str(PROJECT / "requirements.lock"), "-w", str(folder)], check=True)


def scrapyd_package(folder: Path) -> Path:
    """scrapyd as a wheel, of the version that the tests run; what it needs is among the pins."""
    (pin,) = re.findall(r"^scrapyd==\S+$", (PROJECT / "requirements-dev.txt").read_text(), flags=re.MULTILINE)
    pip = [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*pip, pin, "-w", str(folder)], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(place: Place, wheels: Sequence[Path]) -> None:
    """Into the environment there, from files alone."""
    folder = place.home / "wheels"
    folder.mkdir(exist_ok=True)
    names = [shutil.copy(wheel, folder) for wheel in wheels]
    for path in (folder, *map(Path, names)):
        path.chmod(0o755)
    pip = (place.program("python"), "-m", "pip", "-q", "install", "--no-index", "--no-deps", "--force-reinstall")
    place.run(*pip, *(place.inside(Path(name)) for name in names))
