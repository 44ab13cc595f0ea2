"""A worker's incarnations outlive its process."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.fleet.redis.identity import Identity


def test_what_was_remembered_last_is_known(tmp_path: Path) -> None:
    """The latest first; nothing before the first start; for this user's eyes alone."""
    path = tmp_path / "worker.json"
    identity = Identity(path, "web", "one")

    assert identity.incarnations() == []
    identity.remember(["b", "a"])
    identity.remember(["c", "b", "a"])
    assert Identity(path, "web", "one").incarnations() == ["c", "b", "a"]
    assert path.stat().st_mode & 0o077 == 0
