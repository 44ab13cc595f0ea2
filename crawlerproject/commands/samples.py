"""``scrapy samples DIR``: files to begin with, which the package brings along."""

from __future__ import annotations

import argparse
from importlib import metadata, resources
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import OperatorCommand, one_argument
from crawlerproject.stores.atomic_files import write_whole
from crawlerproject.terminal import say

_PACKAGE = "crawlerproject"


class Command(OperatorCommand):
    """Never writes over a file."""

    arguments = "DIR"
    summary = "Write samples of crawl.toml, units for systemd and the licence into a folder"
    details = (
        "Copy what the package brings along: samples of crawl.toml, units for systemd, the licence. No file that is "
        "there is written over. Example: scrapy samples samples"
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Write them all, or nothing."""
        folder = Path(one_argument(args, "a folder", "scrapy samples samples"))
        files = {"LICENSE": _licence()}
        root = resources.files(_PACKAGE) / "samples"
        for part in (root, root / "systemd"):
            prefix = "systemd/" if part.name == "systemd" else ""
            files |= {prefix + file.name: file.read_text() for file in part.iterdir() if file.is_file()}
        there = [name for name in sorted(files) if (folder / name).exists()]
        if there:
            raise OperatorError(f"{folder / there[0]} is there already; name another folder.")
        (folder / "systemd").mkdir(parents=True, exist_ok=True)
        for name, text in sorted(files.items()):
            write_whole(folder / name, text.encode())
            say(str(folder / name))


def _licence() -> str:
    """Of an installed package its metadata have it; a checkout has it beside the package."""
    with resources.as_file(resources.files(_PACKAGE)) as package:
        checkout = package.parent / "LICENSE"
        if checkout.is_file():
            return checkout.read_text()
    return metadata.distribution(_PACKAGE).read_text("licenses/LICENSE") or ""
