"""What the kernel says of a browser's renderers: whether Chromium's sandbox is around them."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_FILTERED = 2  # proc(5): SECCOMP_MODE_FILTER
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Confinement:
    """One renderer, from /proc/PID."""

    seccomp: int  # 0: none, 2: a filter of system calls
    no_new_privileges: bool
    capabilities: int  # effective, as bits
    root: str  # what it has as /
    own: frozenset[str]  # namespaces that are not those of its crawl: user, pid, net

    @property
    def stands(self) -> bool:
        """Both layers of Chromium's sandbox on Linux: the namespaces with an empty root, and the filter."""
        shut = self.own == {"user", "pid", "net"} and self.root != "/" and not self.capabilities
        return shut and self.no_new_privileges and self.seccomp == _FILTERED


def renderers(crawl: int) -> list[Confinement]:
    """Those that descend from the process ``crawl``; needs the rights of their user, or root's."""
    parents = {int(folder.name): _parent(folder) for folder in _PROC.glob("[0-9]*")}
    found = []
    for pid in parents:
        above = pid
        while (above := parents.get(above, 0)) not in (0, crawl):
            pass
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if above == crawl and b"--type=renderer" in (_PROC / str(pid) / "cmdline").read_bytes():
                found.append(_confinement(_PROC / str(pid), _PROC / str(crawl)))
    return found


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _confinement(folder: Path, crawl: Path) -> Confinement:
    fields = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
    places = [(name, *(os.readlink(each / "ns" / name) for each in (folder, crawl))) for name in ("user", "pid", "net")]
    return Confinement(
        seccomp=int(fields["Seccomp"]),
        no_new_privileges=int(fields["NoNewPrivs"]) == 1,
        capabilities=int(fields["CapEff"], 16),
        root=os.readlink(folder / "root"),
        own=frozenset(name for name, theirs, crawls in places if theirs != crawls),
    )
