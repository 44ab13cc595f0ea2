"""Workers at one address have turns by what their domains have used of it, and slow ones give way."""

from __future__ import annotations

from crawlerproject.rules.politeness.address_turns import (
    KEPT_SECONDS,
    LATEST_SECONDS,
    LONG_APART,
    MOST_DOMAINS,
    SOONEST_SECONDS,
    AddressTurns,
)

REST = 0.5


def used(turns: AddressTurns, worker: str, domain: str, now: float, seconds: float) -> None:
    """The worker has its turn and gives it back."""
    assert turns.ask(worker, domain, now) == 0.0
    turns.held(domain, seconds, now + seconds, took_seconds=seconds, rest_seconds=REST, quick_waits=False)


def test_a_worker_that_waits_has_the_next_turn() -> None:
    """Whichever of them asks first when the address is free; the other asks again soon."""
    turns = AddressTurns()
    assert turns.ask("a", "one.test", 10.0) == 0.0
    assert turns.ask("b", "two.test", 10.1, held_seconds=0.1) == SOONEST_SECONDS
    turns.held("one.test", 0.2, 10.2, took_seconds=0.2, rest_seconds=REST, quick_waits=False)
    assert round(turns.ask("b", "two.test", 10.3, free_at=10.7), 6) == 0.4
    assert turns.ask("a", "one.test", 10.7) == SOONEST_SECONDS
    assert turns.ask("b", "two.test", 10.8) == 0.0


def test_a_long_request_is_asked_about_seldom() -> None:
    """A quick one's end is met soon."""
    turns = AddressTurns()
    waits = [turns.ask("b", "two.test", 10.0 + held, held_seconds=held) for held in (0.0, 0.3, 20.0)]
    assert waits == [SOONEST_SECONDS, 0.15, LATEST_SECONDS]


def test_a_worker_that_does_not_come_back_is_not_waited_for() -> None:
    """It has a second from the moment that it was told."""
    turns = AddressTurns()
    waits = turns.ask("b", "two.test", 10.0, held_seconds=0.1)
    used(turns, "b", "other.test", 10.0, 0.1)
    turns.ask("b", "two.test", 10.2, held_seconds=0.1)
    turns.held("one.test", 0.1, 10.2, took_seconds=0.1, rest_seconds=REST, quick_waits=False)
    assert turns.ask("a", "one.test", 11.0) > 0
    assert turns.ask("a", "one.test", 10.2 + waits + KEPT_SECONDS) == 0.0


def test_the_domain_that_has_used_the_address_least_is_next() -> None:
    """A site that is asked now and then is not behind one that is asked all the time."""
    turns = AddressTurns()
    for number in range(10):
        used(turns, "a", "busy.test", 10.0 + number, 0.4)
    assert turns.ask("b", "calm.test", 20.0, held_seconds=0.1) > 0
    turns.ask("a", "busy.test", 20.0, free_at=20.5)
    assert turns.ask("a", "busy.test", 20.6) > 0
    assert turns.ask("b", "calm.test", 20.6) == 0.0


def test_one_that_comes_is_owed_nothing_for_the_time_before() -> None:
    """Else new domains, however many they are, would keep out those that are there."""
    turns = AddressTurns()
    used(turns, "a", "site.test", 10.0, 0.1)
    turns.ask("a", "site.test", 11.0, held_seconds=0.1)
    turns.ask("b", "busy.test", 11.0, held_seconds=0.1)
    for number in range(3):
        turns.ask("c", f"new{number}.test", 11.5, held_seconds=0.1)
    assert turns.ask("c", "new3.test", 12.0) > 0
    assert turns.ask("b", "busy.test", 12.0) == 0.0


