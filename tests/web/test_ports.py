"""The ports that tests give to their servers."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.web import ports


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_port_that_either_protocol_has_taken_is_not_drawn(
    kind: socket.SocketKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that listens for both finds both free."""
    with socket.socket(socket.AF_INET, kind) as taken:
        block = ports.free_port(ports=3)
        taken.bind(("127.0.0.1", block + 1))
        monkeypatch.setattr(ports, "_PORTS", range(block, block + 3))
        monkeypatch.setattr(ports, "_BLOCK_PORTS", 3)
        monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "1")
        drawn = iter([True, True])
        monkeypatch.setattr("random.SystemRandom", lambda: _Once(drawn))

        with pytest.raises(StopIteration):
            ports.free_port(ports=3)


class _Once:
    """Draws as often as ``draws`` lasts."""

    def __init__(self, draws: Iterator[int]) -> None:
        self._draws = draws

    def choice(self, among: range) -> int:
        next(self._draws)
        return among[0]

    def randrange(self, below: int) -> int:
        return 0


def test_test_processes_side_by_side_draw_from_different_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them never find the same free port."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "4")
    drawn = []
    for worker in ("gw0", "gw3"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        drawn.append({(ports.free_port() - 12_000) // 100 % 4 for _ in range(30)})

    assert drawn == [{0}, {3}]
