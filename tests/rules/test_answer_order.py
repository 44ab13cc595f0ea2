"""Which answers are shown: near duplicates once, two of a host before others, the rest where there is room."""

from __future__ import annotations

import pytest

from crawlerproject.rules.answer_order import Candidate, Shown, Weights, choose, weighed


def test_two_of_a_host_come_before_others() -> None:
    """The third one waits, is shown where there is room, and is said where there is none."""
    candidates = [Candidate(host, None) for host in ("a", "a", "a", "b", "a", "c")]

    assert choose(candidates, 4) == [Shown(0, 0, 0), Shown(1, 0, 2), Shown(3, 0, 0), Shown(5, 0, 0)]
    assert choose(candidates, 5) == [
        Shown(0, 0, 0), Shown(1, 0, 0), Shown(3, 0, 0), Shown(5, 0, 0), Shown(2, 0, 1)
    ]  # fmt: skip
    assert [shown.place for shown in choose(candidates, 9)] == [0, 1, 3, 5, 2, 4]
    assert [shown.place for shown in choose(candidates, 3, most_of_a_host=3)] == [0, 1, 2]


def test_near_duplicates_are_one_answer() -> None:
    """Within six bits on a host, within three across hosts; the first of a group stands for it."""
    one = 0x0F0F_0F0F_0F0F_0F0F
    six_bits, three_bits = one ^ 0b111111, one ^ 0b111
    candidates = [Candidate("a", one), Candidate("b", six_bits), Candidate("a", six_bits), Candidate("c", three_bits)]

    assert choose(candidates, 9) == [Shown(0, 2, 0), Shown(1, 0, 0)]
    assert choose([Candidate("a", None)] * 2, 9) == [Shown(0, 0, 0), Shown(1, 0, 0)]


@pytest.mark.parametrize(
    ("page", "host", "score"), [(0.0, 0.0, 4.0), (1.0, 0.0, 6.0), (0.0, 1.0, 5.0), (0.5, 0.5, 5.5)]
)
def test_ranks_weigh_a_score(page: float, host: float, score: float) -> None:
    """A page without a rank keeps what its text scores."""
    assert weighed(4.0, page, host, Weights(0.5, 0.25)) == pytest.approx(score)
