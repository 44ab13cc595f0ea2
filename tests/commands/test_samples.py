"""``scrapy samples``: what the package brings along, written once."""

from __future__ import annotations

from pathlib import Path

from tests.commands.running import scrapy
from tests.web.running import PROJECT


def test_they_are_the_repositorys_and_nothing_is_written_over(tmp_path: Path) -> None:
    """Samples, units and licence, byte by byte; a second time is refused before anything is written."""
    folder = tmp_path / "mine"
    done = scrapy("samples", str(folder))
    (folder / "broad.toml").unlink()
    again = scrapy("samples", str(folder))

    written = {line.removeprefix(f"{folder}/") for line in done.stdout.splitlines()}
    sources = {"LICENSE": PROJECT / "LICENSE"} | {path.name: path for path in (PROJECT / "samples").glob("*.toml")}
    sources |= {f"systemd/{path.name}": path for path in (PROJECT / "deploy" / "systemd").iterdir()}
    assert written == set(sources)
    (sources.pop("broad.toml"))
    assert all((folder / name).read_bytes() == path.read_bytes() for name, path in sources.items())
    assert (again.returncode, again.stderr) == (2, f"{folder}/LICENSE is there already; name another folder.\n")
    assert not (folder / "broad.toml").exists()


def test_without_a_folder_that_is_said() -> None:
    """One sentence with an example."""
    done = scrapy("samples")

    assert (done.returncode, done.stderr) == (2, "Give a folder, for example: scrapy samples samples\n")
