"""Whose hosts are whose by the plan, and what goes with the next commit."""

from __future__ import annotations

from crawlerproject.fleet.local.local_mail import LocalHosts
from crawlerproject.frontier.other_workers import Links, RobotsWanted, unpack_message
from crawlerproject.frontier.passage import seed_found
from crawlerproject.stores.protocols import Changes
from tests.fleet.local.mail_workers import hosts_of, links, plan_of

PLAN = plan_of("worker-1", "worker-2")
OURS, (THEIRS, MORE) = hosts_of(PLAN, "worker-1", 1)[0], hosts_of(PLAN, "worker-2", 2)


def test_hosts_of_others_are_never_asked() -> None:
    """Not even for a file that a page in the browser wants: their clocks are elsewhere."""
    hosts = LocalHosts(PLAN, "worker-1", 77.0)
    assert (hosts.mine(OURS), hosts.may_ask(OURS)) == (True, True)
    assert (hosts.mine(THEIRS), hosts.may_ask(THEIRS)) == (False, False)
    assert (hosts.unsure_until(OURS), hosts.doubt_seconds) == (77.0, 0.0)
    assert hosts.partitions == PLAN.held("worker-1")
    assert hosts.partition(OURS) in hosts.partitions


def test_seeds_of_others_are_not_sent_but_where_they_lead_is() -> None:
    """Every worker is given the seeds; of links between hosts each goes to its own."""
    hosts, (own, other, link) = (
        LocalHosts(PLAN, "worker-1"),
        links(*(f"http://{host}/" for host in (OURS, THEIRS, MORE))),
    )
    seeds = [seed_found(own.address), seed_found(other.address)]
    moved = seed_found(link.address)._replace(hops="R")
    assert hosts.parted([*seeds, link, own, moved, other]) == ([seeds[0], own], [link, moved, other])


def test_all_that_was_written_goes_with_one_commit() -> None:
    """Links by partition, so many a message; afterwards nothing is left."""
    hosts, changes = LocalHosts(PLAN, "worker-1"), Changes(messages=[(5, b"before")])
    assert not hosts.writing
    hosts.send(THEIRS, RobotsWanted(f"http://{OURS}", f"http://{THEIRS}/", "R", ""))
    hosts.send_links(links(*(f"http://{THEIRS}/{number}" for number in range(230)), f"http://{MORE}/"))
    assert hosts.writing
    hosts.add_messages(changes)
    assert not hosts.writing

    (before, *packed) = changes.messages
    assert before == (5, b"before")
    messages = [(partition, unpack_message(each)) for partition, each in packed]
    theirs = hosts.partition(THEIRS)
    sizes = [(partition, len(message.found)) for partition, message in messages if isinstance(message, Links)]
    assert sorted(sizes) == sorted([(theirs, 100), (theirs, 100), (theirs, 30), (hosts.partition(MORE), 1)])
    assert [partition for partition, message in messages if isinstance(message, RobotsWanted)] == [theirs]
    hosts.add_messages(changes)
    assert len(changes.messages) == 6
