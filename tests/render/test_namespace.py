"""The browser's network namespace: the first way that the system allows, or the reason why there is none."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from crawlerproject.render.namespace import Launcher, NoNamespace

# As util-linux has it, but for the namespace: what comes after "--" is run.
_RUNS = 'while [ "$1" != "--" ]; do shift; done; shift'


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for, with a browser in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program(folder / "chrome", 'echo "Chromium $*"')
    return folder


def program(path: Path, script: str) -> str:
    """A program of one line."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def unshare(tools: Path, *, network: str) -> None:
    """``unshare``, whose children see ``network`` as their namespace."""
    program(tools / "readlink", f"echo {network}")
    program(tools / "unshare", f'{_RUNS}; exec "$@"')


def test_the_browser_starts_with_its_arguments(tools: Path) -> None:
    """Through a script that only this user may read, which is gone with the launcher."""
    unshare(tools, network="net:[1]")
    launcher = Launcher(str(tools / "chrome"))

    shown = subprocess.run([launcher.path, "--headless", "a b"], capture_output=True, text=True, check=True)
    assert shown.stdout == "Chromium --headless a b\n"
    assert stat.S_IMODE(Path(launcher.path).stat().st_mode) == 0o700
    assert stat.S_IMODE(Path(launcher.path).parent.stat().st_mode) == 0o700
    launcher.close()
    assert not Path(launcher.path).parent.exists()


def test_the_second_way_is_taken_where_the_first_is_forbidden(tools: Path) -> None:
    """Root may have a namespace at once; anyone else by a user namespace of their own."""
    program(tools / "readlink", "echo net:[1]")
    program(tools / "unshare", f'[ "$1" = --net ] && exit 1; {_RUNS}; exec "$@"')
    launcher = Launcher(str(tools / "chrome"))

    assert "--user --map-current-user --net --" in Path(launcher.path).read_text()
    launcher.close()


def test_a_system_that_allows_none_says_why(tools: Path) -> None:
    """In its own words."""
    program(tools / "unshare", "echo 'unshare: Operation not permitted' >&2; exit 1")

    with pytest.raises(NoNamespace, match="Operation not permitted"):
        Launcher(str(tools / "chrome"))


def test_a_namespace_that_is_the_same_is_none(tools: Path) -> None:
    """A program that runs what it is given without one would have the browser go online."""
    program(tools / "unshare", f'{_RUNS}; exec /usr/bin/env PATH=/usr/bin:/bin "$@"')

    with pytest.raises(NoNamespace, match="made none"):
        Launcher(str(tools / "chrome"))


def test_without_unshare_there_is_none(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on other systems."""
    monkeypatch.setenv("PATH", str(tools))

    with pytest.raises(NoNamespace, match="no program unshare"):
        Launcher(str(tools / "chrome"))


def test_a_browser_that_does_not_start_in_it_is_reported(tools: Path) -> None:
    """And nothing is left behind."""
    unshare(tools, network="net:[1]")

    with pytest.raises(NoNamespace, match="does not start"):
        Launcher(str(tools / "missing"))