def test_a_slow_domain_gives_way_to_quick_ones_wherever_they_wait() -> None:
    """For fifteen times as long as it kept one waiting; a quick domain of its worker does not."""
    turns = AddressTurns()
    turns.ask("a", "slow.test", 10.0)
    turns.ask("b", "quick.test", 19.9, held_seconds=9.9)
    turns.held("slow.test", 10.0, 20.0, took_seconds=10.0, rest_seconds=REST, quick_waits=False)
    used(turns, "b", "quick.test", 20.5, 0.1)
    assert turns.ask("a", "slow.test", 30.0) == 30.0 - (20.0 + LONG_APART * 10.0)
    used(turns, "a", "other.test", 30.0, 0.1)
    assert turns.ask("b", "slow.test", 30.0) < 0, "another worker's too"
    assert turns.ask("a", "slow.test", 170.0) == 0.0


def test_a_quick_domain_behind_a_slow_one_in_its_worker_s_line_is_waited_for() -> None:
    """Whether its worker has the turn or another."""
    for quick_waits_at in ("a", "b"):
        turns = AddressTurns()
        used(turns, "b", "slow2.test", 1.0, 2.0)
        turns.ask("a", "slow1.test", 10.0)
        turns.ask("b", "slow2.test", 11.9, quick_waits=quick_waits_at == "b", held_seconds=1.9)
        turns.held("slow1.test", 2.0, 12.0, took_seconds=2.0, rest_seconds=REST, quick_waits=quick_waits_at == "a")
        assert turns.ask("b", "slow2.test", 12.5) == 12.5 - (12.0 + LONG_APART * 2.0)


def test_a_quick_domain_may_be_late_for_once() -> None:
    """What it takes is judged by several requests; one that was never quick is slow at once."""
    turns = AddressTurns()
    used(turns, "a", "slow.test", 1.0, 10.0)
    for number, seconds in enumerate((0.1, 3.0, 0.1)):
        turns.ask("b", "other.test", 20.0 + number, held_seconds=0.1)
        used(turns, "a", "site.test", 30.0 + 10 * number, seconds)
    assert turns.ask("a", "site.test", 60.0) == 0.0
    assert turns.ask("a", "slow.test", 60.0) == 0.0


def test_one_that_has_become_slow_is_quick_again_by_quick_answers() -> None:
    """Three of them make up for one of five seconds; until then it gives way with the others."""
    turns = AddressTurns()
    used(turns, "a", "site.test", 20.0, 0.1)
    used(turns, "a", "site.test", 30.0, 5.0)
    for number in range(3):
        turns.held("slow.test", 10.0, 100.0, took_seconds=10.0, rest_seconds=REST, quick_waits=True)
        assert (turns.ask("a", "site.test", 101.0) < 0) == (number < 2)
        turns.held("site.test", 0.1, 102.0, took_seconds=0.1, rest_seconds=REST, quick_waits=False)


def test_the_way_of_questions_and_answers_makes_no_domain_slow() -> None:
    """A worker far from the table, or a busy one, holds an address for longer than its request takes."""
    turns = AddressTurns()
    for number in range(5):
        turns.held("site.test", 3.0, 10.0 * number, took_seconds=0.1, rest_seconds=REST, quick_waits=True)
    turns.held("slow.test", 2.0, 50.0, took_seconds=2.0, rest_seconds=REST, quick_waits=True)
    assert turns.ask("a", "slow.test", 51.0) < 0
    assert turns.ask("b", "site.test", 51.0) == 0.0


def test_where_all_are_slow_none_gives_way() -> None:
    """Nothing is gained by keeping an address idle; the one that has used least is next."""
    turns = AddressTurns()
    used(turns, "a", "one.test", 10.0, 20.0)
    used(turns, "b", "two.test", 31.0, 5.0)
    turns.ask("b", "two.test", 40.0, held_seconds=1.0)
    assert turns.ask("a", "one.test", 41.0) == 0.0


def test_domains_that_are_owed_nothing_are_forgotten() -> None:
    """A content network's address has thousands."""
    turns = AddressTurns()
    for number in range(5 * MOST_DOMAINS):
        turns.ask("a", f"site{number}.test", float(number))
        turns._clock = float(number)
        turns.held(f"site{number}.test", 0.1, float(number), took_seconds=0.1, rest_seconds=REST, quick_waits=False)
    assert len(turns._used_until) <= MOST_DOMAINS + 1
    assert turns.idle(1e6)
