"""The package that ``pip install`` gets: what it holds, what it needs, and that it crawls without a checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

from crawlerproject import __version__
from crawlerproject.command_list import version as said_version
from crawlerproject.native.build import LEXBOR, compiler, file_name, headers
from tests.hostile.arena import SETTINGS, arena
from tests.web.running import IDENTITY, PROJECT

BUILT_FROM = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "requirements.lock", "deploy/build.lock")


def copy_of_the_project(folder: Path, *rooms: str) -> Path:
    """What a package is built from, so that nothing is left in the checkout; with the lexbor that ``make`` fetched.

    ``rooms``: without the others, where what they hold is not asked for.
    """
    never = shutil.ignore_patterns("__pycache__", "*.so")

    def ignored(place: str, names: list[str]) -> set[str]:
        others = [name for name in names if rooms and name not in rooms and Path(place, name).is_dir()]
        return never(place, names) | set(others if Path(place) == PROJECT / "crawlerproject" else ())

    shutil.copytree(PROJECT / "crawlerproject", folder / "crawlerproject", ignore=ignored)
    if LEXBOR.is_dir():
        shutil.copytree(LEXBOR, folder / "build" / "lexbor")
    (folder / "deploy").mkdir()
    for name in BUILT_FROM:
        shutil.copyfile(PROJECT / name, folder / name)
    return folder


def built_from(source: Path, what: str, folder: Path, **environment: str) -> Path:
    """The ``wheel`` or ``sdist`` of a project, built as ``pip`` and ``build`` do it."""
    folder.mkdir()
    code = f"from setuptools import build_meta; build_meta.build_{what}({str(folder)!r})"
    # Nothing that is not of the project shall lie among its sources; the suite lets workers write what they compile.
    clean = {"PYTHONDONTWRITEBYTECODE": "1"}
    quick = {"CFLAGS": "-O0 -U_FORTIFY_SOURCE"}  # the same functions, built in a third of the time
    given = {**os.environ, **clean, **quick, **environment}
    subprocess.run([sys.executable, "-c", code], cwd=source, env=given, check=True, capture_output=True, timeout=200)
    (found,) = folder.glob("crawlerproject-*")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a user builds it."""
    source = copy_of_the_project(tmp_path_factory.mktemp("source"))
    return built_from(source, "wheel", tmp_path_factory.mktemp("package") / "wheel")


def test_it_holds_every_file_of_the_package_and_the_licence(wheel: Path) -> None:
    """What lies beside the code as well; of the C sources what is made of them."""
    ours = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "crawlerproject").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".c", ".h", ".patch", ".so"}
    }

    with ZipFile(wheel) as opened:
        names = set(opened.namelist())
        facts = message_from_bytes(opened.read(f"crawlerproject-{__version__}.dist-info/METADATA"))

    assert ours - names == set()
    native = f"crawlerproject/native/{file_name()}" in names
    for licence in ("LICENSE", *(("lexbor/LICENSE", "lexbor/NOTICE") if native else ())):
        assert f"crawlerproject-{__version__}.dist-info/licenses/{licence}" in names
    assert facts["License-Expression"] == "BSD-3-Clause AND Apache-2.0"


@pytest.mark.skipif(not (compiler() and headers()), reason="there is no C compiler")
def test_with_a_compiler_it_holds_the_native_reader(wheel: Path) -> None:
    """And is for this Python on this platform."""
    with ZipFile(wheel) as opened:
        names = set(opened.namelist())

    assert f"crawlerproject/native/{file_name()}" in names
    assert wheel.stem.split("-")[2:] == [f"cp{sys.version_info.major}{sys.version_info.minor}"] * 2 + [
        sysconfig.get_platform().replace("-", "_").replace(".", "_")
    ]


def test_without_a_compiler_it_is_for_every_platform(tmp_path: Path) -> None:
    """The same package, whose pages are read in Python."""
    source = copy_of_the_project(tmp_path / "source", "native")
    (tmp_path / "nothing").mkdir()

    built = built_from(source, "wheel", tmp_path / "wheel", PATH=str(tmp_path / "nothing"), CC="")

    assert built.stem.endswith("-py3-none-any")
    with ZipFile(built) as opened:
        assert [name for name in opened.namelist() if name.endswith((".so", ".c", ".h"))] == []


def test_what_does_not_compile_is_left_out(tmp_path: Path) -> None:
    """It is optional: the wheel is that of a machine without a compiler."""
    source = copy_of_the_project(tmp_path / "source", "native")
    first = min((source / "crawlerproject" / "native").glob("*.c"))  # the others are not compiled then
    first.write_text("broken\n")

    wheel = built_from(source, "wheel", tmp_path / "wheel")

    assert wheel.stem.endswith("-py3-none-any")
    with ZipFile(wheel) as opened:
        assert [name for name in opened.namelist() if "licenses/lexbor" in name] == []


def test_without_lexbor_it_is_left_out(tmp_path: Path) -> None:
    """As where no package index can be reached."""
    source = copy_of_the_project(tmp_path / "source", "native")
    shutil.rmtree(source / "build", ignore_errors=True)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}

    assert built_from(source, "wheel", tmp_path / "wheel", **offline).stem.endswith("-py3-none-any")


def test_the_source_distribution_holds_what_a_build_needs(tmp_path: Path) -> None:
    """Our C sources, also where there is no compiler, and the hashes of lexbor, but not lexbor."""
    source = copy_of_the_project(tmp_path / "source")
    with tarfile.open(built_from(source, "sdist", tmp_path / "sdist", PATH="")) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    native = source / "crawlerproject" / "native"

    assert {str(path.relative_to(source)) for path in native.rglob("*") if path.is_file()} - names == set()
    assert set(BUILT_FROM) - names == set()
    assert [name for name in names if name.startswith("build/")] == []


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
    assert run(home, program, "--version").stdout == said_version() + "\n"
    assert run(home, program, "samples", "here").returncode == 0
    assert (home / "here" / "one-site.toml").read_text() == (PROJECT / "samples" / "one-site.toml").read_text()
    assert (home / "here" / "LICENSE").read_text() == (PROJECT / "LICENSE").read_text()
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
        [
            *(sys.executable, "-m", "pip", "-q", "--python", str(python)),
            *("install", "--no-deps", "--no-index", "--no-compile", str(wheel)),  # most of it is never imported
        ],
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
