"""SECURITY.md names what is there, and the ports that it calls closed are closed."""

import re
from pathlib import Path

import pytest

from crawlerproject.settings import OURS, TELNETCONSOLE_ENABLED

ROOT = Path(__file__).resolve().parents[1]
NAMED = sorted(set(re.findall(r"`((?:crawlerproject|tests)/[^`]+)`", (ROOT / "SECURITY.md").read_text())))


@pytest.mark.parametrize("named", NAMED)
def test_what_guards_is_there(named: str) -> None:
    """Each file, and in it the test, that a threat's row names."""
    path, _, test = named.partition("::")
    assert (ROOT / path).is_file()
    if test:
        assert re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(), flags=re.MULTILINE)


def test_no_port_is_open_by_default() -> None:
    """What a crawl listens at it was asked to, and then on loopback."""
    assert OURS["WATCH_PORT"] == OURS["WEBSUB_PORT"] == 0
    assert OURS["WATCH_ADDRESS"] == OURS["WEBSUB_ADDRESS"] == "127.0.0.1"
    assert not TELNETCONSOLE_ENABLED
