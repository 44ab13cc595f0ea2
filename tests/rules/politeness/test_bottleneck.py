"""How fast pauses let a crawl be, when they let it end, and what bounds it now."""

from __future__ import annotations

import pytest

from crawlerproject.rules.politeness.bottleneck import Load, PaceLimits, Queue, bound_by, pace_limits


def queue(host: str, address: str = "", urls: int = 1, free_in: float = 0.0, response: float = 0.0) -> Queue:
    """A host with the default pace."""
    return Queue(host, address, urls, 5.0, response, free_in)


def forty(*addresses: str) -> list[Queue]:
    """Forty names with ten URLs each, spread over these addresses."""
    return [queue(f"n{number}.test", addresses[number % len(addresses)], 10) for number in range(40)]


def test_forty_names_at_one_address_get_two_answers_a_second() -> None:
    """Each name allows 0.2/s, all together 8.0/s; the address with its pause of 0.5 s allows 2/s."""
    assert pace_limits(forty("192.0.2.1"), 0.5).per_second == pytest.approx(2.0)
    assert pace_limits(forty(""), 0.5).per_second == pytest.approx(8.0)
    assert pace_limits(forty("192.0.2.1"), None).per_second == pytest.approx(8.0)


def test_their_end_waits_for_the_address() -> None:
    """Four hundred URLs, one every 0.5 s, though each name would be done in 45 s."""
    assert pace_limits(forty("192.0.2.1"), 0.5).seconds == pytest.approx(400 * 0.5 - 0.5)
    assert pace_limits(forty("192.0.2.1"), None).seconds == pytest.approx(10 * 5 - 5)


def test_two_addresses_share_them() -> None:
    """Twenty names each allow 4/s an address, of which the pause leaves 2/s each."""
    assert pace_limits(forty("192.0.2.1", "192.0.2.2"), 0.5).per_second == pytest.approx(4.0)


def test_few_names_are_bound_by_themselves() -> None:
    """Three names at one address ask for 0.6/s, which the address allows."""
    few = [queue(f"n{number}.test", "192.0.2.1", 3) for number in range(3)]

    assert pace_limits(few, 0.5).per_second == pytest.approx(0.6)
    assert pace_limits(few, 0.5).seconds == pytest.approx(3 * 5 - 5)


def test_an_answer_takes_its_time() -> None:
    """One at a time: an address whose answers take 1.5 s serves one every two seconds."""
    slow = [queue(f"n{number}.test", "192.0.2.1", 10, response=1.5) for number in range(40)]

    assert pace_limits(slow, 0.5).per_second == pytest.approx(0.5)
    assert pace_limits(slow, 0.5).seconds == pytest.approx(400 * 2.0 - 0.5)


def test_ports_of_a_name_share_its_clock() -> None:
    """Four ports are asked in turn, at the pace of one host."""
    ports = [queue("n.test", urls=5), *(queue(f"n.test:{port}", urls=5) for port in (8000, 8080, 8443))]

    assert pace_limits(ports, 0.5) == PaceLimits(pytest.approx(0.2), pytest.approx(20 * 5 - 5), 1, 0)  # type: ignore[arg-type]


def test_the_slowest_host_decides_the_end() -> None:
    """A host that rests for an hour is done after that, whatever the others do."""
    both = [queue("a.test", urls=100), queue("b.test", urls=2, free_in=3600.0)]

    assert pace_limits(both, 0.5).seconds == pytest.approx(3600 + 2 * 5 - 5)


@pytest.mark.parametrize(
    ("queues", "expected"),
    [([], PaceLimits(0.0, 0.0, 0, 0)), ([queue("a.test", urls=0)], PaceLimits(0.0, 0.0, 0, 0))],
)
def test_without_work_nothing_is_allowed_or_left(queues: list[Queue], expected: PaceLimits) -> None:
    """No host with work: no rate, no time."""
    assert pace_limits(queues, 0.5) == expected


def test_without_pauses_nothing_bounds_them() -> None:
    """A pace of 0 s and no response time: there is no number to say."""
    assert pace_limits([Queue("a.test", "", 3, 0.0, 0.0, 0.0)], None).per_second is None


QUIET = Load("", 0.1, 0.0, 0, 1000, 0, 0, 0)


@pytest.mark.parametrize(
    ("load", "what"),
    [
        (QUIET._replace(paused="no room", cpu_share=1.0), "disk"),
        (QUIET._replace(cpu_share=0.97, waiting=5000), "cpu"),
        (QUIET._replace(lag_seconds=0.4, waiting=5000), "cpu"),
        (QUIET._replace(in_flight=990, ready=200), "leases"),
        (QUIET._replace(in_flight=3, waiting=400), "politeness"),
        (QUIET._replace(in_flight=300, waiting=40), "network"),
        (QUIET._replace(waiting=1), "politeness"),
        (QUIET._replace(resting=7), "rests"),
        (QUIET, "nothing"),
        (QUIET._replace(in_line=39, queued=89), "politeness"),
        (QUIET._replace(in_line=39, in_flight=1, queued=89), "politeness"),
        (QUIET._replace(looked_up=40, queued=89), "dns"),
        (QUIET._replace(ready=40, queued=89), "network"),
        (QUIET._replace(queued=89), "start"),
    ],
)
def test_the_bottleneck(load: Load, what: str) -> None:
    """One load, one word."""
    assert bound_by(load).what == what
    assert bound_by(load).text


@pytest.mark.parametrize("hosts", ["in_line", "looked_up", "ready", "waiting", "resting", "in_flight"])
def test_queued_urls_are_never_bound_by_nothing(hosts: str) -> None:
    """Wherever their hosts are: 89 URLs were once bound by nothing, while their hosts stood in line for an address."""
    assert bound_by(Load(**{**QUIET._asdict(), "queued": 89, hosts: 1})).what != "nothing"


def test_it_says_what_hosts_wait_for() -> None:
    """The pause of an address is named apart from that of the hosts."""
    assert bound_by(QUIET._replace(in_line=39)).text == (
        "politeness: 39 hosts wait for the pause of their IP address or name"
    )
    assert "4 hosts with work keep their pause, 3 hosts wait for" in bound_by(QUIET._replace(waiting=4, in_line=3)).text


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (QUIET._replace(waiting=1), "1 host with work keeps its pause"),
        (QUIET._replace(waiting=1, in_line=2), "2 hosts wait for the pause of their IP address or name"),
        (QUIET._replace(in_line=1), "1 host waits for the pause of its IP address or name"),
        (QUIET._replace(looked_up=1), "the DNS: 1 host without an address yet"),
        (QUIET._replace(in_flight=1), "the network: 1 answer on the way"),
        (QUIET._replace(ready=1), "the network: 1 host about to be asked"),
        (QUIET._replace(resting=1), "rests: 1 host with work"),
        (QUIET._replace(queued=1), "the start: 1 URL of an earlier run"),
    ],
)
def test_one_is_no_plural(load: Load, words: str) -> None:
    """Each sentence with its smallest count, and with the verb that belongs to it."""
    assert words in bound_by(load).text
