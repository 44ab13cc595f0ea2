"""Which reader is in use: by the setting, by the environment, and by what can be loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.native.build import compiler, file_name, headers
from tests.native.copies import NATIVE, asked, copy_of_the_room, make

pytestmark = pytest.mark.skipif(not (compiler() and headers()), reason="there is no C compiler")

NEVER = "from crawlerproject import native; native.choose('never'); print(native.choice.sentence, native.reader)"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the small extension."""
    project = copy_of_the_room(tmp_path_factory.mktemp("built") / "project")
    assert make(project).returncode == 0
    return project


def test_it_is_used_where_it_is(built: Path) -> None:
    """Without a word."""
    assert asked(built) == ("native True", "")


def test_the_environment_forces_python(built: Path) -> None:
    """As a process of ours starts another; any other value than 0 means nothing."""
    assert asked(built, CRAWLER_NATIVE="0") == ("Python (CRAWLER_NATIVE=0 is in the environment) False", "")
    assert asked(built, CRAWLER_NATIVE="1") == ("native True", "")


def test_the_setting_forces_python(built: Path) -> None:
    """Also in the processes that read for it (tests/reading/test_process_pool.py)."""
    assert asked(built, NEVER) == ("Python (NATIVE_READER is never) None", "")


def test_one_of_another_python_is_not_loaded(built: Path, tmp_path: Path) -> None:
    """Its file name says so; one warning names it."""
    project = copy_of_the_room(tmp_path / "project")
    (project / NATIVE / "_page.cpython-39-x86_64-linux-gnu.so").write_bytes(b"")

    said, warned = asked(project)

    assert said.startswith("Python (the native reader was built for another Python (_page.cpython-39-")
    assert warned.count("Pages are read in Python") == 1


def test_a_file_that_cannot_be_loaded_stops_nothing(tmp_path: Path) -> None:
    """Half a file, or one that misses a library."""
    project = copy_of_the_room(tmp_path / "project")
    (project / NATIVE / file_name()).write_bytes(b"\x7fELF half")

    said, warned = asked(project)

    assert said.startswith("Python (the native reader cannot be loaded (")
    assert warned.count("Pages are read in Python") == 1


def test_an_installed_one_has_no_sources_beside_it(built: Path, tmp_path: Path) -> None:
    """A wheel holds both parts, of the same sources."""
    project = copy_of_the_room(tmp_path / "project")
    (project / NATIVE / "module.c").unlink()
    (project / NATIVE / file_name()).write_bytes((built / NATIVE / file_name()).read_bytes())

    assert asked(project) == ("native True", "")
