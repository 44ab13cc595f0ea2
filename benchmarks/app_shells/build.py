"""``python -m benchmarks.app_shells.build FOLDER``: build the starter templates of the npm registry, keep their HTML.

Needs node, npm and a network: about five minutes and 1 GB of disk. Each template of create-vite is installed and built
as its readme says, and Angular's starter by its own tool; FOLDER then holds one ``NAME.html`` for each.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

CREATE_VITE = "create-vite@9.3.0"
ANGULAR = "@angular/cli@19"
VITE_TEMPLATES = ("vanilla", "react", "preact", "vue", "svelte", "solid", "lit")
_SECONDS = 600


def run(folder: Path, *command: str) -> None:
    """One command of a build; its failure is this script's."""
    subprocess.run(command, cwd=folder, check=True, timeout=_SECONDS, stdout=subprocess.DEVNULL)


def vite(work: Path, template: str) -> Path:
    """Build one template; the built index.html."""
    run(work, "npx", "--yes", CREATE_VITE, template, "--template", template, "--no-interactive")
    project = work / template
    run(project, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error")
    run(project, "npx", "vite", "build")
    return project / "dist" / "index.html"


def angular(work: Path) -> Path:
    """Build Angular's starter; the built index.html."""
    options = ("--defaults", "--skip-git", "--skip-tests", "--no-interactive")
    run(work, "npx", "--yes", "-p", ANGULAR, "ng", "new", "angular", *options)
    run(work / "angular", "npx", "ng", "build")
    return next((work / "angular" / "dist").rglob("index*.html"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.app_shells.build", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{base}{language}" for base in VITE_TEMPLATES for language in ("", "-ts")]
    for name in [*names, "angular"]:
        with tempfile.TemporaryDirectory() as work:
            try:
                built = angular(Path(work)) if name == "angular" else vite(Path(work), name)
                shutil.copy(built, folder / f"{name}.html")
            except (subprocess.SubprocessError, OSError, StopIteration) as error:
                print(f"{name}: not built ({error})", flush=True)
            else:
                print(f"{name}: built", flush=True)


if __name__ == "__main__":
    main()
