"""Sockets at paths of any length, for their owner alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from crawlerproject.runtime.unix_sockets import connected, listening


def test_a_path_may_be_longer_than_an_address(tmp_path: Path) -> None:
    """Both ends reach it; no other user does."""
    folder = tmp_path / ("long" * 30) / ("longer" * 20)
    folder.mkdir(parents=True)
    path = folder / "s.sock"
    with listening(path) as server, connected(path, 5.0) as client:
        client.sendall(b"hello")
        with server.accept()[0] as end:
            assert end.recv(9) == b"hello"
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


def test_what_is_left_over_is_no_one(tmp_path: Path) -> None:
    """Nobody answers at it, and it is in nobody's way."""
    path = tmp_path / "s.sock"
    listening(path).close()
    assert path.exists()
    with pytest.raises(ConnectionRefusedError):
        connected(path)
    with listening(path), connected(path):
        pass


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """OSError at both ends."""
    for made in (listening, connected):
        with pytest.raises(FileNotFoundError):
            made(tmp_path / "none" / "s.sock")
