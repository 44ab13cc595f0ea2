"""Copies of robots.txt: one per version, named so that no origin can leave the folder."""

from pathlib import Path

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.stores.logs.robots_copies import save_robots


def test_each_version_once(tmp_path: Path) -> None:
    """The same body again is not copied; a changed one is, and so is one that came back."""
    first = save_robots(tmp_path, "https://a.test", 1000.0, b"one")
    assert save_robots(tmp_path, "https://a.test", 2000.0, b"one") == first
    second = save_robots(tmp_path, "https://a.test", 3000.0, b"two")
    third = save_robots(tmp_path, "https://a.test", 4000.0, b"one")
    assert first.read_bytes() == third.read_bytes() == b"one"
    assert second.read_bytes() == b"two"
    assert sorted(first.parent.iterdir()) == [first, second, third]


def test_origins_are_apart(tmp_path: Path) -> None:
    """Scheme, port and address literal make folders of their own, inside the folder."""
    origins = ["http://a.test", "https://a.test", "http://a.test:81", "http://[::1]:81", "http://../../x"]
    copies = [save_robots(tmp_path, origin, 1000.0, b"x") for origin in origins]
    assert len({copy.parent for copy in copies}) == len(origins)
    assert all(copy.resolve().is_relative_to(tmp_path.resolve()) for copy in copies)


def test_refused_write_is_a_storage_error(tmp_path: Path) -> None:
    """A folder that cannot be made is said as a storage error."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError):
        save_robots(tmp_path / "file", "http://a.test", 1000.0, b"x")
