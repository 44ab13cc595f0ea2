"""Which pages of the soak's web are due in a round, and what each of them must say: by reading the files alone."""

from __future__ import annotations

import hashlib
import json
from base64 import b32encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.real_pages.site import RealSite
from benchmarks.real_pages.walker import walk
from benchmarks.soak.web import MAZE, ODD, SoakWeb, class_of, edition, forbidden, is_down, sources

_PORT = 8080  # of the hosts that are walked, which need not listen


def reached(folder: Path) -> dict[str, list[str]]:
    """The paths of each class that links lead to from its first page, kept in ``folder`` once they were found."""
    kept = folder / "due.json"
    if not kept.exists():
        root = folder / "classes" / "root"
        root.mkdir(parents=True, exist_ok=True)
        for name, source in sources().items():
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(source)
        hosts = dict.fromkeys(sources(), "")
        found = walk(RealSite(root.parent, _PORT, hosts, [f"http://{name}:{_PORT}/index.html" for name in hosts]))
        paths: dict[str, list[str]] = {name: [] for name in hosts}
        for url in sorted(found.pages):
            paths[urlsplit(url).hostname or ""].append(urlsplit(url).path)
        kept.write_text(json.dumps(paths))
    known: dict[str, list[str]] = json.loads(kept.read_text())
    return known


def due(web: SoakWeb, generation: int, paths: dict[str, list[str]]) -> Iterator[str]:
    """The URLs that are visited in a generation, each once."""
    for host in web.hosts:
        if class_of(host) in (MAZE, ODD) or is_down(host, generation):
            continue
        shut = forbidden(host, generation)
        front = f"http://{host}:{web.port}"
        yield from (front + path for path in paths[class_of(host)] if not shut or not path.startswith(shut))


def digests(web: SoakWeb, editions: set[int], paths: dict[str, list[str]]) -> Iterator[tuple[str, str, int, str]]:
    """(class, path, edition, SHA-1 in base 32) of every page."""
    for number in sorted(editions):
        folder = edition(web, number)
        for name, pages in paths.items():
            for path in pages:
                body = (folder / name / path.lstrip("/")).read_bytes()
                yield name, path, number, b32encode(hashlib.sha1(body).digest()).decode()
