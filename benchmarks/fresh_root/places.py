"""Empty places to install in, and how a command is run there."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

USER = 10001  # of the container, too
HOME = "/srv"
SUITE = "bookworm"
PYTHON = ("python3", "python3-venv")


def run(*command: str, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command to its end; SystemExit with the end of what it said when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    if check and done.returncode:
        raise SystemExit(
            f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done


@dataclass(frozen=True, slots=True)
class Place:
    """Where the crawler is installed; ``root`` is "/" for an environment beside others."""

    root: Path
    home: Path  # as it is called outside
    enter: tuple[str, ...]  # what precedes a command

    def inside(self, path: Path) -> str:
        """A path of ours as it is called there."""
        return str(path) if self.root == Path("/") else "/" + str(path.relative_to(self.root))

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command there, to its end."""
        return run(*self.enter, *command, cwd=self.home, check=check)

    def program(self, name: str) -> str:
        """One of the environment's."""
        return self.inside(self.home / "environment" / "bin" / name)


def empty_environment(work: Path) -> Place:
    """A folder, and a process without an environment."""
    home = work / "home"
    home.mkdir()
    clean = ("env", "-i", f"HOME={home}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8")
    place = Place(Path("/"), home, clean)
    place.run(sys.executable, "-m", "venv", str(home / "environment"))
    return place


def debian(root: Path, *packages: str) -> None:
    """A minimal Debian, made by debootstrap unless it is there; as root."""
    if not (root / "usr" / "bin").is_dir():
        run("debootstrap", "--variant=minbase", f"--include={','.join((*PYTHON, *packages))}", SUITE, str(root))


def debian_root(root: Path) -> Place:
    """A Debian as a chroot, in a mount namespace of its own with its own /proc, as a user without rights."""
    debian(root)
    home = root / HOME.lstrip("/") / f"fresh-{int(time.time())}"
    home.mkdir(parents=True)
    shutil.chown(home, USER, USER)
    script = f'mount -t proc proc {root}/proc && cd / && exec "$@"'
    inner = f"/{home.relative_to(root)}"
    enter = (
        *("unshare", "--mount", "sh", "-c", script, "sh", "chroot", f"--userspec={USER}:{USER}", str(root)),
        *("env", "-i", "-C", inner, f"HOME={inner}", "PATH=/usr/bin:/bin", "LANG=C.UTF-8"),
    )
    place = Place(root, home, enter)
    place.run("python3", "-m", "venv", place.inside(home / "environment"))
    return place
