"""A processor that is behind asks for less, and is never idle for it."""

from __future__ import annotations

from collections import deque

import pytest

from crawlerproject.runtime.send_window import LEAST, SendWindow

MOST = 1_000  # FRONTIER_MAX_IN_FLIGHT
TURN_SECONDS = 0.01
READS_A_TURN = 8
SENDS_A_TURN = 20  # what the dispatch's own budget lets through


class Crawl:
    """Turns of a loop: what is free is sent, answers come after some turns, and eight are read in each turn."""

    def __init__(self, answer_turns: int) -> None:
        self.window = SendWindow()
        self.coming: deque[int] = deque([0] * answer_turns)
        self.turns = self.unread = self.under_way = self.idle_turns = 0

    def turn(self, free: int) -> int:
        """One turn, with work for ``free`` requests; how many were sent."""
        self.turns += 1
        sent = 0
        while self.window.open(self.under_way, self.unread, self.turns * TURN_SECONDS):
            if sent == min(free, SENDS_A_TURN) or self.under_way == MOST:
                break
            self.window.sent()
            self.under_way += 1
            sent += 1
        self.coming.append(sent)
        self.unread += self.coming.popleft()
        read = min(self.unread, READS_A_TURN)
        self.unread -= read
        self.under_way -= read
        self.idle_turns += read < READS_A_TURN
        return sent


@pytest.mark.parametrize("answer_turns", [1, 2, 5, 20, 50, 100])
def test_no_more_are_under_way_than_the_distance_needs_and_no_turn_is_idle(answer_turns: int) -> None:
    """With more work than it can do: those on the wire, and a hundred more that wait."""
    crawl = Crawl(answer_turns)
    for _ in range(1_000):
        crawl.turn(free=MOST)
    crawl.idle_turns = 0
    for _ in range(2_000):
        crawl.turn(free=MOST)
        assert crawl.under_way <= answer_turns * READS_A_TURN + 100

    assert crawl.idle_turns == 0


def test_while_every_answer_is_read_nothing_is_held_back() -> None:
    """Fewer come than could be read."""
    crawl = Crawl(answer_turns=5)
    assert [crawl.turn(free=READS_A_TURN - 1) for _ in range(1_000)] == [READS_A_TURN - 1] * 1_000


def test_hosts_that_never_answer_take_no_place_for_long() -> None:
    """A thousand are under way within five seconds, though none of them ends."""
    crawl = Crawl(answer_turns=10**6)
    crawl.turn(free=MOST)
    while crawl.under_way < MOST:
        crawl.turn(free=MOST)

    assert crawl.turns * TURN_SECONDS <= 5.0


def test_a_wave_of_free_hosts_does_not_go_out_at_once() -> None:
    """All of a thousand are free: the first go, then others as they end."""
    crawl = Crawl(answer_turns=5)
    for _ in range(100):
        crawl.turn(free=3)
    wave = MOST
    while wave > 0:
        wave -= crawl.turn(free=wave)
        assert crawl.under_way <= LEAST

    assert crawl.unread < LEAST
