"""Scripts are started by their path, with nothing of the project on the interpreter's path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [path for path in sorted((ROOT / "scripts").glob("*.py")) if "__main__" in path.read_text()]
# As the interpreter reads a script, up to its last line; -I: neither the folder nor the environment counts.
READ = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='read')"


@pytest.mark.parametrize("script", [pytest.param(path, id=path.name) for path in SCRIPTS])
def test_a_script_is_read_without_the_project_on_the_path(script: Path, tmp_path: Path) -> None:
    """It puts the project there itself before it imports of it."""
    command = [sys.executable, "-I", "-c", READ, str(script)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert ended.stderr == ""
    assert ended.returncode == 0


def test_make_crawl_refuses_as_scrapy_does(tmp_path: Path) -> None:
    """The whole way of ``make crawl``, up to the crawl that refuses its seeds."""
    command = [sys.executable, str(ROOT / "scripts" / "crawl.py"), "--", "-s", f"CRAWL_DIR={tmp_path / 'crawl'}"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SEEDS": "ftp://example.org/"}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 2
    assert "error: No usable seed" in ended.stderr
    assert "Traceback" not in ended.stderr
