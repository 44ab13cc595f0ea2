"""Seeds and lists of the operator's as other programs write them: UTF-16, packed, in an encoding of the past."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.arena import SETTINGS, arena, page
from tests.web.running import crawl_command, finish, start

ENCODERS: dict[str, Callable[[str], bytes]] = {
    "UTF-8 with a mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.replace("\n", "\r\n").encode("utf-16"),
    "the other UTF-16": lambda text: b"\xfe\xff" + text.encode("utf-16-be"),
    "gzip": lambda text: gzip.compress(text.encode()),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_seeds_and_exclusions_hold(tmp_path: Path, name: str) -> None:
    """A list that is not understood would let in whom it excludes."""
    with arena(tmp_path) as web:
        for host in ("wanted.test", "excluded.test"):
            web.site(host, lambda asked: page(text=asked.path) if asked.path == "/" else None)
        listed, never = tmp_path / "seeds", tmp_path / "never.txt"
        listed.write_bytes(ENCODERS[name](f"{web.url('wanted.test')}\n{web.url('excluded.test')}\n"))
        never.write_bytes(ENCODERS[name]("excluded.test\n"))
        settings = {**SETTINGS, "NEVERCRAWL_FILE": str(never)}
        process = start(crawl_command(listed, tmp_path / "crawl", tmp_path / "hosts", settings), None)
        assert finish(process, 0.0).status == 0

    assert web.paths("wanted.test") == ["/"]
    assert web.of("excluded.test", robots=True) == []
