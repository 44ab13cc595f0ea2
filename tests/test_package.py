"""The package that ``pip install`` gets: what it holds, what it needs, and that it crawls without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from crawlerproject import __version__
from tests.hostile.arena import SETTINGS, arena
from tests.web.running import IDENTITY, PROJECT

BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy, so that nothing is left in the checkout."""
    copy, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    shutil.copytree(PROJECT / "crawlerproject", copy / "crawlerproject", ignore=shutil.ignore_patterns("__pycache__"))
    for name in BUILT_FROM:
        shutil.copyfile(PROJECT / name, copy / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(built), "."]
    subprocess.run(command, cwd=copy, check=True, capture_output=True, timeout=100)
    (found,) = built.glob("crawlerproject-*.whl")
    return found


def test_it_holds_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    """What lies beside the code as well; of the C sources what is made of them."""
    ours = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "crawlerproject").rglob("*")
        if path.is_file() and not {"__pycache__", "lexbor"} & set(path.parts) and path.suffix not in {".c", ".h", ".so"}
    }

    with ZipFile(wheel) as opened:
        names = set(opened.namelist())
        facts = message_from_bytes(opened.read(f"crawlerproject-{__version__}.dist-info/METADATA"))

    assert ours - names == set()
    for licence in ("LICENSE", "crawlerproject/native/lexbor/LICENSE", "crawlerproject/native/lexbor/NOTICE"):
        assert f"crawlerproject-{__version__}.dist-info/licenses/{licence}" in names
    assert facts["License-Expression"] == "BSD-3-Clause AND Apache-2.0"


def pins() -> Iterator[tuple[str, str]]:
    """Name and version of what requirements.txt lists as needed by us, not by those."""
    text = (PROJECT / "requirements.txt").read_text().partition("# What those need")[0]
    for line in text.splitlines():
        if "==" in line:
            name, _, version = line.partition("==")
            yield name, version


def test_it_needs_what_is_tested() -> None:
    """Each direct requirement from its pin on, and nothing else."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    needed = {requirement.name: requirement for requirement in map(Requirement, project["dependencies"])}

    assert set(needed) == {name for name, _ in pins()}
    for name, version in pins():
        assert f">={version}" in str(needed[name].specifier).split(",")
        assert version in needed[name].specifier


def test_it_crawls_and_answers_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """The installed command, far from any checkout: a small site is crawled, and ``why`` knows its page."""
    home = tmp_path / "home"
    home.mkdir()
    program = installed(wheel, tmp_path / "environment")
    with arena(tmp_path / "web") as web:
        seed = web.innocent(pages=3)
        given = {
            **SETTINGS, **IDENTITY, "FETCH_HOSTS_FILE": str(web.folder / "hosts"),
            "FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
        }  # fmt: skip
        del given["NEVERCRAWL_FILE"]  # as a newcomer, who has none
        options = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]

        crawled = run(home, program, "crawl", "web", "-a", f"seeds={seed}", *options)
        why = run(home, program, "why", web.url("innocent.test", "/page/2"))

    assert crawled.returncode == 0, crawled.stderr[-2000:]
    assert why.returncode == 0, why.stderr
    assert "fetched" in why.stdout
    assert list((home / "crawls" / "web" / "warc").glob("*.warc.gz"))


def installed(wheel: Path, environment: Path) -> Path:
    """The wheel's command in a new environment, which sees what we need where the tests have it."""
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True, capture_output=True, timeout=100,
    )  # fmt: skip
    return environment / "bin" / "polite-crawler"


def run(home: Path, program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in ``home``, without anything of the checkout's in its environment."""
    unwanted = ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE", "CRAWLERPROJECT_ANYWHERE")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in unwanted and not name.lower().endswith("_proxy")
    }
    return subprocess.run(
        [program, *arguments], cwd=home, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
